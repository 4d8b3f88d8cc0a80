//! The share of a run that one machine carries.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Slice;

/// Into how many shares links or consumers may be divided at the most. A share is divided again
/// among processes and their threads.
pub(crate) const SHARES_MAX: u32 = 10_000;

/// Share of a run in one of several processes on one or several machines: links, consumers, or some
/// of both. The parts of a run carry each link and each consumer once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The share of the links; none if it has no devices at all.
    pub links: Option<Slice>,
    /// The share of the consumers; none if it has no backend at all.
    pub consumers: Option<Slice>,
}

/// The text is no part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no part; write devices or backend, i/n with 1 <= i <= n <= {SHARES_MAX}, such as 1/2, or \
     both, such as devices:1/2"
)]
pub struct NoPart(String);

impl Part {
    /// The whole run.
    pub const WHOLE: Part = Part::of(Slice::WHOLE);

    /// Slice `index` of `of` of devices and consumers alike.
    pub const fn of(slice: Slice) -> Part {
        Part {
            links: Some(slice),
            consumers: Some(slice),
        }
    }

    /// Among how many machines that have devices they are divided; 1 where this one has none.
    pub fn carriers(self) -> u32 {
        self.links.map_or(1, |slice| slice.of)
    }

    /// Returns true if these parts make the run whole: each link is carried once, and each
    /// consumer, if the run has any.
    pub fn are_whole(parts: &[Part], has_backend: bool) -> bool {
        let of = |pick: fn(&Part) -> Option<Slice>| parts.iter().filter_map(pick);
        let links = is_cover(of(|part| part.links));
        let consumers = of(|part| part.consumers);
        links && (!has_backend || is_cover(consumers))
    }
}

/// Returns true if slices are those of one division of a whole, each once.
fn is_cover(slices: impl Iterator<Item = Slice>) -> bool {
    let mut slices: Vec<Slice> = slices.collect();
    slices.sort_unstable_by_key(|slice| slice.index);
    let of = slices.len();
    let mut places = slices.iter().enumerate();
    of > 0 && places.all(|(at, slice)| slice.index as usize == at && slice.of as usize == of)
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (role, slice) = match (self.links, self.consumers) {
            (Some(slice), Some(_)) => ("", slice),
            (Some(slice), None) => ("devices", slice),
            (None, Some(slice)) => ("backend", slice),
            (None, None) => return f.write_str("nothing"),
        };
        let Slice { index, of } = slice;
        match (role, of) {
            ("", _) => write!(f, "{} of {of}", index + 1),
            (role, 1) => f.write_str(role),
            (role, _) => write!(f, "{role} {} of {of}", index + 1),
        }
    }
}

impl FromStr for Part {
    type Err = NoPart;

    fn from_str(text: &str) -> Result<Self, NoPart> {
        let (role, slice) = match text.split_once(':') {
            Some((role, slice)) => (role, Some(slice)),
            None if text.contains('/') => ("", Some(text)),
            None => (text, None),
        };
        let slice = slice.map_or(Some(Slice::WHOLE), slice_of);
        match (role, slice) {
            ("", Some(slice)) if !text.starts_with(':') && !text.is_empty() => Ok(Part::of(slice)),
            ("devices", links @ Some(_)) => Ok(Part {
                links,
                consumers: None,
            }),
            ("backend", consumers @ Some(_)) => Ok(Part {
                links: None,
                consumers,
            }),
            (_, _) => Err(NoPart(text.to_owned())),
        }
    }
}

/// `i/n` with 1 <= i <= n <= [`SHARES_MAX`].
fn slice_of(text: &str) -> Option<Slice> {
    let (index, of) = text.split_once('/')?;
    let (index, of) = (index.parse::<u32>().ok()?, of.parse::<u32>().ok()?);
    let is_share = of <= SHARES_MAX && (1..=of).contains(&index);
    is_share.then(|| Slice {
        index: index - 1,
        of,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Part {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_part_is_named_by_what_it_carries() {
        for (text, told) in [
            ("1/2", "1 of 2"),
            ("2/2", "2 of 2"),
            ("1/1", "1 of 1"),
            ("devices", "devices"),
            ("backend", "backend"),
            ("devices:2/3", "devices 2 of 3"),
            ("backend:1/2", "backend 1 of 2"),
            ("devices:1/1", "devices"),
        ] {
            assert_eq!(part(text).to_string(), told, "{text}");
        }
        assert_eq!(part("1/1"), Part::WHOLE);
        assert_eq!(
            (part("backend").links, part("devices").consumers),
            (None, None)
        );
        for wrong in [
            "",
            "0/2",
            "3/2",
            "1",
            "device",
            "devices:",
            ":1/2",
            "devices:0/1",
            "1/10001",
            "backend:4294967295/4294967295",
            "1/2:devices",
        ] {
            let error = wrong.parse::<Part>().expect_err(wrong).to_string();
            assert!(error.contains(&format!("`{wrong}`")), "{error}");
        }
    }

    #[test]
    fn parts_are_whole_if_each_link_and_each_consumer_is_carried_once() {
        let whole = |texts: &[&str]| {
            let parts: Vec<Part> = texts.iter().map(|text| part(text)).collect();
            Part::are_whole(&parts, true)
        };
        for texts in [
            &["1/1"][..],
            &["2/2", "1/2"],
            &["devices", "backend"],
            &["backend", "devices:2/2", "devices:1/2"],
            &["backend:1/2", "devices", "backend:2/2"],
        ] {
            assert!(whole(texts), "{texts:?}");
        }
        for texts in [
            &[][..],
            &["1/2"],
            &["1/2", "1/2"],
            &["1/2", "2/3"],
            &["devices"],
            &["backend"],
            &["devices", "backend", "backend"],
            &["1/2", "2/2", "devices"],
            &["devices:1/2", "devices:2/3", "backend"],
        ] {
            assert!(!whole(texts), "{texts:?}");
        }
        assert!(Part::are_whole(&[part("devices")], false));
    }
}
