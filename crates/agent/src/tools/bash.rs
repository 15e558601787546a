//! Bash: a command in a shell of its own.

mod background_shell;
mod exit_code_meaning;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::background_shell::BackgroundShell;
use super::{number, number_of, object, str_of, text, truth};
use crate::process::{CommandOutput, FILE, RunningCommand, ShellExit, ShellJob, git_environment};
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContent, ToolContext, ToolOutcome};

/// Characters of output that the model is told; more goes to a file.
pub const SHOWN: usize = 30_000;

/// Characters of output that the model is told of a command that failed.
const FAILED: usize = 10_000;

/// Characters of the beginning that stand beside the name of that file.
const PREVIEW: usize = 2_000;

const DEFAULT: u64 = 120_000;
const LONGEST: u64 = 600_000;

/// Between two looks at whether somebody wants it to end.
const LOOK: Duration = Duration::from_millis(20);

/// How long we wait for the end of what we end; it ends even if we do not.
const PATIENCE: Duration = Duration::from_millis(80);

/// The tool.
#[derive(Debug)]
pub struct BashTool;

impl BuiltinTool for BashTool {
    fn name(&self) -> &'static str {
        "Bash"
    }

    fn description(&self) -> String {
        format!(
            "Runs a command in bash and gives what it writes, both outputs as they come.\n\n\
             - Every call is a new shell: `cd` inside the project stays for the next call, \
               variables and functions do not. Standard input is empty, and there is no terminal: \
               nothing can be answered.\n\
             - `timeout` is in milliseconds, {DEFAULT} unless given, at most {LONGEST}. A command \
               that takes longer goes on in the background, or is ended.\n\
             - `run_in_background` for servers and long builds: you are told when it ends; look \
               at it with TaskOutput, end it with TaskStop.\n\
             - More than {SHOWN} characters of output go to a file that you can Read.\n\
             - For files use Read, Edit, Write, Glob and Grep rather than cat, sed, find and grep. \
               Quote paths with spaces. Join what belongs together with `&&`.\n\
             - Commit, push, or change git's configuration only when you are asked to."
        )
    }

    fn schema(&self) -> Value {
        let mut timeout = number("Milliseconds it may take");
        timeout["exclusiveMinimum"] = json!(0);
        timeout["maximum"] = json!(LONGEST);
        object([
            ("command*", text("The command")),
            ("timeout", timeout),
            (
                "description",
                text("What it does, in five to ten words, for the person who reads along"),
            ),
            (
                "run_in_background",
                truth("Return at once and let it go on"),
            ),
            (
                "dangerouslyDisableSandbox",
                truth("Run it outside the sandbox, if there is one; asks first"),
            ),
        ])
    }

    fn only_reads(&self, _: &Value) -> bool {
        // Who allows it knows what it does; we do not look twice.
        false
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        let id = new_id();
        let running = match start(call, &id, scene) {
            Ok(running) => running,
            Err(refused) => return *refused,
        };
        if call.input["run_in_background"] == true {
            return in_background(call, id, running, scene);
        }
        let limit = number_of(&call.input, "timeout").unwrap_or(DEFAULT);
        match watch(&running, Duration::from_millis(limit), call, scene) {
            CommandWatchResult::Ended(ended) => over(&ended, running, call, scene),
            CommandWatchResult::Stopped => stopped(&running),
            CommandWatchResult::Late => late(limit, call, id, running, scene),
        }
    }
}

fn start(
    call: &ToolCallRequest,
    id: &str,
    scene: &ToolContext<'_>,
) -> Result<RunningCommand, Box<ToolOutcome>> {
    if !scene.cwd.is_dir() {
        let project = scene.host.project();
        scene.host.set_cwd(project.to_owned());
        return Err(super::fail(format!(
            "The working directory {} no longer exists. Shell cwd was reset to {}",
            scene.cwd.display(),
            project.display()
        )));
    }
    let kept = scene.host.kept();
    let mut env = scene.host.env().to_vec();
    if !scene.host.runs_as_typed() {
        let before = |name: &str| {
            let given = env.iter().rev().find(|(key, _)| key == name);
            given.map_or_else(
                || std::env::var(name).ok(),
                |(_, value)| Some(value.clone()),
            )
        };
        let more = git_environment::variables(str_of(&call.input, "command"), before);
        env.extend(more);
    }
    let job = ShellJob {
        command: str_of(&call.input, "command"),
        cwd: &scene.cwd,
        guard: kept.guard(),
        before: &scene.host.before_shell(call),
        env: &env,
        file: scene.host.beside().join(format!("tool-results/{id}.txt")),
    };
    RunningCommand::start(&job)
        .map_err(|error| super::fail(format!("cannot start the command: {error}")))
}

enum CommandWatchResult {
    Ended(ShellExit),
    Stopped,
    Late,
}

/// Waits for the end, for somebody who wants it, or for the time to be over; tells how it goes.
fn watch(
    running: &RunningCommand,
    limit: Duration,
    call: &ToolCallRequest,
    scene: &ToolContext<'_>,
) -> CommandWatchResult {
    let end = Instant::now() + limit;
    let mut told = 1;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if let Some(ended) = running.wait(LOOK.min(left)) {
            return CommandWatchResult::Ended(ended);
        }
        if scene.stop.is_told() {
            return CommandWatchResult::Stopped;
        }
        if left.is_zero() {
            return CommandWatchResult::Late;
        }
        let seconds = running.age().as_secs();
        if seconds > told {
            told = seconds;
            scene.host.progress(call, progress(running, seconds));
        }
    }
}

fn progress(running: &RunningCommand, seconds: u64) -> Value {
    let (tail, lines) = running.output(|output| (output.tail(4_000), output.lines()));
    let tail = tail.trim_end();
    let from = tail.rmatch_indices('\n').nth(4).map_or(0, |(at, _)| at + 1);
    json!({
        "type": "bash_progress", "output": &tail[from..], "fullOutput": tail,
        "elapsedTimeSeconds": seconds, "totalLines": lines,
    })
}

/// The shell has ended by itself.
fn over(
    ended: &ShellExit,
    running: RunningCommand,
    call: &ToolCallRequest,
    scene: &ToolContext<'_>,
) -> ToolOutcome {
    if let Some(fault) = &ended.fault {
        return ToolOutcome::failed(format!("cannot start the command: {fault}"));
    }
    let moved = ended.cwd.as_deref().and_then(|cwd| move_to(cwd, scene));
    let command = str_of(&call.input, "command");
    let meaning = exit_code_meaning::of(command, ended.code);
    let outcome = running.output(|output| {
        if ended.code != 0 && meaning.is_none() {
            output.remove_file();
            return failed(ended.code, output, None, moved.as_deref());
        }
        succeeded(output, command, meaning, moved.as_deref())
    });
    if ended.left {
        running.output(CommandOutput::close);
        scene.host.kept().leave(running);
    }
    outcome
}

/// Stands in the new folder from now on if it belongs to the project; otherwise says that not.
fn move_to(cwd: &Path, scene: &ToolContext<'_>) -> Option<String> {
    let host = scene.host;
    if same(cwd, &scene.cwd) {
        return None;
    }
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let cwd = real(cwd);
    let ours = std::iter::once(host.project()).chain(host.dirs().iter().map(PathBuf::as_path));
    if ours.map(real).any(|root| cwd.starts_with(root)) {
        host.set_cwd(cwd);
        return None;
    }
    let project = host.project();
    host.set_cwd(project.to_owned());
    Some(format!("\nShell cwd was reset to {}", project.display()))
}

fn same(one: &Path, two: &Path) -> bool {
    one == two || std::fs::canonicalize(two).is_ok_and(|two| one == two)
}

fn succeeded(
    output: &mut CommandOutput,
    command: &str,
    meaning: Option<&'static str>,
    moved: Option<&str>,
) -> ToolOutcome {
    let whole = output.whole();
    let fits = whole.filter(|text| text.chars().count() <= SHOWN);
    let mut result = json!({
        "stdout": "", "stderr": moved.unwrap_or_default(), "interrupted": false,
        "isImage": false, "noOutputExpected": exit_code_meaning::is_silent(command),
    });
    if let Some(meaning) = meaning {
        result["returnCodeInterpretation"] = json!(meaning);
    }
    let Some(text) = fits else {
        return persisted(output, result);
    };
    output.remove_file();
    let text = trimmed(&text);
    result["stdout"] = json!(text);
    if let Some(url) = exit_code_meaning::pull_request(command, text) {
        result["gitOperation"] = url;
    }
    if let Some(image) = picture(text) {
        result["isImage"] = json!(true);
        return ToolOutcome {
            content: ToolContent::Blocks(vec![image]),
            ..worked("", result)
        };
    }
    let told = [text, moved.unwrap_or_default().trim()];
    let told: Vec<&str> = told.into_iter().filter(|text| !text.is_empty()).collect();
    match told.is_empty() {
        true => worked("(Bash completed with no output)", result),
        false => worked(&told.join("\n"), result),
    }
}

fn worked(text: &str, result: Value) -> ToolOutcome {
    ToolOutcome {
        is_error: Some(false),
        ..ToolOutcome::done(text, result)
    }
}

/// Output that is too long to be told.
fn persisted(output: &CommandOutput, mut result: Value) -> ToolOutcome {
    let size = super::read::size(output.total());
    let stdout = output.head(SHOWN);
    result["stdout"] = json!(stdout);
    let at = match (output.path(), output.fault()) {
        (Some(path), None) => {
            result["persistedOutputPath"] = json!(path.display().to_string());
            result["persistedOutputSize"] = json!(output.total());
            let which = match output.total() > output.saved() {
                true => format!("The first {} of it", super::read::size(FILE)),
                false => "Full output".to_owned(),
            };
            format!("{which} saved to: {}", path.display())
        }
        (_, Some(error)) => format!("It could not be saved: {error}"),
        (None, None) => "It was not saved".to_owned(),
    };
    let preview: String = stdout.chars().take(PREVIEW).collect();
    let text = format!(
        "<persisted-output>\nOutput too large ({size}). {at}\n\nPreview (first 2KB):\n{preview}\n...\n</persisted-output>"
    );
    worked(&text, result)
}

fn failed(
    code: i32,
    output: &CommandOutput,
    why: Option<&str>,
    moved: Option<&str>,
) -> ToolOutcome {
    let shown = match output.whole() {
        Some(text) if text.chars().count() <= FAILED => trimmed(&text).to_owned(),
        _ => {
            let half = FAILED / 2;
            let (head, tail) = (output.head(half), output.tail(half));
            let left = output
                .total()
                .saturating_sub((head.len() + tail.len()) as u64);
            let left = super::read::size(left);
            format!(
                "{}\n\n... [{left} truncated] ...\n\n{}",
                head.trim_start(),
                tail.trim_end()
            )
        }
    };
    let mut text = format!("Exit code {code}");
    let moved = moved.map(str::trim);
    for part in [why, Some(&*shown), moved].into_iter().flatten() {
        if !part.is_empty() {
            text += "\n";
            text += part;
        }
    }
    ToolOutcome::failed(text)
}

/// Without empty lines in front and without white space behind.
fn trimmed(text: &str) -> &str {
    let text = text.trim_end();
    let words = text.len() - text.trim_start().len();
    let from = text[..words].rfind('\n').map_or(0, |at| at + 1);
    &text[from..]
}

/// An image that was written as a `data:` address.
fn picture(text: &str) -> Option<Value> {
    let rest = text.strip_prefix("data:image/")?;
    let (_, data) = rest.split_once(";base64,")?;
    let (kind, _) = unspool_show::image_type::decode(data)?;
    let source = json!({"type": "base64", "data": data, "media_type": kind});
    Some(json!({"type": "image", "source": source}))
}

/// Somebody wants it to end. Whoever asked hears at once; the guard sees to the rest.
fn stopped(running: &RunningCommand) -> ToolOutcome {
    running.end();
    running.wait_gone(PATIENCE);
    let why = "[Request interrupted by user for tool use]";
    running.output(|output| {
        output.remove_file();
        failed(137, output, Some(why), None)
    })
}

/// The time is over: on in the background, or the end for what would never come to one.
fn late(
    limit: u64,
    call: &ToolCallRequest,
    id: String,
    running: RunningCommand,
    scene: &ToolContext<'_>,
) -> ToolOutcome {
    let said = duration(limit);
    if exit_code_meaning::ends_with_its_time(str_of(&call.input, "command")) {
        running.end();
        // What it still says belongs to it.
        let end = Instant::now() + Duration::from_secs(3);
        while !running.wait_gone(LOOK) && Instant::now() < end && !scene.stop.is_told() {}
        let why = format!("Command timed out after {said}");
        return running.output(|output| {
            output.remove_file();
            failed(143, output, Some(&why), None)
        });
    }
    let stdout = running.output(|output| output.head(SHOWN));
    let file = match to_background(call, &id, running, scene) {
        Ok(file) => file,
        Err(error) => return homeless(&error),
    };
    let text = format!(
        "Command did not complete within its {said} timeout and was moved to the background (ID: {id}). Output is being written to: {}",
        file.display()
    );
    let result = json!({
        "stdout": trimmed(&stdout), "stderr": "", "interrupted": false, "isImage": false,
        "noOutputExpected": false, "backgroundTaskId": id, "timedOutAfterMs": limit,
    });
    worked(&text, result)
}

fn in_background(
    call: &ToolCallRequest,
    id: String,
    running: RunningCommand,
    scene: &ToolContext<'_>,
) -> ToolOutcome {
    let file = match to_background(call, &id, running, scene) {
        Ok(file) => file,
        Err(error) => return homeless(&error),
    };
    let text = format!(
        "Command running in background with ID: {id}. Output is being written to: {}",
        file.display()
    );
    let result = json!({
        "stdout": "", "stderr": "", "interrupted": false, "isImage": false,
        "noOutputExpected": false, "backgroundTaskId": id,
    });
    worked(&text, result)
}

fn to_background(
    call: &ToolCallRequest,
    id: &str,
    running: RunningCommand,
    scene: &ToolContext<'_>,
) -> std::io::Result<PathBuf> {
    let file = running.output(|output| {
        output.to_file()?;
        Ok::<_, std::io::Error>(output.path().map(Path::to_owned).unwrap_or_default())
    })?;
    let shell = BackgroundShell::new(id, call, file.clone(), running);
    scene.host.kept().put(Arc::new(shell));
    Ok(file)
}

/// The output of something in the background has to go somewhere.
fn homeless(error: &std::io::Error) -> ToolOutcome {
    ToolOutcome::failed(format!(
        "cannot run the command in the background: its output cannot be written: {error}"
    ))
}

/// `1s`, `2m 0s`.
fn duration(ms: u64) -> String {
    let seconds = ms.div_ceil(1000);
    match seconds {
        0..60 => format!("{seconds}s"),
        _ => format!("{}m {}s", seconds / 60, seconds % 60),
    }
}

/// An id nobody has: `b` and eight more.
fn new_id() -> String {
    const SIGNS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        // Less random, but still of this moment.
        let now = jiff::Timestamp::now().as_nanosecond();
        bytes = (now as u64).to_ne_bytes();
    }
    let signs = bytes.map(|byte| SIGNS[usize::from(byte) % SIGNS.len()] as char);
    std::iter::once('b').chain(signs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_begins_with_its_first_line_that_says_something() {
        assert_eq!(trimmed("\n \n  a\n b \n\n"), "  a\n b");
        assert_eq!((trimmed(""), trimmed(" \n ")), ("", ""));
    }

    #[test]
    fn durations_are_said_in_minutes_and_seconds() {
        assert_eq!(
            (duration(1000), duration(120_000)),
            ("1s".into(), "2m 0s".into())
        );
    }

    #[test]
    fn ids_differ() {
        let (one, two) = (new_id(), new_id());
        assert!(one != two && one.len() == 9 && one.starts_with('b'));
    }
}
