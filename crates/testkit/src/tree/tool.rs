//! The tools that sessions call, and what they give back.

use super::text::Kind;

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

pub const TOOLS: &[Tool] = &[
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
