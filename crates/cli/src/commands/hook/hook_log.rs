//! The log of the hook: the only place where it says anything.

use jiff::Zoned;
use unspool_show::clean;
use unspool_store::append_log::AppendLog;

use crate::app_dirs::AppDirs;
use crate::sending;

/// So large a log is put aside.
const MOST: u64 = 1 << 20;

/// A file with a line for everything worth knowing.
pub struct HookLog {
    trail: AppendLog,
    debug: bool,
}

impl HookLog {
    /// The log in our data folder; `CC_LANGFUSE_DEBUG=true` makes it say more.
    pub fn new(own: &AppDirs) -> HookLog {
        HookLog {
            trail: AppendLog::new(own.data.join("hook.log"), MOST),
            debug: sending::hook_debug_enabled(&sending::environment),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &std::path::Path {
        self.trail.path()
    }

    /// Its last line.
    pub fn last(&self) -> Option<String> {
        self.trail.last(64 << 10).ok()?.pop()
    }

    /// Something that helps to find a fault.
    pub fn debug(&self, text: &str) {
        if self.debug {
            self.write("DEBUG", text);
        }
    }

    /// Something was done.
    pub fn info(&self, text: &str) {
        self.write("INFO", text);
    }

    /// Something was odd, but it went on.
    pub fn warn(&self, text: &str) {
        self.write("WARN", text);
    }

    /// Something was not done. Said once: what is set up wrong is so at every event.
    pub fn error(&self, text: &str) {
        let line = format!("[ERROR] {}", clean::line(text));
        if self.last().is_none_or(|last| !last.ends_with(&line)) {
            self.write("ERROR", text);
        }
    }

    fn write(&self, level: &str, text: &str) {
        let now = Zoned::now().strftime("%Y-%m-%d %H:%M:%S");
        // Where nothing can be written, nobody can be told.
        let _ = self
            .trail
            .add(&format!("{now} [{level}] {}", clean::line(text)));
    }
}
