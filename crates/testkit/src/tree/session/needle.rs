//! Texts that stand in one place each, every one hard to find in its own way.

use std::io;

use serde_json::{Value, json};

use super::super::message::{Call, Message, Tally, user_text};
use super::super::pen::{self, Keep, Pen, Thread};
use super::super::result::answer_with;
use super::super::setting::World;
use super::super::text::Kind;
use super::super::tool::{TASK, TOOLS, Tool};
use super::super::truth::Needle;
use super::Session;

const QUOTED: &str = "the \"copper lantern\" rule";
const TWO_LINES: &str = "slate harbour\nindigo furnace";
const WINDOWS: &str = "D:\\Konten\\frieda\\dachs.txt";
const PROMPT: &str = "marigoldspindle4417";
const CHINESE_PROMPT: &str = "紫檀木的钟楼";
const THINKING: &str = "musingpetrel8825";
const REPLY: &str = "clearheadedibis1360";
const INPUT: &str = "junipergrebe9142";
const RESULT: &str = "gypsumlynx2093";
const BLOCKS: &str = "tarragonvole7718";
const STRUCTURED: &str = "peridotstoat5506";
const CHINESE_RESULT: &str = "翡翠色的水獭";
const ESCAPED: &str = "Příliš-žluťoučký-Größenwahn";
const COLOURED: (&str, &str) = ("vermilion", "shrike63");
const PROGRESS: &str = "quarkmarten6274";
const AGENT: &str = "outriderquoll3951";
const SPILLED: &str = "overflowmanatee5583";
const TITLE: &str = "Kingfisher ledger 2217";
const TAIL: &str = "lastlinepuma7004";

impl Session<'_> {
    /// A turn with one of each kind.
    pub(super) fn plant(&mut self, world: &mut World) -> io::Result<()> {
        self.count_turn(world);
        self.plant_prompt(world)?;
        self.plant_reply(world)?;
        self.plant_results(world)?;
        self.plant_progress(world)?;
        self.plant_agent(world)?;
        self.plant_spilled(world)?;
        self.plant_title(world)
    }

    /// The last line of the file.
    pub(super) fn plant_tail(&mut self, world: &mut World) -> io::Result<()> {
        self.count_turn(world);
        let text = format!("and finally {TAIL}");
        let mode: &[&[u8]] = &[br#","permissionMode":"default""#];
        user_text(world, &mut self.pen, text.as_bytes(), mode)?;
        self.note(world, "last line", TAIL, "prompt");
        Ok(())
    }

    fn count_turn(&mut self, world: &mut World) {
        world.now += 60_000;
        self.turns.push(self.pen.thread.last);
        self.truth.turns += 1;
        self.truth.live_turns += 1;
        world.truth.turns += 1;
    }

    /// Remembers that the latest line of the chain holds a needle.
    fn note(&mut self, world: &mut World, kind: &'static str, text: &str, place: &'static str) {
        let uuid = self.pen.thread.last.as_ref().map(pen::text);
        let (path, line) = (self.truth.path.clone(), self.pen.lines);
        self.note_at(world, kind, text, place, (path, line, uuid));
    }

    fn note_at(
        &mut self,
        world: &mut World,
        kind: &'static str,
        text: &str,
        place: &'static str,
        (path, line, uuid): (String, u64, Option<String>),
    ) {
        world.truth.needles.push(Needle {
            kind,
            text: text.to_owned(),
            place,
            session: self.truth.id.clone(),
            path,
            line,
            uuid,
        });
    }

    fn plant_prompt(&mut self, world: &mut World) -> io::Result<()> {
        let text = format!("see {PROMPT} and {CHINESE_PROMPT}, {QUOTED}, then {TWO_LINES} too");
        let text = escape(&text);
        let mode: &[&[u8]] = &[br#","permissionMode":"default""#];
        user_text(world, &mut self.pen, text.as_bytes(), mode)?;
        self.note(world, "prompt", PROMPT, "prompt");
        self.note(world, "Chinese prompt", CHINESE_PROMPT, "prompt");
        self.note(world, "quotes", QUOTED, "prompt");
        self.note(world, "over two lines", TWO_LINES, "prompt");
        Ok(())
    }

    fn plant_reply(&mut self, world: &mut World) -> io::Result<()> {
        let mut tally = Tally::default();
        let mut message = Message::new(world, &mut self.context, 2);
        let thought = format!("this looks like {THINKING} to me");
        message.think(world, &mut self.pen, &mut tally, thought.as_bytes())?;
        self.note(world, "thinking", THINKING, "thinking");
        let text = format!("It is **{REPLY}**.");
        message.talk(world, &mut self.pen, &mut tally, text.as_bytes())?;
        self.note(world, "reply", REPLY, "reply");
        self.take(world, &tally);
        Ok(())
    }

    fn plant_results(&mut self, world: &mut World) -> io::Result<()> {
        let command = format!("grep -rn {INPUT} src/");
        let call = self.call(
            world,
            "Bash",
            &json!({"command": command, "description": "find"}),
        )?;
        self.note(world, "input of a call", INPUT, "tool");
        self.give(world, &call, &json!("no matches").to_string(), None)?;

        let log = |world: &mut World, size| plain(world, Kind::Log, size);
        let text = format!("{}\n{RESULT}\n{}", log(world, 2000), log(world, 500));
        self.find(world, "result", RESULT, &json!(text).to_string(), None)?;
        let blocks = json!([{"type": "text", "text": "nothing here"}, {"type": "text", "text": format!("found {BLOCKS}.")}]);
        self.find(
            world,
            "blocks of a result",
            BLOCKS,
            &blocks.to_string(),
            None,
        )?;
        let stdout = format!("{}\n{STRUCTURED}", log(world, 3000));
        let extra = json!({"stdout": stdout, "stderr": "", "interrupted": false, "isImage": false});
        let short = json!("(truncated)").to_string();
        self.find(
            world,
            "toolUseResult",
            STRUCTURED,
            &short,
            Some(&extra.to_string()),
        )?;
        let text = plain(world, Kind::Chinese, 1500) + CHINESE_RESULT + "。";
        let text = json!(text).to_string();
        self.find(world, "Chinese result", CHINESE_RESULT, &text, None)?;
        let text = format!("\"so {}\"", ascii(ESCAPED));
        self.find(world, "written as \\u escapes", ESCAPED, &text, None)?;
        let (red, end) = COLOURED;
        let text = json!(format!("a\n\u{1b}[31m{red}\u{1b}[0m{end} end")).to_string();
        self.find(world, "split by colours", &[red, end].concat(), &text, None)?;
        let text = json!(format!("dir {WINDOWS}\\x")).to_string();
        self.find(world, "backslashes", WINDOWS, &text, None)
    }

    /// A call whose result holds a needle.
    fn find(
        &mut self,
        world: &mut World,
        kind: &'static str,
        text: &str,
        content: &str,
        extra: Option<&str>,
    ) -> io::Result<()> {
        let input = json!({"command": "cat a.log", "description": "show"});
        let call = self.call(world, "Bash", &input)?;
        self.give(world, &call, content, extra)?;
        self.note(world, kind, text, "result");
        Ok(())
    }

    fn call(&mut self, world: &mut World, name: &str, input: &Value) -> io::Result<Call> {
        let tool = TOOLS.iter().find(|tool| tool.name == name).unwrap_or(&TASK);
        self.call_tool(world, tool, &input.to_string())
    }

    fn call_tool(
        &mut self,
        world: &mut World,
        tool: &'static Tool,
        input: &str,
    ) -> io::Result<Call> {
        let mut tally = Tally::default();
        let mut message = Message::new(world, &mut self.context, 1);
        let call = message.call_with(world, &mut self.pen, &mut tally, tool, 0, input)?;
        self.take(world, &tally);
        self.truth.calls += 1;
        world.now += 500;
        Ok(call)
    }

    fn give(
        &mut self,
        world: &mut World,
        call: &Call,
        content: &str,
        extra: Option<&str>,
    ) -> io::Result<()> {
        answer_with(world, &mut self.pen, call, self.setting, content, extra)?;
        self.truth.results += 1;
        Ok(())
    }

    fn plant_progress(&mut self, world: &mut World) -> io::Result<()> {
        let call = self.call(
            world,
            "Bash",
            &json!({"command": "make", "description": "build"}),
        )?;
        let uuid = pen::uuid(&mut world.random);
        self.pen.open(Some(call.uuid));
        let data = json!({"type": "bash_progress", "output": "", "fullOutput": format!("a\n{PROGRESS}"), "elapsedTimeSeconds": 3, "totalLines": 2});
        self.pen.put(&[
            br#","type":"progress","data":"#,
            data.to_string().as_bytes(),
            br#","toolUseID":"bash-progress-0","parentToolUseID":""#,
            call.id.as_bytes(),
            br#"""#,
        ]);
        self.pen.close(uuid, world.now, &[])?;
        self.note(world, "progress", PROGRESS, "progress");
        self.pen.thread.last = Some(call.uuid);
        self.give(world, &call, &json!("done").to_string(), None)
    }

    fn plant_agent(&mut self, world: &mut World) -> io::Result<()> {
        let input = format!("{}0{}", TASK.input.0, TASK.input.1);
        let call = self.call_tool(world, &TASK, &input)?;
        let text = format!("the answer is {AGENT}");
        let (path, line, uuid) = self.agent_saying(world, &call, Some(text.as_bytes()))?;
        self.truth.results += 1;
        let place = (path, line, Some(uuid));
        self.note_at(world, "sub-agent", AGENT, "reply", place);
        Ok(())
    }

    /// A result too large for the transcript: it names a file that holds it.
    fn plant_spilled(&mut self, world: &mut World) -> io::Result<()> {
        let input = json!({"command": "make all", "description": "build"});
        let call = self.call(world, "Bash", &input)?;
        let (folder, session, id) = (&self.setting.folder, &self.truth.id, &call.id);
        let relative = format!("projects/{folder}/{session}/tool-results/{id}.txt");
        let before = plain(world, Kind::Log, 40_000);
        let line = before.lines().count() as u64 + 1;
        let path = self.dir.join(&relative);
        let mut pen = Pen::create(&path, Thread::default(), Keep::All)?;
        let after = plain(world, Kind::Log, 2_000);
        pen.put(&[format!("{before}\nhere is {SPILLED}\n{after}\n").as_bytes()]);
        pen.finish(world.now)?;
        let text = format!(
            "<persisted-output>\nOutput too large (41KB). Full output saved to: \
             /home/dev/.claude/{relative}\n\nPreview (first 2KB):\n...\n</persisted-output>"
        );
        self.give(world, &call, &json!(text).to_string(), None)?;
        let place = (relative, line, None);
        self.note_at(world, "spilled result", SPILLED, "result", place);
        Ok(())
    }

    fn plant_title(&mut self, world: &mut World) -> io::Result<()> {
        let id = &self.truth.id;
        let line =
            format!(r#"{{"type":"custom-title","customTitle":"{TITLE}","sessionId":"{id}"}}"#);
        self.pen.put(&[line.as_bytes()]);
        self.pen.end_line()?;
        self.truth.title = Some(TITLE.to_owned());
        let place = (self.truth.path.clone(), self.pen.lines, None);
        self.note_at(world, "title", TITLE, "title", place);
        Ok(())
    }
}

/// Text of a kind as a reader sees it.
fn plain(world: &mut World, kind: Kind, size: u64) -> String {
    super::unescape(world.text.slice(&mut world.random, kind, size))
}

/// The text as it stands between the quotes of a JSON string.
fn escape(text: &str) -> String {
    let quoted = json!(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The same with nothing but ASCII.
fn ascii(text: &str) -> String {
    let mut written = String::new();
    for c in text.chars() {
        if c.is_ascii() {
            written.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                written.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    written
}
