//! The program in a terminal of its own, for tests.
#![cfg(unix)]

use std::io::{Read, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use unspool_testkit::home::Home;

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The program in a terminal.
pub struct Terminal {
    pub master: Box<dyn MasterPty + Send>,
    pub child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    pub said: Arc<Mutex<(vt100::Parser, Vec<u8>)>>,
    /// Whether everything was read.
    read: Arc<AtomicBool>,
}

impl Terminal {
    pub fn start(home: &Home, rows: u16, cols: u16, args: &[&str]) -> Terminal {
        let mut command = home.command();
        command.args(args);
        Terminal::of(&command, rows, cols)
    }

    /// A command in a terminal of this size.
    pub fn of(command: &Command, rows: u16, cols: u16) -> Terminal {
        let size = PtySize {
            rows,
            cols,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut builder = CommandBuilder::new(command.get_program());
        builder.env_clear();
        for (name, value) in command.get_envs() {
            builder.env(name, value.unwrap_or_default());
        }
        builder.env("TERM", "xterm-256color");
        builder.env_remove("COLUMNS");
        builder.cwd(command.get_current_dir().unwrap());
        builder.args(command.get_args());
        let child = pair.slave.spawn_command(builder).unwrap();
        drop(pair.slave);
        let said = Arc::new(Mutex::new((vt100::Parser::new(rows, cols, 0), Vec::new())));
        let mut from = pair.master.try_clone_reader().unwrap();
        let heard = Arc::clone(&said);
        let read = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&read);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read) = from.read(&mut bytes) {
                if read == 0 {
                    break;
                }
                let mut heard = heard.lock().unwrap();
                heard.0.process(&bytes[..read]);
                heard.1.extend_from_slice(&bytes[..read]);
            }
            end.store(true, Ordering::SeqCst);
        });
        Terminal {
            keys: pair.master.take_writer().unwrap(),
            master: pair.master,
            child,
            said,
            read,
        }
    }

    pub fn screen(&self) -> String {
        self.said.lock().unwrap().0.screen().contents()
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.said.lock().unwrap().1.clone()
    }

    /// The screen, and whether no frame is only half there.
    fn look(&self) -> (String, bool) {
        let said = self.said.lock().unwrap();
        let last = |mark: &[u8]| said.1.windows(mark.len()).rposition(|part| part == mark);
        let drawn = last(b"\x1b[?2026h") <= last(b"\x1b[?2026l");
        (said.0.screen().contents(), drawn)
    }

    /// Waits until the screen is as wanted.
    pub fn until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let (screen, drawn) = self.look();
            if drawn && wanted(&screen) {
                return screen;
            }
            assert!(start.elapsed() < PATIENCE, "no {what} on\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn shows(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }

    /// Waits until the cursor stands in a column.
    pub fn until_cursor(&self, column: u16) {
        self.until(&format!("cursor in column {column}"), |_| {
            self.said.lock().unwrap().0.screen().cursor_position().1 == column
        });
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Gives the terminal another size.
    pub fn resize(&self, rows: u16, cols: u16) {
        self.resize_screen(rows, cols);
        self.tell_size(rows, cols);
    }

    /// Gives the screen another size, which the program does not know of.
    pub fn resize_screen(&self, rows: u16, cols: u16) {
        self.said
            .lock()
            .unwrap()
            .0
            .screen_mut()
            .set_size(rows, cols);
    }

    /// Tells the program of another size.
    pub fn tell_size(&self, rows: u16, cols: u16) {
        let size = PtySize {
            rows,
            cols,
            pixel_width: 0,
            pixel_height: 0,
        };
        self.master.resize(size).unwrap();
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.process_id().unwrap().to_string();
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// The names of its threads.
    #[cfg(target_os = "linux")]
    pub fn threads(&self) -> Vec<String> {
        let id = self.child.process_id().unwrap();
        let tasks = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        let names = tasks.flatten().filter_map(|task| name(task).ok());
        names.map(|name| name.trim().to_owned()).collect()
    }

    /// Whether the program is stopped, as a shell would see it.
    pub fn is_stopped(&self) -> bool {
        let id = self.child.process_id().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('T'))
    }

    pub fn ends(&mut self) -> u32 {
        let start = Instant::now();
        loop {
            // What it said last may still be on its way.
            let read = self.read.load(Ordering::SeqCst);
            if let Some(status) = self.child.try_wait().unwrap().filter(|_| read) {
                return status.exit_code();
            }
            assert!(start.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Nothing of the browser is left in the terminal.
    pub fn is_as_before(&self) {
        let said = self.said.lock().unwrap();
        let screen = said.0.screen();
        assert!(!screen.alternate_screen(), "the other screen");
        assert!(!screen.bracketed_paste(), "paste");
        assert!(!screen.hide_cursor(), "cursor");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        // Echo and lines, as a shell has them.
        let modes = self.master.get_termios().unwrap().local_flags.bits();
        assert_eq!(modes & 0o12, 0o12, "raw mode");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
