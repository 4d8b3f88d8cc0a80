//! Laws that hold for any bytes.

use muster_protocol::layer::{Layer, Pipe, Plain, Stack};
use muster_protocol::websocket::{Upgrade, WebSocket};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::ends::{KEY, answer, asking, client, frame, frames, hear, server};

/// Messages of one side, of lengths around those where heads change.
fn said() -> impl Strategy<Value = Vec<u8>> {
    let length = prop_oneof![0..40usize, select(vec![125, 126, 127, 65_535, 65_536])];
    length.prop_flat_map(|length| vec(any::<u8>(), length..=length))
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    vec(any::<usize>(), 0..12)
}

/// One data message in fragments with control frames between them, as the peer's frames.
fn fragments(key: Option<[u8; 4]>) -> impl Strategy<Value = (Vec<u8>, Vec<u8>, Vec<Vec<u8>>)> {
    let piece = (
        vec(any::<u8>(), 0..200),
        proptest::option::of(vec(any::<u8>(), 0..=125)),
    );
    vec(piece, 1..5).prop_map(move |pieces| {
        let (mut wire, mut data, mut pings) = (Vec::new(), Vec::new(), Vec::new());
        let last = pieces.len() - 1;
        for (at, (piece, ping)) in pieces.into_iter().enumerate() {
            let opcode = if at == 0 { 0x02 } else { 0x00 };
            let fin = if at == last { 0x80 } else { 0x00 };
            if let Some(ping) = ping {
                wire.extend(frame(0x89, &ping, key));
                pings.push(ping);
            }
            wire.extend(frame(fin | opcode, &piece, key));
            data.extend(piece);
        }
        (wire, data, pings)
    })
}

/// Everything one end says, with its handshake, in one wire.
fn wire_of(mut end: impl Layer, words: &[Vec<u8>]) -> Vec<u8> {
    let mut wire = Vec::new();
    for word in words {
        let from = wire.len();
        wire.extend_from_slice(word);
        end.wrap(&mut wire, from);
    }
    wire
}

proptest! {
    /// Law: each side receives exactly the other's messages, for any cuts of the bytes and any
    /// packets of the session.
    #[test]
    fn what_is_said_is_heard(words in vec(said(), 0..6), cuts in cuts(), group in 1..50usize) {
        let upward = [asking().1, wire_of(client().layer, &words)].concat();
        let mut at_server = Pipe::new(WebSocket::server(Some("/mqtt")));
        let heard = hear(&mut at_server, &upward, &cuts, group);
        prop_assert_eq!(heard.end, None);
        prop_assert!(heard.plain == words.concat());

        let downward = [answer(), wire_of(server().layer, &words)].concat();
        let heard = hear(&mut asking().0, &downward, &cuts, group);
        prop_assert_eq!(heard.end, None);
        prop_assert!(heard.plain == words.concat());
    }

    /// A message in fragments is its data in order, and each ping between them is answered once
    /// with its own data, wherever the bytes are cut.
    #[test]
    fn fragments_are_joined_and_pings_answered(
        (from_client, up, up_pings) in fragments(Some(KEY)),
        (from_server, down, down_pings) in fragments(None),
        cuts in cuts(),
    ) {
        let of = |pings: Vec<Vec<u8>>| {
            pings.into_iter().map(|ping| (0x8a, ping)).collect::<Vec<_>>()
        };
        let heard = hear(&mut server(), &from_client, &cuts, 1);
        prop_assert_eq!((heard.plain, heard.end), (up, None));
        prop_assert_eq!(frames(&heard.wire), of(up_pings));
        let heard = hear(&mut client(), &from_server, &cuts, 1);
        prop_assert_eq!((heard.plain, heard.end), (down, None));
        prop_assert_eq!(frames(&heard.wire), of(down_pings));
    }

    /// A frame whose head was altered in any byte is an error, other data, or waits for more; and
    /// which of them does not depend on where the bytes are cut.
    #[test]
    fn an_altered_head_is_an_error_or_other_data(
        payload in said(),
        at in 0..14usize,
        flip in 1..=255u8,
        follow in vec(any::<u8>(), 0..300),
        cuts in cuts(),
    ) {
        for key in [None, Some(KEY)] {
            let mut wire = frame(0x82, &payload, key);
            let at = at % wire.len().min(14);
            wire[at] ^= flip;
            wire.extend_from_slice(&follow);
            let end = || if key.is_some() { server() } else { client() };
            let whole = hear(&mut end(), &wire, &[], 1);
            prop_assert!(whole.plain.len() < wire.len());
            prop_assert!(whole == hear(&mut end(), &wire, &cuts, 1));
        }
    }

    /// Any bytes at all, in the handshake or after it, are taken the same way wherever they are
    /// cut, and never yield more than they are.
    #[test]
    fn any_bytes_are_taken_the_same_way_wherever_they_are_cut(
        bytes in vec(any::<u8>(), 0..600),
        begin in 0..=300usize,
        cuts in cuts(),
    ) {
        let begun = |right: Vec<u8>| [&right[..begin.min(right.len())], &bytes].concat();
        let (request, answer) = (asking().1, answer());
        type Make = fn() -> Pipe<WebSocket>;
        let ends: [(Make, Vec<u8>); 4] = [
            (client, bytes.clone()),
            (server, bytes.clone()),
            (|| asking().0, begun(answer)),
            (|| Pipe::new(WebSocket::server(None)), begun(request)),
        ];
        for (end, wire) in ends {
            let whole = hear(&mut end(), &wire, &[], 1);
            prop_assert!(whole.plain.len() <= bytes.len());
            prop_assert_eq!(&whole, &hear(&mut end(), &wire, &cuts, 1));
        }
    }

    /// WebSocket over WebSocket carries the same bytes as one alone: layers stack.
    #[test]
    fn layers_stack(words in vec(said(), 0..4), cuts in cuts()) {
        let make = |seed| WebSocket::client(&Upgrade::new("h", "/"), seed).expect("it is right");
        let mut up = Stack::new(make(1), Stack::new(make(2), Plain));
        let mut down = Stack::new(WebSocket::server(None), WebSocket::server(None));
        let (mut upward, mut downward) = (Vec::new(), Vec::new());
        up.open(&mut upward);
        down.open(&mut downward);
        while !(upward.is_empty() && downward.is_empty()) {
            prop_assert_eq!(down.feed(&mut upward, 0, &mut downward).end, None);
            upward.clear();
            prop_assert_eq!(up.feed(&mut downward, 0, &mut upward).end, None);
            downward.clear();
        }
        prop_assert!(up.is_open() && down.is_open());

        let wire = wire_of(up, &words);
        let (mut heard, mut from) = (Vec::new(), 0);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (wire.len() + 1)).collect();
        cuts.push(wire.len());
        cuts.sort_unstable();
        for until in cuts {
            let mut piece = wire[from..until].to_vec();
            from = until;
            let fed = down.feed(&mut piece, 0, &mut downward);
            prop_assert_eq!((fed.used, fed.end), (piece.len(), None));
            heard.extend_from_slice(&piece[..fed.plain]);
        }
        prop_assert!(heard == words.concat());
    }
}
