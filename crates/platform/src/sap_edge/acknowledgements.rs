//! Messages to a device: arrays of acknowledgements.

use super::accepts;
use crate::downlink::{Acknowledgement, ApplicationId, NotAnAcknowledgement};
use crate::json::Json;
use crate::server::Reply;

/// An array of acknowledgements, read element by element.
#[derive(Debug, Clone)]
pub(crate) struct AckArray<'a> {
    json: Json<'a>,
    place: Place,
}

/// State of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Within,
    End,
}

impl<'a> AckArray<'a> {
    pub(crate) const fn new(payload: &'a [u8]) -> Self {
        Self {
            json: Json::new(payload),
            place: Place::Start,
        }
    }

    /// The next acknowledgement; after an error there is none.
    pub(crate) fn next(&mut self) -> Option<Result<Acknowledgement<'a>, NotAnAcknowledgement>> {
        if self.place == Place::End {
            return None;
        }
        let read = self.read();
        if !matches!(read, Some(Some(_))) {
            self.place = Place::End;
        }
        match read {
            Some(element) => element.map(Ok),
            None => Some(Err(NotAnAcknowledgement)),
        }
    }

    /// The outer option is none if this is not JSON, the inner one if the array is over.
    fn read(&mut self) -> Option<Option<Acknowledgement<'a>>> {
        let goes_on = match self.place {
            Place::Start => {
                self.json.take(b'[')?;
                self.json.begins(b']')?
            }
            Place::Within | Place::End => self.json.goes_on(b']')?,
        };
        self.place = Place::Within;
        if goes_on {
            return self.element().map(Some);
        }
        self.json.is_at_end().then_some(None)
    }

    fn element(&mut self) -> Option<Acknowledgement<'a>> {
        let (mut id, mut code, mut messages) = (None, None, &[][..]);
        self.json.take(b'{')?;
        let mut goes_on = self.json.begins(b'}')?;
        while goes_on {
            match self.json.key()? {
                b"id" => id = ApplicationId::parse(bare(self.json.value()?)),
                b"code" => code = Some(number(bare(self.json.value()?))?),
                b"messages" => messages = self.json.value()?,
                _ => self.json.skip()?,
            }
            goes_on = self.json.goes_on(b'}')?;
        }
        let code = code?;
        Some(Acknowledgement {
            id,
            is_of_oldest: false,
            is_accepted: accepts(code),
            code,
            messages,
        })
    }
}

/// A value without its quotes, if it has any.
fn bare(value: &[u8]) -> &[u8] {
    let inside = value.strip_prefix(b"\"");
    let inside = inside.and_then(|value| value.strip_suffix(b"\""));
    inside.unwrap_or(value)
}

fn number(text: &[u8]) -> Option<u16> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Writes one message of the server end.
pub(super) fn write_acknowledgement(
    replies: &mut dyn Iterator<Item = Reply<'_>>,
    out: &mut Vec<u8>,
) {
    out.push(b'[');
    for (place, Reply { id, code }) in replies.enumerate() {
        out.extend_from_slice(if place == 0 { b"{" } else { b",{" });
        if let Some(id) = id {
            out.extend_from_slice(b"\"id\":");
            out.extend_from_slice(id);
            out.push(b',');
        }
        let messages = if accepts(code) {
            "[]"
        } else {
            "[\"the gateway says no\"]"
        };
        out.extend_from_slice(format!("\"code\":{code},\"messages\":{messages}}}").as_bytes());
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Codes and ids as read, and whether the reading ended in an error.
    fn read(text: &str) -> (Vec<(Option<u32>, u16, bool)>, bool) {
        let mut array = AckArray::new(text.as_bytes());
        let (mut read, mut is_broken) = (Vec::new(), false);
        while let Some(next) = array.next() {
            match next {
                Ok(ack) => read.push((ack.id.map(|id| id.seq), ack.code, ack.is_accepted)),
                Err(NotAnAcknowledgement) => is_broken = true,
            }
        }
        (read, is_broken)
    }

    #[test]
    fn every_element_is_read() {
        let text = r#" [ {"id":"0","code":202,"messages":[]},
            {"code":200,"id":"1"}, {"id":2,"code":404,"messages":["no such \"sensor\"",{"a":[]}],"more":null} ] "#;
        let expected = vec![
            (Some(0), 202, true),
            (Some(1), 200, true),
            (Some(2), 404, false),
        ];
        assert_eq!(read(text), (expected, false));
        assert_eq!(read("[]"), (vec![], false));
        assert_eq!(read(r#"[{"code":202}]"#), (vec![(None, 202, true)], false));
        assert_eq!(
            read(r#"[{"id":"x","code":500}]"#),
            (vec![(None, 500, false)], false)
        );
    }

    #[test]
    fn what_a_rejection_says_is_given_as_it_stands() {
        let text = br#"[{"id":"0","code":400,"messages":["a", "b"]}]"#;
        let ack = AckArray::new(text)
            .next()
            .expect("an element")
            .expect("a good one");
        assert_eq!(ack.messages, br#"["a", "b"]"#);
    }

    #[test]
    fn what_comes_before_the_damage_counts() {
        let damaged = r#"[{"id":"0","code":202},{"id":"1","code":20"#;
        assert_eq!(read(damaged), (vec![(Some(0), 202, true)], true));
    }

    #[test]
    fn what_is_no_array_of_acknowledgements_is_said_so_once() {
        for text in [
            "",
            "{}",
            "null",
            "[",
            "[1]",
            "[{}]",
            r#"{"id":"0","code":202}"#,
            r#"[{"id":"0"}]"#,
            r#"[{"id":"0","code":"many"}]"#,
            r#"[{"id":"0","code":70000}]"#,
            "ok",
        ] {
            assert_eq!(read(text), (vec![], true), "{text}");
        }
        let trailing = r#"[{"id":"0","code":202}] and more"#;
        assert_eq!(read(trailing), (vec![(Some(0), 202, true)], true));
    }

    proptest! {
        /// Law: the device end reads any batch that the server end writes.
        #[test]
        fn a_batch_is_read_back(replies in prop::collection::vec((0u32.., 100u16..600), 0..20)) {
            let ids: Vec<String> = replies.iter().map(|(seq, _)| format!("\"{seq}\"")).collect();
            let mut replies_of = ids.iter().zip(&replies).map(|(id, (_, code))| Reply {
                id: Some(id.as_bytes()),
                code: *code,
            });
            let mut out = Vec::new();
            write_acknowledgement(&mut replies_of, &mut out);
            let text = String::from_utf8(out).unwrap();
            let expected = replies.iter().map(|(seq, code)| (Some(*seq), *code, accepts(*code)));
            prop_assert_eq!(read(&text), (expected.collect(), false));
        }

        /// Law: for any bytes, reading ends and does not panic.
        #[test]
        fn any_bytes_are_survived(text in "[\\[\\]{}\",:0-9idcodemsg\\\\ ]{0,60}") {
            read(&text);
        }
    }
}
