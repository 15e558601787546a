//! Tells a daemon that runs what happened.

use unspool_store::hook_events::RecordedHookEvent;

use crate::app_dirs::AppDirs;

/// Tells the daemon, if its socket is there; one that does not listen is not waited for.
/// Whether it was told.
#[cfg(unix)]
pub fn tell(own: &AppDirs, noted: &RecordedHookEvent) -> bool {
    use std::io::Write;
    use std::os::unix::fs::FileTypeExt;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;
    use std::time::Duration;

    /// A hook has no time for more.
    const LIMIT: Duration = Duration::from_millis(20);

    let socket = own.socket();
    let is_socket = std::fs::symlink_metadata(&socket).map(|it| it.file_type().is_socket());
    if !is_socket.unwrap_or(false) {
        return false;
    }
    let line = noted.line() + "\n";
    let (sender, receiver) = mpsc::channel();
    // Connecting waits where nobody accepts; the thread ends with the process.
    std::thread::spawn(move || {
        let told = UnixStream::connect(socket).and_then(|mut stream| {
            stream.set_write_timeout(Some(LIMIT))?;
            stream.write_all(line.as_bytes())
        });
        let _ = sender.send(told.is_ok());
    });
    receiver.recv_timeout(LIMIT).unwrap_or(false)
}

/// There is no such socket here.
#[cfg(not(unix))]
pub fn tell(_: &AppDirs, _: &RecordedHookEvent) -> bool {
    false
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    fn own(dir: &Path) -> AppDirs {
        AppDirs::places(
            |name| (name == "UNSPOOL_HOME").then(|| dir.as_os_str().to_owned()),
            None,
        )
        .unwrap()
    }

    fn noted() -> RecordedHookEvent {
        RecordedHookEvent {
            session: "s".into(),
            event: "Stop".into(),
            ..RecordedHookEvent::default()
        }
    }

    #[test]
    fn a_daemon_gets_the_event_on_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let own = own(dir.path());
        assert!(!tell(&own, &noted()), "nobody is there");
        let listener = UnixListener::bind(own.socket()).unwrap();
        assert!(tell(&own, &noted()));
        let (stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        assert_eq!(
            serde_json::from_str::<RecordedHookEvent>(&line).unwrap(),
            noted()
        );
    }

    #[test]
    fn a_socket_without_a_daemon_or_a_file_in_its_place_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let own = own(dir.path());
        drop(UnixListener::bind(own.socket()).unwrap());
        assert!(!tell(&own, &noted()));
        std::fs::remove_file(own.socket()).unwrap();
        std::fs::write(own.socket(), "").unwrap();
        assert!(!tell(&own, &noted()));
    }
}
