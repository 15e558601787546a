//! What messages cost together.

use crate::price::{Cost, Price, Prices};
use crate::session::{Message, Session};

/// What these messages of a session cost; `None` if that of one of them is not known.
pub fn cost<'a>(
    session: &'a Session,
    messages: impl IntoIterator<Item = &'a Message>,
    prices: &'a Prices,
) -> Option<Cost> {
    let mut bill = Bill::new(prices);
    for message in messages {
        bill.add(session, message);
    }
    bill.total()
}

/// Adds up costs. A part of a sum must not look like the whole: one message without a price
/// leaves all of it unknown.
#[derive(Clone, Debug)]
pub struct Bill<'a> {
    prices: &'a Prices,
    total: Option<Cost>,
    /// Messages mostly have the model of the one before.
    last: Option<(&'a str, Option<&'a Price>)>,
}

impl<'a> Bill<'a> {
    /// Nothing yet, which costs nothing.
    pub fn new(prices: &'a Prices) -> Bill<'a> {
        Bill {
            prices,
            total: Some(Cost::default()),
            last: None,
        }
    }

    /// Adds a message; what the client wrote itself is free.
    pub fn add(&mut self, session: &'a Session, message: &Message) {
        if message.synthetic || self.total.is_none() {
            return;
        }
        let model = message.model().map_or("", |model| session.text(model));
        let price = match self.last {
            Some((last, price)) if last == model => price,
            _ => self.prices.find(model),
        };
        self.last = Some((model, price));
        let cost = price.and_then(|price| {
            price
                .charge(session.usage_of(message), session.terms_of(message))
                .ok()
        });
        self.total = self.total.zip(cost).map(|(total, cost)| total + cost);
    }

    /// The sum.
    pub fn total(&self) -> Option<Cost> {
        self.total
    }
}
