//! What compaction leaves: the boundary, the summary, and copies of messages.

use std::io;

use super::super::message::{Message, SaidLine, Tally, user_text};
use super::super::pen::{self, Keep, Pen};
use super::super::setting::{Layout, World, side_thread};
use super::super::text::Kind;
use super::{Reply, Session};

impl Session<'_> {
    /// Keeps the lines of the latest reply, unless they have left the buffer.
    pub(super) fn remember(&mut self, flushed: u64, tally: &Tally) {
        if self.pen.flushed() != flushed {
            return;
        }
        let copy = |line: &SaidLine| {
            let bytes = self.pen.buffer[line.range.clone()].to_vec();
            (bytes, line.clone())
        };
        self.reply = Some(Reply {
            lines: tally.lines.iter().map(copy).collect(),
            usage: tally.count.usage,
        });
    }

    pub(super) fn compact(&mut self, world: &mut World) -> io::Result<()> {
        if self.setting.layout == Layout::Folder {
            self.compaction_file(world)?;
        }
        let uuid = pen::uuid(&mut world.random);
        let before = self.pen.thread.last;
        self.pen.open(None);
        if let Some(before) = before {
            self.pen
                .put(&[br#","logicalParentUuid":""#, &before, br#"""#]);
        }
        self.pen.put(&[br#","type":"system","subtype":"compact_boundary","content":"Conversation compacted","isMeta":false,"level":"info","compactMetadata":{"trigger":"auto","preTokens":"#]);
        self.pen.number(self.context);
        self.pen.put(&[b"}"]);
        self.pen.close(uuid, world.now, &[])?;
        let mut text = b"This session is being continued from a previous conversation that ran out of context.\\n".to_vec();
        text.extend_from_slice(world.text.slice(&mut world.random, Kind::Prose, 6000));
        user_text(
            world,
            &mut self.pen,
            &text,
            &[br#","isVisibleInTranscriptOnly":true,"isCompactSummary":true"#],
        )?;
        if let Some(reply) = self.reply.take() {
            // The reply before the boundary stands after it again, with other uuids.
            let sheet = copy(world, &mut self.pen, &reply)?;
            self.sheet += sheet;
            world.books.sheet += sheet;
        }
        self.truth.compactions += 1;
        self.context = 25_000;
        self.turns.clear();
        Ok(())
    }

    /// The request that wrote the summary has a file of its own, which repeats the conversation.
    fn compaction_file(&mut self, world: &mut World) -> io::Result<()> {
        let Some(reply) = &self.reply else {
            return Ok(());
        };
        let id = format!("acompact-{:06x}", world.random.below(1 << 24));
        let (folder, session) = (&self.setting.folder, &self.truth.id);
        let path = format!("projects/{folder}/{session}/subagents/agent-{id}.jsonl");
        let thread = side_thread(self.setting, session, &self.truth.version, &id);
        let mut pen = Pen::create(&self.dir.join(path), thread, Keep::All)?;
        let mut sheet = copy(world, &mut pen, reply)?;
        sheet.messages += reply.usage;
        world.books.sheet += sheet;
        user_text(
            world,
            &mut pen,
            b"Respond with TEXT ONLY: a summary of the conversation so far",
            &[],
        )?;
        let mut tally = Tally::default();
        let mut message = Message::new(world, &mut self.context, 1);
        let text = world.text.slice(&mut world.random, Kind::Prose, 3000);
        let text = text.to_vec();
        message.talk(world, &mut pen, &mut tally, &text)?;
        world.books.sheet += tally.sheet;
        world.books.in_agent_files += tally.count.usage;
        self.truth.counted_agents += tally.count;
        world.truth.bytes += pen.bytes();
        world.truth.junk_files += 1;
        pen.finish(world.now)
    }
}

/// Writes the lines of a message again, and says what they count.
fn copy(world: &mut World, pen: &mut Pen, reply: &Reply) -> io::Result<super::Sheet> {
    let mut sheet = super::Sheet::default();
    for (bytes, line) in &reply.lines {
        let uuid = pen::uuid(&mut world.random);
        pen.open(pen.thread.last);
        pen.put(&[b",", bytes, br#","type":"assistant""#]);
        world.now += 1;
        pen.close(uuid, world.now, &[])?;
        sheet += line.sheet();
    }
    Ok(sheet)
}
