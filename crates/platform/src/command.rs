//! A command on its way to a device, and the reply on its way back.

use muster_model::{STAMP_TEXT, Stamp};

/// Payload bytes of a command that Muster issues, where the id does not travel in them.
pub const COMMAND_BYTES: usize = 64;
/// Payload bytes of a reply.
pub const REPLY_BYTES: usize = 16;

/// What a command or reply is filled with: text, so that people can read it on the wire.
const FILL: &[u8] = b"muster ";

/// A copy of a command or of a reply, as its dialect reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandCopy {
    /// Which command, and when it was issued; none if the check does not hold, so that the id is
    /// not to be believed.
    pub stamp: Option<Stamp>,
}

/// Where a command or a reply is rendered, used again for every one of them.
#[derive(Debug, Default)]
pub struct CommandScratch {
    /// The topic.
    pub topic: String,
    /// The payload.
    pub payload: Vec<u8>,
}

impl CommandCopy {
    /// Reads the text of an id whose check covers `covered`.
    pub(crate) fn read(text: &[u8], covered: &[u8]) -> Self {
        let text: Option<&[u8; STAMP_TEXT]> = text.try_into().ok();
        let stamp = text.and_then(|text| Stamp::decode_text(text, &[covered]).ok());
        Self { stamp }
    }
}

impl CommandScratch {
    /// Fills the payload with so many bytes of text.
    pub(crate) fn fill(&mut self, bytes: usize) {
        self.payload.clear();
        self.payload
            .extend(FILL.iter().copied().cycle().take(bytes));
    }

    /// Puts the parts of a topic together; `id` stands in it as text whose check covers the payload.
    pub(crate) fn address(&mut self, before: [&str; 3], id: &Stamp, after: &str) {
        let text = id.encode_text(&[&self.payload]);
        self.topic.clear();
        self.topic.extend(before);
        // The characters of base64url are text.
        self.topic
            .push_str(std::str::from_utf8(&text).unwrap_or_default());
        self.topic.push_str(after);
    }
}
