//! Encoding of protocol buffers: the four forms of fields that OTLP metrics need.

/// A message in the making.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Message(Vec<u8>);

/// Wire types.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

impl Message {
    /// A number of variable length.
    pub(super) fn number(&mut self, field: u64, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    /// A number of eight bytes.
    pub(super) fn fixed(&mut self, field: u64, value: u64) {
        self.key(field, FIXED_64);
        self.0.extend(value.to_le_bytes());
    }

    /// A floating-point number of eight bytes.
    pub(super) fn double(&mut self, field: u64, value: f64) {
        self.key(field, FIXED_64);
        self.0.extend(value.to_le_bytes());
    }

    /// A text.
    pub(super) fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// A message within this one.
    pub(super) fn message(&mut self, field: u64, value: &Self) {
        self.bytes(field, &value.0);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, LENGTH_DELIMITED);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the published description of the encoding.
    #[test]
    fn bytes_are_those_of_the_published_examples() {
        let mut inner = Message::default();
        inner.number(1, 150);
        assert_eq!(inner.clone().into_bytes(), [0x08, 0x96, 0x01]);
        let mut outer = Message::default();
        outer.text(2, "testing");
        outer.message(3, &inner);
        let expected = b"\x12\x07testing\x1a\x03\x08\x96\x01";
        assert_eq!(outer.into_bytes(), expected);
    }
}
