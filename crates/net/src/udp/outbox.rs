//! Datagrams that wait to be sent, one behind the other in a pooled buffer.

use std::net::SocketAddr;

use super::address;

/// Bytes before a datagram: one for the length of the address, four for its mark, four for its length.
const HEAD: usize = 9;
/// The mark of a datagram whose refusal nobody asks for.
pub(crate) const UNMARKED: u32 = u32::MAX;

/// One datagram to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Datagram<'a> {
    /// Destination on a socket that has no peer.
    pub(crate) to: Option<SocketAddr>,
    pub(crate) mark: u32,
    pub(crate) bytes: &'a [u8],
}

/// One datagram that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outgoing<'a> {
    /// Destination as the kernel writes it; empty on a socket that has one peer.
    pub(crate) name: &'a [u8],
    pub(crate) mark: u32,
    pub(crate) bytes: &'a [u8],
}

impl Outgoing<'_> {
    /// Bytes that it takes of the buffer.
    pub(crate) const fn size(&self) -> usize {
        HEAD + self.name.len() + self.bytes.len()
    }
}

/// Appends a datagram.
pub(crate) fn push(buffer: &mut Vec<u8>, Datagram { to, mark, bytes }: Datagram<'_>) {
    let at = buffer.len();
    buffer.push(0);
    if let Some(to) = to {
        address::put(to, buffer);
    }
    buffer[at] = (buffer.len() - at - 1) as u8;
    buffer.extend_from_slice(&mark.to_ne_bytes());
    buffer.extend_from_slice(&(bytes.len() as u32).to_ne_bytes());
    buffer.extend_from_slice(bytes);
}

/// The datagrams of a buffer from a place on where one begins.
pub(crate) fn entries(mut rest: &[u8]) -> impl Iterator<Item = Outgoing<'_>> {
    std::iter::from_fn(move || {
        let (name_len, behind) = rest.split_first()?;
        let (name, behind) = behind.split_at_checked(usize::from(*name_len))?;
        let (mark, behind) = behind.split_first_chunk()?;
        let (len, behind) = behind.split_first_chunk()?;
        let len = u32::from_ne_bytes(*len) as usize;
        let (bytes, behind) = behind.split_at_checked(len)?;
        rest = behind;
        let mark = u32::from_ne_bytes(*mark);
        Some(Outgoing { name, mark, bytes })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: datagrams come out in the order of their push, from any datagram on.
        #[test]
        fn datagrams_come_out_as_they_went_in(
            all in prop::collection::vec(
                (any::<Option<[u8; 4]>>(), prop::collection::vec(any::<u8>(), 0..50)), 1..20),
        ) {
            let to = |ip: [u8; 4]| SocketAddr::from((ip, 5683));
            let mut buffer = Vec::new();
            for (mark, (ip, bytes)) in (0..).zip(&all) {
                push(&mut buffer, Datagram { to: ip.map(to), mark, bytes });
            }
            let mut at = 0;
            for (place, (ip, bytes)) in all.iter().enumerate() {
                let out: Vec<Outgoing<'_>> = entries(&buffer[at..]).collect();
                prop_assert_eq!(out.len(), all.len() - place);
                prop_assert_eq!((out[0].mark as usize, out[0].bytes), (place, &bytes[..]));
                prop_assert_eq!(address::read(out[0].name), ip.map(to));
                at += out[0].size();
            }
            prop_assert_eq!(at, buffer.len());
        }
    }
}
