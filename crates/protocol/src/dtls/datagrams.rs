//! Datagrams on their way out, in one buffer of the caller's.

/// Datagrams to send, in their order: bytes in one buffer and where each of them ends.
#[derive(Debug, Clone, Default)]
pub struct Datagrams {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Datagrams {
    /// None.
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The datagrams, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .map(|(start, end)| &self.bytes[start..*end])
    }

    /// Returns their number.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets them all and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Bytes of the datagram that is being written.
    pub(super) fn open_len(&self) -> usize {
        self.bytes.len() - self.ends.last().copied().unwrap_or_default()
    }

    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(super) fn cut(&mut self) {
        if self.open_len() > 0 {
            self.ends.push(self.bytes.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_is_a_datagram() {
        let mut out = Datagrams::new();
        out.cut();
        assert!(out.is_empty());
        out.buffer().extend_from_slice(b"ab");
        out.cut();
        out.buffer().extend_from_slice(b"c");
        assert_eq!(out.open_len(), 1);
        out.cut();
        assert_eq!(out.iter().collect::<Vec<_>>(), [&b"ab"[..], b"c"]);
        assert_eq!(out.len(), 2);
        out.clear();
        assert_eq!(out.iter().count(), 0);
    }
}
