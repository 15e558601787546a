//! One session of a generated tree: its turns, its sub-agents, its copies.

use std::io;
use std::path::Path;

use super::books::Sheet;
use super::message::{self, Call, SaidLine, Tally, speak, user_text};
use super::pen::{self, Keep, Pen, Thread, Uuid};
use super::result::answer;
use super::setting::{Client, Layout, Setting, World, envelope, version};
use super::text::Kind;
use super::tool::TASK;
use super::truth::{Count, SessionTruth, Usage};

mod agent;
mod compact;
mod needle;

/// Writes a session, its sub-agents, and the copy it was resumed into.
pub fn write(world: &mut World, dir: &Path, setting: &Setting) -> io::Result<()> {
    world.now = setting.start;
    let mut session = Session::create(world, dir, setting)?;
    session.turn(world)?;
    if setting.has_needles {
        session.plant(world)?;
    }
    while session.bytes() < session.limit || session.truth.turns < setting.least_turns {
        session.turn(world)?;
    }
    if setting.is_compacted_late {
        // The last screen of a huge session must not depend on its start.
        session.compact(world)?;
        session.limit = setting.size;
        for _ in 0..3 {
            session.turn(world)?;
        }
    }
    let copy = if setting.is_resumed {
        session.copy(world)?
    } else {
        None
    };
    session.end(world)?;
    let Some(mut copy) = copy else { return Ok(()) };
    for _ in 0..world.random.range(1, 4) {
        copy.turn(world)?;
    }
    copy.end(world)
}

/// A session being written.
struct Session<'a> {
    setting: &'a Setting,
    dir: &'a Path,
    pen: Pen,
    truth: SessionTruth,
    agent_bytes: u64,
    /// The tokens a request would carry, which is when to compact.
    context: u64,
    /// Where each live turn since the last compaction hangs: where one can rewind to.
    turns: Vec<Option<Uuid>>,
    /// How the session looked before each turn: where it can be resumed from.
    marks: Vec<Mark>,
    title: Title,
    /// The size at which it ends.
    limit: u64,
    /// What its lines say about tokens.
    sheet: Sheet,
    /// The latest reply, for the copies that compaction makes.
    reply: Option<Reply>,
}

/// A message that stands in the main thread, to be copied.
struct Reply {
    /// Its lines: from `"message"` to the request.
    lines: Vec<(Vec<u8>, SaidLine)>,
    usage: Usage,
}

#[derive(Clone)]
struct Mark {
    sheet: Sheet,
    offset: usize,
    lines: u64,
    last: Option<Uuid>,
    truth: SessionTruth,
    turns: Vec<Option<Uuid>>,
}

/// Where the title of a session comes from; never from two places, because
/// clients differ about which of them wins.
#[derive(Clone, Copy, PartialEq)]
enum Title {
    None,
    Custom,
    Ai,
    Summary,
}

impl<'a> Session<'a> {
    fn create(world: &mut World, dir: &'a Path, setting: &'a Setting) -> io::Result<Session<'a>> {
        let id = pen::text(&pen::uuid(&mut world.random));
        let version = version(world, setting.layout);
        world.client = Client::new(version, setting.is_gateway);
        let path = format!("projects/{}/{id}.jsonl", setting.folder);
        let keep = if setting.is_resumed {
            Keep::All
        } else {
            Keep::Nothing
        };
        let thread = Thread {
            envelope: envelope(setting, &id, version, None),
            last: None,
        };
        let pen = Pen::create(&dir.join(&path), thread, keep)?;
        let title = *match setting.layout {
            _ if setting.has_needles => &Title::Custom,
            Layout::Folder => {
                world
                    .random
                    .pick(&[Title::None, Title::Custom, Title::Ai, Title::Ai])
            }
            Layout::Flat | Layout::Inline => world.random.pick(&[Title::None, Title::Summary]),
        };
        let truth = SessionTruth {
            id,
            path,
            cwd: setting.cwd.clone(),
            version: version.to_owned(),
            first: world.now,
            ..SessionTruth::default()
        };
        let mut session = Session {
            setting,
            dir,
            pen,
            truth,
            agent_bytes: 0,
            context: 15_000,
            turns: Vec::new(),
            marks: Vec::new(),
            title,
            limit: if setting.is_compacted_late {
                setting.size.saturating_sub(100_000)
            } else {
                setting.size
            },
            sheet: Sheet::default(),
            reply: None,
        };
        if world.random.chance(30) {
            session.queue(world, "dequeue", None)?;
        }
        Ok(session)
    }

    /// The size that counts: with its sub-agents, but a large one is large by itself.
    fn bytes(&self) -> u64 {
        let agents = if self.setting.is_compacted_late {
            0
        } else {
            self.agent_bytes
        };
        self.pen.bytes() + agents
    }

    /// A human act and all that follows from it.
    fn turn(&mut self, world: &mut World) -> io::Result<()> {
        world.now += world.random.range(5_000, 900_000);
        self.skew(world);
        self.housekeeping(world)?;
        if self.setting.is_resumed {
            self.mark();
        }
        if self.truth.turns > 1 && world.random.chance(2) {
            self.rewind();
        }
        self.turns.push(self.pen.thread.last);
        self.truth.turns += 1;
        self.truth.live_turns += 1;
        world.truth.turns += 1;
        let begin = world.now;
        self.open_turn(world)?;
        for _ in 0..world.random.range(1, 18) {
            if self.bytes() > self.limit {
                break;
            }
            self.step(world)?;
        }
        if world.random.chance(4) {
            self.interrupt(world)
        } else {
            self.close_turn(world, begin)
        }
    }

    /// A clock that was wrong, was set back, and is wrong again.
    fn skew(&self, world: &mut World) {
        match self.truth.turns {
            1 if self.setting.is_skewed => world.now -= 2 * 3_600_000,
            2 if self.setting.is_skewed => world.now += 365 * 86_400_000,
            _ => {}
        }
    }

    /// Enters what was said in the main thread.
    fn take(&mut self, world: &mut World, tally: &Tally) {
        self.truth.messages += tally.count.messages;
        self.truth.usage += tally.count.usage;
        self.truth.counted += tally.count;
        self.sheet += tally.sheet;
        world.books.sheet += tally.sheet;
    }

    /// What happens between turns.
    fn housekeeping(&mut self, world: &mut World) -> io::Result<()> {
        if self.context > 160_000 {
            self.compact(world)?;
        }
        if world.random.chance(15) {
            self.entitle(world)?;
        }
        if world.random.chance(60) {
            snapshot(world, &mut self.pen)
        } else {
            Ok(())
        }
    }

    fn open_turn(&mut self, world: &mut World) -> io::Result<()> {
        let is_first = self.truth.turns == 1;
        match world.random.below(100) {
            0..5 if !is_first => self.command(world),
            5..8 if !is_first => self.shell(world),
            8..11 if !is_first => self.image(world),
            _ => self.prompt(world, is_first),
        }
    }

    fn prompt(&mut self, world: &mut World, is_first: bool) -> io::Result<()> {
        let kind = if world.random.chance(85) {
            Kind::Prose
        } else {
            Kind::Chinese
        };
        let size = world.random.range(20, 600);
        let text = world.text.slice(&mut world.random, kind, size).to_vec();
        if is_first {
            self.truth.first_prompt = unescape(&text);
        }
        user_text(
            world,
            &mut self.pen,
            &text,
            &[br#","permissionMode":"default""#],
        )
    }

    fn command(&mut self, world: &mut World) -> io::Result<()> {
        user_text(world, &mut self.pen, b"<local-command-caveat>Caveat: what follows was made by local commands.</local-command-caveat>", &[br#","isMeta":true"#])?;
        user_text(world, &mut self.pen, b"<command-name>/review</command-name>\\n<command-message>review</command-message>\\n<command-args></command-args>", &[])?;
        user_text(
            world,
            &mut self.pen,
            b"<local-command-stdout>ok</local-command-stdout>",
            &[],
        )
    }

    fn shell(&mut self, world: &mut World) -> io::Result<()> {
        user_text(world, &mut self.pen, b"<bash-input>ls</bash-input>", &[])?;
        user_text(
            world,
            &mut self.pen,
            b"<bash-stdout>a.rs\\nb.rs</bash-stdout><bash-stderr></bash-stderr>",
            &[],
        )
    }

    fn image(&mut self, world: &mut World) -> io::Result<()> {
        let size = world.random.range(2_000, 60_000).min(self.setting.size / 4);
        let uuid = pen::uuid(&mut world.random);
        let data = world.text.slice(&mut world.random, Kind::Base64, size);
        self.pen.open(self.pen.thread.last);
        self.pen.put(&[
            br#","type":"user","message":{"role":"user","content":[{"type":"text","text":"look at this"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":""#,
            data,
            br#""}}]}"#,
        ]);
        self.pen
            .close(uuid, world.now, &[br#","permissionMode":"default""#])
    }

    /// One answer of the model with its calls, and their results.
    fn step(&mut self, world: &mut World) -> io::Result<()> {
        let starts_agent = world.random.below(1000) < self.setting.agents_per_thousand;
        let count = if world.random.chance(70) {
            1
        } else {
            world.random.range(2, 5)
        };
        let mut tally = Tally::default();
        let mut calls = speak(world, &mut self.pen, &mut self.context, &mut tally, count)?;
        if starts_agent {
            calls.extend(message::speak_task(
                world,
                &mut self.pen,
                &mut self.context,
                &mut tally,
            )?);
        }
        self.take(world, &tally);
        self.truth.calls += calls.len() as u64;
        if self.setting.layout == Layout::Folder && world.random.chance(30) {
            // Results come in the order of their completion.
            calls.reverse();
        }
        for call in &calls {
            world.now += world.random.range(20, 20_000);
            if call.tool.name == TASK.name {
                self.agent(world, call)?;
            } else {
                self.bash_progress(world, call)?;
                answer(world, &mut self.pen, call, self.setting)?;
            }
            self.truth.results += 1;
        }
        if world.random.chance(3) {
            self.queue(world, "enqueue", Some("and look at the log too"))?;
            self.queue(world, "remove", None)?;
        }
        self.hook_progress(world)
    }

    /// Lines that say a command still runs: a side branch off its call.
    fn bash_progress(&mut self, world: &mut World, call: &Call) -> io::Result<()> {
        let is_slow = call.tool.name == "Bash"
            && self.setting.layout == Layout::Folder
            && world.random.chance(15);
        if !is_slow {
            return Ok(());
        }
        let before = self.pen.thread.last;
        self.pen.thread.last = Some(call.uuid);
        for _ in 0..world.random.range(1, 6) {
            let uuid = pen::uuid(&mut world.random);
            self.pen.open(self.pen.thread.last);
            let output = world.text.slice(&mut world.random, Kind::Log, 300);
            self.pen.put(&[
                br#","type":"progress","data":{"type":"bash_progress","output":""#,
                output,
                br#"","fullOutput":""#,
                output,
                br#"","elapsedTimeSeconds":3,"totalLines":4},"toolUseID":"bash-progress-0","parentToolUseID":""#,
                call.id.as_bytes(),
                br#"""#,
            ]);
            world.now += 1000;
            self.pen.close(uuid, world.now, &[])?;
        }
        self.pen.thread.last = before;
        Ok(())
    }

    /// A hook ran after the call: a link of the chain.
    fn hook_progress(&mut self, world: &mut World) -> io::Result<()> {
        if self.setting.layout != Layout::Folder || !world.random.chance(20) {
            return Ok(());
        }
        let uuid = pen::uuid(&mut world.random);
        self.pen.open(self.pen.thread.last);
        self.pen.put(&[br#","type":"progress","data":{"type":"hook_progress","hookEvent":"PostToolUse","hookName":"PostToolUse:Read","command":"callback"},"parentToolUseID":"hook","toolUseID":"hook""#]);
        world.now += 5;
        self.pen.close(uuid, world.now, &[])
    }

    fn interrupt(&mut self, world: &mut World) -> io::Result<()> {
        let mut tally = Tally::default();
        let calls = speak(world, &mut self.pen, &mut self.context, &mut tally, 1)?;
        self.take(world, &tally);
        self.truth.calls += calls.len() as u64;
        let uuid = pen::uuid(&mut world.random);
        self.pen.open(self.pen.thread.last);
        self.pen.put(&[br#","type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}"#]);
        world.now += 1000;
        self.pen.close(uuid, world.now, &[])
    }

    fn close_turn(&mut self, world: &mut World, begin: u64) -> io::Result<()> {
        if world.random.chance(2) {
            message::synthetic(world, &mut self.pen)?;
        }
        let mut tally = Tally::default();
        let before = self.pen.flushed();
        speak(world, &mut self.pen, &mut self.context, &mut tally, 0)?;
        self.take(world, &tally);
        self.remember(before, &tally);
        if self.setting.layout == Layout::Folder && world.random.chance(50) {
            let uuid = pen::uuid(&mut world.random);
            self.pen.open(self.pen.thread.last);
            self.pen
                .put(&[br#","type":"system","subtype":"turn_duration","durationMs":"#]);
            self.pen.number(world.now - begin);
            world.now += 2;
            self.pen.close(uuid, world.now, &[br#","isMeta":false"#])?;
        }
        Ok(())
    }

    /// Back to before the latest turn, which stays in the file on a dead branch.
    fn rewind(&mut self) {
        if let Some(Some(parent)) = self.turns.last().copied() {
            self.turns.pop();
            self.truth.live_turns -= 1;
            self.pen.thread.last = Some(parent);
        }
    }

    fn entitle(&mut self, world: &mut World) -> io::Result<()> {
        let (kind, field) = match self.title {
            Title::Custom => ("custom-title", "customTitle"),
            Title::Ai => ("ai-title", "aiTitle"),
            Title::None | Title::Summary => return Ok(()),
        };
        let title = title(world);
        let id = &self.truth.id;
        let line = format!(r#"{{"type":"{kind}","{field}":"{title}","sessionId":"{id}"}}"#);
        self.pen.put(&[line.as_bytes()]);
        self.truth.title = Some(title);
        self.pen.end_line()
    }

    fn queue(
        &mut self,
        world: &mut World,
        operation: &str,
        content: Option<&str>,
    ) -> io::Result<()> {
        self.pen.put(&[
            br#"{"type":"queue-operation","operation":""#,
            operation.as_bytes(),
            br#"","timestamp":"#,
        ]);
        self.pen.time(world.now);
        self.pen
            .put(&[br#","sessionId":""#, self.truth.id.as_bytes(), br#"""#]);
        if let Some(content) = content {
            self.pen
                .put(&[br#","content":""#, content.as_bytes(), br#"""#]);
        }
        self.pen.put(&[b"}"]);
        self.pen.end_line()
    }

    fn mark(&mut self) {
        let (truth, turns) = (self.truth.clone(), self.turns.clone());
        let (offset, lines) = (self.pen.buffer.len(), self.pen.lines);
        self.marks.push(Mark {
            sheet: self.sheet,
            offset,
            lines,
            last: self.pen.thread.last,
            truth,
            turns,
        });
    }

    /// A new session that begins with the lines of this one, uuids and all.
    fn copy(&mut self, world: &mut World) -> io::Result<Option<Session<'a>>> {
        let late = &self.marks[self.marks.len() / 2..];
        let Some(mark) = late
            .get(world.random.below(late.len() as u64) as usize)
            .filter(|mark| mark.truth.turns > 0)
        else {
            return Ok(None);
        };
        let mark = mark.clone();
        let mut copy = Session::create(world, self.dir, self.setting)?;
        let new = (copy.truth.id.clone(), copy.truth.path.clone());
        copy.pen.thread.envelope = envelope(self.setting, &new.0, &mark.truth.version, None);
        copy.pen.buffer = self.pen.buffer[..mark.offset].to_vec();
        rename(&mut copy.pen.buffer, &self.truth.id, &new.0);
        world.client = Client::new(&mark.truth.version, self.setting.is_gateway);
        // Every line of it stands in a second file now.
        world.books.sheet += mark.sheet;
        copy.pen.lines = mark.lines;
        copy.pen.thread.last = mark.last;
        copy.turns = mark.turns;
        copy.title = self.title;
        copy.truth = SessionTruth {
            resumed_from: Some(self.truth.id.clone()),
            id: new.0,
            path: new.1,
            counted: Count::default(),
            counted_agents: Count::default(),
            ..mark.truth
        };
        if self.setting.layout != Layout::Inline {
            // Their files still belong to the original.
            (copy.truth.agents, copy.truth.agent_usage) = (0, Usage::default());
        }
        world.now += world.random.range(3_600_000, 90_000_000);
        Ok(Some(copy))
    }

    fn end(mut self, world: &mut World) -> io::Result<()> {
        self.truth.last = world.now;
        if let (Title::Summary, Some(leaf)) = (self.title, self.pen.thread.last) {
            let title = title(world);
            self.pen.put(&[
                br#"{"type":"summary","summary":""#,
                title.as_bytes(),
                br#"","leafUuid":""#,
                &leaf,
                br#""}"#,
            ]);
            self.pen.end_line()?;
            self.truth.title = Some(title);
        }
        if self.setting.has_tail {
            self.plant_tail(world)?;
        }
        if self.setting.is_torn {
            // It already says something about tokens, which must not count.
            self.pen.open(self.pen.thread.last);
            self.pen.put(&[br#","type":"assistant","message":{"model":"claude-opus-4-6","id":"msg_torn","role":"assistant","content":[],"usage":{"input_tokens":100000,"output_tokens":100000,"#]);
            self.truth.torn = 1;
            world.truth.torn += 1;
        }
        self.truth.bytes = self.pen.bytes();
        self.truth.lines = self.pen.lines;
        world.truth.bytes += self.truth.bytes;
        world.truth.lines += self.truth.lines;
        let project = world.truth.projects.entry(self.truth.cwd.clone());
        let project = project.or_default();
        *project += self.truth.counted;
        *project += self.truth.counted_agents;
        self.pen.finish(world.now)?;
        world.truth.sessions.push(self.truth);
        Ok(())
    }
}

/// A line about backups of files, which belongs to no chain.
pub fn snapshot(world: &mut World, pen: &mut Pen) -> io::Result<()> {
    let id = pen::uuid(&mut world.random);
    pen.put(&[br#"{"type":"file-history-snapshot","messageId":""#, &id, br#"","snapshot":{"messageId":""#, &id, br#"","trackedFileBackups":{"src/a.rs":{"backupFileName":"9189459580abda24@v2","version":2,"backupTime":"#]);
    pen.time(world.now);
    pen.put(&[br#"}},"timestamp":"#]);
    pen.time(world.now);
    pen.put(&[br#"},"isSnapshotUpdate":false}"#]);
    pen.end_line()
}

fn title(world: &mut World) -> String {
    let verb = world
        .random
        .pick(&["Fix", "Explain", "Rewrite", "Speed up"]);
    format!("{verb} part {}", world.random.below(10_000))
}

/// The text between the quotes of a JSON string.
fn unescape(text: &[u8]) -> String {
    let quoted = format!(r#""{}""#, String::from_utf8_lossy(text));
    serde_json::from_str(&quoted).unwrap_or(quoted)
}

/// Replaces a session id by another one of the same length.
fn rename(bytes: &mut [u8], old: &str, new: &str) {
    let (old, new) = (old.as_bytes(), new.as_bytes());
    let mut at = 0;
    while at + old.len() <= bytes.len() {
        if bytes[at..].starts_with(old) {
            bytes[at..at + new.len()].copy_from_slice(new);
        }
        at += 1;
    }
}
