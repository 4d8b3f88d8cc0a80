//! Reads the parts of a datagram that are visible outside its session.

use super::hello::ServerHello;
use super::message::{Fragment, Kind};
use super::record::{Content, peek};
use super::wire::Cursor;

/// The random of the ServerHello that a datagram begins with, if it does with a whole one
/// (RFC 5246 section 7.4.1.3).
///
/// A server says its flight again as long as it waits, with the same random: who shares an address
/// knows by it what is said again of another's handshake.
pub fn server_random(datagram: &[u8]) -> Option<[u8; 32]> {
    let header = peek(datagram, 0)?;
    if header.epoch != 0 || header.content != Content::Handshake {
        return None;
    }
    let record = &datagram[header.size()..][..usize::from(header.length)];
    let fragment = Fragment::read(&mut Cursor::new(record)).ok()?;
    let is_hello = fragment.kind == Kind::ServerHello && fragment.is_whole();
    let hello = is_hello.then(|| ServerHello::read(fragment.bytes))?.ok()?;
    Some(hello.random)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::extension::Extensions;
    use super::super::message::put_message;
    use super::super::record::put_plain;
    use super::*;

    fn datagram(kind: Kind, random: [u8; 32]) -> Vec<u8> {
        let hello = ServerHello {
            random,
            session_id: b"session",
            suite: 0xc0a8,
            extensions: Extensions::default(),
        };
        let (mut body, mut message, mut out) = (Vec::new(), Vec::new(), Vec::new());
        hello.put(&mut body);
        put_message(&mut message, kind, 1, &body);
        put_plain(&mut out, Content::Handshake, 7, &message);
        out
    }

    proptest! {
        /// The random that was said is read, whatever follows; a datagram cut within has none.
        #[test]
        fn the_random_of_a_server_hello_is_read(
            random: [u8; 32], rest in prop::collection::vec(any::<u8>(), 0..60), cut: prop::sample::Index,
        ) {
            let whole = datagram(Kind::ServerHello, random);
            prop_assert_eq!(server_random(&whole[..cut.index(whole.len())]), None);
            prop_assert_eq!(server_random(&[whole, rest].concat()), Some(random));
            prop_assert_eq!(server_random(&datagram(Kind::ClientHello, random)), None);
        }
    }
}
