//! Meaning of a message to a device.

use crate::command::CommandCopy;
use crate::sap_edge;

/// Form of the platform's acknowledging messages.
#[derive(Debug, Clone)]
pub(crate) enum Words<'a> {
    /// Any number of them.
    Array(sap_edge::AckArray<'a>),
    /// One, which is none once it was read.
    One(Option<Result<Acknowledgement<'a>, NotAnAcknowledgement>>),
}

/// A message that came to a device, as its dialect reads it.
#[derive(Debug, Clone)]
pub enum Downlink<'a> {
    /// The application's word on messages that the device sent.
    Acknowledgements(Acknowledgements<'a>),
    /// A command.
    Command(CommandCopy<'a>),
    /// Nothing that the dialect knows.
    Other,
}

/// The acknowledgements in one message; reading allocates nothing.
#[derive(Debug, Clone)]
pub struct Acknowledgements<'a>(pub(crate) Words<'a>);

/// The application's word on one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgement<'a> {
    /// The message; none if it names none that a device of Muster could have sent.
    pub id: Option<ApplicationId>,
    /// Without an id: true if it is meant for the oldest message of its link that waits for the
    /// application's answer.
    pub is_of_oldest: bool,
    /// True if the message was accepted.
    pub is_accepted: bool,
    /// The application's code.
    pub code: u16,
    /// Its text for people, as JSON; empty if none.
    pub messages: &'a [u8],
}

/// An acknowledgement is not what the dialect says: the rest of its message cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the acknowledgement is not an array of {{ id, code, messages }} in JSON")]
pub struct NotAnAcknowledgement;

impl<'a> Iterator for Acknowledgements<'a> {
    type Item = Result<Acknowledgement<'a>, NotAnAcknowledgement>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Words::Array(array) => array.next(),
            Words::One(one) => one.take(),
        }
    }
}

/// A device's own name of a message: the place of its stream in the fleet and its number there.
///
/// As text the first stream's is the number alone, another's the place and the number: `41`,
/// `1.41`. As a number it is the message's times 100, and the place: 4100, 4101. A device has one
/// name each for all its messages, and no two of them share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplicationId {
    /// The place of the stream in its fleet, from 0.
    pub stream_index: u8,
    /// The message's number in the device's stream.
    pub seq: u32,
}

impl ApplicationId {
    /// Reads the text of an id; none if no device of Muster writes it so.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let dot = text.iter().position(|byte| *byte == b'.');
        let (stream_index, seq) = match dot {
            None => (0, number(text)?),
            Some(dot) => (number(&text[..dot])?, number(&text[dot + 1..])?),
        };
        let is_written_so = dot.is_some() == (stream_index > 0);
        let stream_index = u8::try_from(stream_index).ok().filter(|_| is_written_so)?;
        Some(Self { stream_index, seq })
    }

    /// Number of streams of a fleet that a number can distinguish.
    pub const NUMBERED_STREAMS: u32 = 100;
    /// Messages of a stream that can have a number of at most 2^31 - 1.
    pub const NUMBERED_MAX: u32 = i32::MAX as u32 / Self::NUMBERED_STREAMS;

    /// The id of that number.
    pub const fn of_number(number: u32) -> Self {
        Self {
            stream_index: (number % Self::NUMBERED_STREAMS) as u8,
            seq: number / Self::NUMBERED_STREAMS,
        }
    }

    /// The template of a stream's ids as numbers; the platform may write them without the zeros in
    /// front.
    pub fn number_template(stream_index: u8) -> String {
        format!("${{seq}}{stream_index:02}")
    }

    /// The template of a stream's ids.
    pub fn template(stream_index: u8) -> String {
        match stream_index {
            0 => "${seq}".to_owned(),
            _ => format!("{stream_index}.${{seq}}"),
        }
    }
}

/// A decimal number without leading zeros.
fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || (digits.len() > 1 && digits[0] == b'0') {
        return None;
    }
    digits.iter().try_fold(0u32, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u32::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_in_one_way_only() {
        let id = |stream_index, seq| Some(ApplicationId { stream_index, seq });
        let cases = [
            ("0", id(0, 0)),
            ("4294967295", id(0, u32::MAX)),
            ("1.41", id(1, 41)),
            ("255.0", id(255, 0)),
        ];
        for (text, expected) in cases {
            assert_eq!(ApplicationId::parse(text.as_bytes()), expected, "{text}");
        }
        for text in [
            "",
            "01",
            "4294967296",
            "0.1",
            "256.1",
            "1.",
            ".1",
            "1.1.1",
            "-1",
            "x",
            "1 ",
            "1.01",
        ] {
            assert_eq!(ApplicationId::parse(text.as_bytes()), None, "{text}");
        }
    }
}
