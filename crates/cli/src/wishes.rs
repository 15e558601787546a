//! What is to be taken from a session, from what was typed to a plan.

use unspool_model::edit::compress::bands;
use unspool_model::edit::cut::{self, Cut};
use unspool_model::edit::redact::Redactor;
use unspool_model::edit::summary::{self, Summary};
use unspool_model::edit::thinking::{self, Share};
use unspool_model::edit::tools::{self, Keep, Mode, Strip};
use unspool_model::edit::{Plan, slim};
use unspool_model::log::Source;
use unspool_model::session::Session;

use crate::commands::clone::{StripMode, Trims};
use crate::compress::{self, Who};
use crate::config::Config;
use crate::failure::Failure;
use crate::secrets;
use crate::world::World;

/// What is to be taken from a session.
#[derive(Debug, Default)]
pub struct Wishes {
    preset: Option<Keep>,
    keep: Option<Keep>,
    strip: Option<Strip>,
    results_over: Option<usize>,
    thinking: Option<u8>,
    slim: bool,
    cut: Cut,
    redact: bool,
    compress: Option<compress::Options>,
    /// The turn before which everything is summarised, by whom, and the text if it is given.
    summary: Option<Summarised>,
}

impl Wishes {
    /// What was typed, if it makes sense.
    pub fn new(world: &World, trims: &Trims) -> Result<Wishes, Failure> {
        let named = trims.preset.as_deref();
        let mut preset = named.map(|name| preset(world, name)).transpose()?;
        let mut keep = None;
        if let Some(preset) = &mut preset {
            preset.turns = trims.keep_tools.unwrap_or(preset.turns);
            preset.truncate = trims.truncate_tools.unwrap_or(preset.truncate);
        } else if trims.keep_tools.is_some() || trims.truncate_tools.is_some() {
            keep = Some(Keep {
                turns: trims.keep_tools.unwrap_or(usize::MAX),
                truncate: trims.truncate_tools.unwrap_or(0),
            });
        }
        Ok(Wishes {
            preset,
            keep,
            strip: trims.strip_tools.map(|percent| Strip {
                percent,
                mode: match trims.mode {
                    StripMode::Remove => Mode::Remove,
                    StripMode::Truncate => Mode::Truncate,
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
    pub fn dry(mut self, is_dry: bool) -> Wishes {
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
        world: &World,
        session: &Session,
        source: &dyn Source,
        plan: &mut Plan,
    ) -> Result<u64, Failure> {
        let mut guessed = 0;
        cut::cut(session, plan, &self.cut)
            .map_err(|refused| Failure::failed(&refused).hint(refused.hint()))?;
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
                100 => Share::All,
                percent => Share::Oldest(percent),
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
                return Err(Failure::failed(what).hint("try the command in a shell, or retry"));
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
        world: &World,
        session: &Session,
        source: &dyn Source,
        plan: &mut Plan,
    ) -> Result<Option<Summary>, Failure> {
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
            Failure::failed(format!(
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
            Failure::failed(refused.why).hint("choose another turn; `unspool turns` lists them")
        })
    }

    /// What was asked, in words.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        let mut add = |is: bool, what: &str| words.extend(is.then(|| what.to_owned()));
        add(self.cut != Cut::default(), "some turns");
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
    pub fn redactor(&self, world: &World, dry_run: bool) -> Result<Option<Redactor>, Failure> {
        let redactor = || {
            secrets::redactor(&world.own.config, dry_run).map_err(|why| {
                let path = world.own.config.join("redact.key");
                Failure::failed(format!("cannot save `{}`: {why}", path.display()))
            })
        };
        self.redact.then(redactor).transpose()
    }
}

/// A preset by its name: the person's own come first.
fn preset(world: &World, name: &str) -> Result<Keep, Failure> {
    let config = Config::read(&world.own.config)?;
    let own = config.presets.get(name).map(|preset| Keep {
        turns: preset.keep,
        truncate: preset.truncate,
    });
    own.or_else(|| tools::preset_named(name)).ok_or_else(|| {
        let known = tools::PRESETS.iter().map(|(name, _)| *name);
        let own = config.presets.keys().map(String::as_str);
        let all: Vec<&str> = known.chain(own).collect();
        Failure::failed(format!("unknown preset `{name}`")).hint(format!(
            "known presets: {}; define your own in `{}`",
            all.join(", "),
            world.own.config.join("config.toml").display()
        ))
    })
}

/// Who writes what shorter, if that was asked.
fn compress_of(trims: &Trims) -> Result<Option<compress::Options>, Failure> {
    if trims.compress.is_empty() {
        return Ok(None);
    }
    let bands = bands(&trims.compress)
        .map_err(|bad| Failure::failed(&bad).hint("use a value such as `0-50:35`"))?;
    Ok(Some(compress::Options {
        bands,
        ..asked(trims)
    }))
}

fn asked(trims: &Trims) -> compress::Options {
    compress::Options {
        bands: Vec::new(),
        include_user: trims.include_user,
        who: Who::chosen(trims.with.as_deref(), trims.model.as_deref()),
        yes: trims.yes,
        dry_run: false,
        patience: unspool_ask::Patience::default(),
    }
}

type Summarised = (i64, compress::Options, Option<String>);

fn summary_of(trims: &Trims) -> Result<Option<Summarised>, Failure> {
    let Some(turn) = &trims.summary else {
        return Ok(None);
    };
    let text = trims.summary_text.clone();
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(Failure::failed("the summary is empty")
            .hint("pass a text with `--summary-text`, or omit it"));
    }
    Ok(Some((turn_number(turn)?, asked(trims), text)))
}

/// A turn by its number; from the end if it is negative.
fn turn_number(text: &str) -> Result<i64, Failure> {
    let number = text.parse::<i64>().ok().filter(|turn| *turn != 0);
    number.ok_or_else(|| {
        Failure::failed(format!("`{text}` is not a turn")).hint("use `3`, or `-1` for the last")
    })
}

fn cut_of(trims: &Trims) -> Result<Cut, Failure> {
    let range = |text: &String| text.parse().map_err(no_turn);
    let without = trims.drop_turn.iter().map(|text| turn_number(text));
    Ok(Cut {
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

fn no_turn(why: impl std::fmt::Display) -> Failure {
    Failure::failed(why).hint("list turns with `unspool turns`")
}

/// The options as they were typed, for the log.
pub fn typed() -> Vec<String> {
    std::env::args().skip(2).collect()
}
