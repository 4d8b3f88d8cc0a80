//! Bounds of the memory that peers can take; documented for users in `docs/hono.md#bounds`.
//!
//! A peer is an address, or a session of DTLS. Behind one may stand thousands of devices, which share a
//! socket or have a gateway speak for them, and all of them may speak at once. So one peer is bounded by
//! its 65,536 message ids, and all peers of a thread together by [`ALL_KEPT`]. Memory is taken when it is
//! used, and given back.

use muster_protocol::coap::{ServerSettings, Transmission};

/// Most peers: a socket for each of the devices that one process of a generator can have,
/// several times over.
pub(super) const PEERS: usize = 100_000;
/// Bytes that all peers may keep. Beyond it, a peer that sends has to forget requests.
pub(super) const ALL_KEPT: usize = 256 << 20;
/// Requests of one peer that are remembered, and answers that are sent again, however many bytes are
/// kept.
pub(super) const LEAST_KEPT: usize = 64;

/// Answers of one peer that wait for their acknowledgements: one for each message id of ours.
const WAITING: u16 = u16::MAX;
/// Bytes of one peer's answers that are kept for copies of its requests: 256 for each message id.
const REPLIES_BYTES: u32 = 16 << 20;
/// Bodies of one peer that are under way in blocks, in each direction: one for each message id.
const BODIES: u16 = u16::MAX;
/// Bytes of them: a block of 1,024 for each.
const BODIES_BYTES: u32 = 64 << 20;

pub(super) fn of_a_peer(transmission: Transmission, max_payload: u32) -> ServerSettings {
    ServerSettings {
        transmission,
        body_max: max_payload,
        transmissions_max: WAITING,
        replies_max: REPLIES_BYTES,
        bodies_max: BODIES,
        bodies_bytes_max: BODIES_BYTES,
        ..ServerSettings::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use muster_model::Micros;
    use muster_protocol::coap::{
        Block, BlockSize, Code, Header, Kind, Opt, OptionNumber, Reply, Server, ServerEvent, Token,
    };

    use super::*;

    /// Devices behind one address: a third of its message ids for each of two blocks and a copy.
    const DEVICES: u16 = 20_000;
    const NOW: Micros = Micros(5);

    fn server() -> Server {
        let settings = of_a_peer(Transmission::default(), 2_048);
        Server::new(Arc::new(settings), 1)
    }

    fn request(id: u16, device: u16, block: Option<Block>) -> Vec<u8> {
        let (name, value) = (device.to_string(), block.map(Block::uint));
        let path = Opt::text(OptionNumber::URI_PATH, &name);
        let block = value.as_ref();
        let block = block.map(|value| Opt::new(OptionNumber::BLOCK1, value));
        let options: Vec<Opt<'_>> = [path].into_iter().chain(block).collect();
        let header = Header {
            kind: Kind::Confirmable,
            code: Code::PUT,
            id,
            token: Token::EMPTY,
        };
        let payload = if block.is_some() {
            &[7; 1_024][..]
        } else {
            b"{}"
        };
        let mut out = Vec::new();
        header.write_with(&options, payload, &mut out);
        out
    }

    #[test]
    fn all_devices_of_a_socket_can_be_between_two_blocks() {
        let mut server = server();
        let mut whole = 0;
        for number in 0..2 {
            let block = Block::at(1_024 * number, number == 0, BlockSize::MAX);
            for device in 0..DEVICES {
                let datagram = request(DEVICES * number as u16 + device, device, block);
                let event = server.receive(NOW, &datagram, &mut Vec::new());
                let Some(ServerEvent::Request(request)) = event else {
                    continue;
                };
                whole += usize::from(request.payload.len() == 2_048);
            }
        }
        assert_eq!(
            (whole, server.counts().bodies_given_up),
            (DEVICES.into(), 0)
        );
    }

    #[test]
    fn all_answers_to_a_socket_can_wait_or_be_repeated() {
        let mut server = server();
        let reply = Reply::new(Code::CHANGED, &[], &[7; 200]);
        for device in 0..DEVICES {
            let (datagram, mut out) = (request(device, device, None), Vec::new());
            let event = server.receive(NOW, &datagram, &mut out);
            let Some(ServerEvent::Request(request)) = event else {
                panic!("a request");
            };
            let pending = match device % 2 {
                0 => request.pending,
                _ => server.acknowledge(request.pending, &mut out),
            };
            assert_eq!(server.respond(NOW, pending, &reply, &mut out), Ok(()));
        }
        for device in 0..DEVICES {
            let (datagram, mut again) = (request(device, device, None), Vec::new());
            let event = server.receive(NOW, &datagram, &mut again);
            assert!(event.is_none() && !again.is_empty(), "{device}");
        }
    }
}
