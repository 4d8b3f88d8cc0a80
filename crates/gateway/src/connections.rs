//! The connections that one end has in one thread, and the bytes that are gathered for them.

use muster_net::Key;

use crate::thread::{Ctx, Pause};
use crate::wire::Wire;

/// Most bytes gathered for one write: more would only wait in the kernel.
pub(crate) const OUT_MAX: usize = 64 * 1024;

/// A connection of some protocol.
pub(crate) trait Connection {
    fn key(&self) -> Key;

    fn wire(&mut self) -> &mut Wire;
}

#[derive(Debug)]
pub(crate) struct Connections<C> {
    /// By the index of the connection's key.
    all: Vec<Option<Box<C>>>,
    /// Connections with something to write at the end of the turn.
    dirty: Vec<Key>,
    /// Connections for whose bytes there was no memory.
    exhausted: Vec<Key>,
}

impl<C> Default for Connections<C> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            dirty: Vec::new(),
            exhausted: Vec::new(),
        }
    }
}

impl<C: Connection> Connections<C> {
    pub(crate) fn insert(&mut self, connection: C) {
        let index = connection.key().index();
        if self.all.len() <= index {
            self.all.resize_with(index + 1, || None);
        }
        self.all[index] = Some(Box::new(connection));
    }

    pub(crate) fn get(&mut self, key: Key) -> Option<&mut C> {
        let connection = self.all.get_mut(key.index())?.as_deref_mut()?;
        (connection.key() == key).then_some(connection)
    }

    pub(crate) fn take(&mut self, key: Key) -> Option<Box<C>> {
        self.get(key)?;
        self.all[key.index()].take()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &C> {
        self.all.iter().flatten().map(|connection| &**connection)
    }

    /// Writes what has been gathered for a connection, if the kernel takes it.
    pub(crate) fn send(&mut self, ctx: &mut Ctx<'_>, key: Key) {
        let Some(connection) = self.get(key) else {
            return;
        };
        if !connection.wire().write(ctx.io, key) {
            self.exhausted.push(key);
        }
    }

    /// The kernel took what it held: writes on. False if the connection is gone.
    pub(crate) fn flushed(&mut self, ctx: &mut Ctx<'_>, key: Key) -> bool {
        let Some(connection) = self.get(key) else {
            return false;
        };
        connection.wire().is_held = false;
        self.send(ctx, key);
        true
    }

    /// Has what is gathered for a connection written at the end of the turn.
    pub(crate) fn mark_dirty(&mut self, key: Key) {
        let Some(connection) = self.get(key) else {
            return;
        };
        if !std::mem::replace(&mut connection.wire().is_dirty, true) {
            self.dirty.push(key);
        }
    }

    /// Writes what has been gathered for all connections; gives those that have to end.
    pub(crate) fn flush(&mut self, ctx: &mut Ctx<'_>) -> Vec<Key> {
        let mut dirty = std::mem::take(&mut self.dirty);
        for key in dirty.drain(..) {
            if let Some(connection) = self.get(key) {
                connection.wire().is_dirty = false;
                self.send(ctx, key);
            }
        }
        self.dirty = dirty;
        std::mem::take(&mut self.exhausted)
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.dirty.is_empty() && self.exhausted.is_empty()
    }

    /// Stops reading a client that does not read our answers.
    pub(crate) fn throttle(&mut self, ctx: &mut Ctx<'_>, key: Key) {
        let Some(connection) = self.get(key) else {
            return;
        };
        let wire = connection.wire();
        let is_much = wire.is_held && wire.out.len() >= OUT_MAX;
        ctx.set_pause(key, Pause::Output, is_much);
    }
}
