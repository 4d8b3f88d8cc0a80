//! The word that was probably meant.

use strsim::osa_distance;

/// The candidate nearest to a word, if it is near enough to be a slip: at most a third of the
/// letters wrong.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = normal(word);
    let distances = candidates
        .into_iter()
        .map(|other| (osa_distance(&plain, &normal(other)), other));
    let (slips, other) = distances.min_by_key(|(slips, _)| *slips)?;
    let bound = plain.chars().count().max(other.len()).div_ceil(3);
    (slips <= bound && slips < other.len()).then_some(other)
}

/// The word without what people mix up on purpose: case, `_` for `-`.
fn normal(word: &str) -> String {
    let letters = word.chars().take(64);
    let plain = letters.map(|c| {
        if c == '_' {
            '-'
        } else {
            c.to_ascii_lowercase()
        }
    });
    plain.collect()
}

/// The word of this language for one that other MQTT clients use (Paho's schemes).
pub(crate) fn synonym(text: &str) -> Option<&'static str> {
    match text {
        "tcp" => Some("mqtt"),
        "ssl" | "tls" => Some("mqtts"),
        _ => None,
    }
}

/// Our name for a key that other tools call so.
pub(crate) fn foreign_name(key: &str) -> Option<&'static str> {
    match key {
        "password" | "psk" => Some("secret"),
        "username" | "identity" => Some("user"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word() {
        let words = [
            "count",
            "connect",
            "client",
            "credential",
            "streams",
            "keep-alive",
        ];
        for (slip, word) in [
            ("cuont", "count"),
            ("conect", "connect"),
            ("stream", "streams"),
            ("keep_alive", "keep-alive"),
            ("keepalive", "keep-alive"),
            ("Client", "client"),
        ] {
            assert_eq!(nearest(slip, words), Some(word));
        }
        assert_eq!(nearest("banana", words), None);
        assert_eq!(nearest("x", ["a"]), None);
    }
}
