//! What the two sides of a conversation say: prompts, messages, calls, results.

use std::io;
use std::ops::Range;

use super::pen::{self, Pen, Uuid};
use super::setting::{Layout, Setting, World};
use super::text::Kind;
use super::truth::Usage;

/// A call that was written.
pub struct Call {
    pub id: String,
    pub tool: &'static Tool,
    pub uuid: Uuid,
    pub file: u64,
}

/// A tool that sessions call, and what it gives back.
pub struct Tool {
    pub name: &'static str,
    pub kind: Kind,
    /// The size of its result, in percent of the usual.
    pub percent: u64,
    /// How its input begins and ends; between them stands a number.
    pub input: (&'static str, &'static str),
    /// How `toolUseResult` begins and ends around the result, if it is repeated there.
    pub extra: Option<(&'static str, &'static str)>,
}

const STDOUT: Option<(&str, &str)> = Some((
    r#"{"stdout":""#,
    r#"","stderr":"","interrupted":false,"isImage":false}"#,
));

const FILE: Option<(&str, &str)> = Some((
    r#"{"type":"text","file":{"filePath":"a.rs","content":""#,
    r#"","numLines":9,"startLine":1,"totalLines":9}}"#,
));

const TOOLS: &[Tool] = &[
    Tool {
        name: "Read",
        kind: Kind::Code,
        percent: 200,
        input: (r#"{"file_path":"/home/dev/src/"#, r#".rs"}"#),
        extra: FILE,
    },
    Tool {
        name: "Read",
        kind: Kind::Chinese,
        percent: 100,
        input: (r#"{"file_path":"/home/dev/doc/"#, r#".md"}"#),
        extra: FILE,
    },
    Tool {
        name: "Bash",
        kind: Kind::Log,
        percent: 100,
        input: (
            r#"{"command":"cargo test case_"#,
            r#"","description":"test"}"#,
        ),
        extra: STDOUT,
    },
    Tool {
        name: "Bash",
        kind: Kind::Log,
        percent: 20,
        input: (r#"{"command":"git show "#, r#"","description":"show"}"#),
        extra: STDOUT,
    },
    Tool {
        name: "Grep",
        kind: Kind::Log,
        percent: 50,
        input: (r#"{"pattern":"word_"#, r#"","output_mode":"content"}"#),
        extra: None,
    },
    Tool {
        name: "Edit",
        kind: Kind::Code,
        percent: 30,
        input: (
            r#"{"file_path":"/home/dev/src/"#,
            r#".rs","old_string":"let a = 1;\n","new_string":"let a = 2;\n"}"#,
        ),
        extra: Some((
            r#"{"filePath":"a.rs","oldString":"a","newString":"b","originalFile":""#,
            r#"","structuredPatch":[],"userModified":false,"replaceAll":false}"#,
        )),
    },
    Tool {
        name: "mcp__tracker__list",
        kind: Kind::Prose,
        percent: 50,
        input: (r#"{"query":""#, r#""}"#),
        extra: None,
    },
];

pub const TASK: Tool = Tool {
    name: "Task",
    kind: Kind::Prose,
    percent: 40,
    input: (
        r#"{"description":"look around","subagent_type":"Explore","prompt":"look at "#,
        r#""}"#,
    ),
    extra: None,
};

const MODELS: &[&str] = &[
    "claude-opus-4-5-20251101",
    "claude-sonnet-4-5-20250929",
    "claude-haiku-4-5-20251001",
];

/// What was said, by the main thread or by a sub-agent.
#[derive(Default)]
pub struct Tally {
    pub messages: u64,
    pub usage: Usage,
    /// Where the messages stand in the buffer of the pen.
    pub said: Vec<Range<usize>>,
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
    let mut message = Message::new(
        world,
        context,
        u64::from(thinks) + u64::from(talks) + calls,
        tally,
    );
    if thinks {
        let size = world.random.range(100, 1500);
        message.open(world, pen);
        let text = world.text.slice(&mut world.random, Kind::Prose, size);
        pen.put(&[
            br#"{"type":"thinking","thinking":""#,
            text,
            br#"","signature":""#,
        ]);
        let signature = world.text.slice(&mut world.random, Kind::Base64, 300);
        pen.put(&[signature, br#""}"#]);
        message.close(world, pen, tally)?;
    }
    if talks {
        let size = world.random.range(30, 1200);
        message.open(world, pen);
        let text = world.text.slice(&mut world.random, Kind::Prose, size);
        pen.put(&[br#"{"type":"text","text":""#, text, br#""}"#]);
        message.close(world, pen, tally)?;
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
    let mut message = Message::new(world, context, 1, tally);
    message.call(world, pen, tally, &TASK).map(Some)
}

/// A message whose blocks are being written.
struct Message {
    id: String,
    model: &'static str,
    usage: Usage,
    /// The output that lines before the last one show, when they were written
    /// while the rest still streamed.
    early_output: u64,
    blocks_left: u64,
    start: usize,
}

impl Message {
    fn new(world: &mut World, context: &mut u64, blocks: u64, tally: &mut Tally) -> Message {
        let random = &mut world.random;
        let written = random.range(150, 4000);
        let is_long = random.chance(30);
        let usage = Usage {
            input: random.range(1, 12),
            output: random.range(20, 2500),
            cache_read: *context,
            cache_write_5m: if is_long { 0 } else { written },
            cache_write_1h: if is_long { written } else { 0 },
        };
        *context += written + usage.output;
        let early_output = if random.chance(30) {
            random.range(1, 9)
        } else {
            usage.output
        };
        tally.messages += 1;
        tally.usage += usage;
        world.truth.messages += 1;
        world.truth.usage += usage;
        let id = format!("01{:016x}{:06x}", random.next(), random.below(1 << 24));
        let model = random.pick(MODELS);
        world.now += random.range(400, 15_000);
        Message {
            id,
            model,
            usage,
            early_output,
            blocks_left: blocks,
            start: 0,
        }
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
        let output = if self.blocks_left == 0 {
            self.usage.output
        } else {
            self.early_output
        };
        pen.put(&[br#"],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":"#]);
        pen.number(self.usage.input);
        pen.put(&[br#","cache_creation_input_tokens":"#]);
        pen.number(self.usage.cache_write_5m + self.usage.cache_write_1h);
        pen.put(&[br#","cache_read_input_tokens":"#]);
        pen.number(self.usage.cache_read);
        pen.put(&[br#","cache_creation":{"ephemeral_5m_input_tokens":"#]);
        pen.number(self.usage.cache_write_5m);
        pen.put(&[br#","ephemeral_1h_input_tokens":"#]);
        pen.number(self.usage.cache_write_1h);
        pen.put(&[br#"},"output_tokens":"#]);
        pen.number(output);
        pen.put(&[
            br#","service_tier":"standard"}},"requestId":"req_"#,
            self.id.as_bytes(),
            br#"""#,
        ]);
        tally.said.push(self.start..pen.buffer.len());
        pen.put(&[br#","type":"assistant""#]);
        let uuid = pen::uuid(&mut world.random);
        pen.close(uuid, world.now, &[])?;
        Ok(uuid)
    }

    fn call(
        &mut self,
        world: &mut World,
        pen: &mut Pen,
        tally: &mut Tally,
        tool: &'static Tool,
    ) -> io::Result<Call> {
        let id = format!(
            "toolu_01{:016x}{:04x}",
            world.random.next(),
            world.random.below(1 << 16)
        );
        let file = world.random.below(400);
        self.open(world, pen);
        pen.put(&[
            br#"{"type":"tool_use","id":""#,
            id.as_bytes(),
            br#"","name":""#,
            tool.name.as_bytes(),
            br#"","input":"#,
        ]);
        pen.put(&[tool.input.0.as_bytes()]);
        pen.number(file);
        pen.put(&[tool.input.1.as_bytes(), b"}"]);
        let uuid = self.close(world, pen, tally)?;
        Ok(Call {
            id,
            tool,
            uuid,
            file,
        })
    }
}

/// The result of a call.
pub fn answer(world: &mut World, pen: &mut Pen, call: &Call, setting: &Setting) -> io::Result<()> {
    let uuid = pen::uuid(&mut world.random);
    let is_error = world.random.chance(5);
    let usual = super::power_of_two(world.random.normal() * 1.4) * setting.result_bytes as f64;
    let size = if is_error {
        80
    } else {
        usual as u64 * call.tool.percent / 100
    };
    open_result(pen, call, setting);
    let text = world.text.slice(&mut world.random, call.tool.kind, size);
    pen.put(&[br#"""#, text, br#"""#]);
    pen.put(&[if is_error {
        br#","is_error":true}]}"#
    } else {
        b"}]}"
    }]);
    match call.tool.extra {
        _ if is_error => pen.put(&[br#","toolUseResult":"Error: "#, text, br#"""#]),
        Some((before, after)) => pen.put(&[
            br#","toolUseResult":"#,
            before.as_bytes(),
            text,
            after.as_bytes(),
        ]),
        None => {}
    }
    close_result(world, pen, call, setting, uuid)
}

/// The result of a call that started a sub-agent.
pub fn report(
    world: &mut World,
    pen: &mut Pen,
    call: &Call,
    agent: &str,
    setting: &Setting,
) -> io::Result<()> {
    let uuid = pen::uuid(&mut world.random);
    open_result(pen, call, setting);
    let text = world.text.slice(&mut world.random, Kind::Prose, 1500);
    pen.put(&[
        br#"[{"type":"text","text":""#,
        text,
        br#""}]}]},"toolUseResult":{"status":"completed","prompt":"look at "#,
    ]);
    pen.number(call.file);
    pen.put(&[
        br#"","agentId":""#,
        agent.as_bytes(),
        br#"","content":[{"type":"text","text":""#,
        text,
        br#""}],"totalDurationMs":1088,"totalTokens":105,"totalToolUseCount":1}"#,
    ]);
    close_result(world, pen, call, setting, uuid)
}

fn open_result(pen: &mut Pen, call: &Call, setting: &Setting) {
    let is_tree = setting.layout == Layout::Folder;
    pen.open(if is_tree {
        Some(call.uuid)
    } else {
        pen.thread.last
    });
    pen.put(&[
        br#","type":"user","message":{"role":"user","content":[{"tool_use_id":""#,
        call.id.as_bytes(),
        br#"","type":"tool_result","content":"#,
    ]);
}

fn close_result(
    world: &mut World,
    pen: &mut Pen,
    call: &Call,
    setting: &Setting,
    uuid: Uuid,
) -> io::Result<()> {
    if setting.layout == Layout::Folder {
        return pen.close(
            uuid,
            world.now,
            &[br#","sourceToolAssistantUUID":""#, &call.uuid, br#"""#],
        );
    }
    pen.close(uuid, world.now, &[])
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
