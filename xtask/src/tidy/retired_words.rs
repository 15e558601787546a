//! Names that were replaced do not come back.
//!
//! A retired module or type is listed with what it is called now.

use super::{SourceTree, Violation};

/// Retired names and their replacements. Types are whole words of code; a name with `/` or `.rs` is
/// part of a path.
const RETIRED: &[(&str, &str)] = &[
    (
        "Around",
        "ValueSurroundings or CallHost or another name that says what it is",
    ),
    ("Bench", "EditStaging"),
    ("Bill", "CostCounter"),
    ("Board", "SearchQueue or LiveRows"),
    ("Courier", "TraceDelivery"),
    ("Course", "ThreadEnds"),
    ("Crew", "RunningWork"),
    (
        "Desk",
        "ChatBackend or BrowserBackend or another name that says what it is",
    ),
    ("Detours", "ReplacementMap"),
    ("Doer", "CallRunner"),
    ("Duty", "WorkerPriority"),
    ("Ear", "ResponseReader"),
    ("Feed", "IndexUpdater"),
    ("Ground", "WriteRoots or PermissionDirs"),
    (
        "Hands",
        "ChatActionRunner or AppEffectRunner or another name that says what it is",
    ),
    (
        "Holds",
        "SearchFileKind or SecretScanFileKind or another name that says what it is",
    ),
    ("Hub", "EventBroadcast"),
    ("Kin", "SessionRelation"),
    ("Laid", "EditorLayout or LaidOutPage"),
    (
        "Level",
        "BracketOwner or RuleCertainty or another name that says what it is",
    ),
    (
        "Listed",
        "IndexedSessionText or CandidateList or another name that says what it is",
    ),
    ("Lore", "SessionCustomizations"),
    ("Ninth", "UuidNinthByte"),
    (
        "Opened",
        "OpenDatabase or SessionScreen or another name that says what it is",
    ),
    ("Outlook", "UndoPreview"),
    (
        "Piece",
        "DraftLine or ShortenedPiece or another name that says what it is",
    ),
    ("Scene", "ToolContext"),
    ("Seam", "SplitPoint"),
    (
        "Shape",
        "CutContext or MissingField or another name that says what it is",
    ),
    ("Shelf", "SnapshotFile"),
    ("Signs", "SignalCache"),
    ("Spent", "MessageUsage or RunUsage"),
    (
        "Spot",
        "ConversationPosition or RowPosition or another name that says what it is",
    ),
    ("Stretch", "TurnExtent or ScannedLines"),
    ("Trail", "AppendLog"),
    ("Veil", "EditRedactor"),
    ("Wish", "TextReplacement or WantedLines"),
    ("Wishes", "SendOptions or EditOptions"),
    ("/ages.rs", "turn_age"),
    ("/alone.rs", "hook_guard"),
    ("/along.rs", "side_files"),
    ("/amount.rs", "format"),
    ("/before.rs", "continued_from or older_exporter"),
    ("/below.rs", "descendants"),
    ("/bench.rs", "staging"),
    ("/book.rs", "session_loader or loader_events"),
    ("/carry.rs", "copy_side_files"),
    (
        "/desk.rs",
        "backend or ordered_work or chat_commands or hook_files",
    ),
    ("/detour.rs", "replacement_map"),
    ("/each.rs", "parallel"),
    ("/feed.rs", "index_updater"),
    ("/hub.rs", "event_broadcast"),
    ("/keep.rs", "file_mark"),
    ("/kept.rs", "snapshot or tool_state or answer_cache"),
    ("/level.rs", "conversation_view"),
    ("/listed.rs", "session_index"),
    ("/mark.rs", "resume_point"),
    ("/marks.rs", "bitset"),
    ("/more.rs", "mcp_tools"),
    ("/near.rs", "session_copies"),
    ("/opened.rs", "session_cache"),
    ("/own.rs", "own_lines or app_dirs"),
    ("/patient.rs", "write_timeout"),
    ("/pick.rs", "turn_selection or choice_picker"),
    ("/places.rs", "id_references"),
    ("/pool.rs", "interner"),
    ("/ready.rs", "turn_completion"),
    ("/room.rs", "context_window"),
    ("/seam.rs", "split_point"),
    ("/settle.rs", "repair_references or wait_for_flush"),
    ("/signs.rs", "signal_cache"),
    ("/spent.rs", "file_usage or token_scan or run_usage"),
    ("/spoken.rs", "message_lines"),
    ("/tame.rs", "sanitize"),
    ("/trail.rs", "append_log"),
    ("/veil.rs", "edit_redactor"),
    ("/wishes.rs", "session_commands or edit_options"),
    ("/world.rs", "command_context"),
];

pub(super) fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.product_sources() {
        for (name, now) in RETIRED {
            let is_path = name.contains('/') || name.ends_with(".rs");
            let lines: Vec<usize> = match is_path {
                true => file.path.contains(name).then_some(1).into_iter().collect(),
                false => lines_with_word(file.code_lines(), name),
            };
            found.extend(lines.into_iter().map(|line| Violation {
                check: "retired-words",
                file: file.path.clone(),
                line,
                what: format!("`{name}` is called `{now}`"),
            }));
        }
    }
    found
}

fn lines_with_word<'t>(lines: impl Iterator<Item = (usize, &'t str)>, word: &str) -> Vec<usize> {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    let has = |code: &str| code.split(|char| !is_word(char)).any(|part| part == word);
    lines
        .filter(|(_, code)| has(code))
        .map(|(line, _)| line)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_whole_and_not_as_part_of_another() {
        let code = [
            (1, "let desk = 1;"),
            (2, "desktop()"),
            (3, "use a::desk::B;"),
        ];
        assert_eq!(lines_with_word(code.into_iter(), "desk"), [1, 3]);
    }
}
