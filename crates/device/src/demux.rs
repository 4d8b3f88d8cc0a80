//! Owner of a datagram that came to a shared socket over DTLS.

use muster_protocol::dtls::{Content, peek};

/// Bytes of the connection ids that devices behind a shared socket give out.
const ID_BYTES: usize = 4;

/// Owner of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The link's at this slot of the socket.
    Slot(u32),
    /// The handshake's that is under way: records in the clear carry no connection id, so that
    /// there may be one at a time.
    Handshake,
    /// No link: it is no record, or of keys without a connection id.
    Nobody,
}

/// The connection id (RFC 9146) of a link at a slot of its socket: the slot itself, so that no table
/// of ids is kept.
pub const fn connection_id(slot: u32) -> [u8; ID_BYTES] {
    slot.to_be_bytes()
}

/// Reads whose a datagram is off its first record.
pub fn route(datagram: &[u8]) -> Route {
    let Some(header) = peek(datagram, ID_BYTES) else {
        return Route::Nobody;
    };
    match header.content {
        Content::ConnectionId => {
            let id = header.connection_id.first_chunk();
            id.map_or(Route::Nobody, |id| Route::Slot(u32::from_be_bytes(*id)))
        }
        Content::ChangeCipherSpec | Content::Alert | Content::Handshake if header.epoch == 0 => {
            Route::Handshake
        }
        Content::ChangeCipherSpec | Content::Alert | Content::Handshake | Content::Data => {
            Route::Nobody
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A record: its type, epoch, connection id and body (RFC 6347 section 4.1, RFC 9146 section 4).
    fn record(content: u8, epoch: u16, id: &[u8], body: &[u8]) -> Vec<u8> {
        let mut record = vec![content, 0xfe, 0xfd];
        record.extend_from_slice(&epoch.to_be_bytes());
        record.extend_from_slice(&[0; 6]);
        record.extend_from_slice(id);
        record.extend_from_slice(&(body.len() as u16).to_be_bytes());
        record.extend_from_slice(body);
        record
    }

    proptest! {
        /// A record with the id of a slot belongs to that slot, whatever else is in it.
        #[test]
        fn a_record_with_a_connection_id_is_its_slots(
            slot: u32, body in prop::collection::vec(any::<u8>(), 0..100), epoch: u16,
        ) {
            let datagram = record(25, epoch, &connection_id(slot), &body);
            prop_assert_eq!(route(&datagram), Route::Slot(slot));
        }

        /// No bytes of a stranger's do harm.
        #[test]
        fn whatever_comes_has_a_route(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = route(&bytes);
        }
    }

    #[test]
    fn records_in_the_clear_are_the_handshakes() {
        for content in [20, 21, 22] {
            assert_eq!(route(&record(content, 0, b"", b"x")), Route::Handshake);
        }
    }

    #[test]
    fn records_under_keys_without_an_id_are_nobodys() {
        for content in [20, 21, 22, 23] {
            assert_eq!(route(&record(content, 1, b"", b"x")), Route::Nobody);
        }
        assert_eq!(route(&record(23, 0, b"", b"x")), Route::Nobody);
    }

    #[test]
    fn what_is_cut_or_no_record_is_nobodys() {
        let whole = record(25, 1, &connection_id(7), b"secret");
        for length in 0..whole.len() {
            assert_eq!(route(&whole[..length]), Route::Nobody, "{length} bytes");
        }
        assert_eq!(route(b"no record at all"), Route::Nobody);
    }
}
