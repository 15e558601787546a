//! The tools: one file and one entry of [`ALL`] each.

use crate::tool::Tool;

/// Every tool, in the order they are offered.
pub static ALL: &[&dyn Tool] = &[];

/// What is kept between calls of one session.
#[derive(Debug, Default)]
pub struct Kept {}

/// The tool of a name, new or old.
pub fn named(name: &str) -> Option<&'static dyn Tool> {
    let tool = ALL
        .iter()
        .find(|tool| tool.name() == name || tool.old_names().contains(&name));
    tool.copied()
}
