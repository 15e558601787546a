//! The sub-agents of a session: their files, and what the parent repeats of them.

use std::collections::BTreeMap;
use std::io;

use super::super::message::{self, Call, Message, Tally};
use super::super::pen::{self, Keep, Pen, Thread};
use super::super::result;
use super::super::setting::{Layout, World, side_thread};
use super::super::truth::Usage;
use super::Session;

impl Session<'_> {
    /// A sub-agent works, and its report is the result of the call.
    pub(super) fn agent(&mut self, world: &mut World, call: &Call) -> io::Result<()> {
        self.agent_saying(world, call, None).map(|_| ())
    }

    /// The same; it ends with this text, already escaped. Returns its file,
    /// the last line of it and the uuid of that line.
    pub(super) fn agent_saying(
        &mut self,
        world: &mut World,
        call: &Call,
        text: Option<&[u8]>,
    ) -> io::Result<(String, u64, String)> {
        self.truth.agents += 1;
        let digits = if self.setting.layout == Layout::Folder {
            16
        } else {
            6
        };
        let id = format!("a{:0digits$x}", world.random.next() >> (64 - 4 * digits));
        let id = id.as_str();
        let thread = side_thread(self.setting, &self.truth.id, &self.truth.version, id);
        let mut tally = Tally::default();
        let place = if self.setting.layout == Layout::Inline {
            let main = std::mem::replace(&mut self.pen.thread, thread);
            message::agent_lines(world, &mut self.pen, &mut tally, self.setting)?;
            self.pen.thread = main;
            self.sheet += tally.sheet;
            <_>::default()
        } else {
            self.agent_file(world, call, id, thread, &mut tally, text)?
        };
        world.books.sheet += tally.sheet;
        self.truth.agent_usage += tally.count.usage;
        self.truth.counted_agents += tally.count;
        result::report(world, &mut self.pen, call, id, self.setting)?;
        Ok(place)
    }

    fn agent_file(
        &mut self,
        world: &mut World,
        call: &Call,
        id: &str,
        thread: Thread,
        tally: &mut Tally,
        text: Option<&[u8]>,
    ) -> io::Result<(String, u64, String)> {
        let folder = match self.setting.layout {
            Layout::Folder => format!(
                "projects/{}/{}/subagents",
                self.setting.folder, self.truth.id
            ),
            Layout::Flat | Layout::Inline => format!("projects/{}", self.setting.folder),
        };
        let relative = format!("{folder}/agent-{id}.jsonl");
        let path = self.dir.join(&relative);
        let mut pen = Pen::create(&path, thread, Keep::All)?;
        message::agent_lines(world, &mut pen, tally, self.setting)?;
        if self.setting.layout == Layout::Folder {
            std::fs::write(
                path.with_extension("meta.json"),
                format!(
                    r#"{{"agentType":"Explore","description":"look around","toolUseId":"{}"}}"#,
                    call.id
                ),
            )?;
            self.agent_progress(world, call, id, &pen, tally)?;
        }
        if let Some(text) = text {
            // After the copies, so that it stands in one file only.
            Message::new(world, &mut 9_000, 1).talk(world, &mut pen, tally, text)?;
        }
        world.books.in_agent_files += tally.count.usage;
        self.agent_bytes += pen.bytes();
        world.truth.agent_files += 1;
        world.truth.bytes += pen.bytes();
        world.truth.lines += pen.lines;
        pen.finish(world.now)?;
        let uuid = pen.thread.last.as_ref().map(pen::text).unwrap_or_default();
        Ok((relative, pen.lines, uuid))
    }

    /// Half of what the agent said stands in the parent's file again.
    fn agent_progress(
        &mut self,
        world: &mut World,
        call: &Call,
        id: &str,
        agent: &Pen,
        tally: &mut Tally,
    ) -> io::Result<()> {
        let before = self.pen.thread.last;
        self.pen.thread.last = Some(call.uuid);
        let mut copies: BTreeMap<usize, Usage> = BTreeMap::new();
        for said in tally.lines.iter().step_by(2) {
            let uuid = pen::uuid(&mut world.random);
            let inner = pen::uuid(&mut world.random);
            self.pen.open(self.pen.thread.last);
            self.pen.put(&[
                br#","type":"progress","data":{"message":{"type":"assistant","timestamp":"#,
            ]);
            self.pen.time(world.now);
            self.pen.put(&[
                b",",
                &agent.buffer[said.range.clone()],
                br#","uuid":""#,
                &inner,
                br#""},"normalizedMessages":[],"type":"agent_progress","prompt":"look","agentId":""#,
                id.as_bytes(),
                br#""},"toolUseID":"agent_msg","parentToolUseID":""#,
                call.id.as_bytes(),
                br#"""#,
            ]);
            self.pen.close(uuid, world.now, &[])?;
            // They belong to the parent's file, not to the agent's.
            self.sheet.copies += said.usage;
            world.books.sheet.copies += said.usage;
            let best = copies.entry(said.message).or_default();
            *best = best.max(said.usage);
        }
        for (message, best) in copies {
            world.books.lost_to_copies += tally.messages[message].minus(best);
        }
        self.pen.thread.last = before;
        Ok(())
    }
}
