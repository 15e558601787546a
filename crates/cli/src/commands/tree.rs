//! `tree`: branches, forks and resumes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::tree::{self, RelatedSession, TreeRow as Node};
use unspool_show::clean;
use unspool_show::wire::graph::TreeNodeJson;
use unspool_store::find;
use unspool_store::parallel;
use unspool_store::read::SessionReader;
use unspool_store::resolve::SessionTarget;

use crate::command_context::{ChosenSession, CommandContext};
use crate::commands::ls::short;
use crate::failure::CommandFailure;

/// Arguments of `tree`.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub session: Option<OsString>,
}

/// Shows the tree.
pub fn run(world: &CommandContext, args: &TreeArgs) -> Result<(), CommandFailure> {
    let chosen = world.view(args.session.as_deref())?;
    let nodes = nodes(world, &chosen);
    let mut out = world.ui.out();
    if world.ui.json {
        for node in &nodes {
            world.ui.row(&mut out, &TreeNodeJson::from(node))?;
        }
    } else {
        draw(&mut out, &nodes)?;
    }
    Ok(out.flush()?)
}

/// The tree of a session, with those that share lines with it.
pub fn nodes(world: &CommandContext, chosen: &ChosenSession) -> Vec<Node> {
    let main = &chosen.family.main;
    let relatives = relatives(world, chosen);
    tree::tree(&main.session, &main.source, chosen.id(), &relatives)
}

/// Sessions in the same folder that share lines with this one, or go on from it: forks, what they
/// were forked from, and plans that were handed over.
fn relatives(world: &CommandContext, chosen: &ChosenSession) -> Vec<RelatedSession> {
    let SessionTarget::Session(own) = &chosen.target else {
        return Vec::new();
    };
    let session = &chosen.family.main.session;
    let others: Vec<_> = find::find_beside_transcript(&own.path)
        .sessions
        .into_iter()
        .filter(|file| file.id != own.id)
        .collect();
    let reader = SessionReader {
        threads: 1,
        ..SessionReader::default()
    };
    let found = parallel::map(
        &others,
        parallel::threads(),
        |file| file.bytes,
        |file| {
            let other: Session = reader.read(&file.path, TranscriptRole::Main).ok()?.session;
            let (kin, last_shared, shared) =
                tree::session_relation(session, &own.id, &other, &file.id)?;
            let title = other.title(&HashMap::new()).unwrap_or_default();
            let title = world.masked(&title).into_owned();
            Some(RelatedSession {
                kin,
                session: file.id.clone(),
                last_shared,
                shared,
                first: other.first,
                title,
            })
        },
    );
    found.into_iter().flatten().collect()
}

fn draw(out: &mut dyn Write, nodes: &[Node]) -> Result<(), CommandFailure> {
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            children.entry(parent).or_default().push(at);
        }
    }
    // What it goes on from stands in front of everything.
    let before = nodes.iter().filter(|node| node.kind == "before");
    for node in before {
        let what = format!("continued from {}", short(&node.uuid));
        writeln!(out, "○ {what}  {}", clean::line(&node.label))?;
    }
    // A line of conversation stays at one depth; only branches move to the right.
    let mut stack: Vec<(usize, String, String)> = vec![(0, String::new(), String::new())];
    while let Some((at, lead, rest)) = stack.pop() {
        let node = &nodes[at];
        let live = if node.live { "●" } else { "○" };
        let what = match node.kind {
            "session" => short(&node.uuid).to_owned(),
            "fork" => format!("fork {}", short(&node.uuid)),
            "origin" => format!("forked from {}", short(&node.uuid)),
            "after" => format!("continued in {}", short(&node.uuid)),
            "prompt" => String::new(),
            kind => kind.to_owned(),
        };
        let gap = if what.is_empty() { "" } else { "  " };
        writeln!(out, "{lead}{live} {what}{gap}{}", clean::line(&node.label))?;
        let below = children.get(&node.id).cloned().unwrap_or_default();
        let (last, branches) = match below.split_last() {
            Some((last, branches)) => (Some(*last), branches),
            None => (None, &[][..]),
        };
        if let Some(last) = last {
            stack.push((last, rest.clone(), rest.clone()));
        }
        for &branch in branches.iter().rev() {
            stack.push((branch, format!("{rest}├─"), format!("{rest}│ ")));
        }
    }
    Ok(())
}
