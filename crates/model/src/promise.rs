//! The promises that acknowledgements make.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The promise that a platform's acknowledgement of a message makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// The message is stored.
    Stored,
    /// The application has processed the message.
    Processed,
    /// The message is forwarded to the application's side.
    Forwarded,
    /// The message waits in a queue of the platform.
    Enqueued,
    /// No acknowledgement, or one that promises nothing.
    Nothing,
}

impl Promise {
    /// The word used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Processed => "processed",
            Self::Forwarded => "forwarded",
            Self::Enqueued => "enqueued",
            Self::Nothing => "nothing",
        }
    }

    /// Returns true if an acknowledged message is known to have passed the platform.
    pub const fn is_of_delivery(self) -> bool {
        match self {
            Self::Stored | Self::Processed | Self::Forwarded => true,
            Self::Enqueued | Self::Nothing => false,
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
