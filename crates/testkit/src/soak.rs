//! A sender that is killed again and again, while its sessions grow and its receiver fails.
//!
//! Whatever happens on the way, in the end the receiver must have every turn once by id, whole
//! as a sender that nobody disturbs would have sent it, and the turns of a session in order.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::home::Home;
use crate::random::Random;
use crate::script;
use crate::sink::{Answer, PUBLIC, SECRET, Sink, Span};

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How often the sender is killed.
    pub kills: usize,
    /// How many lines are written meanwhile.
    pub lines: usize,
    /// Into how many sessions.
    pub sessions: usize,
    /// What chance is drawn from.
    pub seed: u64,
}

/// What was done.
#[derive(Clone, Debug)]
pub struct Report {
    /// Senders that were killed while they ran.
    pub kills: usize,
    /// Senders that came to their end.
    pub ended: usize,
    /// Lines that were written.
    pub lines: usize,
    /// Turns that arrived.
    pub turns: usize,
    /// Spans that arrived.
    pub spans: usize,
    /// Spans that arrived more than once, and count once by their id.
    pub repeated: usize,
    /// Requests that the receiver saw.
    pub requests: usize,
}

/// One in so many senders may come to its end.
const SPARED: usize = 8;

/// In so many parts lines are written while a sender runs.
const PARTS: usize = 8;

/// Does it; says what was wrong in the end.
pub fn run(program: &Path, plan: Plan) -> Result<Report, String> {
    let mut random = Random::new(plan.seed);
    let mut chance = random.fork();
    let fate = Mutex::new(random.fork());
    let sink =
        Sink::scripted(move |_| fail(&mut fate.lock().unwrap_or_else(|it| it.into_inner()))).lean();
    let mut home = Home::new(program);
    home.set("LANGFUSE_PUBLIC_KEY", PUBLIC)
        .set("LANGFUSE_SECRET_KEY", SECRET)
        .set("LANGFUSE_BASE_URL", &sink.url())
        .set("UNSPOOL_RETRY_SECONDS", "2");
    let mut writer = Writer::new(&home, plan, random.fork());
    let (mut kills, mut ended) = (0, 0);
    // As long as a sender takes that nobody kills, so that every moment of it is hit.
    let mut life = Duration::from_millis(100);
    let each = plan.lines.div_ceil(plan.kills.max(1));
    while kills < plan.kills {
        let mut sender = home
            .command()
            .args(["send", "--all", "--to", "langfuse", "--quiet"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the sender: {error}"))?;
        let start = Instant::now();
        let until = start + life.mul_f64(chance.unit());
        writer.write_until(each, until)?;
        if (kills + ended) % SPARED == 0 {
            let output = sender.wait_with_output().map_err(|it| it.to_string())?;
            judge(output.status.code(), &output.stderr)?;
            life = start.elapsed();
            ended += 1;
            continue;
        }
        if let Some(left) = until.checked_duration_since(Instant::now()) {
            std::thread::sleep(left);
        }
        let over = sender.try_wait().map_err(|error| error.to_string())?;
        if over.is_some() {
            ended += 1;
            let output = sender.wait_with_output().map_err(|it| it.to_string())?;
            judge(output.status.code(), &output.stderr)?;
            continue;
        }
        sender.kill().map_err(|error| error.to_string())?;
        sender.wait().map_err(|error| error.to_string())?;
        kills += 1;
    }
    writer.finish()?;
    settle(&home)?;
    let spans = sink.spans();
    compare(&home, &spans, &sink.faults())?;
    Ok(Report {
        kills,
        ended,
        lines: writer.written,
        turns: spans.iter().filter(|span| span.parent.is_empty()).count(),
        repeated: spans.iter().filter(|span| span.times > 1).count(),
        spans: spans.len(),
        requests: sink.requests(),
    })
}

/// Sends until the receiver lets one through to the end.
fn settle(home: &Home) -> Result<(), String> {
    for _ in 0..200 {
        let output = home.output(&["send", "--all", "--to", "langfuse"]);
        judge(output.status.code(), &output.stderr)?;
        if output.status.success() {
            return Ok(());
        }
    }
    Err("the sender never came to an end".into())
}

/// A sender that was not killed ends well, or because the receiver failed.
fn judge(code: Option<i32>, stderr: &[u8]) -> Result<(), String> {
    let said = String::from_utf8_lossy(stderr);
    let receiver = ["cannot reach", "answered 5", "cut off", "timed out"];
    match code {
        Some(0) if !said.contains("damaged") => Ok(()),
        // It was quicker than whoever writes the first session.
        Some(1) if said.contains("no sessions in") => Ok(()),
        Some(2) if receiver.iter().any(|words| said.contains(words)) => Ok(()),
        _ => Err(format!("the sender ended with {code:?}: {said}")),
    }
}

/// What an unreliable receiver does.
fn fail(fate: &mut Random) -> Answer {
    let wait = Duration::from_micros(fate.below(20_000));
    let soon = vec![("retry-after-ms", "1".to_owned())];
    match fate.below(100) {
        0..60 => Answer::Take,
        60..75 => Answer::Late(wait, Box::new(Answer::Take)),
        75..82 => Answer::TakeAndHangUp,
        82..88 => Answer::HangUp,
        88..92 => Answer::Late(wait, Box::new(Answer::TakeAndHangUp)),
        92..96 => Answer::Fail("503 Service Unavailable", soon, "down".into()),
        96..98 => Answer::Fail("429 Too Many Requests", soon, "slowly".into()),
        _ => Answer::Fail("500 Internal Server Error", soon, "oops".into()),
    }
}

/// Compares with what a sender sends that nobody disturbs.
fn compare(home: &Home, came: &[Span], faults: &[String]) -> Result<(), String> {
    if let Some(fault) = faults.first() {
        return Err(format!("{} requests were wrong: {fault}", faults.len()));
    }
    let sink = Sink::langfuse().lean();
    let output = home
        .command()
        .env("LANGFUSE_BASE_URL", sink.url())
        .args(["send", "--all", "--to", "langfuse"])
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let key = |span: &Span| (span.trace.clone(), span.id.clone());
    let wanted: HashMap<_, _> = sink.spans().into_iter().map(|it| (key(&it), it)).collect();
    if wanted.values().any(|span| span.times > 1) {
        return Err("an undisturbed sender sent a span twice".into());
    }
    for span in came {
        match wanted.get(&key(span)) {
            None => return Err(format!("{} `{}` should not be there", span.id, span.name)),
            Some(whole) if whole.print != span.print => {
                let took = |span: &Span| (span.end - span.start) / 1_000_000;
                return Err(format!(
                    "`{}` of `{}` is not as it should be: it took {} ms and not {}, came {} times",
                    span.name,
                    span.text("langfuse.trace.name"),
                    took(span),
                    took(whole),
                    span.times
                ));
            }
            Some(_) => {}
        }
    }
    if came.len() != wanted.len() {
        return Err(format!("{} spans of {} came", came.len(), wanted.len()));
    }
    in_order(came)
}

/// The turns of each session came in their order.
fn in_order(came: &[Span]) -> Result<(), String> {
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    for root in came.iter().filter(|span| span.parent.is_empty()) {
        let number = root
            .name
            .strip_prefix("Turn ")
            .and_then(|it| it.parse().ok());
        let number: u64 = number.ok_or_else(|| format!("`{}` is no turn", root.name))?;
        let before = last.entry(root.text("session.id")).or_default();
        if number <= *before {
            return Err(format!("turn {number} came after turn {before}"));
        }
        *before = number;
    }
    Ok(())
}

/// Writes sessions a bit at a time, as a client does: a line at a time, and sometimes half of
/// one.
struct Writer {
    random: Random,
    sessions: Vec<Growing>,
    left: usize,
    written: usize,
}

struct Growing {
    id: String,
    file: File,
    lines: std::vec::IntoIter<String>,
    half: Option<String>,
    turn: usize,
}

impl Writer {
    fn new(home: &Home, plan: Plan, random: Random) -> Writer {
        let open = |n: usize| {
            let id = format!("{:08x}-0000-4000-8000-000000000000", n + 1);
            let path = home.transcript("/home/dev/soak", &id, "");
            let file = OpenOptions::new().append(true).open(path);
            Growing {
                id,
                file: file.unwrap_or_else(|error| panic!("the transcript: {error}")),
                lines: Vec::new().into_iter(),
                half: None,
                turn: 0,
            }
        };
        Writer {
            random,
            sessions: (0..plan.sessions).map(open).collect(),
            left: plan.lines,
            written: 0,
        }
    }

    /// Writes about so many lines, for as long as there are some left.
    fn write(&mut self, lines: usize) -> Result<(), String> {
        for _ in 0..lines.min(self.left) {
            let at = self.random.below(self.sessions.len() as u64) as usize;
            let half = self.random.chance(10);
            self.sessions[at].step(half, &mut self.random)?;
            self.left -= 1;
            self.written += 1;
        }
        Ok(())
    }

    /// Writes about so many lines, spread over the time until then.
    fn write_until(&mut self, lines: usize, until: Instant) -> Result<(), String> {
        for part in (1..=PARTS).rev() {
            let left = until.saturating_duration_since(Instant::now());
            self.write(lines / PARTS + usize::from(lines % PARTS >= part))?;
            std::thread::sleep(left / part as u32);
        }
        Ok(())
    }

    /// Ends every turn that was begun.
    fn finish(&mut self) -> Result<(), String> {
        while self.left > 0 {
            self.write(self.left)?;
        }
        for session in &mut self.sessions {
            while session.half.is_some() || session.lines.len() > 0 {
                session.step(false, &mut self.random)?;
                self.written += 1;
            }
        }
        Ok(())
    }
}

impl Growing {
    fn step(&mut self, half: bool, random: &mut Random) -> Result<(), String> {
        let mut text = match self.half.take() {
            Some(rest) => rest,
            None => self.next(random),
        };
        if half {
            let middle = (1..text.len())
                .rev()
                .find(|at| text.is_char_boundary(*at) && *at <= text.len() / 2);
            if let Some(middle) = middle {
                self.half = Some(text.split_off(middle));
            }
        }
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| format!("the transcript: {error}"))
    }

    fn next(&mut self, random: &mut Random) -> String {
        if let Some(line) = self.lines.next() {
            return line + "\n";
        }
        self.turn += 1;
        let mut text = format!(
            "(session={}, cwd=/home/dev/soak)\nyou: turn {} 你好\n",
            self.id, self.turn
        );
        for call in 0..random.below(4) {
            text += &format!(
                "claude: step {call} [Read f{call}.rs]\nresult: Read f{call}.rs {}\n",
                "x".repeat(random.below(200) as usize)
            );
        }
        text += "claude: done\nduration: 1500\n";
        // The notation counts its ids from one in every script.
        let (session, turn) = (&self.id[..8], self.turn);
        let unique = |line: String| {
            line.replace("msg_", &format!("msg_{session}_{turn}_"))
                .replace("toolu_", &format!("toolu_{session}_{turn}_"))
                .replace(
                    "\"00000000-0000-4000-",
                    &format!(
                        "\"{session}-{:04x}-4{:03x}-",
                        turn >> 12 & 0xffff,
                        turn & 0xfff
                    ),
                )
        };
        let lines: Vec<String> = script::lines(&text).into_iter().map(unique).collect();
        self.lines = lines.into_iter();
        self.next(random)
    }
}
