//! Documents: everything is in them, and nothing in them can do anything.

// A test may stop at the first surprise.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use unspool_model::log::Log;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::time::Time;
use unspool_model::view::session_row;
use unspool_model::view::session_usage::SessionFiles;
use unspool_model::view::status::StatusSignals;
use unspool_model::view::transcript::AgentTranscript;
use unspool_model::view::turn_selection::TurnSelection;
use unspool_show::document::{
    self, DocumentDetail, DocumentFormat, DocumentOptions, DocumentSource,
};
use unspool_show::wire::block::BlockRow;
use unspool_show::wire::session::{SessionFileInfo, SessionJson};
use unspool_testkit::{attacks, corpus, script};

/// A file in memory, read.
struct Opened {
    log: Log,
    session: Session,
    id: String,
    call: Option<String>,
}

fn open(bytes: Vec<u8>, role: TranscriptRole, id: &str) -> Opened {
    let log = Log::new(bytes);
    Opened {
        session: Session::from_log(&log, role),
        log,
        id: id.to_owned(),
        call: None,
    }
}

fn agents_of(path: &Path) -> Vec<Opened> {
    let entries = std::fs::read_dir(path.with_extension("").join("subagents"));
    let paths = entries
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    paths.sort();
    let open = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let meta = std::fs::read(path.with_extension("meta.json")).unwrap_or_default();
        let meta: Value = serde_json::from_slice(&meta).unwrap_or_default();
        let id = name.trim_start_matches("agent-");
        let mut opened = open(std::fs::read(path).unwrap(), TranscriptRole::Agent, id);
        opened.call = meta["toolUseId"].as_str().map(str::to_owned);
        opened
    };
    paths.iter().map(open).collect()
}

fn written(
    main: &Opened,
    files: &[Opened],
    format: DocumentFormat,
    options: &DocumentOptions,
) -> String {
    let mut agents = HashMap::new();
    for file in files {
        let agent = AgentTranscript {
            session: &file.session,
            source: &file.log,
            call: file.call.as_deref(),
            run: None,
        };
        agents.insert(file.id.clone(), agent);
    }
    let none = HashMap::new();
    let row = session_row::row(
        &SessionFiles::alone(&main.session),
        &none,
        Prices::bundled(),
        &StatusSignals::default(),
        Time(0),
    );
    let place = SessionFileInfo {
        id: main.id.clone(),
        ..SessionFileInfo::default()
    };
    let row = SessionJson::new(&main.session, row, place);
    let whole = DocumentSource {
        session: &main.session,
        source: &main.log,
        agents: &agents,
        row: &row,
    };
    let mut out = Vec::new();
    document::write(&mut out, &whole, format, options).unwrap();
    String::from_utf8(out).unwrap()
}

fn of_script(text: &str, format: DocumentFormat, options: &DocumentOptions) -> String {
    written(
        &open(script::jsonl(text), TranscriptRole::Main, "5e55"),
        &[],
        format,
        options,
    )
}

fn with_detail(detail: DocumentDetail) -> DocumentOptions {
    DocumentOptions {
        detail,
        ..DocumentOptions::default()
    }
}

/// The text of a page as a reader sees it, in one line without spaces.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The text between the tags, decoded.
fn text_of_page(page: &str) -> String {
    let body = page.split_once("<body>").unwrap().1;
    let mut out = String::new();
    let mut rest = body;
    while let Some((text, tag)) = rest.split_once('<') {
        out.push_str(text);
        let (tag, after) = tag.split_once('>').unwrap();
        // The whole path of a shortened one stands in its title.
        if let Some((_, title)) = tag.split_once("title=\"") {
            out.push_str(title.split('"').next().unwrap());
        }
        rest = after;
    }
    out.push_str(rest);
    out.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&#96;", "`")
        .replace("&amp;", "&")
}

/// Letters and digits alone: how a text is laid out does not count.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Whether it is the name of a tag that the client puts around texts.
fn is_tag(part: &str) -> bool {
    part == "system-reminder" || part.starts_with("local-command-") || part.starts_with("command-")
}

/// Every text of a value.
fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|value| texts(value, out)),
        Value::Object(all) => {
            // Names of kinds, and what is not for people, are shown in other words.
            let quiet = ["type", "signature", "data", "media_type", "tool_use_id"];
            let said = all.iter().filter(|(key, _)| !quiet.contains(&key.as_str()));
            said.for_each(|(_, value)| texts(value, out));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn all_rows(opened: &Opened) -> Vec<BlockRow> {
    let pick = TurnSelection {
        agents: true,
        ..TurnSelection::default()
    };
    BlockRow::all(&opened.session, &opened.log, "x", &pick)
}

#[test]
fn every_block_of_every_recording_is_in_its_page() {
    let mut counted = HashMap::new();
    let mut missing = Vec::new();
    for file in corpus::files() {
        if file.role != corpus::Role::Main {
            continue;
        }
        let main = open(file.bytes(), TranscriptRole::Main, "5e55");
        let agents = agents_of(&file.path);
        let page = written(
            &main,
            &agents,
            DocumentFormat::Html,
            &DocumentOptions::default(),
        );
        let text = letters(&text_of_page(&page));
        let mut calls = HashSet::new();
        for opened in std::iter::once(&main).chain(&agents) {
            for row in all_rows(opened) {
                *counted.entry(row.r#type.clone()).or_insert(0) += 1;
                let name = format!("{} line {} {}", file.name(), row.line, row.r#type);
                let mut wanted = Vec::new();
                wanted.extend(row.text.clone());
                row.content
                    .iter()
                    .for_each(|value| texts(value, &mut wanted));
                match row.r#type.as_str() {
                    // Thoughts that follow one another are one.
                    "redacted_thinking" => assert!(text.contains("Thought"), "{name}"),
                    "image" => assert!(
                        page.contains("<img alt=\"image\"") || text.contains("notshown"),
                        "{name}"
                    ),
                    _ => {}
                }
                if row.r#type == "tool_use" {
                    texts(row.input.as_ref().unwrap(), &mut wanted);
                    calls.insert(row.tool_use_id.clone().unwrap());
                    assert!(
                        page.contains(&format!("id=\"c-{}\"", row.tool_use_id.unwrap())),
                        "{name}"
                    );
                }
                for wanted in wanted {
                    let wanted = unspool_show::clean::text(&wanted).into_owned();
                    // Tags around commands and reminders are shown in other words.
                    for part in wanted
                        .split(['<', '>', '\n'])
                        .filter(|part| !part.starts_with(['/', '!']) && !is_tag(part))
                    {
                        // The numbers of a list are made by the browser.
                        let part = part
                            .trim_start_matches(|c: char| c.is_ascii_digit() || " .-".contains(c));
                        let part = letters(part.trim_start_matches("API Error"));
                        if part.len() >= 12
                            && !text.contains(&part)
                            && !part.starts_with("Requestinterrupted")
                        {
                            missing.push(format!("{name}: {part:.200}"));
                        }
                    }
                }
            }
        }
        // Each call stands once.
        assert_eq!(
            page.matches("id=\"c-").count(),
            calls.len(),
            "{}",
            file.name()
        );
    }
    assert!(
        missing.is_empty(),
        "{} are missing:\n{}",
        missing.len(),
        missing.join("\n")
    );
    for kind in ["text", "thinking", "tool_use", "tool_result", "image"] {
        assert!(
            counted.get(kind).is_some_and(|count| *count > 0),
            "{kind}: {counted:?}"
        );
    }
}

#[test]
fn every_prompt_and_reply_of_every_recording_is_in_its_markdown() {
    for file in corpus::files() {
        if file.role != corpus::Role::Main {
            continue;
        }
        let main = open(file.bytes(), TranscriptRole::Main, "5e55");
        let agents = agents_of(&file.path);
        let text = letters(&written(
            &main,
            &agents,
            DocumentFormat::Markdown,
            &DocumentOptions::default(),
        ));
        for row in all_rows(&main).iter().filter(|row| row.r#type == "text") {
            let said = row.text.clone().unwrap();
            if said.contains('<') || said.starts_with("[Request interrupted") {
                continue;
            }
            let said = letters(said.lines().next().unwrap_or_default());
            assert!(
                text.contains(&said),
                "{} line {}: {said}",
                file.name(),
                row.line
            );
        }
    }
}

/// Tags and attributes that a page of ours has.
const TAGS: &[&str] = &[
    "a",
    "b",
    "blockquote",
    "body",
    "br",
    "button",
    "code",
    "dd",
    "details",
    "dialog",
    "div",
    "dl",
    "dt",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "html",
    "i",
    "img",
    "input",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "s",
    "section",
    "span",
    "strong",
    "summary",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "time",
    "tr",
    "ul",
];
const ATTRIBUTES: &[&str] = &[
    "alt",
    "aria-label",
    "autocomplete",
    "class",
    "data-lang",
    "datetime",
    "decoding",
    "href",
    "id",
    "open",
    "placeholder",
    "rel",
    "role",
    "spellcheck",
    "src",
    "start",
    "title",
    "type",
];

/// Checks that a page is made of known tags and attributes, whatever stands in it.
fn check_tags(page: &str) {
    let body = page.split_once("<body>").unwrap().1;
    let mut rest = body;
    while let Some((text, tag)) = rest.split_once('<') {
        assert!(!text.contains('>'), "{text}");
        let (tag, after) = tag.split_once('>').unwrap();
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert!(TAGS.contains(&name), "</{name}>");
            continue;
        }
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(TAGS.contains(&name), "<{tag}>");
        while !attributes.is_empty() {
            let end = attributes.find(['=', ' ']).unwrap_or(attributes.len());
            let attribute = &attributes[..end];
            assert!(ATTRIBUTES.contains(&attribute), "<{tag}>");
            let Some(value) = attributes[end..].strip_prefix("=\"") else {
                attributes = attributes[end..].trim_start();
                continue;
            };
            let (value, behind) = value.split_once('"').unwrap();
            let leads = ["https://", "http://", "mailto:", "#"];
            let safe = match attribute {
                "href" => leads.iter().any(|lead| value.starts_with(lead)),
                "src" => ["png", "jpeg", "gif", "webp"]
                    .iter()
                    .any(|kind| value.starts_with(&format!("data:image/{kind};base64,"))),
                _ => true,
            };
            assert!(safe, "<{tag}>");
            attributes = behind.trim_start();
        }
    }
}

#[test]
fn no_attack_becomes_a_tag_or_an_attribute() {
    let main = open(attacks::transcript(), TranscriptRole::Main, attacks::id());
    for detail in [
        DocumentDetail::Full,
        DocumentDetail::High,
        DocumentDetail::Low,
        DocumentDetail::Minimal,
        DocumentDetail::Prompts,
    ] {
        for max_chars in [None, Some(9)] {
            let options = DocumentOptions {
                max_chars,
                ..with_detail(detail)
            };
            let page = written(&main, &[], DocumentFormat::Html, &options);
            check_tags(&page);
            let head = page.split_once("<body>").unwrap().0;
            assert_eq!(head.matches("<script>").count(), 1);
            assert_eq!(head.matches("<style>").count(), 1);
            assert!(head.find("Content-Security-Policy").unwrap() < head.find("<style>").unwrap());
        }
    }
}

#[test]
fn no_attack_is_html_in_markdown() {
    let main = open(attacks::transcript(), TranscriptRole::Main, attacks::id());
    let text = written(
        &main,
        &[],
        DocumentFormat::Markdown,
        &DocumentOptions::default(),
    );
    let body = text.splitn(3, "---\n").nth(2).unwrap();
    let options = pulldown_cmark::Options::ENABLE_TABLES;
    for event in pulldown_cmark::Parser::new_ext(body, options) {
        match event {
            pulldown_cmark::Event::Html(html) | pulldown_cmark::Event::InlineHtml(html) => {
                panic!("raw HTML: {html}")
            }
            pulldown_cmark::Event::Start(pulldown_cmark::Tag::Image { dest_url, .. }) => {
                panic!("an image: {dest_url}")
            }
            _ => {}
        }
    }
}

#[test]
fn markdown_is_as_long_as_its_turns_whatever_they_hold() {
    // A fence that is open in one reply must not swallow the next turn.
    let text = of_script(
        "you: a\nclaude: ```sh\\nrm\nyou: b\nclaude: fine [Bash x]\nresult: Bash x ````\\n```",
        DocumentFormat::Markdown,
        &DocumentOptions::default(),
    );
    assert!(text.contains("`````text\n````\n```\n`````\n"), "{text}");
    let headings =
        pulldown_cmark::Parser::new(text.splitn(3, "---\n").nth(2).unwrap()).filter(|event| {
            matches!(
                event,
                pulldown_cmark::Event::Start(pulldown_cmark::Tag::Heading {
                    level: pulldown_cmark::HeadingLevel::H2,
                    ..
                })
            )
        });
    assert_eq!(headings.count(), 2, "{text}");
}

const CONVERSATION: &str = "
    you:    fix it
    think:  where is it
    claude: looking [Read a.rs]
    result: Read a.rs fn main() {}
    claude: now [Bash cargo test]
    result: Bash cargo test broken!
    claude: done
";

#[test]
fn less_detail_is_less_of_the_same() {
    let has = |detail: DocumentDetail, format: DocumentFormat| -> Vec<bool> {
        let text = of_script(CONVERSATION, format, &with_detail(detail));
        let text = match format {
            DocumentFormat::Html => text_of_page(&text),
            _ => text,
        };
        ["fix it", "done", "a.rs", "fn main", "where is it"]
            .iter()
            .map(|part| text.contains(part))
            .collect()
    };
    for format in [
        DocumentFormat::Html,
        DocumentFormat::Markdown,
        DocumentFormat::Text,
    ] {
        let count = |detail| has(detail, format).iter().filter(|it| **it).count();
        // The title is the first prompt.
        assert_eq!(count(DocumentDetail::Prompts), 1, "{format:?}");
        assert_eq!(count(DocumentDetail::Minimal), 2, "{format:?}");
        assert_eq!(count(DocumentDetail::Low), 3, "{format:?}");
        assert_eq!(count(DocumentDetail::High), 4, "{format:?}");
        assert_eq!(count(DocumentDetail::Full), 5, "{format:?}");
    }
}

#[test]
fn long_texts_are_cut_and_it_says_how_much() {
    let long = format!("you: {}\nclaude: ok", "x".repeat(1000));
    for format in [
        DocumentFormat::Html,
        DocumentFormat::Markdown,
        DocumentFormat::Text,
        DocumentFormat::Json,
    ] {
        let options = DocumentOptions {
            max_chars: Some(300),
            ..DocumentOptions::default()
        };
        let text = of_script(&long, format, &options);
        assert!(
            text.contains("700 characters truncated"),
            "{format:?} {text}"
        );
        // Titles and lists have their own limits.
        let longest = text.split(|c| c != 'x').map(str::len).max().unwrap();
        assert!(longest <= 500, "{format:?}: {longest}");
    }
}

#[test]
fn a_turn_is_a_prompt_a_line_of_work_and_the_answer() {
    let page = of_script(
        CONVERSATION,
        DocumentFormat::Html,
        &DocumentOptions::default(),
    );
    let body = page.split_once("<main").unwrap().1;
    let places: Vec<usize> = [
        "class=\"prompt\"",
        "class=\"work\"",
        "where is it",
        "</div></details>\n<div class=\"reply",
        "done",
    ]
    .iter()
    .map(|part| {
        body.find(part)
            .unwrap_or_else(|| panic!("{part} in {body}"))
    })
    .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(body.contains("<b>1</b> Bash</span>"), "{body}");
    assert!(body.contains("1 failed"), "{body}");
    assert!(body.contains("<section class=\"turn\" id=\"t1\">"));
}

#[test]
fn json_is_the_session_and_its_blocks() {
    let text = of_script(
        CONVERSATION,
        DocumentFormat::Json,
        &DocumentOptions::default(),
    );
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["session"]["turns"], 1);
    assert_eq!(value["rows"].as_array().unwrap().len(), 9, "{text}");
    assert_eq!(
        squeezed(value["rows"][0]["text"].as_str().unwrap()),
        "fixit"
    );
}

#[test]
fn every_sub_agent_is_there_also_without_a_call() {
    let main = open(
        script::jsonl("you: a\nclaude: b"),
        TranscriptRole::Main,
        "5e55",
    );
    let agent = open(
        script::jsonl("you: look around\nclaude: found it"),
        TranscriptRole::Agent,
        "a1",
    );
    for format in [
        DocumentFormat::Html,
        DocumentFormat::Markdown,
        DocumentFormat::Text,
    ] {
        let text = written(
            &main,
            std::slice::from_ref(&agent),
            format,
            &DocumentOptions::default(),
        );
        assert!(
            text.contains("found it") && text.contains("a1"),
            "{format:?}: {text}"
        );
    }
}
