//! Options of known programs that write a file or run something.

/// Options of one program. Short ones are letters.
#[derive(Clone, Copy, Default)]
pub(super) struct Options {
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

const NONE: Options = Options {
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
pub(super) const READING: &[(&str, Options)] = &[
    (
        "sort",
        Options {
            values: "kStTo",
            writes: "o",
            long_writes: &["output"],
            long_runs: &["compress-program"],
            ..NONE
        },
    ),
    (
        "shuf",
        Options {
            values: "ino",
            writes: "o",
            long_writes: &["output"],
            ..NONE
        },
    ),
    (
        "uniq",
        Options {
            values: "fsw",
            long_values: &["skip-fields", "skip-chars", "check-chars"],
            output: Some(1),
            ..NONE
        },
    ),
    (
        "xxd",
        Options {
            values: "cglosnR",
            output: Some(1),
            ..NONE
        },
    ),
    (
        "iconv",
        Options {
            values: "fto",
            writes: "o",
            long_writes: &["output"],
            ..NONE
        },
    ),
    (
        "sdiff",
        Options {
            values: "IowFW",
            writes: "o",
            long_writes: &["output"],
            long_runs: &["diff-program"],
            ..NONE
        },
    ),
    (
        "diff3",
        Options {
            long_runs: &["diff-program"],
            ..NONE
        },
    ),
    (
        "diff",
        Options {
            long_writes: &["output"],
            ..NONE
        },
    ),
    (
        "file",
        Options {
            values: "efFmP",
            runs: "C",
            long_runs: &["compile"],
            ..NONE
        },
    ),
    (
        "tree",
        Options {
            values: "LPIHTo",
            writes: "o",
            long_writes: &["output"],
            ..NONE
        },
    ),
    (
        "rg",
        Options {
            values: "ABCEMTdefgjmrt",
            runs: "z",
            long_runs: &["pre", "hostname-bin", "search-zip"],
            ..NONE
        },
    ),
    (
        "fd",
        Options {
            values: "cdeEjStxX",
            runs: "xX",
            long_runs: &["exec", "exec-batch"],
            known: &["exclude", "extension"],
            ..NONE
        },
    ),
    (
        "ag",
        Options {
            long_runs: &["pager"],
            ..NONE
        },
    ),
    (
        "ack",
        Options {
            long_runs: &["pager", "ackrc"],
            ..NONE
        },
    ),
    (
        "bat",
        Options {
            long_runs: &["pager"],
            ..NONE
        },
    ),
    (
        "ptx",
        Options {
            values: "FMSWgiow",
            runs: "G",
            long_runs: &["traditional"],
            output: Some(1),
            ..NONE
        },
    ),
    ("jobs", Options { runs: "x", ..NONE }),
    (
        "zless",
        Options {
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
        Options {
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
        Options {
            values: "CRLmMSsePrEpHXT",
            runs: "PHXC",
            long_runs: &["pager", "html", "gxditview", "config-file"],
            ..NONE
        },
    ),
    (
        "date",
        Options {
            values: "dfIrs",
            runs: "s",
            long_runs: &["set"],
            ..NONE
        },
    ),
    (
        "xmllint",
        Options {
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
        Options {
            runs: "is",
            long_runs: &["inplace", "in-place", "split-exp"],
            ..NONE
        },
    ),
    (
        "curl",
        Options {
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
        Options {
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
pub(super) const WRITING: &[(&str, Options)] = &[
    (
        "tar",
        Options {
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
        Options {
            values: "abClnt",
            long_runs: &["filter"],
            ..NONE
        },
    ),
    (
        "zip",
        Options {
            values: "bintOx",
            runs: "T",
            long_runs: &["unzip-command", "test"],
            ..NONE
        },
    ),
    (
        "rsync",
        Options {
            values: "efBTM",
            runs: "e",
            long_runs: &["rsh", "rsync-path"],
            ..NONE
        },
    ),
    (
        "scp",
        Options {
            values: "cDFiJloPSX",
            runs: "FJoS",
            ..NONE
        },
    ),
    (
        "sftp",
        Options {
            values: "BbcDFiJloPRsSX",
            runs: "FJosSb",
            ..NONE
        },
    ),
];

/// Options of commands of git that show differences.
const DIFFERENCES: Options = Options {
    values: "nSGLlO",
    long_writes: &["output"],
    long_runs: &["ext-diff", "textconv"],
    known: &["text"],
    ..NONE
};

/// Options of commands of git that speak to another repository.
const REMOTE: Options = Options {
    long_runs: &["upload-pack", "receive-pack", "exec"],
    ..NONE
};

pub(super) const GIT: &[(&str, Options)] = &[
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
        Options {
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
        Options {
            values: "ABCefm",
            runs: "O",
            long_runs: &["open-files-in-pager", "ext-grep", "textconv"],
            known: &["text"],
            ..NONE
        },
    ),
    (
        "archive",
        Options {
            values: "o",
            writes: "o",
            long_writes: &["output"],
            long_runs: &["exec", "remote"],
            ..NONE
        },
    ),
    (
        "bundle",
        Options {
            output: Some(1),
            ..NONE
        },
    ),
    (
        "merge-file",
        Options {
            values: "L",
            output: Some(0),
            ..NONE
        },
    ),
    (
        "mailinfo",
        Options {
            output: Some(0),
            ..NONE
        },
    ),
    (
        "mailsplit",
        Options {
            values: "odfb",
            writes: "o",
            ..NONE
        },
    ),
    (
        "bugreport",
        Options {
            values: "os",
            writes: "o",
            long_writes: &["output-directory"],
            ..NONE
        },
    ),
    (
        "diagnose",
        Options {
            values: "os",
            writes: "o",
            long_writes: &["output-directory"],
            ..NONE
        },
    ),
    (
        "checkout-index",
        Options {
            long_writes: &["prefix"],
            ..NONE
        },
    ),
    (
        "fast-export",
        Options {
            long_writes: &["export-marks", "output"],
            ..NONE
        },
    ),
    (
        "apply",
        Options {
            values: "pC",
            long_writes: &["build-fake-ancestor"],
            ..NONE
        },
    ),
    (
        "cat-file",
        Options {
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
        Options {
            values: "obujc",
            runs: "uc",
            long_writes: &["separate-git-dir"],
            long_runs: &["upload-pack", "config", "template"],
            ..NONE
        },
    ),
    (
        "init",
        Options {
            values: "b",
            long_writes: &["separate-git-dir"],
            long_runs: &["template"],
            ..NONE
        },
    ),
    (
        "rebase",
        Options {
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
