//! What messages cost together, as far as prices are known.

use std::ops::AddAssign;

use crate::price::{Cost, ModelPrice, Prices};
use crate::session::{Message, Session};

/// The cost of some messages. One of them without a price must not make a part look like the
/// whole, nor hide what the others cost: so both are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CostSum {
    /// What those cost that have a price.
    pub known: Cost,
    /// How many have none.
    pub unpriced: u64,
}

impl CostSum {
    /// The cost of one message; `None` if it has no price.
    pub fn of(cost: Option<Cost>) -> CostSum {
        match cost {
            Some(known) => CostSum { known, unpriced: 0 },
            None => CostSum {
                known: Cost::default(),
                unpriced: 1,
            },
        }
    }

    /// What all of them cost; `None` if any has no price.
    pub fn total(self) -> Option<Cost> {
        (self.unpriced == 0).then_some(self.known)
    }
}

impl AddAssign for CostSum {
    fn add_assign(&mut self, other: CostSum) {
        self.known += other.known;
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
    }
}

/// What these messages of a session cost.
pub fn cost<'a>(
    session: &'a Session,
    messages: impl IntoIterator<Item = &'a Message>,
    prices: &'a Prices,
) -> CostSum {
    let mut bill = CostCounter::new(prices);
    for message in messages {
        bill.add(session, message);
    }
    bill.total()
}

/// Adds up costs of messages.
#[derive(Clone, Debug)]
pub struct CostCounter<'a> {
    prices: &'a Prices,
    total: CostSum,
    /// Messages mostly have the model of the one before.
    last: Option<(&'a str, Option<&'a ModelPrice>)>,
}

impl<'a> CostCounter<'a> {
    /// Nothing yet, which costs nothing.
    pub fn new(prices: &'a Prices) -> CostCounter<'a> {
        CostCounter {
            prices,
            total: CostSum::default(),
            last: None,
        }
    }

    /// Adds a message; what the client wrote itself is free, and so is one that says nothing of
    /// tokens.
    pub fn add(&mut self, session: &'a Session, message: &Message) {
        if message.synthetic || !message.has_usage() {
            return;
        }
        let model = message.model().map_or("", |model| session.text(model));
        let price = match self.last {
            Some((last, price)) if last == model => price,
            _ => self.prices.find(model),
        };
        self.last = Some((model, price));
        let (usage, terms) = (session.usage_of(message), session.terms_of(message));
        let cost = price.and_then(|price| price.charge(usage, terms).ok());
        self.total += CostSum::of(cost.or(Cost::stated(terms)));
    }

    /// The sum.
    pub fn total(&self) -> CostSum {
        self.total
    }
}
