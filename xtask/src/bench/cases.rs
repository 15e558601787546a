//! What is measured, and what it may cost.

use super::peers::Peer;
use super::trees::Tree;

/// A command and what it may cost. `FILE` in its arguments is the largest session of its
/// tree, `NEEDLE` a text that stands in it once.
pub struct Case {
    pub name: &'static str,
    pub tree: Tree,
    pub args: &'static [&'static str],
    pub start: Start,
    pub limits: &'static [Limit],
    pub peers: &'static [Peer],
    pub check: Check,
}

/// What there is of ours before a run.
#[derive(Clone, Copy, PartialEq)]
pub enum Start {
    /// Nothing.
    Fresh,
    /// What the run before left.
    Warm,
    /// The same, and the largest session has one more line.
    Appended,
}

/// What a case may cost at most.
#[derive(Clone, Copy, PartialEq)]
pub enum Limit {
    /// Seconds on the clock.
    Wall(f64),
    /// Megabytes at the peak.
    Peak(f64),
    /// Processor time, in parts of what a peer takes in the same rounds.
    CpuOf(Peer, f64),
    /// Seconds on the clock, in parts of what a peer takes in the same rounds.
    WallOf(Peer, f64),
}

/// What the answer is held against, in the same session of measuring.
#[derive(Clone, Copy, PartialEq)]
pub enum Check {
    Nothing,
    /// Every token of the tree.
    Total,
    /// Every needle of the tree.
    Needles,
}

/// Two cases that differ in bytes only, and how much more the larger one may cost.
pub struct Growth {
    pub name: &'static str,
    pub small: &'static str,
    pub large: &'static str,
    pub cpu: f64,
    /// Megabytes that the larger one may need more, if it matters.
    pub more_peak: Option<f64>,
}

const TURNS: &str = "all turns, one session of 1 GB";
const TURNS_TENTH: &str = "all turns, one session of 100 MB";
const USAGE: &str = "usage by day and model, no cache, 1 GB";
const USAGE_LARGE: &str = "usage by day and model, no cache, 5 GB";
const SEARCH: &str = "search everything, no index, 1 GB";
const SEARCH_LARGE: &str = "search everything, no index, 5 GB";

pub const GROWTHS: &[Growth] = &[
    Growth {
        name: "all turns, 10× the bytes",
        small: TURNS_TENTH,
        large: TURNS,
        cpu: 11.0,
        more_peak: None,
    },
    Growth {
        name: "usage, 5× the bytes",
        small: USAGE,
        large: USAGE_LARGE,
        cpu: 5.5,
        more_peak: Some(10.0),
    },
    Growth {
        name: "search, 5× the bytes",
        small: SEARCH,
        large: SEARCH_LARGE,
        cpu: 5.5,
        more_peak: Some(10.0),
    },
];

/// A case without peers, measured from nothing, whose answer other tests check.
const PLAIN: Case = Case {
    name: "",
    tree: Tree::Empty,
    args: &[],
    start: Start::Fresh,
    limits: &[],
    peers: &[],
    check: Check::Nothing,
};

/// All of it but for the file itself: planned, written into a fold, and proved.
const TRIM: &[&str] = &[
    "clone",
    "FILE",
    "--preset",
    "default",
    "--dry-run",
    "--json",
];
const BY_DAY: &[&str] = &["usage", "day", "--by", "model"];
const BY_DAY_SCANNED: &[&str] = &["usage", "day", "--by", "model", "--no-cache"];

pub const CASES: &[Case] = &[
    Case {
        name: "start",
        args: &["--version"],
        limits: &[Limit::Wall(0.005)],
        ..PLAIN
    },
    Case {
        name: "list, 1 GB",
        tree: Tree::Medium,
        args: &["ls"],
        limits: &[Limit::Wall(1.0), Limit::Peak(60.0)],
        peers: &[Peer::Sdk],
        ..PLAIN
    },
    Case {
        name: "check, 1 GB",
        tree: Tree::Medium,
        args: &["check", "--all"],
        limits: &[Limit::Wall(2.5)],
        ..PLAIN
    },
    Case {
        name: "list, 10,000 sessions",
        tree: Tree::Many,
        args: &["ls"],
        limits: &[Limit::Wall(0.5)],
        peers: &[Peer::Sdk],
        ..PLAIN
    },
    Case {
        name: "last turn, one session of 1 GB",
        tree: Tree::Single,
        args: &["show", "FILE", "--turn=-1"],
        limits: &[Limit::Wall(1.0), Limit::Peak(300.0)],
        ..PLAIN
    },
    Case {
        name: TURNS,
        tree: Tree::Single,
        args: &["turns", "FILE", "--json"],
        limits: &[Limit::Wall(3.0), Limit::Peak(300.0)],
        ..PLAIN
    },
    Case {
        name: TURNS_TENTH,
        tree: Tree::Tenth,
        args: &["turns", "FILE", "--json"],
        ..PLAIN
    },
    Case {
        name: "export as a page, one session of 100 MB",
        tree: Tree::Tenth,
        args: &["export", "FILE", "--to", "html"],
        limits: &[Limit::Wall(0.8), Limit::Peak(60.0)],
        ..PLAIN
    },
    Case {
        name: "export as Markdown, one session of 100 MB",
        tree: Tree::Tenth,
        args: &["export", "FILE", "--to", "md"],
        limits: &[Limit::Wall(0.4), Limit::Peak(60.0)],
        ..PLAIN
    },
    Case {
        name: "copy with a preset, one session of 1 GB",
        tree: Tree::Single,
        args: TRIM,
        limits: &[Limit::Wall(8.0)],
        ..PLAIN
    },
    Case {
        name: "copy with a preset, one session of 100 MB",
        tree: Tree::Tenth,
        args: TRIM,
        limits: &[Limit::Wall(1.0), Limit::Peak(100.0)],
        ..PLAIN
    },
    Case {
        name: USAGE,
        tree: Tree::Medium,
        args: BY_DAY_SCANNED,
        limits: &[Limit::CpuOf(Peer::Ccusage, 0.25), Limit::Peak(30.0)],
        peers: &[Peer::Ccusage],
        check: Check::Total,
        ..PLAIN
    },
    Case {
        name: "usage, nothing changed, 1 GB",
        tree: Tree::Medium,
        args: BY_DAY,
        start: Start::Warm,
        limits: &[Limit::Wall(0.040)],
        peers: &[Peer::Ccstats],
        check: Check::Total,
    },
    Case {
        name: "usage, one line appended to the largest session, 1 GB",
        tree: Tree::Medium,
        args: BY_DAY,
        start: Start::Appended,
        limits: &[Limit::Wall(0.045)],
        peers: &[Peer::Ccstats],
        check: Check::Total,
    },
    Case {
        name: SEARCH,
        tree: Tree::Medium,
        args: &["search", "NEEDLE"],
        limits: &[Limit::WallOf(Peer::Ripgrep, 1.5), Limit::Peak(20.0)],
        peers: &[Peer::Ripgrep, Peer::RipgrepFolding],
        check: Check::Needles,
        ..PLAIN
    },
    Case {
        name: USAGE_LARGE,
        tree: Tree::Large,
        args: BY_DAY_SCANNED,
        limits: &[Limit::CpuOf(Peer::Ccusage, 0.25)],
        peers: &[Peer::Ccusage],
        check: Check::Total,
        ..PLAIN
    },
    Case {
        name: SEARCH_LARGE,
        tree: Tree::Large,
        args: &["search", "NEEDLE"],
        limits: &[Limit::WallOf(Peer::Ripgrep, 1.5)],
        peers: &[Peer::Ripgrep],
        check: Check::Needles,
        ..PLAIN
    },
];
