//! The messages that count, as a table.
//!
//! Which they are can change anywhere when one file changes: a copy may turn up of a message
//! that counted elsewhere. So they are counted anew each time, by the model, from what is
//! known of each file, and only the rows of files where something differs are exchanged.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use rusqlite::{Connection, params};
use unspool_model::file_usage::FileUsage;
use unspool_model::price::Prices;
use unspool_model::view::usage::group::FileOwners;
use unspool_model::view::usage::{CountOutcome, CountedMessage, LedgerPrices, UsageLedger};
use unspool_store::token_scan::{TokenScanFile, places};

use super::rows::{self, TableCells};
use super::sql_views::USAGE;
use super::{SessionTables, insert};
use crate::db;
use crate::error::CacheError;
use crate::path_bytes;
use crate::usage_cache::UsageCache;

impl SessionTables {
    /// Brings `usage` up to date. `false`: another process was writing, and it is not.
    pub(super) fn count(
        &mut self,
        spendings: &UsageCache,
        prices: &Prices,
    ) -> Result<bool, CacheError> {
        let ledger = spendings.ledger();
        let count = MessageCounter {
            places: places(spendings.sources(), ledger),
            sources: spendings.sources(),
            files: spendings.files(),
            ledger,
            prices: ledger.prices(prices),
        };
        let prices = price_prints(ledger, prices);
        let by_file = count.by_file();
        let known = known(&self.connection).map_err(|why| CacheError::sql(&self.path, why))?;
        let mut gone = known;
        let mut news = Vec::new();
        let kept: Vec<_> = count
            .sources
            .iter()
            .map(|source| path_bytes::path_without_tokens(&source.path))
            .collect();
        for (file, counted) in by_file.iter().enumerate() {
            let Some(path) = path_bytes::bytes(&kept[file]) else {
                continue;
            };
            let print = count.print(file, counted, &prices);
            let before = gone.remove(path);
            if before != Some(print) && (before.is_some() || !counted.is_empty()) {
                news.push((path, print, file));
            }
        }
        if news.is_empty() && gone.is_empty() {
            return Ok(true);
        }
        let saved = db::write(&mut self.connection, &self.path, |work| {
            for path in gone.keys() {
                let id = number(work, path)?;
                work.execute("DELETE FROM usage_rows WHERE family = ?", [id])?;
                work.execute("DELETE FROM counted WHERE id = ?", [id])?;
            }
            for &(path, print, file) in &news {
                let id = number(work, path)?;
                work.prepare_cached("DELETE FROM usage_rows WHERE family = ?")?
                    .execute([id])?;
                insert(work, &USAGE, id, &count.cells(file, &by_file[file]))?;
                work.prepare_cached("INSERT OR REPLACE INTO counted VALUES (?, ?, ?)")?
                    .execute(params![id, path, print])?;
            }
            Ok(())
        });
        db::checkpoint_wal(&self.connection, &self.path);
        saved
    }
}

/// The number of a file, or the next free one.
fn number(connection: &Connection, path: &[u8]) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce((SELECT id FROM counted WHERE path = ?),
                               (SELECT coalesce(max(id), 0) + 1 FROM counted))";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row([path], |row| row.get(0))
}

fn known(connection: &Connection) -> rusqlite::Result<HashMap<Vec<u8>, i64>> {
    let mut statement = connection.prepare("SELECT path, print FROM counted")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// What stands for the price of each model: it changes with it.
pub fn price_prints<'a>(ledger: &'a UsageLedger, prices: &Prices) -> HashMap<&'a str, u64> {
    let print = |model: &str| {
        let mut hasher = DefaultHasher::new();
        format!("{:?}", prices.find(model)).hash(&mut hasher);
        hasher.finish()
    };
    let models = ledger.models.iter();
    models.map(|(model, _)| (model, print(model))).collect()
}

/// A message that counts, and its id.
type CountedMessageById<'a> = (&'a str, &'a CountedMessage);

struct MessageCounter<'a> {
    sources: &'a [TokenScanFile],
    files: Vec<&'a FileUsage>,
    places: FileOwners,
    ledger: &'a UsageLedger,
    prices: LedgerPrices<'a>,
}

impl MessageCounter<'_> {
    /// The messages that count in each file, with their ids.
    fn by_file(&self) -> Vec<Vec<CountedMessageById<'_>>> {
        let files = (0..).zip(&self.files);
        files.map(|(nth, file)| self.of_file(nth, file)).collect()
    }

    fn of_file<'a>(&'a self, nth: u32, file: &'a FileUsage) -> Vec<CountedMessageById<'a>> {
        let counted = |spent| match self.ledger.count_outcome(nth, file, spent) {
            (CountOutcome::Counted, Some(at)) => Some((file.id(spent), &self.ledger.counted[at])),
            _ => None,
        };
        file.messages.iter().filter_map(counted).collect()
    }

    /// Changes when a row does.
    fn print(
        &self,
        file: usize,
        counted: &[CountedMessageById<'_>],
        prices: &HashMap<&str, u64>,
    ) -> i64 {
        let mut hasher = DefaultHasher::new();
        self.places.get(file as u32).hash(&mut hasher);
        for (id, one) in counted {
            let (usage, terms) = (one.usage(), one.terms());
            let model = self.ledger.model(one);
            let price = model.and_then(|model| prices.get(model));
            (id, one.at(), price).hash(&mut hasher);
            self.ledger.charge(one, &self.prices).hash(&mut hasher);
            (usage.input, usage.output, usage.cache_read).hash(&mut hasher);
            (usage.cache_write_5m, usage.cache_write_1h).hash(&mut hasher);
            (terms.web_searches, terms.batch, terms.fast, terms.us).hash(&mut hasher);
            (model, one.stopped()).hash(&mut hasher);
        }
        hasher.finish().cast_signed()
    }

    fn cells(&self, file: usize, counted: &[CountedMessageById<'_>]) -> TableCells {
        let mut cells = TableCells::new();
        let place = self.places.get(file as u32);
        for (id, one) in counted {
            cells.extend([
                place.session.map(str::to_owned).into(),
                place.agent.map(str::to_owned).into(),
                place.project.to_owned().into(),
                (*id).to_owned().into(),
                self.ledger.model(one).map(str::to_owned).into(),
                rows::time(one.at()),
            ]);
            cells.extend(rows::tokens(one.usage()));
            cells.extend([
                rows::usd(self.ledger.charge(one, &self.prices)),
                self.ledger.floor(one).is_some().into(),
            ]);
        }
        cells
    }
}
