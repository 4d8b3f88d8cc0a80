//! The device side's socket of one link.

use muster_model::Micros;

#[derive(Debug, Default)]
pub(crate) struct Wire {
    /// Number of this connection, from 1.
    pub(crate) conn: u32,
    pub(crate) is_open: bool,
    /// The second half of a write, which the kernel did not take yet.
    pub(crate) held: Option<Vec<u8>>,
    /// Control bytes that wait behind it.
    pub(crate) waiting: Vec<u8>,
    /// Read, and not yet used up.
    pub(crate) unread: Vec<u8>,
    /// Instant at which the link's timer runs out.
    pub(crate) timer: Option<Micros>,
}

impl Wire {
    pub(crate) fn dial(&mut self) -> u32 {
        self.conn += 1;
        self.is_open = true;
        self.conn
    }

    /// True if the connection is this one and still there.
    pub(crate) fn is(&self, conn: u32) -> bool {
        self.is_open && self.conn == conn
    }

    /// The connection is over; what was held is discarded.
    pub(crate) fn close(&mut self) {
        self.is_open = false;
        self.held = None;
        self.waiting.clear();
        self.unread.clear();
    }
}
