//! A session on a thread of its own, and how it is reached from others.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use super::shared_session::{DriverMessage, lock};
use super::{RunUsage, SessionCommand, SessionDriver, SessionNotice, SessionSetup};

/// A session that runs on a thread of its own.
pub struct SessionHandle {
    events: Sender<DriverMessage>,
    thread: Option<thread::JoinHandle<RunUsage>>,
}

/// Tells a session what somebody wants, from any thread.
#[derive(Clone)]
pub struct SessionCommandSender(Sender<DriverMessage>);

impl SessionCommandSender {
    /// Tells it. False if the session is over.
    pub fn send(&self, command: SessionCommand) -> bool {
        self.0.send(DriverMessage::Command(command)).is_ok()
    }
}

impl SessionHandle {
    /// Tells it what somebody wants. False if it is over.
    pub fn send(&self, command: SessionCommand) -> bool {
        self.events.send(DriverMessage::Command(command)).is_ok()
    }

    /// Something to tell it from other threads with.
    pub fn remote(&self) -> SessionCommandSender {
        SessionCommandSender(self.events.clone())
    }

    /// Waits for its end: what was spent.
    pub fn join(mut self) -> RunUsage {
        let thread = self.thread.take();
        let _ = self
            .events
            .send(DriverMessage::Command(SessionCommand::Close));
        thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    }
}

impl Drop for SessionHandle {
    fn drop(&mut self) {
        // Nobody can tell it anything any more.
        let _ = self
            .events
            .send(DriverMessage::Command(SessionCommand::Interrupt));
        let _ = self
            .events
            .send(DriverMessage::Command(SessionCommand::Close));
    }
}

/// Starts a session. `notices` is called on its thread.
pub fn start(
    setup: SessionSetup,
    notices: impl FnMut(SessionNotice) + Send + 'static,
) -> SessionHandle {
    let (sender, events) = channel();
    let remote = sender.clone();
    let thread = thread::spawn(move || {
        let mut driver = SessionDriver::new(setup, None, sender, events, Box::new(notices));
        driver.run(None);
        let spent = lock(&driver.shared.spent).clone();
        (driver.notices)(SessionNotice::Closed);
        spent
    });
    SessionHandle {
        events: remote,
        thread: Some(thread),
    }
}
