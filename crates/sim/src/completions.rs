//! Packets without the ones that complete an exchange at QoS 2.

/// Packets without those of type PUBCOMP. Those of a model platform are shorter than 128 bytes.
pub(crate) fn without(packets: &[u8]) -> Vec<u8> {
    const PUBCOMP: u8 = 7;
    let (mut kept, mut rest) = (Vec::new(), packets);
    while let [first, length, ..] = rest {
        let (packet, after) = rest.split_at(2 + usize::from(*length));
        if first >> 4 != PUBCOMP {
            kept.extend_from_slice(packet);
        }
        rest = after;
    }
    kept
}
