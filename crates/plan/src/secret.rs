//! A value that is used but never shown.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Text in place of a secret wherever people can read it.
pub const MASK: &str = "***";

/// A password or the like, resolved from the environment, a file or the scenario.
///
/// `Debug` prints a mask. Human-readable formats (JSON) receive the mask too; only the binary form
/// that carries a plan to a worker process holds the value itself.
#[derive(Clone, PartialEq)]
pub struct Secret<T = String>(T);

impl<T> Secret<T> {
    /// Hides a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value, for the one place that puts it on the wire.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl<T: Serialize> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.serialize_str(MASK)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_only_its_mask() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
    }

    #[test]
    fn a_secret_reaches_a_worker_process() {
        let secret = Secret::new("hunter2".to_owned());
        let bytes = postcard::to_stdvec(&secret).unwrap();
        let back: Secret = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(back.expose(), "hunter2");
    }
}
