//! Options of known programs that write a file or run something.

/// Options of one program. Short ones are letters.
#[derive(Clone, Copy, Default)]
pub(super) struct ProgramOptions {
    /// Letters that take a value.
    pub(super) values: &'static str,
    /// Letters among them whose value is a file that is written.
    pub(super) writes: &'static str,
    /// Letters that run something.
    pub(super) runs: &'static str,
    /// Long options that take the next word as their value.
    pub(super) long_values: &'static [&'static str],
    /// Long options whose value is a file that is written.
    pub(super) long_writes: &'static [&'static str],
    /// Long options that run something.
    pub(super) long_runs: &'static [&'static str],
    /// Long options that look like a short form of one of these and are none.
    pub(super) known: &'static [&'static str],
    /// From this operand on they are files that are written.
    pub(super) output: Option<usize>,
}

const NONE: ProgramOptions = ProgramOptions {
    values: "",
    writes: "",
    runs: "",
    long_values: &[],
    long_writes: &[],
    long_runs: &[],
    known: &[],
    output: None,
};

/// Programs that read, with the options that do more.
pub(super) const READING: &[(&str, ProgramOptions)] = &[
    (
        "sort",
        ProgramOptions {
            values: "kStTo",
            writes: "o",
            long_writes: &["output"],
            long_runs: &["compress-program"],
            ..NONE
        },
    ),
    (
        "shuf",
        ProgramOptions {
            values: "ino",
            writes: "o",
            long_writes: &["output"],
            ..NONE
        },
    ),
    (
        "uniq",
        ProgramOptions {
            values: "fsw",
            long_values: &["skip-fields", "skip-chars", "check-chars"],
            output: Some(1),
            ..NONE
        },
    ),
    (
        "xxd",
        ProgramOptions {
            values: "cglosnR",
            output: Some(1),
            ..NONE
        },
    ),
    (
        "iconv",
        ProgramOptions {
            values: "fto",
            writes: "o",
            long_writes: &["output"],
            ..NONE
        },
    ),
    (
        "sdiff",
        ProgramOptions {
            values: "IowFW",
            writes: "o",
            long_writes: &["output"],
            long_runs: &["diff-program"],
            ..NONE
        },
    ),
    (
        "diff3",
        ProgramOptions {
            long_runs: &["diff-program"],
            ..NONE
        },
    ),
    (
        "diff",
        ProgramOptions {
            long_writes: &["output"],
            ..NONE
        },
    ),
    (
        "file",
        ProgramOptions {
            values: "efFmP",
            runs: "C",
            long_runs: &["compile"],
            ..NONE
        },
    ),
    (
        "tree",
        ProgramOptions {
            values: "LPIHTo",
            writes: "o",
            long_writes: &["output"],
            ..NONE
        },
    ),
    (
        "rg",
        ProgramOptions {
            values: "ABCEMTdefgjmrt",
            runs: "z",
            long_runs: &["pre", "hostname-bin", "search-zip"],
            ..NONE
        },
    ),
    (
        "fd",
        ProgramOptions {
            values: "cdeEjStxX",
            runs: "xX",
            long_runs: &["exec", "exec-batch"],
            known: &["exclude", "extension"],
            ..NONE
        },
    ),
    (
        "ag",
        ProgramOptions {
            long_runs: &["pager"],
            ..NONE
        },
    ),
    (
        "ack",
        ProgramOptions {
            long_runs: &["pager", "ackrc"],
            ..NONE
        },
    ),
    (
        "bat",
        ProgramOptions {
            long_runs: &["pager"],
            ..NONE
        },
    ),
    (
        "ptx",
        ProgramOptions {
            values: "FMSWgiow",
            runs: "G",
            long_runs: &["traditional"],
            output: Some(1),
            ..NONE
        },
    ),
    ("jobs", ProgramOptions { runs: "x", ..NONE }),
    (
        "zless",
        ProgramOptions {
            values: "bhjkopOPtTxyz",
            writes: "oO",
            runs: "k",
            long_writes: &["log-file", "LOG-FILE"],
            long_runs: &["lesskey-file", "lesskey-src", "lesskey-content"],
            ..NONE
        },
    ),
    (
        "less",
        ProgramOptions {
            values: "bhjkopOPtTxyz",
            writes: "oO",
            runs: "k",
            long_writes: &["log-file", "LOG-FILE"],
            long_runs: &["lesskey-file", "lesskey-src", "lesskey-content"],
            ..NONE
        },
    ),
    (
        "man",
        ProgramOptions {
            values: "CRLmMSsePrEpHXT",
            runs: "PHXC",
            long_runs: &["pager", "html", "gxditview", "config-file"],
            ..NONE
        },
    ),
    (
        "date",
        ProgramOptions {
            values: "dfIrs",
            runs: "s",
            long_runs: &["set"],
            ..NONE
        },
    ),
    (
        "xmllint",
        ProgramOptions {
            values: "o",
            writes: "o",
            long_writes: &["output"],
            long_runs: &["shell"],
            known: &["schema"],
            ..NONE
        },
    ),
    (
        "yq",
        ProgramOptions {
            runs: "is",
            long_runs: &["inplace", "in-place", "split-exp"],
            ..NONE
        },
    ),
    (
        "curl",
        ProgramOptions {
            values: "AbBcCdDeEFhHKmoPQrtTuUwxXyYz",
            writes: "oDc",
            runs: "KOJ",
            long_values: &["data", "header", "request", "url", "user"],
            long_writes: &[
                "output",
                "output-dir",
                "dump-header",
                "cookie-jar",
                "trace",
                "trace-ascii",
                "stderr",
                "etag-save",
                "hsts",
                "alt-svc",
                "libcurl",
                "ssl-sessions",
                "dump-ca-embed",
            ],
            long_runs: &["config", "remote-name", "remote-name-all", "engine"],
            known: &["trace-time"],
            ..NONE
        },
    ),
    (
        "wget",
        ProgramOptions {
            values: "aABDeFiIlOoPQRtTUwX",
            writes: "oaOP",
            // Names of files come from the server.
            runs: "exrmN",
            long_writes: &[
                "output-file",
                "append-output",
                "output-document",
                "directory-prefix",
                "save-cookies",
                "rejected-log",
                "warc-file",
                "hsts-file",
            ],
            long_runs: &[
                "execute",
                "use-askpass",
                "config",
                "recursive",
                "mirror",
                "force-directories",
                "timestamping",
                "content-disposition",
                "input-file",
            ],
            ..NONE
        },
    ),
];

/// Programs whose work is to write, with the options that run something.
pub(super) const WRITING: &[(&str, ProgramOptions)] = &[
    (
        "tar",
        ProgramOptions {
            values: "CfIFgHKLNTVXb",
            runs: "IF",
            long_runs: &[
                "to-command",
                "use-compress-program",
                "checkpoint-action",
                "rsh-command",
                "rmt-command",
                "info-script",
                "new-volume-script",
            ],
            known: &["checkpoint"],
            ..NONE
        },
    ),
    (
        "split",
        ProgramOptions {
            values: "abClnt",
            long_runs: &["filter"],
            ..NONE
        },
    ),
    (
        "zip",
        ProgramOptions {
            values: "bintOx",
            runs: "T",
            long_runs: &["unzip-command", "test"],
            ..NONE
        },
    ),
    (
        "rsync",
        ProgramOptions {
            values: "efBTM",
            runs: "e",
            long_runs: &["rsh", "rsync-path"],
            ..NONE
        },
    ),
    (
        "scp",
        ProgramOptions {
            values: "cDFiJloPSX",
            runs: "FJoS",
            ..NONE
        },
    ),
    (
        "sftp",
        ProgramOptions {
            values: "BbcDFiJloPRsSX",
            runs: "FJosSb",
            ..NONE
        },
    ),
];

/// Options of commands of git that show differences.
const DIFFERENCES: ProgramOptions = ProgramOptions {
    values: "nSGLlO",
    long_writes: &["output"],
    long_runs: &["ext-diff", "textconv"],
    known: &["text"],
    ..NONE
};

/// Options of commands of git that speak to another repository.
const REMOTE: ProgramOptions = ProgramOptions {
    long_runs: &["upload-pack", "receive-pack", "exec"],
    ..NONE
};

pub(super) const GIT: &[(&str, ProgramOptions)] = &[
    ("diff", DIFFERENCES),
    ("log", DIFFERENCES),
    ("show", DIFFERENCES),
    ("diff-tree", DIFFERENCES),
    ("diff-index", DIFFERENCES),
    ("diff-files", DIFFERENCES),
    ("diff-pairs", DIFFERENCES),
    ("whatchanged", DIFFERENCES),
    ("range-diff", DIFFERENCES),
    ("reflog", DIFFERENCES),
    ("stash", DIFFERENCES),
    (
        "format-patch",
        ProgramOptions {
            values: "onSGLlOv",
            writes: "o",
            long_writes: &["output-directory", "output"],
            long_runs: &["ext-diff", "textconv"],
            known: &["text"],
            ..NONE
        },
    ),
    (
        "grep",
        ProgramOptions {
            values: "ABCefm",
            runs: "O",
            long_runs: &["open-files-in-pager", "ext-grep", "textconv"],
            known: &["text"],
            ..NONE
        },
    ),
    (
        "archive",
        ProgramOptions {
            values: "o",
            writes: "o",
            long_writes: &["output"],
            long_runs: &["exec", "remote"],
            ..NONE
        },
    ),
    (
        "bundle",
        ProgramOptions {
            output: Some(1),
            ..NONE
        },
    ),
    (
        "merge-file",
        ProgramOptions {
            values: "L",
            output: Some(0),
            ..NONE
        },
    ),
    (
        "mailinfo",
        ProgramOptions {
            output: Some(0),
            ..NONE
        },
    ),
    (
        "mailsplit",
        ProgramOptions {
            values: "odfb",
            writes: "o",
            ..NONE
        },
    ),
    (
        "bugreport",
        ProgramOptions {
            values: "os",
            writes: "o",
            long_writes: &["output-directory"],
            ..NONE
        },
    ),
    (
        "diagnose",
        ProgramOptions {
            values: "os",
            writes: "o",
            long_writes: &["output-directory"],
            ..NONE
        },
    ),
    (
        "checkout-index",
        ProgramOptions {
            long_writes: &["prefix"],
            ..NONE
        },
    ),
    (
        "fast-export",
        ProgramOptions {
            long_writes: &["export-marks", "output"],
            ..NONE
        },
    ),
    (
        "apply",
        ProgramOptions {
            values: "pC",
            long_writes: &["build-fake-ancestor"],
            ..NONE
        },
    ),
    (
        "cat-file",
        ProgramOptions {
            long_runs: &["textconv", "filters"],
            ..NONE
        },
    ),
    ("fetch", REMOTE),
    ("pull", REMOTE),
    ("push", REMOTE),
    ("ls-remote", REMOTE),
    ("fetch-pack", REMOTE),
    ("send-pack", REMOTE),
    (
        "clone",
        ProgramOptions {
            values: "obujc",
            runs: "uc",
            long_writes: &["separate-git-dir"],
            long_runs: &["upload-pack", "config", "template"],
            ..NONE
        },
    ),
    (
        "init",
        ProgramOptions {
            values: "b",
            long_writes: &["separate-git-dir"],
            long_runs: &["template"],
            ..NONE
        },
    ),
    (
        "rebase",
        ProgramOptions {
            values: "sXxC",
            runs: "x",
            long_runs: &["exec"],
            ..NONE
        },
    ),
];

/// Words of other programs that run or load something, by how they begin.
pub(super) const RUNNING_WORDS: &[(&[&str], &[&str])] = &[
    (
        &[
            "ar", "as", "ld", "nm", "objcopy", "objdump", "ranlib", "size", "strip",
        ],
        &["--plugin", "-plugin", "@"],
    ),
    (
        &["c++", "cc", "clang", "clang++", "g++", "gcc", "gfortran"],
        &[
            "-wrapper", "-fplugin", "-B", "-specs", "--specs", "-load", "-Xclang", "@",
        ],
    ),
    (
        &["go"],
        &[
            "-exec",
            "--exec",
            "-toolexec",
            "--toolexec",
            "-vettool",
            "--vettool",
        ],
    ),
    (
        &["ex", "nvim", "vi", "view", "vim", "vimdiff"],
        &["-c", "--cmd", "+", "-S", "-s", "-u", "-es", "-Es"],
    ),
    (
        &["npm", "pnpm", "yarn"],
        &[
            "--script-shell",
            "--node-options",
            "--userconfig",
            "--globalconfig",
        ],
    ),
    (&["bat"], &["--pager"]),
];

/// Commands of git that run other programs, or whose arguments are too many to know.
pub(super) const GIT_RUNS: &[&str] = &[
    "citool",
    "credential",
    "cvsexportcommit",
    "cvsimport",
    "cvsserver",
    "daemon",
    "difftool",
    "fast-import",
    "filter-branch",
    "for-each-repo",
    "gui",
    "hook",
    "merge-index",
    "http-backend",
    "imap-send",
    "instaweb",
    "maintenance",
    "mergetool",
    "p4",
    "quiltimport",
    "receive-pack",
    "request-pull",
    "send-email",
    "shell",
    "svn",
    "upload-archive",
    "upload-pack",
    "web--browse",
];
