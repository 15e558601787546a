//! A session on a thread of its own, and how it is reached from others.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use super::shared::{Message, lock};
use super::{Command, Driver, Notice, Setup, Spent};

/// A session that runs on a thread of its own.
pub struct Handle {
    events: Sender<Message>,
    thread: Option<thread::JoinHandle<Spent>>,
}

/// Tells a session what somebody wants, from any thread.
#[derive(Clone)]
pub struct Remote(Sender<Message>);

impl Remote {
    /// Tells it. False if the session is over.
    pub fn send(&self, command: Command) -> bool {
        self.0.send(Message::Command(command)).is_ok()
    }
}

impl Handle {
    /// Tells it what somebody wants. False if it is over.
    pub fn send(&self, command: Command) -> bool {
        self.events.send(Message::Command(command)).is_ok()
    }

    /// Something to tell it from other threads with.
    pub fn remote(&self) -> Remote {
        Remote(self.events.clone())
    }

    /// Waits for its end: what was spent.
    pub fn join(mut self) -> Spent {
        let thread = self.thread.take();
        let _ = self.events.send(Message::Command(Command::Close));
        thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Nobody can tell it anything any more.
        let _ = self.events.send(Message::Command(Command::Interrupt));
        let _ = self.events.send(Message::Command(Command::Close));
    }
}

/// Starts a session. `notices` is called on its thread.
pub fn start(setup: Setup, notices: impl FnMut(Notice) + Send + 'static) -> Handle {
    let (sender, events) = channel();
    let remote = sender.clone();
    let thread = thread::spawn(move || {
        let mut driver = Driver::new(setup, None, sender, events, Box::new(notices));
        driver.run(None);
        let spent = lock(&driver.shared.spent).clone();
        (driver.notices)(Notice::Closed);
        spent
    });
    Handle {
        events: remote,
        thread: Some(thread),
    }
}
