//! What the two sides of a conversation say: prompts, and messages with their calls.

use std::io;
use std::ops::Range;

use super::books::{Said, Sheet};
use super::pen::{self, Pen, Uuid};
use super::result::answer;
use super::setting::{Setting, World};
use super::text::Kind;
use super::tool::{TASK, TOOLS, Tool};
use super::truth::{Count, Usage};
use crate::moment;
use crate::random::Random;

/// A call that was written.
pub struct Call {
    pub id: String,
    pub tool: &'static Tool,
    pub uuid: Uuid,
    pub file: u64,
}

const MODELS: &[&str] = &[
    "claude-opus-4-5-20251101",
    "claude-sonnet-4-5-20250929",
    "claude-haiku-4-5-20251001",
    "claude-opus-4-6",
    "claude-sonnet-4-6",
];

/// What gateways offer besides; nobody publishes a price for the second one.
const GATEWAY_MODELS: &[&str] = &[
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "in-house-coder-70b",
];

/// The tokens that fit into a request here, so that no long-context price applies.
const LONGEST: u64 = 190_000;

/// What was said, by the main thread or by a sub-agent.
#[derive(Default)]
pub struct Tally {
    /// Its messages.
    pub count: Count,
    /// What their lines say.
    pub sheet: Sheet,
    /// The lines of its messages.
    pub lines: Vec<SaidLine>,
    /// The usage of each message.
    pub messages: Vec<Usage>,
}

/// A line of a message.
#[derive(Clone)]
pub struct SaidLine {
    /// Where its message and request stand in the buffer of the pen.
    pub range: Range<usize>,
    /// Which message of the tally it belongs to.
    pub message: usize,
    /// What it says about tokens.
    pub usage: Usage,
    /// Whether it names no request.
    pub is_bare: bool,
}

impl SaidLine {
    /// The line as it counts in a sheet, without its message.
    pub fn sheet(&self) -> Sheet {
        Sheet {
            lines: self.usage,
            bare_lines: if self.is_bare {
                self.usage
            } else {
                Usage::default()
            },
            ..Sheet::default()
        }
    }
}

/// The lines of a sub-agent: its order, some work, its report.
pub fn agent_lines(
    world: &mut World,
    pen: &mut Pen,
    tally: &mut Tally,
    setting: &Setting,
) -> io::Result<()> {
    user_text(world, pen, b"look at the files and report", &[])?;
    let mut context = 8_000;
    for _ in 0..world.random.range(1, 12) {
        for call in speak(world, pen, &mut context, tally, 1)? {
            world.now += world.random.range(20, 5_000);
            answer(world, pen, &call, setting)?;
        }
    }
    speak(world, pen, &mut context, tally, 0).map(|_| ())
}

/// A message of the model: thinking, text and calls, a line for each.
pub fn speak(
    world: &mut World,
    pen: &mut Pen,
    context: &mut u64,
    tally: &mut Tally,
    calls: u64,
) -> io::Result<Vec<Call>> {
    let thinks = world.random.chance(35);
    let talks = calls == 0 || world.random.chance(45);
    let blocks = u64::from(thinks) + u64::from(talks) + calls;
    let mut message = Message::new(world, context, blocks);
    if thinks {
        let size = world.random.range(100, 1500);
        let text = world.text.slice(&mut world.random, Kind::Prose, size);
        let text = text.to_vec();
        message.think(world, pen, tally, &text)?;
    }
    if talks {
        let size = world.random.range(30, 1200);
        let text = world.text.slice(&mut world.random, Kind::Prose, size);
        let text = text.to_vec();
        message.talk(world, pen, tally, &text)?;
    }
    let mut written = Vec::new();
    for _ in 0..calls {
        let tool = world.random.pick(TOOLS);
        written.push(message.call(world, pen, tally, tool)?);
    }
    Ok(written)
}

pub fn speak_task(
    world: &mut World,
    pen: &mut Pen,
    context: &mut u64,
    tally: &mut Tally,
) -> io::Result<Option<Call>> {
    let mut message = Message::new(world, context, 1);
    message.call(world, pen, tally, &TASK).map(Some)
}

/// A message whose blocks are being written.
pub struct Message {
    id: String,
    model: &'static str,
    /// What the last line shows.
    usage: Usage,
    /// What the lines before it show, when they were written while the rest still streamed.
    early: Usage,
    web_searches: u64,
    is_bare: bool,
    is_floor: bool,
    blocks_left: u64,
    /// The day of the first line, and what that line shows.
    first: Option<(String, Usage)>,
    start: usize,
}

impl Message {
    /// A message of so many blocks.
    pub fn new(world: &mut World, context: &mut u64, blocks: u64) -> Message {
        let client = world.client;
        let random = &mut world.random;
        let (usage, early) = usages(random, client.is_unfinished, client.is_gateway, *context);
        let written = usage.cache_write_5m + usage.cache_write_1h;
        *context = (*context + written + usage.output).min(LONGEST);
        let id = format!("01{:016x}{:06x}", random.next(), random.below(1 << 24));
        let models = if client.is_gateway && random.chance(50) {
            GATEWAY_MODELS
        } else {
            MODELS
        };
        let model = random.pick(models);
        let web_searches = if random.chance(3) {
            random.range(1, 4)
        } else {
            0
        };
        world.now += random.range(400, 15_000);
        // All lines of a message are of one day, so that its day is no matter of taste.
        if world.now % 86_400_000 > 86_390_000 {
            world.now += 20_000;
        }
        Message {
            id,
            model,
            usage,
            early,
            web_searches,
            is_bare: client.is_gateway,
            is_floor: client.is_unfinished,
            blocks_left: blocks,
            first: None,
            start: 0,
        }
    }

    /// A block of thinking, its text already escaped.
    pub fn think(
        &mut self,
        world: &mut World,
        pen: &mut Pen,
        tally: &mut Tally,
        text: &[u8],
    ) -> io::Result<Uuid> {
        self.open(world, pen);
        let signature = world.text.slice(&mut world.random, Kind::Base64, 300);
        pen.put(&[
            br#"{"type":"thinking","thinking":""#,
            text,
            br#"","signature":""#,
            signature,
            br#""}"#,
        ]);
        self.close(world, pen, tally)
    }

    /// A block of text, already escaped.
    pub fn talk(
        &mut self,
        world: &mut World,
        pen: &mut Pen,
        tally: &mut Tally,
        text: &[u8],
    ) -> io::Result<Uuid> {
        self.open(world, pen);
        pen.put(&[br#"{"type":"text","text":""#, text, br#""}"#]);
        self.close(world, pen, tally)
    }

    fn open(&mut self, world: &mut World, pen: &mut Pen) {
        self.blocks_left -= 1;
        world.now += world.random.range(1, 300);
        pen.open(pen.thread.last);
        pen.put(&[b","]);
        self.start = pen.buffer.len();
        pen.put(&[
            br#""message":{"id":"msg_"#,
            self.id.as_bytes(),
            br#"","type":"message","role":"assistant","model":""#,
            self.model.as_bytes(),
            br#"","content":["#,
        ]);
    }

    fn close(&mut self, world: &mut World, pen: &mut Pen, tally: &mut Tally) -> io::Result<Uuid> {
        let is_last = self.blocks_left == 0;
        let usage = if is_last { self.usage } else { self.early };
        pen.put(&[br#"],"stop_reason":null,"stop_sequence":null,"usage":"#]);
        self.put_usage(pen, usage);
        pen.put(&[b"}"]);
        if !self.is_bare {
            pen.put(&[br#","requestId":"req_"#, self.id.as_bytes(), br#"""#]);
        }
        let line = SaidLine {
            range: self.start..pen.buffer.len(),
            message: tally.messages.len(),
            usage,
            is_bare: self.is_bare,
        };
        tally.sheet += line.sheet();
        tally.lines.push(line);
        let day = || moment::rfc3339(world.now)[..10].to_owned();
        self.first.get_or_insert_with(|| (day(), usage));
        if is_last {
            self.enter(world, tally);
        }
        pen.put(&[br#","type":"assistant""#]);
        let uuid = pen::uuid(&mut world.random);
        pen.close(uuid, world.now, &[])?;
        Ok(uuid)
    }

    fn put_usage(&self, pen: &mut Pen, usage: Usage) {
        pen.put(&[br#"{"input_tokens":"#]);
        pen.number(usage.input);
        pen.put(&[br#","cache_creation_input_tokens":"#]);
        pen.number(usage.cache_write_5m + usage.cache_write_1h);
        pen.put(&[br#","cache_read_input_tokens":"#]);
        pen.number(usage.cache_read);
        if usage.cache_write_1h > 0 || !self.is_bare {
            // Gateways leave out the split when there is nothing to split.
            pen.put(&[br#","cache_creation":{"ephemeral_5m_input_tokens":"#]);
            pen.number(usage.cache_write_5m);
            pen.put(&[br#","ephemeral_1h_input_tokens":"#]);
            pen.number(usage.cache_write_1h);
            pen.put(&[b"}"]);
        }
        pen.put(&[br#","output_tokens":"#]);
        pen.number(usage.output);
        if self.web_searches > 0 {
            pen.put(&[br#","server_tool_use":{"web_search_requests":"#]);
            pen.number(self.web_searches);
            pen.put(&[br#","web_fetch_requests":0}"#]);
        }
        pen.put(&[br#","service_tier":"standard"}"#]);
    }

    /// All its lines are written.
    fn enter(&mut self, world: &mut World, tally: &mut Tally) {
        let (day, first) = self.first.take().unwrap_or_default();
        let said = Said {
            day,
            model: self.model,
            usage: self.usage,
            first,
            web_searches: self.web_searches,
            is_bare: self.is_bare,
            is_floor: self.is_floor,
        };
        world.books.enter(&said);
        tally.count += said.count();
        tally.sheet.messages += self.usage;
        tally.messages.push(self.usage);
    }

    fn call(
        &mut self,
        world: &mut World,
        pen: &mut Pen,
        tally: &mut Tally,
        tool: &'static Tool,
    ) -> io::Result<Call> {
        let file = world.random.below(400);
        let input = format!("{}{file}{}", tool.input.0, tool.input.1);
        self.call_with(world, pen, tally, tool, file, &input)
    }

    /// A call with this input, which is JSON.
    pub fn call_with(
        &mut self,
        world: &mut World,
        pen: &mut Pen,
        tally: &mut Tally,
        tool: &'static Tool,
        file: u64,
        input: &str,
    ) -> io::Result<Call> {
        let id = format!(
            "toolu_01{:016x}{:04x}",
            world.random.next(),
            world.random.below(1 << 16)
        );
        self.open(world, pen);
        pen.put(&[
            br#"{"type":"tool_use","id":""#,
            id.as_bytes(),
            br#"","name":""#,
            tool.name.as_bytes(),
            br#"","input":"#,
            input.as_bytes(),
            b"}",
        ]);
        let uuid = self.close(world, pen, tally)?;
        Ok(Call {
            id,
            tool,
            uuid,
            file,
        })
    }
}

/// What the last line of a message shows, and what the lines before it show.
fn usages(
    random: &mut Random,
    is_unfinished: bool,
    is_gateway: bool,
    context: u64,
) -> (Usage, Usage) {
    let written = random.range(150, 4000);
    let is_long = random.chance(30);
    let mut usage = Usage {
        input: random.range(1, 12),
        output: random.range(20, 2500),
        cache_read: context,
        cache_write_5m: if is_long { 0 } else { written },
        cache_write_1h: if is_long { written } else { 0 },
    };
    let placeholder = random.range(1, 9);
    if is_unfinished && random.chance(60) {
        usage.output = placeholder;
    }
    if is_gateway {
        let early = Usage {
            output: placeholder.min(usage.output),
            ..Usage::default()
        };
        return (usage, early);
    }
    let output = if random.chance(30) {
        placeholder.min(usage.output)
    } else {
        usage.output
    };
    (usage, Usage { output, ..usage })
}

/// A user line whose content is a text, already escaped.
pub fn user_text(world: &mut World, pen: &mut Pen, text: &[u8], rest: &[&[u8]]) -> io::Result<()> {
    let uuid = pen::uuid(&mut world.random);
    world.now += 3;
    pen.open(pen.thread.last);
    pen.put(&[
        br#","type":"user","message":{"role":"user","content":""#,
        text,
        br#""}"#,
    ]);
    pen.close(uuid, world.now, rest)
}

/// What the client says in the model's place; it costs nothing.
pub fn synthetic(world: &mut World, pen: &mut Pen) -> io::Result<()> {
    let (uuid, id) = (pen::uuid(&mut world.random), pen::uuid(&mut world.random));
    pen.open(pen.thread.last);
    pen.put(&[
        br#","type":"assistant","message":{"id":""#,
        &id,
        br#"","model":"<synthetic>","role":"assistant","stop_reason":"stop_sequence","type":"message","usage":{"input_tokens":0,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0},"content":[{"type":"text","text":"API Error: Overloaded"}]}"#,
    ]);
    pen.close(uuid, world.now, &[br#","isApiErrorMessage":true"#])
}
