//! Runs in turn: what a machine does in between hits everybody alike.

use std::fs;
use std::path::{Path, PathBuf};

use crate::measure::{self, Cost};

/// Somebody who runs once in each round.
pub type Entrant<'a> = Box<dyn FnMut() -> Result<Cost, String> + 'a>;

/// Everybody in turn, several times: the least time of each, and the most memory.
pub fn rounds(count: usize, entrants: &mut [Entrant<'_>]) -> Vec<Result<Cost, String>> {
    let mut best: Vec<Option<Result<Cost, String>>> = entrants.iter().map(|_| None).collect();
    for _ in 0..count.max(1) {
        for (entrant, best) in entrants.iter_mut().zip(&mut best) {
            // Who failed once does not run again.
            if matches!(best, Some(Err(_))) {
                continue;
            }
            let cost = entrant();
            *best = Some(match (best.take(), cost) {
                (Some(Ok(best)), Ok(cost)) => Ok(merge(best, cost)),
                (_, cost) => cost,
            });
        }
    }
    best.into_iter()
        .map(|best| best.unwrap_or_else(|| Err("did not run".into())))
        .collect()
}

fn merge(best: Cost, cost: Cost) -> Cost {
    Cost {
        wall: best.wall.min(cost.wall),
        cpu: best.cpu.min(cost.cpu),
        peak: best.peak.max(cost.peak),
        status: cost.status,
    }
}

/// An empty folder for what a program keeps, gone when dropped.
pub struct Own(PathBuf);

impl Own {
    pub fn new(name: &str) -> Result<Own, String> {
        let name = format!("unspool-bench-{}-{name}", std::process::id());
        let own = Own(std::env::temp_dir().join(name));
        own.clear()?;
        Ok(own)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Forgets everything that was kept.
    pub fn clear(&self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.0.display());
        if self.0.exists() {
            fs::remove_dir_all(&self.0).map_err(failed)?;
        }
        fs::create_dir_all(&self.0).map_err(failed)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // Left-overs in the temporary folder harm nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Where a program finds sessions and where it may keep things.
pub struct Place<'a> {
    /// The folder with `.claude` in it.
    pub tree: &'a Path,
    /// What it takes for its home.
    pub home: &'a Path,
    /// Where it may keep things.
    pub own: &'a Path,
}

/// Runs a program there.
pub fn start(program: &Path, args: &[&str], place: &Place<'_>) -> Result<Cost, String> {
    let claude = place.tree.join(".claude");
    let cache = place.own.join("cache");
    let variables = [
        ("HOME", place.home),
        ("CLAUDE_CONFIG_DIR", &claude),
        ("UNSPOOL_HOME", place.own),
        ("XDG_CACHE_HOME", &cache),
        ("XDG_DATA_HOME", &cache),
        ("XDG_CONFIG_HOME", &cache),
        // Nothing of ours may run on beside the next entrant.
        ("UNSPOOL_NO_BACKGROUND", Path::new("1")),
    ];
    measure::cost(program, args, &variables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::made_up as cost;

    #[test]
    fn everybody_runs_in_turn_and_the_best_time_counts() {
        let order = std::cell::RefCell::new(String::new());
        let entrant = |name: &'static str, mut walls: Vec<f64>| -> Entrant<'_> {
            let order = &order;
            Box::new(move || {
                order.borrow_mut().push_str(name);
                walls
                    .pop()
                    .map(|wall| cost(wall, wall))
                    .ok_or("over".into())
            })
        };
        let mut all = [
            entrant("a", vec![2.0, 1.0, 3.0]),
            entrant("b", vec![5.0, 4.0]),
        ];
        let best = rounds(3, &mut all);
        assert_eq!(*order.borrow(), "ababab");
        let a = best[0].as_ref().unwrap();
        assert_eq!((a.wall, a.peak), (1.0, 3.0));
        assert_eq!(best[1].as_ref().err().map(String::as_str), Some("over"));
    }
}
