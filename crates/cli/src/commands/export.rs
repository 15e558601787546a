//! `export`: sessions as documents.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use unspool_model::view::messages::{self, Resume};
use unspool_model::view::row;
use unspool_show::amount;
use unspool_show::document::{self, Detail, Format, Options, Whole};
use unspool_show::wire::export::ExportRow;
use unspool_show::wire::session::{Place, SessionRow};
use unspool_store::long_lines;
use unspool_store::open;
use unspool_store::output_file::{self, Existing, OutputFile};
use unspool_store::project;
use unspool_store::read::Reader;
use unspool_store::resolve::Target;

use crate::commands::ls;
use crate::failure::Failure;
use crate::secrets;
use crate::world::{Chosen, World};

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
    pub to: Option<FormatArg>,

    /// Output file, or directory (one file per session and an index); `-` is standard output
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,

    /// How much of each session to include [default: full for html, high for md and txt]
    #[arg(long, value_name = "HOW")]
    pub detail: Option<DetailArg>,

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
pub enum FormatArg {
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

impl FormatArg {
    fn format(self) -> Format {
        match self {
            FormatArg::Html => Format::Html,
            FormatArg::Md => Format::Markdown,
            FormatArg::Txt => Format::Text,
            FormatArg::Json => Format::Json,
            FormatArg::Jsonl => Format::Jsonl,
            FormatArg::Messages => Format::Messages,
        }
    }
}

/// How much of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DetailArg {
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

impl DetailArg {
    /// What nobody asked otherwise gets: a page folds what few want to read, and elsewhere it
    /// would stand between everything else.
    fn of(format: Format) -> DetailArg {
        match format {
            Format::Markdown | Format::Text => DetailArg::High,
            _ => DetailArg::Full,
        }
    }

    fn detail(self) -> Detail {
        match self {
            DetailArg::Full => Detail::Full,
            DetailArg::High => Detail::High,
            DetailArg::Low => Detail::Low,
            DetailArg::Minimal => Detail::Minimal,
            DetailArg::Prompts => Detail::Prompts,
        }
    }
}

/// Exports sessions.
pub fn run(world: World, args: &ExportArgs) -> Result<(), Failure> {
    let world = World {
        reveal: world.reveal || args.no_redact,
        ..world
    };
    let export = Export::new(&world, args)?;
    let targets = targets(&world, args)?;
    match folder(args, targets.len()) {
        Some(folder) => export.folder(&folder, targets),
        None => export.single(targets),
    }
}

/// Writes one session into the current directory, under a name that is free: for screens.
pub fn beside(world: &World, session: &OsStr, format: &str) -> Result<PathBuf, Failure> {
    let to = FormatArg::from_str(format, true).map_err(Failure::failed)?;
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
    let path = free.ok_or_else(|| Failure::failed("no unused file name found"))?;
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
    Export::new(world, &args)?.single(vec![target])?;
    Ok(std::path::absolute(&path).unwrap_or(path))
}

/// Writes a session that is open already.
pub fn document(
    world: &World,
    args: &ExportArgs,
    chosen: &Chosen,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let export = Export::new(world, args)?;
    export.write(out, chosen, &row(world, chosen))
}

/// What is asked for, of any session.
struct Export<'a> {
    world: &'a World,
    args: &'a ExportArgs,
    format: Format,
    options: Options,
}

impl ExportArgs {
    /// The file or folder to write to; none for standard output, which is also called `-`.
    fn place(&self) -> Option<&PathBuf> {
        self.output.as_ref().filter(|path| path.as_os_str() != "-")
    }
}

/// The sessions that are asked for.
fn targets(world: &World, args: &ExportArgs) -> Result<Vec<Target>, Failure> {
    if args.all {
        let found = world.found()?;
        if found.sessions.is_empty() {
            return Err(world.no_sessions());
        }
        return Ok(found.sessions.into_iter().map(Target::Session).collect());
    }
    if args.sessions.is_empty() {
        return Ok(vec![world.target(None)?]);
    }
    let mut targets: Vec<Target> = Vec::new();
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
fn format_of(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let ends = |ending: &str| name.ends_with(ending);
    match () {
        () if ends(".messages.json") => Some(Format::Messages),
        () if ends(".htm") => Some(Format::Html),
        () if ends(".markdown") => Some(Format::Markdown),
        () => Format::ALL
            .into_iter()
            .find(|format| ends(&format!(".{}", format.extension()))),
    }
}

impl<'a> Export<'a> {
    fn new(world: &'a World, args: &'a ExportArgs) -> Result<Export<'a>, Failure> {
        let named = args.to.map(FormatArg::format);
        let format = named.or_else(|| format_of(args.place()?));
        let format = format.ok_or_else(|| {
            Failure::failed("no output format given")
                .hint("use `--to html`, md, txt, json, jsonl or messages")
        })?;
        let detail = args.detail.unwrap_or_else(|| DetailArg::of(format));
        if !format.is_for_people() && detail != DetailArg::Full {
            return Err(Failure::failed(format!(
                "--detail does not apply to {}, which is always complete",
                format.name()
            ))
            .hint("use it with html, md or txt"));
        }
        if matches!(format, Format::Jsonl | Format::Messages) && args.max_chars.is_some() {
            return Err(Failure::failed(format!(
                "--max-chars does not apply to {}, which must stay valid",
                format.name()
            ))
            .hint("use it with html, md, txt or json; `unspool clone` trims sessions"));
        }
        Ok(Export {
            world,
            args,
            format,
            options: Options {
                detail: detail.detail(),
                max_chars: args.max_chars,
                zone: world.ui.zone().clone(),
            },
        })
    }

    /// Reads a session, without secrets unless they are asked for.
    fn look(&self, target: Target) -> Result<Chosen, Failure> {
        let reader = self.world.reader();
        let mask = match self.format.is_for_people() {
            true => reader.mask.map(|_| secrets::page_masker()),
            false => reader.mask,
        };
        self.world.look_by(&Reader { mask, ..reader }, target)
    }

    /// One session, to a file or to standard output.
    fn single(&self, targets: Vec<Target>) -> Result<(), Failure> {
        let several = targets.len() > 1 || self.args.all;
        let Some(target) = targets.into_iter().next().filter(|_| !several) else {
            return Err(Failure::failed("several sessions need an output directory")
                .hint("name one with `-o DIR/`"));
        };
        let Some(path) = self.args.place() else {
            if self.format == Format::Html && self.world.ui.is_terminal() {
                return Err(Failure::failed("refusing to print HTML to a terminal")
                    .hint("name a file with `-o page.html`"));
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
    fn folder(&self, folder: &Path, targets: Vec<Target>) -> Result<(), Failure> {
        let name = |id: &str| format!("{}.{}", safe_name(id), self.format.extension());
        let index = document::index::name(self.format).map(|name| folder.join(name));
        for target in &targets {
            self.free(&folder.join(name(&id_of(target))))?;
        }
        index.iter().try_for_each(|index| self.free(index))?;
        make_folder(folder)?;
        let mut rows: Vec<(String, SessionRow)> = Vec::new();
        let mut failed = 0;
        for target in targets {
            let source = target.path().to_owned();
            let chosen = match self.look(target) {
                Ok(chosen) => chosen,
                Err(Failure::Failed(told) | Failure::Nothing(told)) => {
                    self.world
                        .ui
                        .warn(&format!("{}: {}", source.display(), told.message));
                    failed += 1;
                    continue;
                }
                Err(other) => return Err(other),
            };
            let row = row(self.world, &chosen);
            let meant = |wanted: &String| project::is_meant(&row.project, wanted);
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
            return Err(Failure::nothing(why).hint("list them with `unspool ls`"));
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
    fn free(&self, path: &Path) -> Result<(), Failure> {
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
            return Err(
                Failure::failed(format!("{name} is in Claude Code's projects directory"))
                    .hint("write to another directory"),
            );
        }
        Ok(output_file::check(path, self.existing())?)
    }

    fn existing(&self) -> Existing {
        match self.args.force {
            true => Existing::Replace,
            false => Existing::Refuse,
        }
    }

    /// Writes a file whole or not at all, or into a device or a pipe, and says so.
    fn file(
        &self,
        path: &Path,
        session: &str,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut out = OutputFile::create(path, self.existing())?;
        write(&mut out)?;
        let bytes = out.finish()?;
        self.told(path, session, bytes)
    }

    fn told(&self, path: &Path, session: &str, bytes: u64) -> Result<(), Failure> {
        if !self.world.ui.json {
            self.world.ui.note(&format!(
                "wrote {} ({})",
                path.display(),
                amount::bytes(bytes)
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
    fn write(&self, out: &mut dyn Write, chosen: &Chosen, row: &SessionRow) -> Result<(), Failure> {
        match self.format {
            Format::Jsonl => return self.lines(out, chosen),
            Format::Messages => return self.messages(out, chosen),
            _ => {}
        }
        let main = &chosen.family.main;
        let agents = chosen.family.told();
        let whole = Whole {
            session: &main.session,
            source: &main.source,
            agents: &agents,
            row,
        };
        Ok(document::write(out, &whole, self.format, &self.options)?)
    }

    /// The file, byte for byte but for its secrets.
    fn lines(&self, out: &mut dyn Write, chosen: &Chosen) -> Result<(), Failure> {
        let path = chosen.target.path();
        let (mut file, _) = open::open(path)?;
        if self.world.reveal {
            std::io::copy(&mut file, out)?;
            return Ok(());
        }
        Ok(long_lines::mask_lines(&file, secrets::masker(), out)?)
    }

    fn messages(&self, out: &mut dyn Write, chosen: &Chosen) -> Result<(), Failure> {
        let main = &chosen.family.main;
        let why = match messages::messages(&main.session, &main.source, self.world.profile) {
            Resume::Messages(all) => {
                writeln!(out, "{}", messages::to_json(&all))?;
                return Ok(());
            }
            Resume::NoConversation => "would find no conversation",
            Resume::Hangs => "would hang",
        };
        let client = self.world.profile.name();
        Err(
            Failure::nothing(format!("Claude Code {client} {why} in {}", chosen.path()))
                .hint("see why with `unspool check`"),
        )
    }
}

/// What is known about a session, without secrets.
pub fn row(world: &World, chosen: &Chosen) -> SessionRow {
    let main = &chosen.family.main;
    let session = &main.session;
    let prices = world.prices();
    let signals = world.signals_of(&chosen.target);
    let now = world.now();
    let titles = HashMap::new();
    let row = chosen
        .family
        .used(|files| row::row(files, &titles, &prices, &signals, now));
    let path = chosen.target.path();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    let place = Place {
        id: id_of(&chosen.target),
        path: chosen.path(),
        project: project::project(session, &folder.to_string_lossy()).to_owned(),
        bytes: main.bytes,
        parent: match &chosen.target {
            Target::Session(_) => None,
            Target::Agent(file) => Some(file.session.clone().unwrap_or_default()),
        },
    };
    let mut row = SessionRow::new(session, row, place);
    ls::mask(world, &mut row);
    row
}

fn id_of(target: &Target) -> String {
    match target {
        Target::Session(file) => file.id.clone(),
        Target::Agent(file) => format!("agent-{}", file.id),
    }
}

/// An id as a name of a file: ids come from names of files, but one never knows.
fn safe_name(id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = id.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    name.trim_start_matches('.').to_owned()
}

/// Makes a folder for nobody else to read.
fn make_folder(folder: &Path) -> Result<(), Failure> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(folder)
        .map_err(|error| Failure::failed(format!("{}: {error}", folder.display())))
}
