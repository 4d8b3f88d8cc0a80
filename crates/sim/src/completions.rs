//! Packets by which a platform completes an exchange at QoS 2.

/// Packets without those of type PUBCOMP. None that a model platform says here has 128 bytes or more.
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
