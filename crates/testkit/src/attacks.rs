//! A session that tries to break out of whatever shows it.
//!
//! Every attack stands in every place of a transcript that a document shows: what was typed and
//! said, code, names of files and tools, titles, addresses, colours, images. An attack that
//! works runs `pwned()`, which a test defines.

use serde_json::{Map, Value, json};

use crate::script;

/// Texts that do something in a careless page.
pub const ATTACKS: &[&str] = &[
    "<script>pwned()</script>",
    "</script><script>pwned()</script>",
    "</style><script>pwned()</script>",
    "</title><script>pwned()</script>",
    "</textarea></template></noscript></pre></details><script>pwned()</script>",
    "<img src=x onerror=pwned()>",
    "<img src=\"https://evil.example/x.png\">",
    "\"><img src=x onerror=pwned()>",
    "' onmouseover='pwned()' x='",
    "\" autofocus onfocus=\"pwned()\" x=\"",
    "` onerror=pwned() `",
    "<svg/onload=pwned()>",
    "<svg><script href=\"data:,pwned()\"/></svg>",
    "<iframe src=\"javascript:pwned()\"></iframe>",
    "<iframe srcdoc=\"<script>parent.pwned()</script>\">",
    "<object data=\"javascript:pwned()\"></object><embed src=\"https://evil.example/x.swf\">",
    "<form action=\"javascript:pwned()\"><button autofocus>go</button></form>",
    "<meta http-equiv=\"refresh\" content=\"0;url=https://evil.example/\">",
    "<base href=\"https://evil.example/\">",
    "<link rel=stylesheet href=\"https://evil.example/x.css\">",
    "<style>@import \"https://evil.example/x.css\"; body{background:url(https://evil.example/y)}</style>",
    "<body onload=pwned()>",
    "<details open ontoggle=pwned()>",
    "<a href=\"javascript:pwned()\">x</a>",
    "[x](javascript:pwned())",
    "[x](JAVASCRIPT:pwned())",
    "[x](java\tscript:pwned())",
    "[x](&#106;avascript:pwned())",
    "[x](data:text/html,<script>pwned()</script>)",
    "[x](vbscript:pwned())",
    "[x](https://a.example/\"onmouseover=\"pwned())",
    "<javascript:pwned()>",
    "![x](https://evil.example/x.png)",
    "![x](javascript:pwned())",
    "![x](x\" onerror=\"pwned())",
    "[x]: javascript:pwned()\n\n[x]",
    "```html\n<script>pwned()</script>\n```",
    "```\"><script>pwned()</script>\nx\n```",
    "```<img src=x onerror=pwned()>\n</code></pre><script>pwned()</script>",
    "~~~\n</pre><script>pwned()</script>",
    "| <img src=x onerror=pwned()> |\n|---|\n| </td><script>pwned()</script> |",
    "<!-- --><script>pwned()</script>",
    "--><script>pwned()</script>",
    "<!--><script>pwned()</script>-->",
    "<![CDATA[<script>pwned()</script>]]>",
    "]]><script>pwned()</script>",
    "<?xml version=\"1.0\"?><script>pwned()</script>",
    "&lt;script&gt;pwned()&lt;/script&gt;",
    "&#60;script&#62;pwned()&#60;/script&#62;",
    "\u{3c}\u{0}script>pwned()</script>",
    "<scr\u{0}ipt>pwned()</scr\u{0}ipt>",
    "\u{ff1c}script\u{ff1e}pwned()\u{ff1c}/script\u{ff1e}",
    "+ADw-script+AD4-pwned()+ADw-/script+AD4-",
    "\u{1b}[31m<script>pwned()</script>\u{1b}[0m",
    "\u{1b}[31\"><script>pwned()</script>m",
    "\u{1b}]8;;javascript:pwned()\u{7}click\u{1b}]8;;\u{7}",
    "\u{1b}[38;5;\"onmouseover=pwned()m x",
    "\u{202e}\u{2066}<script>\u{2069}pwned()</script>",
    "https://a.example/\"><script>pwned()</script>",
    "https://a.example/'onmouseover='pwned()",
    "http://[::1]\"onclick=pwned()",
    "javascript:pwned()//https://a.example/",
    "{{constructor.constructor('pwned()')()}}",
    "${pwned()}",
    "\\\"-pwned()-\\\"",
    "\r\n\r\n<script>pwned()</script>",
    "\u{2028}<script>pwned()</script>\u{2029}",
    "<x onclick=pwned() tabindex=0 autofocus onfocus=pwned()>",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--><img src=x onerror=pwned()>\">",
    "---\ntitle: <script>pwned()</script>\n---\n",
    "+++\ntitle = \"<script>pwned()</script>\"\n+++\n",
    "[x](javascript&#58;pwned())",
    "[x](java\nscript:pwned())",
    "[x](<javascript:pwned()>)",
    "[x][y]\n\n[y]: <javascript:pwned()> 'x'",
    "![x](data:image/svg+xml,<svg/onload=pwned()>)",
    "[^1]: <script>pwned()</script>\n\n[^1]",
    "$$\\href{javascript:pwned()}{x}$$",
    "```mermaid\ngraph TD; a[\"<img src=x onerror=pwned()>\"]\n```",
    "a\n<script>pwned()</script>\n===",
    "<details open><summary>x</summary><script>pwned()</script></details>",
    "```\nx\n\t```\n<script>pwned()</script>\n```",
    "10. ```\n\t<script>pwned()</script>",
    "- ```\n<script>pwned()</script>\n  ```",
    "``",
    "<noscript><p title=\"</noscript><img src=x onerror=pwned()>\">",
];

/// Pieces of Markdown that change what stands around them, and of attacks.
const PIECES: &[&str] = &[
    "<script>pwned()</script>",
    "<img src=x onerror=pwned()>",
    "[x](javascript:pwned())",
    "![i](https://evil.example/i.png)",
    "[x]: javascript:pwned()",
    "<javascript:pwned()>",
    "<a href='javascript:pwned()'>",
    "&#106;avascript:pwned()",
    "<svg/onload=pwned()>",
    "<div>\n",
    "<pre>",
    "<!--",
    "-->",
    "<![CDATA[",
    "<?",
    "<b",
    "<",
    "\">",
    "`",
    "``",
    "```",
    "````",
    "~~~",
    "```html\n",
    "\n",
    "\n\n",
    "\n    ",
    "\t",
    "  ",
    " ",
    "- ",
    "1. ",
    "10. ",
    "> ",
    "# ",
    "\n---\n",
    "\n===\n",
    "| a | b |\n|---|---|\n| ",
    "|",
    "\\",
    "&lt;",
    "&#60;",
    "[",
    "]",
    "](",
    "(",
    ")",
    "![x]",
    "[a](<",
    "[^1]: ",
    "*",
    "**",
    "_",
    "$$",
    "\"",
    "'",
    "word",
    "https://a.example/",
    "<https://a.example/",
    "www.a.example",
    "\r",
    "\u{2028}",
];

/// A transcript of texts that are mixed from pieces; always the same ones.
pub fn mixed(count: usize) -> Vec<u8> {
    let mut lines = Lines::default();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: usize| {
        // xorshift: no good dice, but the same ones everywhere.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit as u64) as usize
    };
    for _ in 0..count {
        let length = 2 + below(13);
        let text: String = (0..length).map(|_| PIECES[below(PIECES.len())]).collect();
        lines.user(json!(text), json!({}));
        lines.reply("claude-opus-5", json!([{"type": "text", "text": text}]));
    }
    lines.text.replace(SESSION, MIXED).into_bytes()
}

/// The id of the session that [`mixed`] makes.
pub fn mixed_id() -> &'static str {
    MIXED
}

const MIXED: &str = "a77ac000-0000-4000-8000-000000000002";

/// Where an attack was put, with the field it stands in.
const SESSION: &str = "a77ac000-0000-4000-8000-000000000001";

/// The transcript: every attack in every place.
pub fn transcript() -> Vec<u8> {
    let mut lines = Lines::default();
    for attack in ATTACKS {
        lines.attack(attack);
    }
    lines.text.into_bytes()
}

/// Its id.
pub fn id() -> &'static str {
    SESSION
}

#[derive(Default)]
struct Lines {
    text: String,
    count: usize,
    last: Option<String>,
}

impl Lines {
    fn push(&mut self, kind: &str, fields: Value) {
        self.count += 1;
        let uuid = script::uuid(self.count);
        let second = self.count % 60;
        let minute = self.count / 60 % 60;
        let mut line = json!({
            "type": kind,
            "uuid": uuid,
            "parentUuid": self.last,
            "sessionId": SESSION,
            "timestamp": format!("2026-11-15T10:{minute:02}:{second:02}.000Z"),
            "version": "2.1.325",
            "isSidechain": false,
        });
        let (Some(all), Value::Object(more)) = (line.as_object_mut(), fields) else {
            return;
        };
        all.extend(more);
        self.text.push_str(&line.to_string());
        self.text.push('\n');
        self.last = Some(uuid);
    }

    fn user(&mut self, content: Value, more: Value) {
        let mut fields = Map::new();
        fields.insert(
            "message".into(),
            json!({"role": "user", "content": content}),
        );
        if let Value::Object(more) = more {
            fields.extend(more);
        }
        self.push("user", Value::Object(fields));
    }

    fn reply(&mut self, model: &str, blocks: Value) {
        let id = format!("msg_{:04}", self.count);
        self.push(
            "assistant",
            json!({"message": {"id": id, "role": "assistant", "model": model, "content": blocks,
                "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        );
    }

    fn call(&mut self, name: &str, input: Value, content: Value, more: Value) {
        let id = format!("toolu_{:04}", self.count);
        self.reply(
            "claude-opus-5",
            json!([{"type": "tool_use", "id": id, "name": name, "input": input}]),
        );
        let block = json!([{"type": "tool_result", "tool_use_id": id, "content": content}]);
        self.user(block, more);
    }

    fn attack(&mut self, x: &str) {
        self.user(
            json!([{"type": "text", "text": x}, image(x, "QUJD"), image("image/png", x),
                image("image/svg+xml", "PHN2Zz4="), image("image/png", "iVBORw0KGgo=")]),
            json!({"permissionMode": x, "cwd": format!("/{x}"), "gitBranch": x}),
        );
        self.push(
            "attachment",
            json!({"attachment": {"type": x, "content": x, x: x}}),
        );
        self.reply(
            x,
            json!([{"type": "thinking", "thinking": x, "signature": x}]),
        );
        self.reply(
            "claude-opus-5",
            json!([{"type": "text", "text": x}, {"type": "text", "text": format!("a `{x}` **{x}** [{x}]({x} \"{x}\")")},
                {"type": x, "text": x}]),
        );
        let patch =
            json!([{"oldStart": 1, "newStart": 1, "lines": [format!("-{x}"), format!("+{x}"), x]}]);
        self.call(
            "Edit",
            json!({"file_path": format!("/{x}"), "old_string": x, "new_string": x}),
            json!(x),
            json!({"toolUseResult": {"structuredPatch": patch}}),
        );
        self.call(
            "Write",
            json!({"file_path": x, "content": x}),
            json!(x),
            json!({"toolUseResult": {"type": x, "content": x}}),
        );
        let said = format!("[{x} 1234567] {x}\n[main 1234567] {x}");
        self.call(
            "Bash",
            json!({"command": format!("git commit -m '{x}'"), "description": x}),
            json!(said),
            json!({"toolUseResult": {"stdout": said}}),
        );
        self.call(
            x,
            json!({x: x, "list": [x, {x: x}], "n": 1}),
            json!([{"type": "text", "text": x}, image(x, x)]),
            json!({"toolUseResult": x}),
        );
        self.call(
            &format!("mcp__{x}__{x}"),
            json!({"query": x}),
            json!(x),
            json!({}),
        );
        self.call(
            "WebFetch",
            json!({"url": x, "prompt": x}),
            json!(x),
            json!({"toolUseResult": {"code": 200, "bytes": 1}}),
        );
        self.call(
            "TodoWrite",
            json!({"todos": [{"content": x, "status": "in_progress", "activeForm": x}]}),
            json!(x),
            json!({"toolUseResult": {"newTodos": [{"content": x, "status": "completed"}]}}),
        );
        let question =
            json!([{"question": x, "header": x, "options": [{"label": x, "description": x}]}]);
        self.call(
            "AskUserQuestion",
            json!({"questions": question}),
            json!(x),
            json!({"toolUseResult": {"questions": question, "answers": {x: x}}}),
        );
        self.call(
            "ExitPlanMode",
            json!({"plan": x}),
            json!(x),
            json!({"toolUseResult": {"plan": x}}),
        );
        self.call("Task", json!({"description": x, "subagent_type": x, "prompt": x}), json!([{"type": "text", "text": x}]), json!({"toolUseResult": {"agentId": x, "agentType": x, "content": [{"type": "text", "text": x}]}}));
        self.user(
            json!([{"type": "tool_result", "tool_use_id": x, "content": x, "is_error": true}]),
            json!({}),
        );
        self.user(
            json!(format!(
                "<command-name>/{x}</command-name><command-args>{x}</command-args>"
            )),
            json!({}),
        );
        self.user(
            json!(format!("<local-command-stdout>{x}</local-command-stdout>")),
            json!({}),
        );
        self.user(json!(x), json!({"isMeta": true}));
        self.push(
            "system",
            json!({"subtype": "api_error", "error": {"message": x}, "level": "error"}),
        );
        self.push(
            "system",
            json!({"subtype": x, "content": x, "level": "warning"}),
        );
        self.push("system", json!({"subtype": "compact_boundary", "content": x, "compactMetadata": {"trigger": x, "preTokens": 10}}));
        self.user(json!(x), json!({"isCompactSummary": true}));
        self.push(x, json!({x: x}));
        self.push("custom-title", json!({"customTitle": x}));
        self.push(
            "pr-link",
            json!({"prNumber": 1, "prUrl": format!("https://a.example/{x}"), "prRepository": x}),
        );
        self.text
            .push_str(&format!("{{\"torn\": {}\n", Value::String(x.to_owned())));
    }
}

fn image(kind: &str, data: &str) -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}})
}
