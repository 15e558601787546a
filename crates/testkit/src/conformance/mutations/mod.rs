//! The edited copies: each is one small change to a recorded session.
//!
//! All changes are pure and repeatable, so that a recording of what the client
//! did with them needs only their names.

mod blocks;
mod branches;
mod calls;
mod compaction;
mod fields;
mod kinds;
mod layout;
mod parents;
mod removals;

use super::transcript::Transcript;

/// One change to a session.
#[derive(Clone, Copy)]
pub struct Mutation {
    /// A short name, used in recordings.
    pub name: &'static str,
    /// What is changed, as a sentence.
    pub what: &'static str,
    /// Makes the change.
    pub apply: fn(&mut Transcript),
}

/// All changes, in the order in which they are tried.
pub fn all() -> Vec<Mutation> {
    let groups: [&[Mutation]; 9] = [
        parents::ALL,
        branches::ALL,
        removals::ALL,
        blocks::ALL,
        calls::ALL,
        fields::ALL,
        compaction::ALL,
        kinds::ALL,
        layout::ALL,
    ];
    groups.concat()
}

/// One entry of a list of changes.
const fn mutation(name: &'static str, what: &'static str, apply: fn(&mut Transcript)) -> Mutation {
    Mutation { name, what, apply }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_there_are_enough() {
        let names: BTreeSet<_> = all().iter().map(|mutation| mutation.name).collect();
        assert_eq!(names.len(), all().len());
        assert!(names.len() >= 60);
    }
}
