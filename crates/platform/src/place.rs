//! Position of a stamp in a copy, and the credible parts of a damaged one.

use memchr::memmem;
use muster_model::{
    RunId, STAMP_BYTES, STAMP_KEY_BYTES, STAMP_KEY_TEXT, STAMP_TEXT, Stamp, StampError,
};

use crate::pointer::string_at;
use crate::{Carrier, IntegrityLevel, Uplink, UplinkScratch};

/// Position of stamps; streams with equal ones share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Head(IntegrityLevel),
    After(Box<Anchor>),
    /// The value of the field of this name, in whatever JSON that is, with a check over itself.
    Named(Box<Anchor>),
    /// Anywhere, with a check over itself.
    Anywhere,
    Property(IntegrityLevel),
    Field(String),
}

/// The text before a stamp. To prepare the search takes as long as to search, so that it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Anchor {
    text: memmem::Finder<'static>,
    /// Position of the last intact stamp, where most others stand. The check of each covers all the
    /// rest, so that no other position in the same payload has an intact one.
    last: usize,
}

/// A stamp whose check does not hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Damaged<'a> {
    pub(crate) stamp: Stamp,
    /// As it was carried: 22 bytes, or 30 characters.
    carried: &'a [u8],
    /// Bytes that its check covers besides it.
    covered: [&'a [u8]; 2],
}

type Found<'a> = Result<Stamp, Damaged<'a>>;

impl Place {
    /// Returns the position of a stream's stamps; none if it has none.
    pub(crate) fn of(uplink: &Uplink) -> Option<Self> {
        let integrity = uplink.integrity();
        let is_rewritten = integrity == IntegrityLevel::Stamp;
        match uplink.carrier() {
            Carrier::Payload => Some(match uplink.payload().stamp_anchor() {
                Some(anchor) if is_rewritten => Self::named(field_before(anchor)),
                Some(anchor) => Self::After(Box::new(Anchor::new(anchor))),
                None => Self::Head(integrity),
            }),
            Carrier::Property => Some(Self::Property(integrity)),
            Carrier::Field(pointer) if is_rewritten => {
                let name = pointer.rsplit('/').next().unwrap_or_default();
                Some(Self::named(&name.replace("~1", "/").replace("~0", "~")))
            }
            Carrier::Field(pointer) => Some(Self::Field(pointer.clone())),
            Carrier::ApplicationId | Carrier::Blind(_) | Carrier::Order | Carrier::None => None,
        }
    }

    fn named(field: &str) -> Self {
        match field {
            "" => Self::Anywhere,
            field => Self::Named(Box::new(Anchor::new(field))),
        }
    }

    pub(crate) fn find<'a>(
        &mut self,
        run: RunId,
        payload: &'a [u8],
        property: Option<&'a str>,
    ) -> Option<Found<'a>> {
        match self {
            Self::Head(integrity) => {
                let (head, rest) = payload.split_at_checked(STAMP_BYTES)?;
                read(head, integrity.covered([rest, &[]]))
            }
            Self::After(anchor) if anchor.text().is_empty() => {
                find_anywhere(run, payload, IntegrityLevel::Body)
            }
            Self::After(anchor) => find_behind(anchor, payload, IntegrityLevel::Body),
            Self::Named(anchor) => find_behind(anchor, payload, IntegrityLevel::Stamp),
            Self::Anywhere => find_anywhere(run, payload, IntegrityLevel::Stamp),
            Self::Property(integrity) => {
                read(property?.as_bytes(), integrity.covered([payload, &[]]))
            }
            Self::Field(pointer) => {
                let text = string_at(payload, pointer)?;
                let at = text.as_ptr() as usize - payload.as_ptr() as usize;
                read_at(payload, at, IntegrityLevel::Body)
            }
        }
    }
}

impl Anchor {
    fn new(text: &str) -> Self {
        Self {
            text: memmem::Finder::new(text).into_owned(),
            last: 0,
        }
    }

    fn text(&self) -> &[u8] {
        self.text.needle()
    }

    fn find(&self, payload: &[u8], from: usize) -> Option<usize> {
        let at = self.text.find(payload.get(from..)?)?;
        Some(from + at + self.text().len())
    }

    fn stands_at_last(&self, payload: &[u8]) -> bool {
        let before = payload.get(..self.last);
        before.is_some_and(|before| before.ends_with(self.text()))
    }
}

impl PartialEq for Anchor {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Anchor {}

impl Damaged<'_> {
    /// Returns true if the id is credible: `named` is the message that it names, as it was sent.
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

    /// Returns true if an id that differs in one symbol would satisfy the check.
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

/// Returns how much of a stamp is not its check.
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

fn read_at(payload: &[u8], at: usize, integrity: IntegrityLevel) -> Option<Found<'_>> {
    let (before, rest) = payload.split_at_checked(at)?;
    let (text, after) = rest.split_at_checked(STAMP_TEXT)?;
    read(text, integrity.covered([before, after]))
}

/// The name of the field of JSON whose value begins behind a text; empty if the text ends otherwise.
pub fn field_before(text: &str) -> &str {
    let name = text.trim_end_matches(JSON_BETWEEN);
    let start = name.rfind('"').map_or(name.len(), |quote| quote + 1);
    match name.len() < text.len() {
        true => &name[start..],
        false => "",
    }
}

/// Characters between the name of a field and its text: quotes, also escaped ones, a colon and
/// blanks.
const JSON_BETWEEN: [char; 7] = ['"', '\\', ':', ' ', '\t', '\r', '\n'];

/// Returns the stamp behind one of the places of the anchor: the intact one, else the first that is
/// damaged. A check over the stamp alone means that the anchor is the name of its field.
fn find_behind<'a>(
    anchor: &mut Anchor,
    payload: &'a [u8],
    integrity: IntegrityLevel,
) -> Option<Found<'a>> {
    let is_named = integrity == IntegrityLevel::Stamp;
    if (is_named || anchor.stands_at_last(payload))
        && let found @ Some(Ok(_)) = read_at(payload, anchor.last, integrity)
    {
        return found;
    }
    let (mut damaged, mut from) = (None, 0);
    while let Some(end) = anchor.find(payload, from) {
        from = end - anchor.text().len() + 1;
        let is_between = |byte: &&u8| is_named && JSON_BETWEEN.contains(&char::from(**byte));
        let start = end + payload[end..].iter().take_while(is_between).count();
        let found = read_at(payload, start, integrity);
        if let Some(Ok(_)) = found {
            anchor.last = start;
            return found;
        }
        damaged = damaged.or(found);
    }
    damaged
}

/// Returns a stamp without a fixed text before it: the intact one, else the first damaged one of the run.
fn find_anywhere(run: RunId, payload: &[u8], integrity: IntegrityLevel) -> Option<Found<'_>> {
    let mut of_run = None;
    for start in 0..=payload.len().checked_sub(STAMP_TEXT)? {
        match read_at(payload, start, integrity) {
            found @ Some(Ok(_)) => return found,
            Some(Err(damaged)) if damaged.stamp.id.run == run => {
                of_run = of_run.or(Some(Err(damaged)));
            }
            Some(Err(_)) | None => {}
        }
    }
    of_run
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

    /// Law: an intact stamp is found wherever the last one stood, and else a damaged one.
    #[test]
    fn a_stamp_is_found_where_none_stood_before() {
        let payload = |before: &str, seq: u32| {
            let before = format!("{before}\"id\":\"");
            let text = stamp(7, seq).encode_text(&[before.as_bytes(), b"\"}"]);
            [before.as_bytes(), &text, b"\"}"].concat()
        };
        let mut anchor = Anchor::new("\"id\":\"");
        for (seq, before) in (0..).zip(["{", "{\"v\":12,", "{", "{\"id\":\"none\","]) {
            let payload = payload(before, seq);
            let found = find_behind(&mut anchor, &payload, IntegrityLevel::Body);
            assert_eq!(found.and_then(Result::ok), Some(stamp(7, seq)));
        }
        let mut damaged = payload("{", 9);
        *damaged.last_mut().expect("it has bytes") = b']';
        assert!(matches!(
            find_behind(&mut anchor, &damaged, IntegrityLevel::Body),
            Some(Err(_))
        ));
        assert!(find_behind(&mut anchor, b"{\"id\":\"\"}", IntegrityLevel::Body).is_none());
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
