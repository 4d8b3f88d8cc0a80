//! Exchanges by the message id that may still be acknowledged or reset.

use rustc_hash::FxHashMap;

use super::exchange::{Exchange, LISTED};
use crate::coap::ExchangeKey;
use crate::coap::slab::Slab;

/// Most exchanges that are searched without a table: a single device seldom has more, and then
/// needs no memory for one.
const FEW: usize = 8;

#[derive(Debug, Default)]
pub(super) struct ById(
    /// Slots by message id, once there were more than a few exchanges.
    Option<Box<FxHashMap<u16, u16>>>,
);

impl ById {
    /// The message id that an exchange was given may be answered.
    #[inline]
    pub(super) fn list(&mut self, exchanges: &mut Slab<Exchange>, key: ExchangeKey) {
        let Some(exchange) = exchanges.get_mut(key) else {
            return;
        };
        exchange.set(LISTED, true);
        let id = exchange.id;
        match &mut self.0 {
            Some(table) => {
                table.insert(id, key.slot());
            }
            None if exchanges.len() > FEW => self.0 = Some(Box::new(table_of(exchanges))),
            None => {}
        }
    }

    /// Nothing more can be said to it.
    #[inline]
    pub(super) fn unlist(&mut self, exchanges: &mut Slab<Exchange>, key: ExchangeKey) {
        let Some(exchange) = exchanges.get_mut(key).filter(|one| one.is(LISTED)) else {
            return;
        };
        exchange.set(LISTED, false);
        if let Some(table) = &mut self.0
            && table.get(&exchange.id) == Some(&key.slot())
        {
            table.remove(&exchange.id);
        }
    }

    #[inline]
    pub(super) fn find(&self, exchanges: &Slab<Exchange>, id: u16) -> Option<ExchangeKey> {
        let is_it = |exchange: &Exchange| exchange.is(LISTED) && exchange.id == id;
        let found = match &self.0 {
            Some(table) => exchanges.at(*table.get(&id)?),
            None => exchanges.iter().find(|(_, exchange)| is_it(exchange)),
        };
        let (key, exchange) = found?;
        is_it(exchange).then_some(key)
    }
}

fn table_of(exchanges: &Slab<Exchange>) -> FxHashMap<u16, u16> {
    let listed = exchanges.iter().filter(|(_, exchange)| exchange.is(LISTED));
    listed
        .map(|(key, exchange)| (exchange.id, key.slot()))
        .collect()
}
