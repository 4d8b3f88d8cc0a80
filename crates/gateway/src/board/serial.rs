//! Ids of entities: a number in the store, a UUID in the API.

use muster_model::mix;

use super::refusal::{Answer, Refusal};

/// The number of an entity, in the order of creation; from 1 to 2^62 - 1. No two entities of any kind share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Serial(u64);

/// The UUID that stands for no entity.
pub(super) const NOBODY: &str = "13814000-1dd2-11b2-8080-808080808080";

/// Chooses the upper halves of UUIDs.
const SEED: u64 = 0x7b0a_4d00;
/// The variant of RFC 9562 in the lower half of a UUID.
const VARIANT: u64 = 1 << 63;
/// Version 8 of RFC 9562 (custom) in the upper half.
const VERSION: u64 = 0x8000;
const VERSION_BITS: u64 = 0xf000;

impl Serial {
    /// The tenant, the first entity of a store.
    pub(super) const TENANT: Self = Self(1);

    pub(super) const fn new(number: u64) -> Self {
        Self(number)
    }

    pub(super) const fn get(self) -> u64 {
        self.0
    }

    /// Returns its UUID.
    pub(super) fn uuid(self) -> String {
        let whole = self.whole();
        let part = |from: u32, bits: u32| (whole >> from) & ((1 << bits) - 1);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            part(96, 32),
            part(80, 16),
            part(64, 16),
            part(48, 16),
            part(0, 48)
        )
    }

    /// Reads a UUID.
    ///
    /// # Errors
    /// 400 if it is none, 404 if no entity can have it.
    pub(super) fn parse(uuid: &str) -> Answer<Self> {
        let whole = number(uuid)
            .ok_or_else(|| Refusal::bad_request(&format!("Invalid UUID string: {uuid}")))?;
        let serial = Self(whole as u64 & !VARIANT);
        let is_ours = serial.whole() == whole;
        is_ours.then_some(serial).ok_or_else(Refusal::not_found)
    }

    fn whole(self) -> u128 {
        let upper = mix(SEED, self.0) & !VERSION_BITS | VERSION;
        u128::from(upper) << 64 | u128::from(self.0 | VARIANT)
    }
}

/// The 128 bits of a UUID; none if the text is none.
fn number(uuid: &str) -> Option<u128> {
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    let mut bytes = uuid.bytes().enumerate();
    let is_uuid = uuid.len() == 36
        && bytes.all(|(at, byte)| {
            (byte == b'-') == is_dash(at) && (is_dash(at) || byte.is_ascii_hexdigit())
        });
    let digits = is_uuid.then(|| uuid.replace('-', ""))?;
    u128::from_str_radix(&digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(uuid: &str) -> u16 {
        Serial::parse(uuid).map_or_else(|refusal| refusal.0.status, |_| 200)
    }

    #[test]
    fn a_uuid_leads_back_to_its_entity_alone() {
        for number in [1, 2, 77, u64::MAX >> 2] {
            let serial = Serial::new(number);
            let uuid = serial.uuid();
            assert_eq!(Serial::parse(&uuid), Ok(serial), "{uuid}");
            assert_eq!(Serial::parse(&uuid.to_uppercase()), Ok(serial));
            assert_eq!(&uuid[14..15], "8");
            let other = format!("0{}", &uuid[1..]);
            assert!(uuid.starts_with('0') || status(&other) == 404, "{other}");
        }
    }

    #[test]
    fn what_is_no_uuid_is_a_bad_request_and_a_strange_one_is_not_found() {
        assert_eq!(status(NOBODY), 404);
        for wrong in [
            "",
            "x",
            "13814000-1dd2-11b2-8080-80808080808g",
            "138140001dd211b28080808080808080",
        ] {
            assert_eq!(status(wrong), 400, "{wrong}");
        }
    }
}
