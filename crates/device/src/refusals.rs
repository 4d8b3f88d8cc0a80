//! What the application says for people when it rejects a message.

/// Codes of which the first text is kept: more than a platform has for one kind of message.
const CODES_MAX: usize = 16;
/// Bytes of a text that are kept.
const TEXT_MAX: usize = 200;

/// The first text of each code.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    codes: Vec<u16>,
    untold: Vec<String>,
}

impl Refusals {
    /// A message was rejected; `text` is what was said, as it stands.
    pub(crate) fn note(&mut self, code: u16, text: &[u8]) {
        if self.codes.contains(&code) || self.codes.len() == CODES_MAX {
            return;
        }
        self.codes.push(code);
        let text = String::from_utf8_lossy(&text[..text.len().min(TEXT_MAX)]);
        self.untold.push(format!("code {code}: {text}"));
    }

    /// What was noted since the last call.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_text_of_each_code_is_told_once() {
        let mut refusals = Refusals::default();
        refusals.note(404, b"[\"no such sensor\"]");
        refusals.note(404, b"[\"another\"]");
        refusals.note(500, &[0xff; 1_000]);
        let told = refusals.take();
        assert_eq!(told[0], "code 404: [\"no such sensor\"]");
        assert!(told[1].starts_with("code 500: ") && told[1].len() < 1_000);
        refusals.note(404, b"x");
        assert!(refusals.take().is_empty());
        (0..100).for_each(|code| refusals.note(code, b""));
        assert_eq!(refusals.take().len(), CODES_MAX - 2);
    }
}
