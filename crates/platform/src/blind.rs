//! The application's own id of a message, read back where no stamp travels.

use muster_load::{Template, TemplateError};
use muster_model::{MessageId, Micros};
use serde::{Deserialize, Serialize};

use crate::Directory;
use crate::pointer::scalar_at;

const NUMBER: &str = "${seq}";
/// Variables that the id may have, besides fixed text: all are known from the device and the
/// number.
const MADE_OF: [&str; 5] = ["seq", "id", "index", "tenant", "run"];

/// A field of a JSON payload that holds an id of the application's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlindField {
    /// Leads to it (RFC 6901).
    pub pointer: String,
    /// The template of what stands there.
    pub text: String,
}

impl BlindField {
    /// Checks that the text leads back to the number of its message.
    ///
    /// # Errors
    /// [`TemplateError`] with the place in the text, and what would.
    pub fn check(&self) -> Result<(), TemplateError> {
        Blind::new(self).map(drop)
    }
}

/// Such a field, compiled.
#[derive(Debug, Clone)]
pub(crate) struct Blind {
    pointer: String,
    text: Template,
    after: String,
}

/// Buffers that an id is rendered in.
#[derive(Debug, Default)]
pub(crate) struct BlindScratch {
    name: String,
    text: Vec<u8>,
}

impl Blind {
    /// # Errors
    /// [`TemplateError`] if the text does not lead back to the number of its message.
    pub(crate) fn new(field: &BlindField) -> Result<Self, TemplateError> {
        let text = Template::parse(&field.text)?;
        let other = text.names().find(|(name, _)| !MADE_OF.contains(name));
        if let Some((name, offset)) = other {
            return Err(refused(offset, format!("`{name}` in an id")));
        }
        let Some((before, after)) = field.text.split_once(NUMBER) else {
            return Err(refused(0, format!("no `{NUMBER}` in an id")));
        };
        let ends_in_digit = before.ends_with(|last: char| last == '}' || last.is_ascii_digit());
        if ends_in_digit || after.contains("${") || after.starts_with(|c: char| c.is_ascii_digit())
        {
            let what = format!("`{NUMBER}` has no ends in an id");
            return Err(refused(before.len(), what));
        }
        Ok(Self {
            pointer: field.pointer.clone(),
            after: after.to_owned(),
            text,
        })
    }

    /// The number at the end of the payload's id.
    pub(crate) fn number(&self, payload: &[u8]) -> Option<u32> {
        let text = scalar_at(payload, &self.pointer)?;
        let text = text.strip_suffix(self.after.as_bytes())?;
        let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit());
        let digits = &text[text.len() - digits.count()..];
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// Returns true if the payload's id is the one that this message was given.
    pub(crate) fn is_of(
        &self,
        payload: &[u8],
        id: &MessageId,
        directory: &Directory,
        scratch: &mut BlindScratch,
    ) -> bool {
        directory.render_name(id.device, &mut scratch.name);
        scratch.text.clear();
        // Nothing that an id is made of depends on when its message was due.
        let scope = directory.scope(id, Micros(0), &scratch.name);
        self.text.render(&scope, &mut scratch.text);
        scalar_at(payload, &self.pointer) == Some(&scratch.text)
    }
}

fn refused(offset: usize, what: String) -> TemplateError {
    TemplateError {
        offset,
        what,
        hint: "fixed text, `${id}`, `${index}`, `${tenant}` or `${run}`, and then one `${seq}` \
               apart from other digits, such as ${id}-${seq}"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> BlindField {
        BlindField {
            pointer: "/id".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn an_id_that_does_not_lead_back_is_refused() {
        for (text, what) in [
            ("${id}", "no `${seq}` in an id"),
            ("${id}-${seq}-${hex:4}", "`hex` in an id"),
            ("${index}${seq}", "`${seq}` has no ends in an id"),
            ("a1${seq}", "`${seq}` has no ends in an id"),
            ("${seq}7", "`${seq}` has no ends in an id"),
            ("${seq}-${seq}", "`${seq}` has no ends in an id"),
        ] {
            let error = Blind::new(&field(text)).expect_err(text);
            assert_eq!(error.what, what, "{text}");
        }
        for text in ["${seq}", "${id}-${seq}", "m-${run}/${index:04}:${seq}.x"] {
            Blind::new(&field(text)).expect(text);
        }
    }
}
