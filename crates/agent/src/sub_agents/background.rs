//! A sub-agent that works while the conversation goes on.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::SubAgentWorker;
use crate::driver::{DriverMessage, catch_panic, lock};
use crate::state_machine::TurnEndReason;
use crate::stop::StopSignal;
use crate::tool::ToolOutcome;
use crate::tools::{BackgroundExit, BackgroundTask};

/// What is known of it from outside.
#[derive(Debug)]
pub(super) struct BackgroundAgent {
    id: String,
    call: String,
    description: String,
    prompt: String,
    file: PathBuf,
    stop: StopSignal,
    over: Mutex<Option<BackgroundAgentEnd>>,
    woken: Condvar,
    told: AtomicBool,
}

/// How it ended.
#[derive(Debug)]
struct BackgroundAgentEnd {
    status: &'static str,
    text: String,
    tokens: u64,
    calls: u64,
    ms: u64,
}

impl BackgroundAgent {
    fn over(&self) -> MutexGuard<'_, Option<BackgroundAgentEnd>> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets a sub-agent work on a thread of its own; what the model is told meanwhile.
pub(super) fn launch(worker: SubAgentWorker) -> ToolOutcome {
    let call = &worker.call;
    let field = |name: &str| call.input[name].as_str().unwrap_or_default().to_owned();
    let record_path = lock(&worker.driver.shared.record).path().to_owned();
    let task = Arc::new(BackgroundAgent {
        id: worker.id.clone(),
        call: call.id.clone(),
        description: field("description"),
        prompt: field("prompt"),
        file: record_path,
        stop: StopSignal::new(),
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
        .put(Arc::clone(&task) as Arc<dyn BackgroundTask>);
    thread::spawn(move || work(worker, &task));
    let mut outcome = ToolOutcome::done("", result);
    outcome.content = crate::tool_call::blocks(&[text]);
    outcome
}

fn work(mut worker: SubAgentWorker, task: &BackgroundAgent) {
    let began = Instant::now();
    let ran = catch_panic(|| {
        worker.driver.run(Some(&task.stop));
        (worker.outcome(began), worker.driver.ending.clone())
    });
    // One that breaks must not be waited for for ever.
    let (outcome, ending) =
        ran.unwrap_or_else(|| (ToolOutcome::failed("The sub-agent crashed."), None));
    let number = |name: &str| outcome.result[name].as_u64().unwrap_or(0);
    let stopped = ending.is_some_and(|ending| ending.why == TurnEndReason::Interrupted);
    *task.over() = Some(BackgroundAgentEnd {
        status: match outcome.is_error {
            _ if stopped => "killed",
            Some(true) => "failed",
            _ => "completed",
        },
        text: crate::tool_call::content_text(&outcome.content),
        tokens: number("totalTokens"),
        calls: number("totalToolUseCount"),
        ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    });
    task.woken.notify_all();
    worker.above.send(DriverMessage::News);
}

impl BackgroundTask for BackgroundAgent {
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

    fn done(&self) -> Option<BackgroundExit> {
        let status = self.over().as_ref()?.status;
        Some(BackgroundExit { status, code: None })
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
        let BackgroundAgentEnd {
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
