//! Grep: files by what is in them.

mod sinks;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::TypesBuilder;
use ignore::{Walk, WalkBuilder};
use serde_json::{Value, json};

use self::sinks::{AnyMatchSink, MatchCountSink, MatchLines};
use super::{choice, number, number_of, object, str_of, text, truth};
use crate::file;
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

/// Lines or files that are given unless told otherwise.
const HEAD: u64 = 250;

/// A folder may be the whole disk.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nobody needs more of this at once, whatever was asked for.
const BYTES: usize = 256 << 10;

/// A file whose lines, or which as a whole if lines are joined, takes more than this is left.
const HEAP: usize = 256 << 20;

/// Folders of version control hold nothing a person wrote.
const NEVER: [&str; 6] = ["!.git", "!.svn", "!.hg", "!.bzr", "!.jj", "!.sl"];

/// The tool.
#[derive(Debug)]
pub struct GrepTool;

impl BuiltinTool for GrepTool {
    fn name(&self) -> &'static str {
        "Grep"
    }

    fn description(&self) -> String {
        format!(
            "Searches files with a regular expression, as ripgrep does; files that git ignores are \
             left out.\n\n\
             - `output_mode`: `files_with_matches` (paths, the default), `content` (lines, with \
               -A/-B/-C and -n), `count` (matches in each file).\n\
             - Narrow it with `path`, `glob` (\"*.tsx\") or `type` (\"rust\", \"py\").\n\
             - The syntax is that of Rust's regex: escape braces, as in `interface\\{{\\}}`. A \
               pattern over several lines needs `multiline`.\n\
             - At most {HEAD} lines or files unless `head_limit` says otherwise; read on with \
               `offset`."
        )
    }

    fn schema(&self) -> Value {
        let lines = |about: &str| {
            let mut field = number(about);
            field["minimum"] = json!(0);
            field
        };
        object([
            ("pattern*", text("The regular expression")),
            (
                "path",
                text("The file or folder to search; the working directory unless given"),
            ),
            (
                "glob",
                text("Only files whose path matches, such as \"*.{ts,tsx}\""),
            ),
            (
                "output_mode",
                choice("What to give", ["content", "files_with_matches", "count"]),
            ),
            ("-B", lines("Lines before each match (content)")),
            ("-A", lines("Lines after each match (content)")),
            ("-C", lines("Lines before and after each match (content)")),
            ("context", lines("The same as -C")),
            ("-n", truth("Line numbers (content); true unless given")),
            ("-i", truth("Ignore case")),
            (
                "-o",
                truth("Only what matched, not the whole line (content)"),
            ),
            (
                "type",
                text("Only files of this type: rust, py, js, go, ..."),
            ),
            (
                "head_limit",
                lines("At most so many lines or files; 250 unless given, 0 for all"),
            ),
            ("offset", lines("Skip so many first")),
            (
                "multiline",
                truth("`.` matches newlines, and matches span lines"),
            ),
        ])
    }

    fn only_reads(&self, _: &Value) -> bool {
        true
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        search(&call.input, scene).unwrap_or_else(ToolOutcome::refused)
    }
}

/// What was asked for, made ready.
struct GrepSearch<'a> {
    input: &'a Value,
    root: PathBuf,
    matcher: RegexMatcher,
    scene: &'a ToolContext<'a>,
    end: Instant,
}

/// The part of the results that is wanted.
#[derive(Clone, Copy)]
struct GrepResultRange {
    skip: usize,
    most: usize,
}

fn search(input: &Value, scene: &ToolContext<'_>) -> Result<ToolOutcome, String> {
    let root = match input.get("path").and_then(Value::as_str) {
        Some(path) => file::absolute(path, &scene.cwd, scene.host.home()),
        None => scene.cwd.clone(),
    };
    if !root.exists() {
        return Err(format!(
            "Path does not exist: {}. Note: your current working directory is {}.",
            root.display(),
            scene.cwd.display()
        ));
    }
    let multiline = input["multiline"] == true;
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(input["-i"] == true)
        .multi_line(true)
        .dot_matches_new_line(multiline)
        .line_terminator((!multiline).then_some(b'\n'))
        .build(str_of(input, "pattern"))
        .map_err(|error| format!("Invalid regular expression: {error}"))?;
    let search = GrepSearch {
        input,
        root,
        matcher,
        scene,
        end: Instant::now() + PATIENCE,
    };
    match input["output_mode"].as_str() {
        Some("content") => search.content(),
        Some("count") => search.count(),
        _ => search.files(),
    }
}

impl GrepSearch<'_> {
    fn window(&self) -> GrepResultRange {
        let most = match number_of(self.input, "head_limit").unwrap_or(HEAD) {
            0 => usize::MAX,
            most => most as usize,
        };
        let skip = number_of(self.input, "offset").unwrap_or(0) as usize;
        GrepResultRange { skip, most }
    }

    fn searcher(&self) -> SearcherBuilder {
        let mut builder = SearcherBuilder::new();
        builder
            .binary_detection(BinaryDetection::quit(0))
            .multi_line(self.input["multiline"] == true)
            .heap_limit(Some(HEAP))
            .line_number(true);
        builder
    }

    /// Everything to look at, by name.
    fn walk(&self) -> Result<Walk, String> {
        let mut walk = WalkBuilder::new(&self.root);
        walk.hidden(false)
            .require_git(false)
            .overrides(self.overrides()?)
            .sort_by_file_name(std::cmp::Ord::cmp);
        if let Some(kind) = self.input["type"].as_str() {
            let mut types = TypesBuilder::new();
            types.add_defaults().select(kind);
            let types = types
                .build()
                .map_err(|error| format!("Unknown file type: {error}"))?;
            walk.types(types);
        }
        Ok(walk.build())
    }

    fn overrides(&self) -> Result<Override, String> {
        let mut globs = OverrideBuilder::new(&self.root);
        let own = str_of(self.input, "glob");
        for glob in words(own).iter().map(String::as_str).chain(NEVER) {
            globs
                .add(glob)
                .map_err(|error| format!("Invalid glob pattern: {error}"))?;
        }
        globs
            .build()
            .map_err(|error| format!("Invalid glob pattern: {error}"))
    }

    /// Calls it with every file until it says that this is enough; whether all were looked at.
    fn each(
        &self,
        mut act: impl FnMut(&Path, &mut Searcher, &RegexMatcher) -> bool,
        mut searcher: Searcher,
    ) -> Result<bool, String> {
        for entry in self.walk()? {
            if self.scene.stop.is_told() || Instant::now() > self.end {
                return Ok(false);
            }
            let Ok(entry) = entry else { continue };
            if entry.file_type().is_none_or(|kind| !kind.is_file()) {
                // A link that was named is followed; those on the way are not.
                if entry.depth() > 0 || !entry.path().is_file() {
                    continue;
                }
            }
            if self.scene.host.hides(entry.path()) {
                continue;
            }
            if !act(entry.path(), &mut searcher, &self.matcher) {
                return Ok(true);
            }
        }
        Ok(true)
    }

    fn name(&self, path: &Path) -> String {
        file::relative(path, &self.scene.cwd)
    }

    fn files(&self) -> Result<ToolOutcome, String> {
        let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
        let look = |path: &Path, searcher: &mut Searcher, matcher: &RegexMatcher| {
            let mut any = AnyMatchSink(false);
            // A file that cannot be read has no matches.
            let _ = searcher.search_path(matcher, path, &mut any);
            if any.0 {
                let changed = path.metadata().and_then(|it| it.modified());
                found.push((changed.unwrap_or(SystemTime::UNIX_EPOCH), path.to_owned()));
            }
            true
        };
        let complete = self.each(look, self.searcher().build())?;
        // Those changed last first.
        found.sort_by(|one, two| two.0.cmp(&one.0).then_with(|| one.1.cmp(&two.1)));
        let window = self.window();
        let all = found.iter().map(|(_, path)| self.name(path));
        let names: Vec<String> = all.skip(window.skip).take(window.most).collect();
        let result = json!({
            "mode": "files_with_matches", "filenames": names, "numFiles": names.len(),
            "totalFiles": found.len(),
        });
        if found.is_empty() {
            return Ok(ToolOutcome::done(
                "No files found".to_owned() + late(complete),
                result,
            ));
        }
        let many = if found.len() == 1 { "file" } else { "files" };
        let mut text = format!("Found {} {many}", found.len());
        text += &window.told(names.len(), found.len());
        for name in &names {
            text += "\n";
            text += name;
        }
        Ok(ToolOutcome::done(text + late(complete), result))
    }

    fn content(&self) -> Result<ToolOutcome, String> {
        let around = |name| number_of(self.input, name).map(|count| count as usize);
        let both = around("-C").or(around("context")).unwrap_or(0);
        let mut searcher = self.searcher();
        searcher
            .before_context(around("-B").unwrap_or(both))
            .after_context(around("-A").unwrap_or(both));
        let window = self.window();
        let mut lines = MatchLines::default();
        lines.numbers = self.input["-n"] != false;
        lines.only = self.input["-o"] == true;
        lines.skip = window.skip;
        // One more says that there are more.
        lines.most = window.most.saturating_add(1);
        lines.bytes = BYTES;
        let single = self.root.is_file();
        let look = |path: &Path, searcher: &mut Searcher, matcher: &RegexMatcher| {
            lines.next((!single).then(|| self.name(path)));
            let _ = searcher.search_path(matcher, path, lines.sink(matcher));
            !lines.is_full()
        };
        let complete = self.each(look, searcher.build())?;
        let more = lines.out.len() > window.most || lines.is_cut;
        lines.out.truncate(window.most);
        let text = lines.out.join("\n");
        let mut result = json!({
            "mode": "content", "numFiles": 0, "filenames": [], "content": text,
            "numLines": lines.out.len(),
        });
        if more {
            result["appliedLimit"] = json!(lines.out.len());
        }
        if window.skip > 0 {
            result["appliedOffset"] = json!(window.skip);
        }
        if lines.out.is_empty() {
            return Ok(ToolOutcome::done(
                "No matches found".to_owned() + late(complete),
                result,
            ));
        }
        let mut told = text;
        if more {
            let next = window.skip + lines.out.len();
            told += &format!("\n\n[There are more lines: go on with offset {next}]");
        }
        Ok(ToolOutcome::done(told + late(complete), result))
    }

    fn count(&self) -> Result<ToolOutcome, String> {
        let mut found: Vec<(String, u64)> = Vec::new();
        let look = |path: &Path, searcher: &mut Searcher, matcher: &RegexMatcher| {
            let mut count = MatchCountSink { matcher, count: 0 };
            let _ = searcher.search_path(matcher, path, &mut count);
            if count.count > 0 {
                found.push((self.name(path), count.count));
            }
            true
        };
        let complete = self.each(look, self.searcher().build())?;
        let total: u64 = found.iter().map(|(_, count)| count).sum();
        let window = self.window();
        let shown = found.iter().skip(window.skip).take(window.most);
        let lines: Vec<String> = shown
            .map(|(name, count)| format!("{name}:{count}"))
            .collect();
        let content = lines.join("\n");
        let result = json!({
            "mode": "count", "numFiles": found.len(), "filenames": [], "content": content,
            "numMatches": total,
        });
        if found.is_empty() {
            return Ok(ToolOutcome::done(
                "No matches found".to_owned() + late(complete),
                result,
            ));
        }
        let text = format!(
            "{content}\n\nFound {total} total {} across {} {}.{}",
            if total == 1 {
                "occurrence"
            } else {
                "occurrences"
            },
            found.len(),
            if found.len() == 1 { "file" } else { "files" },
            window.told(lines.len(), found.len())
        );
        Ok(ToolOutcome::done(text + late(complete), result))
    }
}

impl GrepResultRange {
    /// What to say if not everything is given.
    fn told(self, given: usize, all: usize) -> String {
        match given == all {
            true => String::new(),
            false => format!(" (showing {given}, from offset {})", self.skip),
        }
    }
}

fn late(complete: bool) -> &'static str {
    match complete {
        true => "",
        false => "\n\n[The search took too long and was ended: there may be more]",
    }
}

/// Globs may be given several at once; a comma inside braces parts nothing.
fn words(globs: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut depth = 0u32;
    for char in globs.chars() {
        match char {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ' ' => {
                words.push(String::new());
                continue;
            }
            ',' if depth == 0 => {
                words.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(word) = words.last_mut() {
            word.push(char);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    #[test]
    fn several_globs_may_be_given_at_once() {
        assert_eq!(
            super::words("*.{ts,tsx} *.rs,*.md"),
            ["*.{ts,tsx}", "*.rs", "*.md"]
        );
        assert!(super::words("").is_empty());
    }
}
