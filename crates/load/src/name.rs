//! Device names that are computed from an index and lead back to it, so that none is stored.

use serde::{Deserialize, Serialize};

use crate::template::{Template, TemplateError, escaped_length, push_padded};

/// The name of each device of a fleet, such as `meter-${index:08}`.
///
/// Exactly one variable, the index, between fixed texts: so every name leads back to its index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NameTemplate {
    source: String,
    prefix: String,
    suffix: String,
    width: u8,
}

impl NameTemplate {
    /// Reads a name template.
    ///
    /// # Errors
    /// [`TemplateError`] if it is no template, or one that cannot be inverted.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let (prefix, width, suffix) = Template::parse(source)?.around_index()?;
        Ok(Self {
            source: source.to_owned(),
            prefix,
            suffix,
            width,
        })
    }

    /// The text it was read from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Appends the name of device `index`.
    pub fn render(&self, index: u32, out: &mut String) {
        out.push_str(&self.prefix);
        // The digits are ASCII, so the bytes appended are text.
        let mut digits = [0; 20];
        out.push_str(push_padded(u64::from(index), self.width, &mut digits));
        out.push_str(&self.suffix);
    }

    /// The index of the device of that name; none if no device has it.
    pub fn index_of(&self, name: &str) -> Option<u32> {
        let digits = name
            .strip_prefix(self.prefix.as_str())?
            .strip_suffix(self.suffix.as_str())?;
        let is_padded = digits.len() <= usize::from(self.width.max(1));
        let is_canonical = digits.len() == usize::from(self.width.max(1))
            || (!is_padded && !digits.starts_with('0'));
        if !is_canonical || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        digits.parse().ok()
    }

    /// Returns false if the fixed texts show that the two templates share no name.
    pub fn may_meet(&self, other: &Self) -> bool {
        let begin = |one: &Self, other: &Self| one.prefix.starts_with(&other.prefix);
        let end = |one: &Self, other: &Self| one.suffix.ends_with(&other.suffix);
        (begin(self, other) || begin(other, self)) && (end(self, other) || end(other, self))
    }

    /// Bytes that a name is longer in a string of JSON.
    pub(crate) fn json_escapes(&self) -> usize {
        let longer = |text: &str| escaped_length(text.as_bytes()) - text.len();
        longer(&self.prefix) + longer(&self.suffix)
    }

    /// The least and greatest length of the names of `first..=last`, in bytes.
    pub fn lengths(&self, first: u32, last: u32) -> (usize, usize) {
        let fixed = self.prefix.len() + self.suffix.len();
        let digits = |index: u32| {
            (index.checked_ilog10().unwrap_or(0) as usize + 1).max(usize::from(self.width))
        };
        (fixed + digits(first), fixed + digits(last))
    }
}

impl TryFrom<String> for NameTemplate {
    type Error = TemplateError;
    fn try_from(source: String) -> Result<Self, TemplateError> {
        Self::parse(&source)
    }
}

impl From<NameTemplate> for String {
    fn from(template: NameTemplate) -> Self {
        template.source
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(template: &NameTemplate, index: u32) -> String {
        let mut out = String::new();
        template.render(index, &mut out);
        out
    }

    proptest! {
        /// index_of(render(i)) = i, and its length lies within the bounds.
        #[test]
        fn names_invert(
            prefix in "[a-z0-9/-]{0,6}", suffix in "[a-z0-9/-]{0,6}",
            width in prop::option::of(1u8..12), index: u32,
        ) {
            let variable = width.map_or("${index}".into(), |width| format!("${{index:0{width}}}"));
            let template = NameTemplate::parse(&format!("{prefix}{variable}{suffix}")).unwrap();
            let name = name(&template, index);
            prop_assert_eq!(template.index_of(&name), Some(index));
            prop_assert_eq!(template.lengths(index, index), (name.len(), name.len()));
        }

        /// Law: a text with an index is the name of that index, so that no two names lead to one
        /// device.
        #[test]
        fn only_names_have_an_index(text in "m-[0-9]{0,10}x?|\\PC*") {
            for source in ["m-${index:03}", "m-${index}", "m-${index:01}x"] {
                let template = NameTemplate::parse(source).unwrap();
                if let Some(index) = template.index_of(&text) {
                    prop_assert_eq!(name(&template, index), text.clone());
                }
            }
        }
    }

    #[test]
    fn a_name_is_the_padded_index_between_its_texts() {
        let template = NameTemplate::parse("meter-${index:08}.eu").unwrap();
        assert_eq!(name(&template, 42), "meter-00000042.eu");
        assert_eq!(template.index_of("meter-00000042.eu"), Some(42));
        for foreign in [
            "meter-42.eu",
            "meter-00000042",
            "meter-0000004x.eu",
            "meter-000000042.eu",
        ] {
            assert_eq!(template.index_of(foreign), None, "{foreign}");
        }
        assert_eq!(template.lengths(0, 4_000_000_000), (17, 19));
    }

    #[test]
    fn a_template_that_cannot_be_inverted_is_refused() {
        for (source, offset) in [
            ("meter", 0),
            ("a-${index}-${index}", 11),
            ("${tenant}-${index}", 0),
            ("${hex:4}", 0),
        ] {
            let error = NameTemplate::parse(source).unwrap_err();
            assert_eq!(error.offset, offset, "{source}: {error}");
            assert!(error.hint.contains("${index}"), "{error}");
        }
    }

    #[test]
    fn a_name_template_travels_as_its_text() {
        let template = NameTemplate::parse("m-${index}").unwrap();
        let text = serde_json::to_string(&template).unwrap();
        assert_eq!(text, "\"m-${index}\"");
        assert_eq!(
            serde_json::from_str::<NameTemplate>(&text).unwrap(),
            template
        );
        assert!(serde_json::from_str::<NameTemplate>("\"m\"").is_err());
    }
}
