//! What comes back from a call.

use std::io;

use super::message::Call;
use super::pen::{self, Pen, Uuid};
use super::setting::{Layout, Setting, World};
use super::text::Kind;

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

/// The result of a call with this content and `toolUseResult`, both JSON.
pub fn answer_with(
    world: &mut World,
    pen: &mut Pen,
    call: &Call,
    setting: &Setting,
    content: &str,
    extra: Option<&str>,
) -> io::Result<()> {
    let uuid = pen::uuid(&mut world.random);
    open_result(pen, call, setting);
    pen.put(&[content.as_bytes(), b"}]}"]);
    if let Some(extra) = extra {
        pen.put(&[br#","toolUseResult":"#, extra.as_bytes()]);
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
        br#""}],"totalDurationMs":1088,"totalTokens":105,"totalToolUseCount":1,"usage":{"input_tokens":3,"output_tokens":99}}"#,
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
