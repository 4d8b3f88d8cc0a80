//! Where a stamp stands in a copy, and what of a damaged one may be believed.

use muster_model::{
    RunId, STAMP_BYTES, STAMP_KEY_BYTES, STAMP_KEY_TEXT, STAMP_TEXT, Stamp, StampError,
};

use crate::pointer::string_at;
use crate::{Carrier, Uplink, UplinkScratch};

/// Where a stamp may be found; streams that agree share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Head,
    After(String),
    Property,
    Field(String),
}

/// A stamp whose check does not hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Damaged<'a> {
    pub(crate) stamp: Stamp,
    /// As it was carried: 22 bytes, or 30 characters.
    carried: &'a [u8],
    /// What its check covers beside it.
    covered: [&'a [u8]; 2],
}

type Found<'a> = Result<Stamp, Damaged<'a>>;

impl Place {
    /// Where a stream's stamps stand; none if it has none.
    pub(crate) fn of(uplink: &Uplink) -> Option<Self> {
        match uplink.carrier() {
            Carrier::Payload => Some(match uplink.payload().stamp_anchor() {
                Some(anchor) => Self::After(anchor.to_owned()),
                None => Self::Head,
            }),
            Carrier::Property => Some(Self::Property),
            Carrier::Field(pointer) => Some(Self::Field(pointer.clone())),
            Carrier::ApplicationId | Carrier::Blind(_) | Carrier::Order | Carrier::None => None,
        }
    }

    pub(crate) fn find<'a>(
        &self,
        run: RunId,
        payload: &'a [u8],
        property: Option<&'a str>,
    ) -> Option<Found<'a>> {
        match self {
            Self::Head => {
                let (head, rest) = payload.split_at_checked(STAMP_BYTES)?;
                read(head, [rest, &[]])
            }
            Self::After(anchor) if anchor.is_empty() => find_anywhere(run, payload),
            Self::After(anchor) => find_after(anchor.as_bytes(), payload),
            Self::Property => read(property?.as_bytes(), [payload, &[]]),
            Self::Field(pointer) => {
                let text = string_at(payload, pointer)?;
                let at = text.as_ptr() as usize - payload.as_ptr() as usize;
                read_at(payload, at)
            }
        }
    }
}

impl Damaged<'_> {
    /// Whether the id may be believed: `named` is the message that it names, as it was sent.
    ///
    /// Either the check is that message's own, so that the damage is in what it covers; or all
    /// that it covers is, so that the damage is in the check. The latter holds for a damaged id as
    /// well where payloads are alike, unless no other id with one symbol changed has that check.
    pub(crate) fn is_of(&self, named: &UplinkScratch) -> bool {
        let Some((stamp, covered)) = named.stamp() else {
            return false;
        };
        if stamp.len() != self.carried.len() {
            return false;
        }
        let checks = stamp.iter().zip(self.carried).skip(key_length(stamp));
        match checks.filter(|(sent, came)| sent != came).count() {
            0 => true,
            1 => self.covered == covered && !self.could_be_another(),
            _ => false,
        }
    }

    /// Whether an id that differs in one symbol would make the check hold.
    fn could_be_another(&self) -> bool {
        let mut text = [0; STAMP_TEXT];
        let altered = &mut text[..self.carried.len()];
        altered.copy_from_slice(self.carried);
        (0..key_length(self.carried)).any(|at| {
            let holds = (0..=u8::MAX).any(|symbol| {
                altered[at] = symbol;
                matches!(decode(altered, &self.covered), Some(Ok(_)))
            });
            altered[at] = self.carried[at];
            holds
        })
    }
}

/// How much of a stamp is not its check.
fn key_length(carried: &[u8]) -> usize {
    if carried.len() == STAMP_BYTES {
        STAMP_KEY_BYTES
    } else {
        STAMP_KEY_TEXT
    }
}

fn decode(carried: &[u8], covered: &[&[u8]]) -> Option<Result<Stamp, StampError>> {
    if let Ok(bytes) = carried.try_into() {
        return Some(Stamp::decode(bytes, covered));
    }
    let text = carried.try_into().ok()?;
    Some(Stamp::decode_text(text, covered))
}

fn read<'a>(carried: &'a [u8], covered: [&'a [u8]; 2]) -> Option<Found<'a>> {
    match decode(carried, &covered)? {
        Ok(stamp) => Some(Ok(stamp)),
        Err(StampError::Check(stamp)) => Some(Err(Damaged {
            stamp,
            carried,
            covered,
        })),
        Err(StampError::NotText) => None,
    }
}

fn read_at(payload: &[u8], at: usize) -> Option<Found<'_>> {
    let (before, rest) = payload.split_at_checked(at)?;
    let (text, after) = rest.split_at_checked(STAMP_TEXT)?;
    read(text, [before, after])
}

/// The stamp behind one of the places where the anchor stands: the first that is intact, else
/// the first that is one at all.
fn find_after<'a>(anchor: &[u8], payload: &'a [u8]) -> Option<Found<'a>> {
    let mut best = None;
    let mut from = 0;
    while let Some(at) = find(anchor, &payload[from..]) {
        let start = from + at + anchor.len();
        match read_at(payload, start) {
            Some(Ok(stamp)) => return Some(Ok(stamp)),
            Some(Err(damaged)) => best = best.or(Some(Err(damaged))),
            None => {}
        }
        from += at + 1;
    }
    best
}

/// Without a fixed text before it, a stamp is known by the run at its head.
fn find_anywhere(run: RunId, payload: &[u8]) -> Option<Found<'_>> {
    let mut best = None;
    for start in 0..=payload.len().checked_sub(STAMP_TEXT)? {
        match read_at(payload, start) {
            Some(Ok(stamp)) => return Some(Ok(stamp)),
            Some(Err(damaged)) if damaged.stamp.id.run == run => {
                best = best.or(Some(Err(damaged)));
            }
            Some(Err(_)) | None => {}
        }
    }
    best
}

fn find(needle: &[u8], text: &[u8]) -> Option<usize> {
    text.windows(needle.len())
        .position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use muster_model::{DeviceId, MessageId, StreamId};

    use super::*;

    fn stamp(device: u32, seq: u32) -> Stamp {
        let id = MessageId {
            run: RunId(1),
            device: DeviceId(device),
            stream: StreamId(0),
            seq,
        };
        Stamp { id, due: None }
    }

    /// A check that is wrong in one symbol says nothing if a damaged id explains it as well.
    #[test]
    fn a_check_that_another_id_would_have_is_not_taken_for_a_damaged_one() {
        let covered: [&[u8]; 2] = [b"on", b""];
        let other = stamp(7, 3).encode(&covered);
        let mut carried = other;
        carried[STAMP_KEY_BYTES - 6] ^= 1;
        let damaged = Damaged {
            stamp: stamp(7, 2),
            carried: &carried,
            covered,
        };
        assert!(damaged.could_be_another());
        let mut carried = other;
        carried[STAMP_BYTES - 1] ^= 1;
        let damaged = Damaged {
            stamp: stamp(7, 3),
            carried: &carried,
            covered,
        };
        assert!(!damaged.could_be_another());
    }
}
