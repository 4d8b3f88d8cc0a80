//! The options of a message that came, read in place (RFC 7252 sections 3.1 and 5.4).

use super::message::PAYLOAD_MARKER;
use super::{Block, Fault, Opt, OptionNumber, ReservedSize};

/// The options of a message, in the order of their numbers; every one of them can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options<'a> {
    bytes: &'a [u8],
}

/// A walk through options.
#[derive(Debug, Clone)]
pub struct OptionIter<'a> {
    rest: &'a [u8],
    last: u16,
}

impl<'a> Options<'a> {
    /// No options.
    pub const NONE: Self = Self { bytes: &[] };

    /// Cuts what stands behind a token into options and payload.
    #[inline]
    pub(super) fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Fault> {
        let mut walk = OptionIter {
            rest: bytes,
            last: 0,
        };
        while walk.step()?.is_some() {}
        let options = &bytes[..bytes.len() - walk.rest.len()];
        let payload = match walk.rest {
            [] => walk.rest,
            [_marker] => return Err(Fault::Payload),
            [_marker, payload @ ..] => payload,
        };
        Ok((Self { bytes: options }, payload))
    }

    /// Options that were written by [`super::message::write_merged`].
    pub(super) const fn of_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// All options, in order.
    #[inline]
    pub fn iter(&self) -> OptionIter<'a> {
        OptionIter {
            rest: self.bytes,
            last: 0,
        }
    }

    /// Every value of one option, in order.
    #[inline]
    pub fn all(&self, number: OptionNumber) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let options = self.iter().skip_while(move |option| option.number < number);
        options
            .take_while(move |option| option.number == number)
            .map(|option| option.value)
    }

    /// The first value of one option; an option that may be given once is read so, and what
    /// follows it is ignored (section 5.4.5).
    #[inline]
    pub fn first(&self, number: OptionNumber) -> Option<&'a [u8]> {
        self.all(number).next()
    }

    /// The number that an option holds; none where it is missing or its length is wrong, which
    /// reads like an option that is not known (section 5.4.3).
    #[inline]
    pub fn uint(&self, number: OptionNumber) -> Option<u32> {
        let option = Opt::new(number, self.first(number)?);
        let known = number.definition()?;
        let fits = option.value.len() <= usize::from(known.length.1);
        option.uint().filter(|_| fits)
    }

    /// The block that Block1 or Block2 names; none where there is no such.
    ///
    /// # Errors
    /// [`ReservedSize`] if it is of a size that no block has: 4.00 to a request (RFC 7959 section 2.2).
    #[inline]
    pub fn block(&self, number: OptionNumber) -> Result<Option<Block>, ReservedSize> {
        let value = self.uint(number);
        let read = |value| Block::of_value(value).ok_or(ReservedSize);
        value.map(read).transpose()
    }

    /// The first critical option that is not known here, has a wrong length, or is given once too
    /// often (sections 5.4.1, 5.4.3, 5.4.5).
    #[inline]
    pub fn unacceptable(&self) -> Option<OptionNumber> {
        let mut last = None;
        for Opt { number, value } in self.iter() {
            let is_repeated = last.replace(number) == Some(number);
            if number.is_critical() && !is_acceptable(number, value, is_repeated) {
                return Some(number);
            }
        }
        None
    }

    /// Returns how long the message stays fresh, in seconds; none without the option, which means
    /// 60 for a response that can be stored (section 5.10.5).
    pub fn max_age(&self) -> Option<u32> {
        self.uint(OptionNumber::MAX_AGE)
    }
}

fn is_acceptable(number: OptionNumber, value: &[u8], is_repeated: bool) -> bool {
    number.definition().is_some_and(|known| {
        let (shortest, longest) = known.length;
        let length = usize::from(shortest)..=usize::from(longest);
        length.contains(&value.len()) && (known.is_repeatable || !is_repeated)
    })
}

impl<'a> OptionIter<'a> {
    pub(super) const NONE: Self = Self { rest: &[], last: 0 };

    /// The next option; none at the payload marker or the end.
    #[inline]
    fn step(&mut self) -> Result<Option<Opt<'a>>, Fault> {
        let first = match self.rest.first() {
            None | Some(&PAYLOAD_MARKER) => return Ok(None),
            Some(first) => *first,
        };
        let rest = &self.rest[1..];
        let (delta, rest) = extended(first >> 4, rest)?;
        let (length, rest) = extended(first & 0x0f, rest)?;
        let number = u32::from(self.last) + delta;
        let number = u16::try_from(number).map_err(|_| Fault::OptionNumber)?;
        let (value, rest) = rest
            .split_at_checked(length as usize)
            .ok_or(Fault::Option)?;
        self.rest = rest;
        self.last = number;
        Ok(Some(Opt::new(OptionNumber(number), value)))
    }
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = Opt<'a>;

    #[inline]
    fn next(&mut self) -> Option<Opt<'a>> {
        // Options are made of bytes that were walked through without a fault.
        self.step().ok().flatten()
    }
}

/// A delta or length, and what stands behind its further bytes (section 3.1).
#[inline]
fn extended(nibble: u8, rest: &[u8]) -> Result<(u32, &[u8]), Fault> {
    match (nibble, rest) {
        (0..=12, _) => Ok((u32::from(nibble), rest)),
        (13, [more, rest @ ..]) => Ok((13 + u32::from(*more), rest)),
        (14, [high, low, rest @ ..]) => {
            let more = u16::from_be_bytes([*high, *low]);
            Ok((269 + u32::from(more), rest))
        }
        (13 | 14, _) => Err(Fault::Option),
        _ => Err(Fault::ReservedNibble),
    }
}
