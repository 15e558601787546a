//! What a session wants from a person.

use unspool_show::wire::session::SessionRow;

/// What a session wants from a person, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// It cannot go on without the person: a permission, a question, an error.
    You,
    /// It is done; the person's turn.
    Turn,
    /// Nothing: it is at work.
    Working,
    /// Nothing: it is at rest.
    Rest,
}

impl Need {
    /// What this session wants.
    pub fn of(row: &SessionRow) -> Need {
        match row.status.as_str() {
            "waiting_for_approval" | "error" => Need::You,
            "waiting_for_input" if row.question.is_some() => Need::You,
            "waiting_for_input" => Need::Turn,
            "working" | "compacting" => Need::Working,
            _ => Need::Rest,
        }
    }

    /// In two words.
    pub fn name(self) -> &'static str {
        match self {
            Need::You => "needs you",
            Need::Turn => "your turn",
            Need::Working => "working",
            Need::Rest => "idle",
        }
    }
}
