//! Whole config directories, made from a seed, with the truth about them.
//!
//! [`generate`] writes `<dir>/projects/…` as several versions of the client
//! would have left it after months of work: per-block lines that repeat usage,
//! parallel results, progress, sub-agents in the three layouts, compaction,
//! rewinds, resumed copies, torn tails, wrong clocks, gateways, texts to find,
//! and files that are no sessions. The
//! truth is counted while writing, never by reading back, so that it shares no
//! mistake with a reader. The same options give the same bytes.
//!
//! Texts mean nothing here; for a conversation that a test is about use
//! [`crate::script`], for strange graphs [`crate::graph`].

mod books;
mod message;
mod pen;
mod result;
mod session;
mod setting;
mod text;
mod tool;
mod truth;

use std::io;
use std::path::Path;

use crate::home;
use crate::moment;
use crate::random::Random;
use pen::{Keep, Pen, Thread};
use setting::{Layout, Setting, World};
use text::Text;
pub use truth::{Count, Mistake, Needle, SessionTruth, Truth, Usage};

/// Raise this when the same options give other bytes: trees are kept by it.
pub const EDITION: u32 = 2;

/// How large a tree to make.
#[derive(Clone, Debug)]
pub struct Options {
    /// What everything is drawn from.
    pub seed: u64,
    /// About how many bytes the ordinary sessions have together, sub-agents included.
    pub target_bytes: u64,
    /// How many ordinary sessions there are; their sizes are lognormal.
    pub sessions: usize,
    /// Sessions of these sizes on top.
    pub large: Vec<u64>,
    /// Over how many projects they are spread.
    pub projects: usize,
    /// The median size of a tool result.
    pub result_bytes: u64,
    /// Of 1000 groups of calls, how many start a sub-agent.
    pub agents_per_thousand: u64,
    /// Of 100 small sessions, how many were resumed into a copy.
    pub resumed_percent: u64,
    /// Whether to add torn tails, wrong clocks, gateways, empty files and other files
    /// that are no sessions, and texts to find.
    pub junk: bool,
}

impl Options {
    /// A few megabytes, with one of everything: for tests.
    pub fn small() -> Options {
        Options {
            seed: 1,
            target_bytes: 4_000_000,
            sessions: 30,
            large: Vec::new(),
            projects: 4,
            result_bytes: 1200,
            agents_per_thousand: 80,
            resumed_percent: 15,
            junk: true,
        }
    }

    /// 1 GB in about 1,100 files: months of one person's work.
    pub fn medium() -> Options {
        Options {
            target_bytes: 680_000_000,
            sessions: 475,
            large: vec![150_000_000, 60_000_000, 52_000_000],
            projects: 40,
            result_bytes: 7000,
            agents_per_thousand: 23,
            resumed_percent: 5,
            ..Options::small()
        }
    }

    /// 5 GB of the same kind: years of it.
    pub fn large() -> Options {
        Options {
            target_bytes: 4_000_000_000,
            sessions: 2_800,
            large: vec![
                200_000_000,
                180_000_000,
                120_000_000,
                90_000_000,
                80_000_000,
                60_000_000,
            ],
            projects: 90,
            ..Options::medium()
        }
    }

    /// 10,000 small sessions.
    pub fn many() -> Options {
        Options {
            target_bytes: 60_000_000,
            sessions: 10_000,
            projects: 60,
            result_bytes: 600,
            agents_per_thousand: 0,
            resumed_percent: 0,
            junk: false,
            ..Options::small()
        }
    }

    /// One session of this size, compacted near its end.
    pub fn single(bytes: u64) -> Options {
        Options {
            target_bytes: 0,
            sessions: 0,
            large: vec![bytes],
            projects: 1,
            result_bytes: 1900,
            agents_per_thousand: 0,
            ..Options::many()
        }
    }
}

/// Writes the tree into `dir`, which becomes a `CLAUDE_CONFIG_DIR`.
pub fn generate(dir: &Path, options: &Options) -> io::Result<Truth> {
    let pool = (options.target_bytes / 50).clamp(300_000, 4_000_000) as usize;
    let random = Random::new(options.seed);
    let text = Text::new(options.seed, pool);
    let mut world = World {
        random,
        text,
        now: 0,
        truth: Truth::default(),
        books: books::Books::default(),
        client: setting::Client::default(),
    };
    let projects = projects(&mut world, options.projects);
    let sizes = sizes(&mut world.random, options);
    for (nth, size) in sizes.into_iter().enumerate() {
        let setting = choose(&mut world, options, &projects, nth, size);
        session::write(&mut world, dir, &setting)?;
        if options.junk && nth % 10 == 5 {
            junk(&mut world, dir, &setting)?;
        }
    }
    Ok(close(world))
}

/// The truth with what the books say.
fn close(world: World) -> Truth {
    let (books, mut truth) = (world.books, world.truth);
    let total = books.total();
    (truth.messages, truth.usage) = (total.messages, total.usage);
    truth.mistakes = books.mistakes();
    truth.models = books.models();
    let name = |((day, model), count): ((String, &str), Count)| ((day, model.to_owned()), count);
    truth.days = books.days.into_iter().map(name).collect();
    truth
}

/// The working directories, with names that test the folder rule.
fn projects(world: &mut World, count: usize) -> Vec<String> {
    let kinds = ["work", "src", "my apps", "v1.2", "up_and_down"];
    let name = |nth: usize| format!("/home/dev/{}/project-{nth}", kinds[nth % kinds.len()]);
    let mut names: Vec<String> = (0..count.max(1)).map(name).collect();
    // The order decides who gets most sessions.
    let first = world.random.below(names.len() as u64) as usize;
    names.rotate_left(first);
    names
}

/// The sizes of all sessions; the large ones come first.
fn sizes(random: &mut Random, options: &Options) -> Vec<u64> {
    let draws: Vec<u64> = (0..options.sessions)
        .map(|_| (power_of_two(random.normal() * 1.9) * 1000.0) as u64)
        .map(|n| n.clamp(40, 12_000))
        .collect();
    let total: u64 = draws.iter().sum::<u64>().max(1);
    let ordinary = draws.iter().map(|draw| {
        (u128::from(*draw) * u128::from(options.target_bytes) / u128::from(total)) as u64
    });
    options.large.iter().copied().chain(ordinary).collect()
}

/// 2 to a power, near enough, and to the same bits on every machine.
fn power_of_two(exponent: f64) -> f64 {
    let whole = exponent.floor();
    f64::from(2).powi(whole as i32) * (1.0 + (exponent - whole))
}

fn choose(
    world: &mut World,
    options: &Options,
    projects: &[String],
    nth: usize,
    size: u64,
) -> Setting {
    let random = &mut world.random;
    // Half of all sessions are in a quarter of the projects.
    let even = random.unit();
    let cwd = &projects[(even * even * projects.len() as f64) as usize];
    let is_large = nth < options.large.len();
    // The first ordinary sessions show each layout once, whatever the seed.
    let large = options.large.len();
    let has_needles = options.junk && nth == large;
    // The last line of the largest session, or of one in the middle.
    let has_tail = options.junk && nth == if large > 0 { 0 } else { 4 };
    let layout = match nth {
        _ if is_large || has_needles || has_tail => Layout::Folder,
        1 => Layout::Flat,
        2 => Layout::Inline,
        _ => *random.pick(&[
            Layout::Folder,
            Layout::Folder,
            Layout::Folder,
            Layout::Folder,
            Layout::Flat,
            Layout::Inline,
        ]),
    };
    let day = random.below(300);
    let is_skewed = options.junk && nth.checked_sub(large).is_some_and(|nth| nth % 50 == 3);
    let is_plain = !has_needles && !has_tail && !is_skewed;
    // One is resumed whatever chance says.
    let is_copied = options.junk && nth == large + 5;
    let is_resumed = size < 4_000_000 && random.chance(options.resumed_percent) && is_plain;
    Setting {
        cwd: cwd.clone(),
        folder: home::slug(cwd),
        layout,
        start: moment::START + day * 86_400_000 + random.below(36_000_000),
        size,
        result_bytes: options.result_bytes,
        agents_per_thousand: options.agents_per_thousand,
        is_resumed: is_resumed || is_copied,
        least_turns: if is_skewed || is_copied { 4 } else { 1 },
        is_torn: options.junk && nth % 20 == 7 && is_plain,
        is_compacted_late: is_large,
        is_skewed,
        is_gateway: options.junk && nth % 8 == 6 && is_plain,
        has_needles,
        has_tail,
    }
}

/// Files that lie beside sessions and are none.
fn junk(world: &mut World, dir: &Path, setting: &Setting) -> io::Result<()> {
    let folder = dir.join("projects").join(&setting.folder);
    let name = |world: &mut World| pen::text(&pen::uuid(&mut world.random));
    // A resumed 2.0 client leaves an empty file.
    let empty = folder.join(format!("{}.jsonl", name(world)));
    Pen::create(&empty, Thread::default(), Keep::All)?.finish(setting.start)?;
    // File checkpoints of another session.
    let path = folder.join(format!("{}.jsonl", name(world)));
    let mut pen = Pen::create(&path, Thread::default(), Keep::All)?;
    session::snapshot(world, &mut pen)?;
    world.truth.bytes += pen.bytes();
    pen.finish(setting.start)?;
    // A sub-agent that only warmed up the cache.
    let agent = folder.join(format!("agent-a{:06x}.jsonl", world.random.below(1 << 24)));
    let mut pen = Pen::create(
        &agent,
        setting::side_thread(setting, &name(world), "2.0.76", "a000000"),
        Keep::All,
    )?;
    message::user_text(world, &mut pen, b"Warmup", &[])?;
    world.truth.bytes += pen.bytes();
    pen.finish(setting.start)?;
    world.truth.junk_files += 3;
    Ok(())
}

#[cfg(test)]
mod tests;
