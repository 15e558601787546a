//! A sub-agent that works while the conversation goes on.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Worker;
use crate::driver::{Message, lock, whole};
use crate::machine::Why;
use crate::stop::Stop;
use crate::tool::Outcome;
use crate::tools::{Background, Done};

/// What is known of it from outside.
#[derive(Debug)]
pub(super) struct Task {
    id: String,
    call: String,
    description: String,
    prompt: String,
    file: PathBuf,
    stop: Stop,
    over: Mutex<Option<Over>>,
    woken: Condvar,
    told: AtomicBool,
}

/// How it ended.
#[derive(Debug)]
struct Over {
    status: &'static str,
    text: String,
    tokens: u64,
    calls: u64,
    ms: u64,
}

impl Task {
    fn over(&self) -> MutexGuard<'_, Option<Over>> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets a sub-agent work on a thread of its own; what the model is told meanwhile.
pub(super) fn launch(worker: Worker) -> Outcome {
    let call = &worker.call;
    let field = |name: &str| call.input[name].as_str().unwrap_or_default().to_owned();
    let record_path = lock(&worker.driver.shared.record).path().to_owned();
    let task = Arc::new(Task {
        id: worker.id.clone(),
        call: call.id.clone(),
        description: field("description"),
        prompt: field("prompt"),
        file: record_path,
        stop: Stop::new(),
        over: Mutex::default(),
        woken: Condvar::new(),
        told: AtomicBool::new(false),
    });
    let model = lock(&worker.driver.shared.frame).model.clone();
    let file = task.file.display().to_string();
    let text = format!(
        "Async agent launched successfully.\nagentId: {} (for your use, not for the person's; TaskOutput and TaskStop know it)\nThe agent works in the background. You are told when it is done and know nothing of its results before: go on with other work that does not touch the same files, or answer the person.\noutput_file: {file}\nThat file is its whole transcript and too long to be read.",
        task.id
    );
    let result = json!({
        "isAsync": true, "status": "async_launched", "agentId": task.id,
        "description": task.description, "resolvedModel": model, "prompt": task.prompt,
        "outputFile": file,
    });
    worker
        .above
        .kept
        .put(Arc::clone(&task) as Arc<dyn Background>);
    thread::spawn(move || work(worker, &task));
    let mut outcome = Outcome::done("", result);
    outcome.content = crate::call::blocks(&[text]);
    outcome
}

fn work(mut worker: Worker, task: &Task) {
    let began = Instant::now();
    let ran = whole(|| {
        worker.driver.run(Some(&task.stop));
        (worker.outcome(began), worker.driver.ending.clone())
    });
    // One that breaks must not be waited for for ever.
    let (outcome, ending) =
        ran.unwrap_or_else(|| (Outcome::failed("The sub-agent crashed."), None));
    let number = |name: &str| outcome.result[name].as_u64().unwrap_or(0);
    let stopped = ending.is_some_and(|ending| ending.why == Why::Interrupted);
    *task.over() = Some(Over {
        status: match outcome.is_error {
            _ if stopped => "killed",
            Some(true) => "failed",
            _ => "completed",
        },
        text: crate::call::words(&outcome.content),
        tokens: number("totalTokens"),
        calls: number("totalToolUseCount"),
        ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    });
    task.woken.notify_all();
    worker.above.send(Message::News);
}

impl Background for Task {
    fn id(&self) -> &str {
        &self.id
    }

    fn call(&self) -> &str {
        &self.call
    }

    fn kind(&self) -> &'static str {
        "local_agent"
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn command(&self) -> &str {
        &self.prompt
    }

    fn done(&self) -> Option<Done> {
        let status = self.over().as_ref()?.status;
        Some(Done { status, code: None })
    }

    fn wait(&self, time: Duration) {
        let over = self.over();
        let waited = self
            .woken
            .wait_timeout_while(over, time, |over| over.is_none());
        drop(waited);
    }

    fn output(&self, _again: bool) -> String {
        let over = self.over();
        over.as_ref()
            .map_or_else(String::new, |over| over.text.clone())
    }

    fn file(&self) -> PathBuf {
        self.file.clone()
    }

    fn stop(&self) {
        self.stop.tell();
    }

    fn told(&self) -> bool {
        self.told.swap(true, Ordering::Relaxed)
    }

    fn report(&self) -> Option<String> {
        let over = self.over();
        let Over {
            text,
            tokens,
            calls,
            ms,
            ..
        } = over.as_ref()?;
        Some(format!(
            "<result>{text}</result>\n<usage><subagent_tokens>{tokens}</subagent_tokens><tool_uses>{calls}</tool_uses><duration_ms>{ms}</duration_ms></usage>\n"
        ))
    }
}
