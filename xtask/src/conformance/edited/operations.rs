//! What the program is asked to do with sessions before a client resumes them.

/// One thing to do, and what is expected of it.
#[derive(Clone, Copy)]
pub struct Operation {
    /// A short name, used in recordings and in the table.
    pub name: &'static str,
    /// The recorded scenarios it is tried on.
    pub on: &'static [&'static str],
    /// What is done to the recording first (`testkit::conformance::prepared`).
    pub prepared: &'static str,
    /// The words of each run of the program; see [`super::desk::Desk::words`] for names in braces.
    pub steps: &'static [&'static [&'static str]],
    /// What of the conversation has to be as it was.
    pub keeps: Keeps,
    /// Whether the result belongs into another directory.
    pub moved: bool,
    /// Whether there may be nothing to do: a session that one version leaves whole, or a branch
    /// that some versions are on already.
    pub idle: bool,
}

/// What an operation leaves of the conversation.
#[derive(Clone, Copy, PartialEq)]
pub enum Keeps {
    /// What was asked for, which only the reader knows.
    Asked,
    /// All that the client sent for the source: parallel results may change places, and those it
    /// lost may come on top.
    All,
    /// Exactly what the client sent for the source.
    Same,
}

const MANY: &[&str] = &[
    "s20_base",
    "s04_parallel",
    "s06_errors",
    "s08b_agent_two",
    "s09_compact",
    "s10_resume_fork",
    "s12_hooks",
];
const FEW: &[&str] = &["s20_base", "s04_parallel", "s09_compact"];
const BESIDE: &[&str] = &["s20_base", "s06_errors", "s08b_agent_two", "s09_compact"];
const TURNS: &[&str] = &["s20_base", "s10_resume_fork"];
const TOOLS: &[&str] = &["s20_base", "s06_errors"];
const THINKING: &[&str] = &["s20_base", "s04_parallel"];
/// A command that answers as a model is asked to.
const SHORTER: &str = r#"printf '{"text":"the same in few words"}'"#;
const ONE: &[&str] = &["s20_base"];

/// The source itself.
pub const SOURCE: &str = "source";

/// A session as it is.
pub const fn source(on: &'static [&'static str], prepared: &'static str) -> Operation {
    make(SOURCE, on, prepared, &[])
}

const fn make(
    name: &'static str,
    on: &'static [&'static str],
    prepared: &'static str,
    steps: &'static [&'static [&'static str]],
) -> Operation {
    Operation {
        name,
        on,
        prepared,
        steps,
        keeps: Keeps::Asked,
        moved: false,
        idle: false,
    }
}

impl Operation {
    const fn keeps(mut self, keeps: Keeps) -> Operation {
        self.keeps = keeps;
        self
    }

    const fn moved(mut self) -> Operation {
        self.moved = true;
        self
    }

    const fn idle(mut self) -> Operation {
        self.idle = true;
        self
    }
}

/// A clone with some flags.
macro_rules! clone {
    ($name:literal, $on:expr, $prepared:literal $(, $word:expr)*) => {
        make($name, $on, $prepared, &[&["clone", "{session}" $(, $word)*]])
    };
}

/// A damaged copy of the base, mended in a copy.
macro_rules! repair {
    ($damage:literal) => {
        make("repair", ONE, $damage, &[&["repair", "{session}"]])
    };
}

/// Every operation, in the order of the table; equal names are one row.
pub const ALL: &[Operation] = &[
    clone!("clone", MANY, "").keeps(Keeps::All),
    clone!("clone, damaged source", ONE, "torn-last"),
    clone!("clone, damaged source", ONE, "branch-unanswered"),
    clone!("clone, damaged source", ONE, "parent-broken-all"),
    clone!(
        "clone, damaged source",
        ONE,
        "parent-broken-parallel-result"
    ),
    clone!("clone, damaged source", ONE, "drop-parallel-pair"),
    clone!("clone, damaged source", ONE, "time-parallel-newest"),
    clone!("clone --new-uuids", BESIDE, "", "--new-uuids").keeps(Keeps::All),
    clone!("clone --keep-tree", FEW, "", "--keep-tree").keeps(Keeps::Same),
    clone!("clone --cwd", FEW, "", "--cwd", "{moved}")
        .keeps(Keeps::All)
        .moved(),
    clone!("clone --title", ONE, "", "--title", "another title").keeps(Keeps::All),
    clone!("--preset default", TOOLS, "", "--preset", "default"),
    clone!("--preset aggressive", ONE, "", "--preset", "aggressive"),
    clone!("--preset heavy", ONE, "", "--preset", "heavy"),
    clone!("--preset extreme", FEW, "", "--preset", "extreme"),
    clone!(
        "--keep-tools, --truncate-tools",
        TOOLS,
        "",
        "--keep-tools",
        "1",
        "--truncate-tools",
        "100"
    ),
    clone!("--strip-tools 50", FEW, "", "--strip-tools", "50"),
    clone!("--strip-tools 100", FEW, "", "--strip-tools", "100"),
    clone!(
        "--strip-tools, truncated",
        TOOLS,
        "",
        "--strip-tools",
        "100",
        "--mode",
        "truncate"
    ),
    clone!("--strip-thinking", THINKING, "", "--strip-thinking"),
    clone!("--strip-thinking=50", THINKING, "", "--strip-thinking=50"),
    clone!("--slim", MANY, "", "--slim").keeps(Keeps::All),
    clone!("--results-over", TOOLS, "", "--results-over", "100"),
    clone!("--turns", TURNS, "", "--turns", "2.."),
    clone!("--turns", FEW, "", "--turns", "1"),
    clone!("--turns", ONE, "", "--turns", "2..3"),
    clone!("--until", TURNS, "", "--until", "2"),
    clone!("--until", ONE, "", "--until", "{says:A6}"),
    clone!("--until", ONE, "", "--until", "{says:U3}"),
    clone!("--drop-turn", TURNS, "", "--drop-turn", "1"),
    clone!(
        "--drop-turn",
        ONE,
        "",
        "--drop-turn",
        "2",
        "--drop-turn",
        "4"
    ),
    clone!(
        "--branch",
        ONE,
        "branch-newer-last",
        "--branch",
        "{says:A7}"
    )
    .idle(),
    clone!(
        "--branch",
        ONE,
        "branch-older-last",
        "--branch",
        "{says:branch answer}"
    )
    .idle(),
    clone!("--branch", ONE, "rewind", "--branch", "{says:A7}"),
    clone!("--redact", TOOLS, "secrets", "--redact"),
    clone!(
        "--compress",
        TURNS,
        "long-texts",
        "--compress",
        "0-100:35",
        "--with",
        SHORTER,
        "--yes"
    ),
    clone!(
        "--compress",
        ONE,
        "long-texts",
        "--compress",
        "0-50:10",
        "--include-user",
        "--with",
        SHORTER,
        "--yes"
    ),
    clone!(
        "--summary",
        TURNS,
        "",
        "--summary",
        "3",
        "--summary-text",
        "what was said so far"
    ),
    clone!(
        "--summary",
        &["s09_compact"],
        "",
        "--summary",
        "-1",
        "--summary-text",
        "what was said so far"
    ),
    clone!(
        "several at once",
        FEW,
        "",
        "--preset",
        "extreme",
        "--strip-thinking",
        "--slim",
        "--new-uuids"
    ),
    clone!(
        "several at once",
        TURNS,
        "",
        "--turns",
        "2..",
        "--strip-tools",
        "50",
        "--slim"
    ),
    clone!(
        "several at once",
        ONE,
        "secrets",
        "--summary",
        "3",
        "--summary-text",
        "so far",
        "--strip-tools",
        "100",
        "--mode",
        "truncate",
        "--redact",
        "--new-uuids"
    ),
    clone!(
        "several at once",
        ONE,
        "",
        "--until",
        "3",
        "--slim",
        "--strip-thinking=50",
        "--cwd",
        "{moved}"
    )
    .moved(),
    make(
        "clone of a clone",
        FEW,
        "",
        &[
            &["clone", "{session}", "--preset", "heavy", "--new-uuids"],
            &["clone", "{made}", "--preset", "heavy"],
        ],
    ),
    repair!("torn-last"),
    repair!("torn-middle"),
    repair!("glued"),
    repair!("no-final-newline"),
    repair!("nul-bytes"),
    repair!("parent-broken-prompt"),
    repair!("parent-broken-all"),
    repair!("parent-broken-parallel-result"),
    repair!("cycle-pair"),
    repair!("cycle-whole"),
    repair!("cycle-tail"),
    repair!("orphan-use"),
    repair!("orphan-use-last").idle(),
    repair!("end-at-first-parallel-use").idle(),
    repair!("orphan-result"),
    repair!("duplicate-uuid"),
    repair!("duplicate-everything"),
    repair!("duplicate-result"),
    repair!("text-empty"),
    repair!("lone-surrogate"),
    repair!("api-error-last"),
    repair!("api-error-after-prompt"),
    repair!("synthetic-last"),
    make(
        "repair, parallel results",
        &["s04_parallel", "s20_base"],
        "",
        &[&["repair", "{session}"]],
    )
    .keeps(Keeps::All)
    .idle(),
    make(
        "repair --in-place",
        ONE,
        "torn-last",
        &[&["repair", "{session}", "--in-place"]],
    ),
    make(
        "repair --in-place",
        ONE,
        "cycle-pair",
        &[&["repair", "{session}", "--in-place"]],
    ),
    make(
        "merge",
        &["s20_base", "s04_parallel"],
        "",
        &[&["merge", "{session}", "{second:s10_resume_fork}"]],
    ),
    make(
        "merge",
        ONE,
        "",
        &[&["merge", "{second:s09_compact}", "{session}"]],
    ),
    make("move", BESIDE, "", &[&["move", "{cwd}", "{moved}"]])
        .keeps(Keeps::Same)
        .moved(),
    make(
        "rename",
        &["s20_base", "s09_compact"],
        "",
        &[&["rename", "{session}", "another title"]],
    )
    .keeps(Keeps::Same),
    make("redact", ONE, "secrets", &[&["redact", "{session}"]]),
    make(
        "redact --in-place",
        TOOLS,
        "secrets",
        &[&["redact", "{session}", "--in-place"]],
    ),
    make(
        "archive, restore",
        BESIDE,
        "",
        &[
            &["archive", "{session}", "--remove"],
            &["archive", "--restore", "{session}"],
        ],
    )
    .keeps(Keeps::Same),
    make(
        "undo",
        ONE,
        "secrets",
        &[&["redact", "{session}", "--in-place"], &["undo"]],
    )
    .keeps(Keeps::Same),
    make(
        "undo",
        ONE,
        "",
        &[&["rename", "{session}", "another title"], &["undo"]],
    )
    .keeps(Keeps::Same),
    make("undo", ONE, "", &[&["move", "{cwd}", "{moved}"], &["undo"]]).keeps(Keeps::Same),
    make(
        "undo",
        ONE,
        "torn-last",
        &[&["repair", "{session}", "--in-place"], &["undo"]],
    )
    .keeps(Keeps::Same),
];
