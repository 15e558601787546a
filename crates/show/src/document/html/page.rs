//! What stands around the conversation: head, list of prompts, foot.

use std::io;

use super::{HtmlPage, csp, markdown_html};
use crate::document::{DocumentSource, PromptListEntry, entries, index};
use crate::format;
use crate::wire::session::SessionJson;
use unspool_model::time::Time;

impl HtmlPage<'_> {
    /// Everything up to the first turn.
    pub(super) fn head(&mut self, whole: &DocumentSource<'_>) -> io::Result<()> {
        let entries = entries(whole.session, whole.source);
        let title = title(whole.row);
        self.top(&title)?;
        self.html
            .raw("<a class=\"skip\" href=\"#main\">Skip to the conversation</a>\n")?;
        self.html.raw("<header>\n<h1>")?;
        self.html.text(&title)?;
        self.html.raw("</h1>\n")?;
        self.facts(whole)?;
        self.html.raw("</header>\n")?;
        self.html.raw(BAR)?;
        self.html.raw("<div class=\"columns\">\n")?;
        self.list(&entries)?;
        self.html.raw("<main id=\"main\">\n")
    }

    /// The start of any page of ours: policy, style and script.
    pub(super) fn top(&mut self, title: &str) -> io::Result<()> {
        self.html
            .raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")?;
        self.html
            .raw("<meta http-equiv=\"Content-Security-Policy\" content=\"")?;
        self.policy()?;
        self.html.raw("\">\n")?;
        self.html.raw(
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta name=\"robots\" content=\"noindex\">\n\
             <meta name=\"generator\" content=\"unspool\">\n<title>",
        )?;
        self.html.text(title)?;
        self.html.raw("</title>\n<style>")?;
        self.html.raw(csp::STYLE)?;
        self.html.raw("</style>\n<script>")?;
        self.html.raw(csp::SCRIPT)?;
        self.html.raw("</script>\n</head>\n<body>\n")
    }

    fn policy(&mut self) -> io::Result<()> {
        self.html.text(csp::POLICY)
    }

    fn facts(&mut self, whole: &DocumentSource<'_>) -> io::Result<()> {
        let row = whole.row;
        self.html.raw("<p class=\"facts\">")?;
        for fact in facts(whole, &self.options.zone) {
            self.html.raw("<span>")?;
            self.html.text(&fact)?;
            self.html.raw("</span>")?;
        }
        self.html.raw("</p>\n")?;
        for link in &row.pr_links {
            self.html.raw("<p class=\"facts\">")?;
            markdown_html::typed(&mut self.html, link)?;
            self.html.raw("</p>\n")?;
        }
        Ok(())
    }

    fn list(&mut self, entries: &[PromptListEntry]) -> io::Result<()> {
        self.html
            .raw("<nav aria-label=\"Prompts\">\n<ol class=\"list\">\n")?;
        for entry in entries {
            self.entry(entry)?;
        }
        self.html.raw("</ol>\n</nav>\n")
    }

    fn entry(&mut self, entry: &PromptListEntry) -> io::Result<()> {
        self.html.raw(if entry.live {
            "<li><a href=\"#t"
        } else {
            "<li class=\"rewound\"><a href=\"#t"
        })?;
        self.html.text(&entry.n.to_string())?;
        self.html.raw("\"><span class=\"n\">")?;
        self.html.text(&entry.n.to_string())?;
        self.html.raw("</span><span class=\"what\">")?;
        self.html.text(&entry.prompt)?;
        self.html.raw("</span>")?;
        if let Some(at) = entry.at {
            self.html.raw("<time>")?;
            self.html.text(&format::clock(at, &self.options.zone))?;
            self.html.raw("</time>")?;
        }
        self.html.raw("</a>")?;
        for commit in &entry.commits {
            self.html.raw("<a class=\"commit\" href=\"#c-")?;
            self.html.text(&commit.call)?;
            self.html.raw("\" title=\"")?;
            self.html.text(&commit.branch)?;
            self.html.raw("\"><code>")?;
            self.html.text(&commit.hash)?;
            self.html.raw("</code> ")?;
            self.html.text(&commit.title)?;
            self.html.raw("</a>")?;
        }
        self.html.raw("</li>\n")
    }

    /// The index of a folder.
    pub(super) fn index(&mut self, rows: &[(String, SessionJson)]) -> io::Result<()> {
        self.top("Sessions")?;
        self.html
            .raw("<header>\n<h1>Sessions</h1>\n<p class=\"facts\">")?;
        self.html.text(&index::sum(rows))?;
        self.html.raw("</p>\n<ul class=\"sessions\">\n")?;
        for (file, row) in rows {
            self.html.raw("<li><a href=\"")?;
            self.html.text(file)?;
            self.html.raw("\">")?;
            self.html.text(&title(row))?;
            self.html.raw("</a><p class=\"facts\">")?;
            for fact in index::facts(row, self.options) {
                self.html.raw("<span>")?;
                self.html.text(&fact)?;
                self.html.raw("</span>")?;
            }
            self.html.raw("</p></li>\n")?;
        }
        self.html.raw("</ul>\n</header>\n</body>\n</html>\n")
    }

    /// Everything behind the last turn.
    pub(super) fn foot(&mut self) -> io::Result<()> {
        self.html.raw("</main>\n</div>\n")?;
        self.html.raw(HELP)?;
        self.html.raw("</body>\n</html>\n")
    }
}

/// The title of a session; its id where it has none.
pub(super) fn title(row: &SessionJson) -> String {
    let title = row
        .title
        .as_deref()
        .filter(|title| !title.trim().is_empty());
    title.unwrap_or(&row.id).to_owned()
}

fn facts(whole: &DocumentSource<'_>, zone: &jiff::tz::TimeZone) -> Vec<String> {
    let row = whole.row;
    let mut facts = vec![row.cwd.clone().unwrap_or_else(|| row.project.clone())];
    facts.extend(row.git_branch.as_ref().map(|branch| format!("on {branch}")));
    facts.extend(when(whole.session.first, whole.session.last, zone));
    facts.push(format::count(row.turns as u64, "turn"));
    facts.push(format::count(row.calls as u64, "call"));
    if row.agents > 0 {
        facts.push(format::count(row.agents as u64, "sub-agent"));
    }
    if row.compactions > 0 {
        facts.push(format::count(row.compactions as u64, "compaction"));
    }
    facts.push(row.models.join(", "));
    let usage = &row.usage;
    let tokens =
        usage.input + usage.output + usage.cache_read + usage.cache_write_5m + usage.cache_write_1h;
    if tokens > 0 {
        facts.push(format!("{} tokens", format::tokens(tokens)));
    }
    facts.extend(index::cost(row));
    facts.extend(
        row.version
            .as_ref()
            .map(|version| format!("Claude Code {version}")),
    );
    facts.push(row.id.clone());
    facts.retain(|fact| !fact.is_empty());
    facts
}

/// `2026-11-15 14:02 – 15:10`; the second day only if it is another.
pub(super) fn when(
    first: Option<Time>,
    last: Option<Time>,
    zone: &jiff::tz::TimeZone,
) -> Option<String> {
    let (first, last) = (first?, last?);
    let start = format::moment(first, zone);
    let same = format::day(first, zone) == format::day(last, zone);
    let end = if same {
        format::clock(last, zone)
    } else {
        format::moment(last, zone)
    };
    if same && format::clock(first, zone) == end {
        return Some(start);
    }
    Some(format!("{start} – {end}"))
}

/// What needs the script; hidden without it.
const BAR: &str = "<div class=\"bar\" role=\"search\">\
<input id=\"find\" type=\"search\" placeholder=\"Search this session\" aria-label=\"Search this session\" autocomplete=\"off\" spellcheck=\"false\">\
<span id=\"found\" role=\"status\"></span>\
<button id=\"all\" type=\"button\" title=\"Expand or collapse all (e)\">Open all</button>\
<button id=\"theme\" type=\"button\" title=\"Theme: light, dark or system (d)\">Theme</button>\
<button id=\"keys\" type=\"button\" title=\"Keys (?)\">?</button>\
</div>\n";

const HELP: &str = "<dialog id=\"help\"><h2>Keys</h2><dl>\
<dt>j k</dt><dd>next, previous turn</dd>\
<dt>Enter o</dt><dd>expand or collapse a turn</dd>\
<dt>e</dt><dd>expand or collapse all</dd>\
<dt>/</dt><dd>search</dd>\
<dt>n N</dt><dd>next, previous match</dd>\
<dt>g G</dt><dd>first, last turn</dd>\
<dt>d</dt><dd>theme: light, dark, system</dd>\
<dt>?</dt><dd>this help</dd>\
<dt>Esc</dt><dd>clear the search, close this</dd>\
</dl></dialog>\n";
