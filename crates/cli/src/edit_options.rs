//! What is to be taken from a session, from what was typed to a plan.

use unspool_model::edit::compress::parse_ranges;
use unspool_model::edit::cut_turns::{self, CutOptions};
use unspool_model::edit::redact::Redactor;
use unspool_model::edit::summary::{self, SummaryLines};
use unspool_model::edit::thinking::{self, ThinkingShare};
use unspool_model::edit::tools::{self, KeptToolTurns, StripToolCalls, ToolCallAction};
use unspool_model::edit::{EditPlan, slim};
use unspool_model::log::TranscriptSource;
use unspool_model::session::Session;

use crate::command_context::CommandContext;
use crate::commands::clone::{StripMode, TrimArgs};
use crate::compress::{self, CompressProvider};
use crate::config::UserConfig;
use crate::failure::CommandFailure;
use crate::secrets;

/// What is to be taken from a session.
#[derive(Debug, Default)]
pub struct EditOptions {
    preset: Option<KeptToolTurns>,
    keep: Option<KeptToolTurns>,
    strip: Option<StripToolCalls>,
    results_over: Option<usize>,
    thinking: Option<u8>,
    slim: bool,
    cut: CutOptions,
    redact: bool,
    compress: Option<compress::CompressOptions>,
    /// The turn before which everything is summarised, by whom, and the text if it is given.
    summary: Option<SummaryRequest>,
}

impl EditOptions {
    /// What was typed, if it makes sense.
    pub fn new(world: &CommandContext, trims: &TrimArgs) -> Result<EditOptions, CommandFailure> {
        let named = trims.preset.as_deref();
        let mut preset = named.map(|name| preset(world, name)).transpose()?;
        let mut keep = None;
        if let Some(preset) = &mut preset {
            preset.turns = trims.keep_tools.unwrap_or(preset.turns);
            preset.truncate = trims.truncate_tools.unwrap_or(preset.truncate);
        } else if trims.keep_tools.is_some() || trims.truncate_tools.is_some() {
            keep = Some(KeptToolTurns {
                turns: trims.keep_tools.unwrap_or(usize::MAX),
                truncate: trims.truncate_tools.unwrap_or(0),
            });
        }
        Ok(EditOptions {
            preset,
            keep,
            strip: trims.strip_tools.map(|percent| StripToolCalls {
                percent,
                mode: match trims.mode {
                    StripMode::Remove => ToolCallAction::Remove,
                    StripMode::Truncate => ToolCallAction::Truncate,
                },
            }),
            results_over: trims.results_over,
            thinking: trims.strip_thinking,
            slim: trims.slim,
            cut: cut_of(trims)?,
            redact: trims.redact,
            compress: compress_of(trims)?,
            summary: summary_of(trims)?,
        })
    }

    /// The same, without asking anybody.
    #[must_use]
    pub fn dry(mut self, is_dry: bool) -> EditOptions {
        if let Some(options) = &mut self.compress {
            options.dry_run = is_dry;
        }
        if let Some((_, options, _)) = &mut self.summary {
            options.dry_run = is_dry;
        }
        self
    }

    /// Writes the wishes into a plan. What goes as a whole goes first, so that shares are of
    /// what is left. Says how many texts only stand for what will be written.
    pub fn write(
        &self,
        world: &CommandContext,
        session: &Session,
        source: &dyn TranscriptSource,
        plan: &mut EditPlan,
    ) -> Result<u64, CommandFailure> {
        let mut guessed = 0;
        cut_turns::cut(session, plan, &self.cut)
            .map_err(|refused| CommandFailure::failed(&refused).hint(refused.hint()))?;
        if let Some(keep) = self.preset {
            tools::preset(session, source, plan, keep);
        }
        if let Some(keep) = self.keep {
            tools::keep(session, source, plan, keep);
        }
        if let Some(strip) = self.strip {
            tools::strip(session, source, plan, strip);
        }
        if let Some(bytes) = self.results_over {
            tools::results_over(session, source, plan, bytes);
        }
        if let Some(percent) = self.thinking {
            let share = match percent {
                100 => ThinkingShare::All,
                percent => ThinkingShare::Oldest(percent),
            };
            thinking::strip(session, plan, share);
        }
        if self.slim {
            slim::slim(session, plan);
        }
        if let Some(options) = &self.compress {
            let report = compress::run(world, session, source, plan, options)?;
            guessed = report.guessed;
            // Some that fail stay as they are; a copy in which all did is not what was asked.
            if let (0, Some(why)) = (report.shortened, report.why) {
                let what = format!("no text could be shortened: {why}; nothing was written");
                return Err(
                    CommandFailure::failed(what).hint("try the command in a shell, or retry")
                );
            }
        }
        let summary = self.summary.as_ref();
        let pending = summary.is_some_and(|(_, options, text)| options.dry_run && text.is_none());
        Ok(guessed + u64::from(pending))
    }

    /// Puts a summary in place of what stands before a turn, if that was asked. The plan must
    /// be settled.
    pub fn summarise(
        &self,
        world: &CommandContext,
        session: &Session,
        source: &dyn TranscriptSource,
        plan: &mut EditPlan,
    ) -> Result<Option<SummaryLines>, CommandFailure> {
        let Some((turn, options, text)) = &self.summary else {
            return Ok(None);
        };
        let turns = session.turns.iter().filter(|turn| turn.thread == 0);
        let turns: Vec<u32> = turns.map(|turn| turn.record).collect();
        let place = if *turn < 0 {
            turns.len() as i64 + turn
        } else {
            turn - 1
        };
        let record = usize::try_from(place).ok().and_then(|at| turns.get(at));
        let &record = record.ok_or_else(|| {
            CommandFailure::failed(format!(
                "there is no turn {turn}: the session has {}",
                turns.len()
            ))
            .hint("list turns with `unspool turns`")
        })?;
        let text = match text {
            Some(text) => text.clone(),
            None => compress::summary(world, session, source, plan, record, options)?,
        };
        let put = summary::put(plan, session, source, record, &text);
        put.map(Some).map_err(|refused| {
            CommandFailure::failed(refused.why)
                .hint("choose another turn; `unspool turns` lists them")
        })
    }

    /// What was asked, in words.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        let mut add = |is: bool, what: &str| words.extend(is.then(|| what.to_owned()));
        add(self.cut != CutOptions::default(), "some turns");
        add(
            self.preset.is_some() || self.keep.is_some() || self.strip.is_some(),
            "fewer tool calls",
        );
        add(self.results_over.is_some(), "smaller results");
        add(self.thinking.is_some(), "less thinking");
        add(self.slim, "no bookkeeping");
        add(self.redact, "no secrets");
        add(self.compress.is_some(), "shorter replies");
        add(self.summary.is_some(), "a summary");
        match words.is_empty() {
            true => "a copy".to_owned(),
            false => format!("a copy with {}", words.join(", ")),
        }
    }

    /// Who replaces secrets, if that was asked.
    pub fn redactor(
        &self,
        world: &CommandContext,
        dry_run: bool,
    ) -> Result<Option<Redactor>, CommandFailure> {
        let redactor = || {
            secrets::redactor(&world.own.config, dry_run).map_err(|why| {
                let path = world.own.config.join("redact.key");
                CommandFailure::failed(format!("cannot save `{}`: {why}", path.display()))
            })
        };
        self.redact.then(redactor).transpose()
    }
}

/// A preset by its name: the person's own come first.
fn preset(world: &CommandContext, name: &str) -> Result<KeptToolTurns, CommandFailure> {
    let config = UserConfig::read(&world.own.config)?;
    let own = config.presets.get(name).map(|preset| KeptToolTurns {
        turns: preset.keep,
        truncate: preset.truncate,
    });
    own.or_else(|| tools::preset_named(name)).ok_or_else(|| {
        let known = tools::PRESETS.iter().map(|(name, _)| *name);
        let own = config.presets.keys().map(String::as_str);
        let all: Vec<&str> = known.chain(own).collect();
        CommandFailure::failed(format!("unknown preset `{name}`")).hint(format!(
            "known presets: {}; define your own in `{}`",
            all.join(", "),
            world.own.config.join("config.toml").display()
        ))
    })
}

/// Who writes what shorter, if that was asked.
fn compress_of(trims: &TrimArgs) -> Result<Option<compress::CompressOptions>, CommandFailure> {
    if trims.compress.is_empty() {
        return Ok(None);
    }
    let bands = parse_ranges(&trims.compress)
        .map_err(|bad| CommandFailure::failed(&bad).hint("use a value such as `0-50:35`"))?;
    Ok(Some(compress::CompressOptions {
        bands,
        ..asked(trims)
    }))
}

fn asked(trims: &TrimArgs) -> compress::CompressOptions {
    compress::CompressOptions {
        bands: Vec::new(),
        include_user: trims.include_user,
        who: CompressProvider::chosen(trims.with.as_deref(), trims.model.as_deref()),
        yes: trims.yes,
        dry_run: false,
        patience: unspool_ask::AskLimits::default(),
    }
}

type SummaryRequest = (i64, compress::CompressOptions, Option<String>);

fn summary_of(trims: &TrimArgs) -> Result<Option<SummaryRequest>, CommandFailure> {
    let Some(turn) = &trims.summary else {
        return Ok(None);
    };
    let text = trims.summary_text.clone();
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(CommandFailure::failed("the summary is empty")
            .hint("pass a text with `--summary-text`, or omit it"));
    }
    Ok(Some((turn_number(turn)?, asked(trims), text)))
}

/// A turn by its number; from the end if it is negative.
fn turn_number(text: &str) -> Result<i64, CommandFailure> {
    let number = text.parse::<i64>().ok().filter(|turn| *turn != 0);
    number.ok_or_else(|| {
        CommandFailure::failed(format!("`{text}` is not a turn"))
            .hint("use `3`, or `-1` for the last")
    })
}

fn cut_of(trims: &TrimArgs) -> Result<CutOptions, CommandFailure> {
    let range = |text: &String| text.parse().map_err(no_turn);
    let without = trims.drop_turn.iter().map(|text| turn_number(text));
    Ok(CutOptions {
        branch: trims.branch.clone(),
        until: trims
            .until
            .as_deref()
            .map(str::parse)
            .transpose()
            .map_err(no_turn)?,
        turns: trims.turns.iter().map(range).collect::<Result<_, _>>()?,
        without: without.collect::<Result<_, _>>()?,
    })
}

fn no_turn(why: impl std::fmt::Display) -> CommandFailure {
    CommandFailure::failed(why).hint("list turns with `unspool turns`")
}

/// The options as they were typed, for the log.
pub fn typed() -> Vec<String> {
    std::env::args().skip(2).collect()
}
