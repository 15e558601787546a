//! One case: ours and its peers in turn, and whether the answers are right.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Request;
use super::cases::{Case, Check, Limit, Start};
use super::peers::Peer;
use super::rounds::{self, Entrant, Own, Place, start};
use super::table::{Row, seconds};
use super::trees::{self, Tree, Twin};
use crate::measure::Cost;
use crate::truth::check::Asked;
use crate::truth::expected::{Expected, Tokens};

/// A case that is being measured.
struct Run<'a> {
    case: &'a Case,
    program: &'a Path,
    home: PathBuf,
    own: Own,
    twin: Option<RefCell<Twin>>,
    expected: Option<Expected>,
    needle: String,
    file: String,
}

/// Measures a case beside its peers.
pub fn measure(request: &Request, program: &Path, case: &Case) -> Result<Row, String> {
    let original = request.home(case.tree)?;
    let floor = trees::floor(&original)?;
    let run = Run::new(program, case, original)?;
    let mut words = Vec::new();
    if case.tree != Tree::Empty {
        words.push(format!("counting newlines {}", seconds(floor)));
    }
    let (peers, missing) = if request.peers {
        run.peers()
    } else {
        Default::default()
    };
    if case.start != Start::Fresh {
        run.once()?;
    }
    let mut entrants: Vec<Entrant<'_>> = vec![Box::new(|| run.once())];
    for (peer, program, own) in &peers {
        entrants.push(run.entrant(*peer, program, own));
    }
    let costs = rounds::rounds(request.runs, &mut entrants);
    drop(entrants);
    let others: Vec<(Peer, Result<Cost, String>)> = peers
        .iter()
        .map(|(peer, ..)| *peer)
        .zip(costs[1..].iter().cloned())
        .collect();
    let ours = costs[0].clone();
    for (peer, cost) in &others {
        words.push(describe(*peer, cost, ours.as_ref().ok()));
    }
    words.extend(run.deviations(&peers));
    words.extend(missing);
    let mut targets: Vec<(String, bool)> = case
        .limits
        .iter()
        .filter_map(|limit| judge(*limit, ours.as_ref().ok(), &others))
        .collect();
    targets.extend(run.check());
    Ok(Row {
        name: case.name.to_owned(),
        cost: Some(ours),
        targets,
        against: words.join("; "),
    })
}

impl<'a> Run<'a> {
    fn new(program: &'a Path, case: &'a Case, original: PathBuf) -> Result<Run<'a>, String> {
        let expected = match case.check {
            Check::Nothing => None,
            Check::Total | Check::Needles => Some(Expected::read(&original)?),
        };
        let needle = expected.as_ref().and_then(Expected::plain_needle);
        let needle = needle.map(|needle| needle.text.clone()).unwrap_or_default();
        let file = if case.args.contains(&"FILE") {
            trees::largest(&original)?.to_string_lossy().into_owned()
        } else {
            String::new()
        };
        let twin = match case.start {
            Start::Appended => Some(Twin::new(&original)?),
            Start::Fresh | Start::Warm => None,
        };
        Ok(Run {
            home: twin.as_ref().map_or(original, |twin| twin.home.clone()),
            twin: twin.map(RefCell::new),
            own: Own::new("ours")?,
            case,
            program,
            expected,
            needle,
            file,
        })
    }

    /// Runs the program once, from where the case starts.
    fn once(&self) -> Result<Cost, String> {
        match (self.case.start, &self.twin) {
            (Start::Fresh, _) => self.own.clear()?,
            (Start::Appended, Some(twin)) => twin.borrow_mut().append()?,
            (Start::Warm | Start::Appended, _) => {}
        }
        let word = |arg: &&'a str| -> &str {
            match *arg {
                "FILE" => &self.file,
                "NEEDLE" => &self.needle,
                arg => arg,
            }
        };
        let args: Vec<&str> = self.case.args.iter().map(word).collect();
        let place = Place {
            tree: &self.home,
            home: self.own.path(),
            own: self.own.path(),
        };
        let cost = start(self.program, &args, &place)?;
        // `check` is a test: 1 says that it found something.
        let is_done = cost.status == 0 || cost.status == 1 && self.case.args[0] == "check";
        if is_done {
            Ok(cost)
        } else {
            Err(format!("status {}", cost.status))
        }
    }

    /// The peers of the case that are here, and words about those that are not.
    #[allow(clippy::type_complexity, reason = "used once, right above")]
    fn peers(&self) -> (Vec<(Peer, PathBuf, Own)>, Vec<String>) {
        let (mut here, mut missing) = (Vec::new(), Vec::new());
        for peer in self.case.peers {
            let own = Own::new(&format!("{peer:?}"));
            match peer.provide().and_then(|program| Ok((program, own?))) {
                Ok((program, own)) => here.push((*peer, program, own)),
                Err(reason) => missing.push(format!("{}: {reason}", peer.name())),
            }
        }
        (here, missing)
    }

    fn entrant<'b>(&'b self, peer: Peer, program: &'b Path, own: &'b Own) -> Entrant<'b> {
        let run = move |args: &[String]| {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let place = Place {
                tree: &self.home,
                home: peer.home(&self.home, own.path()),
                own: own.path(),
            };
            let cost = start(program, &args, &place)?;
            if cost.status == 0 {
                Ok(cost)
            } else {
                Err(format!("status {}", cost.status))
            }
        };
        if peer.is_warm() {
            // A failure shows again in the rounds.
            let _ = run(&peer.warm_args(&self.home, &self.needle));
        }
        let args = peer.args(&self.home, &self.needle);
        Box::new(move || run(&args))
    }

    /// What peers report, against the truth.
    fn deviations(&self, peers: &[(Peer, PathBuf, Own)]) -> Vec<String> {
        let Some(truth) = self.truth() else {
            return Vec::new();
        };
        let mut words = Vec::new();
        for (peer, program, own) in peers {
            let output = Command::new(program)
                .args(peer.args(&self.home, &self.needle))
                .env("HOME", peer.home(&self.home, own.path()))
                .env("XDG_CACHE_HOME", own.path().join("cache"))
                .env("CLAUDE_CONFIG_DIR", self.home.join(".claude"))
                .env("TZ", "UTC")
                .stdin(Stdio::null())
                .output();
            let text = output.map(|output| output.stdout).unwrap_or_default();
            if let Some(tokens) = peer.tokens(&String::from_utf8_lossy(&text)) {
                words.push(format!("{}: {}", peer.name(), tokens.deviation(truth)));
            }
        }
        words
    }

    /// The true total, with what was appended.
    fn truth(&self) -> Option<Tokens> {
        let mut total = self.expected.as_ref()?.total;
        let appended = self
            .twin
            .as_ref()
            .map_or(0, |twin| twin.borrow().appended());
        total.input += appended;
        total.output += 2 * appended;
        Some(total)
    }

    /// Whether its answers are right.
    fn check(&self) -> Option<(String, bool)> {
        let expected = self.expected.as_ref()?;
        let asked = Asked {
            program: self.program,
            home: &self.home,
            own: self.own.path(),
        };
        match self.case.check {
            Check::Nothing => None,
            Check::Total => {
                let more: &[&str] = match self.case.start {
                    Start::Fresh => &["--no-cache"],
                    Start::Warm | Start::Appended => &[],
                };
                let is_right = asked.total(more).ok() == self.truth();
                Some(("exact to the token".into(), is_right))
            }
            Check::Needles => {
                let all = asked.needles(expected).unwrap_or_default();
                let right = all.iter().filter(|finding| finding.is_right).count();
                let wanted = expected.needles.len() + 1;
                for finding in all.iter().filter(|finding| !finding.is_right) {
                    eprintln!("  {}: {}", finding.what, finding.detail);
                }
                let text = format!("{right} of {wanted} texts found or rightly not found");
                Some((text, right == wanted))
            }
        }
    }
}

/// What a peer took, in words.
pub fn describe(peer: Peer, cost: &Result<Cost, String>, ours: Option<&Cost>) -> String {
    let name = peer.name();
    match (cost, ours) {
        (Ok(cost), Some(ours)) => format!(
            "{name} {}, processor {}, {:.0} MB ({:.1}× our wall, {:.1}× our processor time)",
            seconds(cost.wall),
            seconds(cost.cpu),
            cost.peak,
            cost.wall / ours.wall,
            cost.cpu / ours.cpu
        ),
        (Ok(cost), None) => format!("{name} {}", seconds(cost.wall)),
        (Err(reason), _) => format!("{name}: {reason}"),
    }
}

/// The target in words and whether it is met; none if the peer it needs is not here.
fn judge(
    limit: Limit,
    ours: Option<&Cost>,
    others: &[(Peer, Result<Cost, String>)],
) -> Option<(String, bool)> {
    let other = |peer: Peer| {
        let found = others.iter().find(|(other, _)| *other == peer);
        found.and_then(|(_, cost)| cost.as_ref().ok())
    };
    let within = |test: &dyn Fn(&Cost) -> bool| ours.is_some_and(test);
    Some(match limit {
        Limit::Wall(limit) => (
            format!("≤ {}", seconds(limit)),
            within(&|cost| cost.wall <= limit),
        ),
        Limit::Peak(limit) => (
            format!("≤ {limit:.0} MB"),
            within(&|cost| cost.peak <= limit),
        ),
        Limit::CpuOf(peer, part) => {
            let other = other(peer)?;
            (
                format!("processor ≤ {part}× of {}", peer.name()),
                within(&|cost| cost.cpu <= other.cpu * part),
            )
        }
        Limit::WallOf(peer, part) => {
            let other = other(peer)?;
            (
                format!("≤ {part}× of {}", peer.name()),
                within(&|cost| cost.wall <= other.wall * part),
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::made_up as cost;

    #[test]
    fn a_target_is_missed_by_time_by_memory_or_against_a_peer() {
        let is_met = |limit, ours: Option<&Cost>| judge(limit, ours, &[]).map(|(_, met)| met);
        assert_eq!(is_met(Limit::Wall(1.0), Some(&cost(0.9, 1.0))), Some(true));
        assert_eq!(is_met(Limit::Wall(1.0), Some(&cost(1.1, 1.0))), Some(false));
        assert_eq!(is_met(Limit::Peak(5.0), Some(&cost(1.0, 6.0))), Some(false));
        assert_eq!(is_met(Limit::Wall(1.0), None), Some(false));
        let others = [(Peer::Ccusage, Ok(cost(1.0, 1.0)))];
        let limit = Limit::CpuOf(Peer::Ccusage, 0.25);
        let is_met = |wall, others: &[_]| judge(limit, Some(&cost(wall, 1.0)), others);
        assert!(is_met(0.2, &others).is_some_and(|(_, met)| met));
        assert!(is_met(0.3, &others).is_some_and(|(_, met)| !met));
        assert!(is_met(0.2, &[]).is_none());
    }
}
