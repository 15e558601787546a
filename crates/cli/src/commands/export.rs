//! `export`: sessions as documents.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use unspool_model::view::messages::{self, ResumeResult};
use unspool_model::view::session_row;
use unspool_show::document::{
    self, DocumentDetail, DocumentFormat, DocumentOptions, DocumentSource,
};
use unspool_show::format;
use unspool_show::wire::export::ExportRow;
use unspool_show::wire::session::{SessionFileInfo, SessionJson};
use unspool_store::long_lines;
use unspool_store::open;
use unspool_store::output_file::{self, ExistingFilePolicy, OutputFile};
use unspool_store::project;
use unspool_store::read::SessionReader;
use unspool_store::resolve::SessionTarget;

use crate::command_context::{ChosenSession, CommandContext};
use crate::commands::ls;
use crate::failure::CommandFailure;
use crate::secrets;

/// Arguments of `export`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  unspool export -o session.html                 the latest session of this directory as a page
  unspool export 2f72 --to md --detail low       short Markdown to standard output
  unspool export 2f72 81bc -o pages/ --to html   a folder of pages with an index
  unspool export --all --project webshop --to md -o notes/
  unspool export @ --to md --max-chars 2000 | llm 'what went wrong here?'

Detail, each level adding to the one before: prompts, minimal (adds replies), low (adds one line
per tool call, changes and failures), high (adds all inputs and results), full (adds thinking and
what hooks and the client told the model). Default: full for html, high for md and txt; json,
jsonl and messages always contain everything.
Keys, tokens and passwords are masked unless --no-redact. Files are created with mode 0600.")]
pub struct ExportArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    #[arg(value_name = "SESSION")]
    pub sessions: Vec<OsString>,

    /// All sessions
    #[arg(long, conflicts_with = "sessions")]
    pub all: bool,

    /// With --all, only sessions of this project (name, directory, or part of one)
    #[arg(long, value_name = "P", requires = "all")]
    pub project: Option<String>,

    /// Output format [default: from the file name]
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<ExportFormatArg>,

    /// Output file, or directory (one file per session and an index); `-` is standard output
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,

    /// How much of each session to include [default: full for html, high for md and txt]
    #[arg(long, value_name = "HOW")]
    pub detail: Option<ExportDetailArg>,

    /// Do not mask keys, tokens and passwords
    #[arg(long)]
    pub no_redact: bool,

    /// Truncate texts after N characters
    #[arg(long, value_name = "N")]
    pub max_chars: Option<usize>,

    /// Overwrite existing files; symlinks are refused, devices and pipes are written to
    #[arg(long)]
    pub force: bool,
}

/// A format by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormatArg {
    /// One self-contained HTML page
    Html,
    /// Markdown
    Md,
    /// Plain text
    Txt,
    /// One JSON object: the session and its blocks
    Json,
    /// The lines of the transcript
    Jsonl,
    /// The Messages-API array a client would send on resume
    Messages,
}

impl ExportFormatArg {
    fn format(self) -> DocumentFormat {
        match self {
            ExportFormatArg::Html => DocumentFormat::Html,
            ExportFormatArg::Md => DocumentFormat::Markdown,
            ExportFormatArg::Txt => DocumentFormat::Text,
            ExportFormatArg::Json => DocumentFormat::Json,
            ExportFormatArg::Jsonl => DocumentFormat::Jsonl,
            ExportFormatArg::Messages => DocumentFormat::Messages,
        }
    }
}

/// How much of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportDetailArg {
    /// Everything
    Full,
    /// Without thinking and notes
    High,
    /// One line per tool call
    Low,
    /// Prompts and replies
    Minimal,
    /// Prompts only
    Prompts,
}

impl ExportDetailArg {
    /// What nobody asked otherwise gets: a page folds what few want to read, and elsewhere it
    /// would stand between everything else.
    fn of(format: DocumentFormat) -> ExportDetailArg {
        match format {
            DocumentFormat::Markdown | DocumentFormat::Text => ExportDetailArg::High,
            _ => ExportDetailArg::Full,
        }
    }

    fn detail(self) -> DocumentDetail {
        match self {
            ExportDetailArg::Full => DocumentDetail::Full,
            ExportDetailArg::High => DocumentDetail::High,
            ExportDetailArg::Low => DocumentDetail::Low,
            ExportDetailArg::Minimal => DocumentDetail::Minimal,
            ExportDetailArg::Prompts => DocumentDetail::Prompts,
        }
    }
}

/// Exports sessions.
pub fn run(world: CommandContext, args: &ExportArgs) -> Result<(), CommandFailure> {
    let world = CommandContext {
        reveal: world.reveal || args.no_redact,
        ..world
    };
    let export = ExportRequest::new(&world, args)?;
    let targets = targets(&world, args)?;
    match folder(args, targets.len()) {
        Some(folder) => export.folder(&folder, targets),
        None => export.single(targets),
    }
}

/// Writes one session into the current directory, under a name that is free: for screens.
pub fn beside(
    world: &CommandContext,
    session: &OsStr,
    format: &str,
) -> Result<PathBuf, CommandFailure> {
    let to = ExportFormatArg::from_str(format, true).map_err(CommandFailure::failed)?;
    let target = world.target(Some(session))?;
    let id = id_of(&target);
    let short = id.get(..8).unwrap_or(&id);
    let name = |number: usize| {
        let more = if number > 1 {
            format!("-{number}")
        } else {
            String::new()
        };
        let end = to.format().extension();
        PathBuf::from(format!("unspool-{}{more}.{end}", safe_name(short)))
    };
    let mut names = (1..).map(name);
    let free = names.find(|name| name.symlink_metadata().is_err());
    let path = free.ok_or_else(|| CommandFailure::failed("no unused file name found"))?;
    let args = ExportArgs {
        sessions: Vec::new(),
        all: false,
        project: None,
        to: Some(to),
        output: Some(path.clone()),
        detail: None,
        no_redact: world.reveal,
        max_chars: None,
        force: false,
    };
    ExportRequest::new(world, &args)?.single(vec![target])?;
    Ok(std::path::absolute(&path).unwrap_or(path))
}

/// Writes a session that is open already.
pub fn document(
    world: &CommandContext,
    args: &ExportArgs,
    chosen: &ChosenSession,
    out: &mut dyn Write,
) -> Result<(), CommandFailure> {
    let export = ExportRequest::new(world, args)?;
    export.write(out, chosen, &row(world, chosen))
}

/// What is asked for, of any session.
struct ExportRequest<'a> {
    world: &'a CommandContext,
    args: &'a ExportArgs,
    format: DocumentFormat,
    options: DocumentOptions,
}

impl ExportArgs {
    /// The file or folder to write to; none for standard output, which is also called `-`.
    fn place(&self) -> Option<&PathBuf> {
        self.output.as_ref().filter(|path| path.as_os_str() != "-")
    }
}

/// The sessions that are asked for.
fn targets(
    world: &CommandContext,
    args: &ExportArgs,
) -> Result<Vec<SessionTarget>, CommandFailure> {
    if args.all {
        let found = world.found()?;
        if found.sessions.is_empty() {
            return Err(world.no_sessions());
        }
        return Ok(found
            .sessions
            .into_iter()
            .map(SessionTarget::Session)
            .collect());
    }
    if args.sessions.is_empty() {
        return Ok(vec![world.target(None)?]);
    }
    let mut targets: Vec<SessionTarget> = Vec::new();
    for argument in &args.sessions {
        let target = world.target(Some(argument))?;
        if !targets.iter().any(|other| other.path() == target.path()) {
            targets.push(target);
        }
    }
    Ok(targets)
}

/// The folder to write into, if it is not a file or standard output.
fn folder(args: &ExportArgs, sessions: usize) -> Option<PathBuf> {
    let output = args.place()?;
    let text = output.to_string_lossy();
    let is_folder = text.ends_with(['/', std::path::MAIN_SEPARATOR]) || output.is_dir();
    (is_folder || args.all || sessions > 1).then(|| output.clone())
}

/// The format that the end of a name stands for.
fn format_of(path: &Path) -> Option<DocumentFormat> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let ends = |ending: &str| name.ends_with(ending);
    match () {
        () if ends(".messages.json") => Some(DocumentFormat::Messages),
        () if ends(".htm") => Some(DocumentFormat::Html),
        () if ends(".markdown") => Some(DocumentFormat::Markdown),
        () => DocumentFormat::ALL
            .into_iter()
            .find(|format| ends(&format!(".{}", format.extension()))),
    }
}

impl<'a> ExportRequest<'a> {
    fn new(
        world: &'a CommandContext,
        args: &'a ExportArgs,
    ) -> Result<ExportRequest<'a>, CommandFailure> {
        let named = args.to.map(ExportFormatArg::format);
        let format = named.or_else(|| format_of(args.place()?));
        let format = format.ok_or_else(|| {
            CommandFailure::failed("no output format given")
                .hint("use `--to html`, md, txt, json, jsonl or messages")
        })?;
        let detail = args.detail.unwrap_or_else(|| ExportDetailArg::of(format));
        if !format.is_for_people() && detail != ExportDetailArg::Full {
            return Err(CommandFailure::failed(format!(
                "--detail does not apply to {}, which is always complete",
                format.name()
            ))
            .hint("use it with html, md or txt"));
        }
        if matches!(format, DocumentFormat::Jsonl | DocumentFormat::Messages)
            && args.max_chars.is_some()
        {
            return Err(CommandFailure::failed(format!(
                "--max-chars does not apply to {}, which must stay valid",
                format.name()
            ))
            .hint("use it with html, md, txt or json; `unspool clone` trims sessions"));
        }
        Ok(ExportRequest {
            world,
            args,
            format,
            options: DocumentOptions {
                detail: detail.detail(),
                max_chars: args.max_chars,
                zone: world.ui.zone().clone(),
            },
        })
    }

    /// Reads a session, without secrets unless they are asked for.
    fn look(&self, target: SessionTarget) -> Result<ChosenSession, CommandFailure> {
        let reader = self.world.reader();
        let mask = match self.format.is_for_people() {
            true => reader.mask.map(|_| secrets::page_masker()),
            false => reader.mask,
        };
        self.world
            .look_by(&SessionReader { mask, ..reader }, target)
    }

    /// One session, to a file or to standard output.
    fn single(&self, targets: Vec<SessionTarget>) -> Result<(), CommandFailure> {
        let several = targets.len() > 1 || self.args.all;
        let Some(target) = targets.into_iter().next().filter(|_| !several) else {
            return Err(
                CommandFailure::failed("several sessions need an output directory")
                    .hint("name one with `-o DIR/`"),
            );
        };
        let Some(path) = self.args.place() else {
            if self.format == DocumentFormat::Html && self.world.ui.is_terminal() {
                return Err(
                    CommandFailure::failed("refusing to print HTML to a terminal")
                        .hint("name a file with `-o page.html`"),
                );
            }
            let chosen = self.look(target)?;
            let row = row(self.world, &chosen);
            let mut out = self.world.ui.unmasked_data();
            self.write(&mut out, &chosen, &row)?;
            return Ok(out.flush()?);
        };
        self.free(path)?;
        let chosen = self.look(target)?;
        let row = row(self.world, &chosen);
        self.file(path, &row.id, |out| self.write(out, &chosen, &row))?;
        Ok(())
    }

    /// Many sessions: one file each, and an index.
    fn folder(&self, folder: &Path, targets: Vec<SessionTarget>) -> Result<(), CommandFailure> {
        let name = |id: &str| format!("{}.{}", safe_name(id), self.format.extension());
        let index = document::index::name(self.format).map(|name| folder.join(name));
        for target in &targets {
            self.free(&folder.join(name(&id_of(target))))?;
        }
        index.iter().try_for_each(|index| self.free(index))?;
        make_folder(folder)?;
        let mut rows: Vec<(String, SessionJson)> = Vec::new();
        let mut failed = 0;
        for target in targets {
            let source = target.path().to_owned();
            let chosen = match self.look(target) {
                Ok(chosen) => chosen,
                Err(CommandFailure::Failed(told) | CommandFailure::Nothing(told)) => {
                    self.world
                        .ui
                        .warn(&format!("{}: {}", source.display(), told.message));
                    failed += 1;
                    continue;
                }
                Err(other) => return Err(other),
            };
            let row = row(self.world, &chosen);
            let meant = |wanted: &String| project::project_matches(&row.project, wanted);
            let empty = self.args.all && !chosen.family.main.session.is_used();
            if empty || !self.args.project.as_ref().is_none_or(meant) {
                continue;
            }
            let file = name(&id_of(&chosen.target));
            self.file(&folder.join(&file), &row.id, |out| {
                self.write(out, &chosen, &row)
            })?;
            rows.push((file, row));
        }
        if rows.is_empty() {
            let why = if failed > 0 {
                "no session could be read"
            } else {
                "no session matches"
            };
            return Err(CommandFailure::nothing(why).hint("list them with `unspool ls`"));
        }
        let Some(index) = index else { return Ok(()) };
        rows.sort_by(|(_, a), (_, b)| b.last.cmp(&a.last).then_with(|| a.id.cmp(&b.id)));
        self.file(&index, "index", |out| {
            Ok(document::index::write(
                out,
                &rows,
                self.format,
                &self.options,
            )?)
        })
    }

    /// Refuses what would be lost, and what would become a session.
    fn free(&self, path: &Path) -> Result<(), CommandFailure> {
        let name = path.display();
        // The folder may not be there yet; what it will be in is.
        let folders = path.ancestors().skip(1);
        let named = folders.map(|folder| match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        });
        let real = named.map(std::fs::canonicalize).find_map(Result::ok);
        let real = real.unwrap_or_default();
        let theirs = |dir: &PathBuf| {
            let projects = std::fs::canonicalize(dir.join("projects"));
            projects.is_ok_and(|projects| real.starts_with(projects))
        };
        if self.world.dirs.iter().any(theirs) {
            return Err(CommandFailure::failed(format!(
                "{name} is in Claude Code's projects directory"
            ))
            .hint("write to another directory"));
        }
        Ok(output_file::check(path, self.existing())?)
    }

    fn existing(&self) -> ExistingFilePolicy {
        match self.args.force {
            true => ExistingFilePolicy::Replace,
            false => ExistingFilePolicy::Refuse,
        }
    }

    /// Writes a file whole or not at all, or into a device or a pipe, and says so.
    fn file(
        &self,
        path: &Path,
        session: &str,
        write: impl FnOnce(&mut dyn Write) -> Result<(), CommandFailure>,
    ) -> Result<(), CommandFailure> {
        let mut out = OutputFile::create(path, self.existing())?;
        write(&mut out)?;
        let bytes = out.finish()?;
        self.told(path, session, bytes)
    }

    fn told(&self, path: &Path, session: &str, bytes: u64) -> Result<(), CommandFailure> {
        if !self.world.ui.json {
            self.world.ui.note(&format!(
                "wrote {} ({})",
                path.display(),
                format::bytes(bytes)
            ));
            return Ok(());
        }
        let mut out = self.world.ui.out();
        let row = ExportRow {
            session: session.to_owned(),
            path: path.display().to_string(),
            format: self.format.name().to_owned(),
            bytes,
        };
        self.world.ui.row(&mut out, &row)?;
        Ok(out.flush()?)
    }

    /// Writes one session.
    fn write(
        &self,
        out: &mut dyn Write,
        chosen: &ChosenSession,
        row: &SessionJson,
    ) -> Result<(), CommandFailure> {
        match self.format {
            DocumentFormat::Jsonl => return self.lines(out, chosen),
            DocumentFormat::Messages => return self.messages(out, chosen),
            _ => {}
        }
        let main = &chosen.family.main;
        let agents = chosen.family.told();
        let whole = DocumentSource {
            session: &main.session,
            source: &main.source,
            agents: &agents,
            row,
        };
        Ok(document::write(out, &whole, self.format, &self.options)?)
    }

    /// The file, byte for byte but for its secrets.
    fn lines(&self, out: &mut dyn Write, chosen: &ChosenSession) -> Result<(), CommandFailure> {
        let path = chosen.target.path();
        let (mut file, _) = open::open(path)?;
        if self.world.reveal {
            std::io::copy(&mut file, out)?;
            return Ok(());
        }
        Ok(long_lines::mask_lines(&file, secrets::masker(), out)?)
    }

    fn messages(&self, out: &mut dyn Write, chosen: &ChosenSession) -> Result<(), CommandFailure> {
        let main = &chosen.family.main;
        let why = match messages::messages(&main.session, &main.source, self.world.profile) {
            ResumeResult::Messages(all) => {
                writeln!(out, "{}", messages::to_json(&all))?;
                return Ok(());
            }
            ResumeResult::NoConversation => "would find no conversation",
            ResumeResult::Hangs => "would hang",
        };
        let client = self.world.profile.name();
        Err(
            CommandFailure::nothing(format!("Claude Code {client} {why} in {}", chosen.path()))
                .hint("see why with `unspool check`"),
        )
    }
}

/// What is known about a session, without secrets.
pub fn row(world: &CommandContext, chosen: &ChosenSession) -> SessionJson {
    let main = &chosen.family.main;
    let session = &main.session;
    let prices = world.prices();
    let signals = world.signals_of(&chosen.target);
    let now = world.now();
    let titles = HashMap::new();
    let row = chosen
        .family
        .used(|files| session_row::row(files, &titles, &prices, &signals, now));
    let path = chosen.target.path();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    let place = SessionFileInfo {
        id: id_of(&chosen.target),
        path: chosen.path(),
        project: project::project(session, &folder.to_string_lossy()).to_owned(),
        bytes: main.bytes,
        parent: match &chosen.target {
            SessionTarget::Session(_) => None,
            SessionTarget::Agent(file) => Some(file.session.clone().unwrap_or_default()),
        },
    };
    let mut row = SessionJson::new(session, row, place);
    ls::mask(world, &mut row);
    row
}

fn id_of(target: &SessionTarget) -> String {
    match target {
        SessionTarget::Session(file) => file.id.clone(),
        SessionTarget::Agent(file) => format!("agent-{}", file.id),
    }
}

/// An id as a name of a file: ids come from names of files, but one never knows.
fn safe_name(id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = id.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    name.trim_start_matches('.').to_owned()
}

/// Makes a folder for nobody else to read.
fn make_folder(folder: &Path) -> Result<(), CommandFailure> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(folder)
        .map_err(|error| CommandFailure::failed(format!("{}: {error}", folder.display())))
}
