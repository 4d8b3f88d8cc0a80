//! UDP: batches of datagrams, and those that wait to be sent.

mod address;
mod batch;
mod inbox;
mod outbox;

pub(crate) use batch::{BATCH_MAX, dropped, send_many};
pub(crate) use inbox::Inbox;
pub(crate) use outbox::{Datagram, UNMARKED, entries, push};
