//! Rows of `check` and `info`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use unspool_model::fault::{Fault, FaultList};
use unspool_model::view::check::ResumeCheck as Answer;
use unspool_model::view::info::TranscriptInfo;
use unspool_model::view::session_usage::SessionUsage;

use crate::wire::cost::{self, UsageByOrigin};
use crate::wire::session::UsageRow;

/// A fault in a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FaultRow {
    /// The session.
    pub session: String,
    /// Its file.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// Kind of fault.
    pub kind: String,
    /// Description of the fault.
    pub detail: String,
}

impl FaultRow {
    /// The row of a fault.
    pub fn new(session: &str, path: &str, fault: &Fault) -> FaultRow {
        FaultRow {
            session: session.to_owned(),
            path: path.to_owned(),
            line: fault.line,
            kind: fault.kind.name().to_owned(),
            detail: fault.detail.clone(),
        }
    }
}

/// How many faults are counted and not told, by the names of their kinds.
pub fn left_out(faults: &FaultList) -> BTreeMap<String, usize> {
    let kinds = faults.all_left_out();
    kinds
        .map(|(kind, more)| (kind.name().to_owned(), more))
        .collect()
}

/// Whether a client could resume a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ResumableRow {
    /// Whether it can resume the session.
    pub resumes: bool,
    /// Lines of the conversation that it would not send.
    pub lost: usize,
    /// The first such line.
    pub first_lost: Option<u32>,
    /// Why it cannot resume, or what it would lose.
    pub why: Option<String>,
}

/// The last row of a check: the summary.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VerdictRow {
    /// The session.
    pub session: String,
    /// Its file.
    pub path: String,
    /// How many faults were found.
    pub faults: usize,
    /// Faults without a row, by kind: only the first thousand of each kind have one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub faults_left_out: BTreeMap<String, usize>,
    /// Whether the client of `--claude-version` resumes it without loss.
    pub resumable: bool,
    /// For every known client version.
    pub clients: BTreeMap<String, ResumableRow>,
    /// Unknown types and fields, with the versions that wrote them.
    pub unknown: BTreeMap<String, BTreeMap<String, u32>>,
}

impl From<&Answer> for ResumableRow {
    fn from(answer: &Answer) -> ResumableRow {
        ResumableRow {
            resumes: answer.resumes,
            lost: answer.lost,
            first_lost: answer.first_lost,
            why: answer.why.clone(),
        }
    }
}

/// A version of the client and how many lines it wrote.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VersionRow {
    /// The version.
    pub version: String,
    /// Lines.
    pub lines: u32,
}

/// The inventory of a session.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct InfoRow {
    /// The session.
    pub session: String,
    /// Its file.
    pub path: String,
    /// Its tag, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Bytes of the file.
    pub bytes: u64,
    /// Lines.
    pub lines: u32,
    /// Blank lines.
    pub blank_lines: u32,
    /// Lines by type and subtype.
    pub types: BTreeMap<String, u32>,
    /// Unknown types and fields, with the versions that wrote them.
    pub unknown: BTreeMap<String, BTreeMap<String, u32>>,
    /// Versions of the client with line counts.
    pub versions: Vec<VersionRow>,
    /// Stop reasons, by message.
    pub stop_reasons: BTreeMap<String, u32>,
    /// Content blocks by kind.
    pub blocks: BTreeMap<String, u32>,
    /// Calls by tool.
    pub tools: BTreeMap<String, u32>,
    /// Models.
    pub models: Vec<String>,
    /// Tokens, those of its sub-agents and of the client's own helpers included.
    pub usage: UsageRow,
    /// Its cost; null if any message has no known price.
    pub cost_usd: Option<f64>,
    /// Cost of its messages that have a known price.
    pub cost_usd_known: f64,
    /// Number of its messages without a known price.
    pub unpriced_messages: u64,
    /// Who used these tokens.
    pub used_by: UsageByOrigin,
    /// Its faults.
    pub faults: Vec<FaultRow>,
    /// Faults that are not listed, by kind: only the first thousand of each kind are.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub faults_left_out: BTreeMap<String, usize>,
    /// Files that belong to it, by kind.
    pub side_files: BTreeMap<String, Vec<String>>,
}

impl InfoRow {
    /// The row of an inventory, without side files.
    pub fn new(
        session: &str,
        path: &str,
        bytes: u64,
        info: TranscriptInfo,
        used: &SessionUsage,
        faults: &FaultList,
    ) -> InfoRow {
        let all = used.all();
        let (cost_usd, cost_usd_known, unpriced_messages) = cost::cost_fields(all.cost);
        InfoRow {
            session: session.to_owned(),
            path: path.to_owned(),
            tag: None,
            bytes,
            lines: info.lines,
            blank_lines: info.blank_lines,
            types: info.types,
            unknown: info.unknown,
            versions: info
                .versions
                .into_iter()
                .map(|(version, lines)| VersionRow { version, lines })
                .collect(),
            stop_reasons: info.stop_reasons,
            blocks: info.blocks,
            tools: info.tools,
            models: info.models,
            usage: all.usage.into(),
            cost_usd,
            cost_usd_known,
            unpriced_messages,
            used_by: UsageByOrigin::from(used),
            faults: faults
                .iter()
                .map(|fault| FaultRow::new(session, path, fault))
                .collect(),
            faults_left_out: left_out(faults),
            side_files: BTreeMap::new(),
        }
    }
}
