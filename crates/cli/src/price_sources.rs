//! The prices that hold on this machine: the bundled table, a newer one that was taken in,
//! and what the person wrote.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use unspool_model::price::{PriceOrigin, Prices};
use unspool_store::own_file;

use crate::app_dirs::AppDirs;
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// The table that `prices update` wrote.
pub fn updated(own: &AppDirs) -> PathBuf {
    own.data.join("prices.json")
}

/// What the person wrote.
pub fn overrides(own: &AppDirs) -> PathBuf {
    own.config.join("prices-override.json")
}

/// What updates brought so far; a broken file is about to be replaced.
pub fn taken_in(own: &AppDirs) -> Prices {
    let file = load(&updated(own), PriceOrigin::Updated);
    file.ok().flatten().unwrap_or_default()
}

impl CommandContext {
    /// The prices that hold. A file that cannot be used is one warning, and prices are then
    /// those of the next source.
    pub fn prices(&self) -> Cow<'static, Prices> {
        let mut prices = Cow::Borrowed(Prices::bundled());
        for (origin, path) in sources(&self.own) {
            match load(&path, origin) {
                Ok(Some(over)) => prices = Cow::Owned(prices.merged(over)),
                Ok(None) => {}
                Err(failure) => self.ui.warn(&told(&failure)),
            }
        }
        prices
    }

    /// The prices that hold, for those who ask about prices: a broken file is an error.
    pub fn checked_prices(&self) -> Result<Cow<'static, Prices>, CommandFailure> {
        let mut prices = Cow::Borrowed(Prices::bundled());
        for (origin, path) in sources(&self.own) {
            if let Some(over) = load(&path, origin)? {
                prices = Cow::Owned(prices.merged(over));
            }
        }
        Ok(prices)
    }
}

/// The files beside the bundled table; later ones go before earlier ones.
fn sources(own: &AppDirs) -> [(PriceOrigin, PathBuf); 2] {
    [
        (PriceOrigin::Updated, updated(own)),
        (PriceOrigin::Override, overrides(own)),
    ]
}

/// A table from a file; `None` if there is no such file, or cannot be one.
fn load(path: &Path, origin: PriceOrigin) -> Result<Option<Prices>, CommandFailure> {
    let name = path.display();
    let text = match own_file::read_settings(path) {
        Ok(text) => text,
        Err(error) if is_absent(error.kind()) => return Ok(None),
        Err(error) => {
            return Err(CommandFailure::failed(format!("{name}: {error}")).hint(hint(origin)));
        }
    };
    let prices = Prices::parse(&text)
        .map_err(|error| CommandFailure::failed(format!("{name}: {error}")).hint(hint(origin)))?;
    let prices = match prices.source() {
        "" => Prices::new(prices.date(), &name.to_string(), prices.rows().cloned()),
        _ => prices,
    };
    Ok(Some(prices.marked(origin)))
}

/// Nothing is there, or what should be the folder is none.
fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn hint(origin: PriceOrigin) -> &'static str {
    match origin {
        PriceOrigin::Override => {
            "fix or remove the file; `unspool prices --help` describes its format"
        }
        PriceOrigin::Bundled | PriceOrigin::Updated => {
            "recreate the file with `unspool prices update --from FILE`, or remove it"
        }
    }
}

fn told(failure: &CommandFailure) -> String {
    match failure {
        CommandFailure::Nothing(told) | CommandFailure::Failed(told) => {
            format!("{}; using other prices", told.message)
        }
        CommandFailure::Found | CommandFailure::Code(_) | CommandFailure::Closed => String::new(),
    }
}
