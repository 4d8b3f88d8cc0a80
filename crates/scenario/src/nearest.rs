//! The word that was probably meant.

/// The candidate nearest to a word, if it is near enough to be a slip: at most a third of the
/// letters wrong.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let plain = normal(word);
    let distances = candidates
        .into_iter()
        .map(|other| (distance(&plain, &normal(other)), other));
    let (slips, other) = distances.min_by_key(|(slips, _)| *slips)?;
    let bound = plain.len().max(other.len()).div_ceil(3);
    (slips <= bound && slips < other.len()).then_some(other)
}

/// The word without what people mix up on purpose: case, `_` for `-`.
fn normal(word: &str) -> Vec<char> {
    word.chars()
        .map(|c| {
            if c == '_' {
                '-'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .take(64)
        .collect()
}

/// Letters to insert, remove, replace or swap with their neighbour (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

/// The word of this language for one that other MQTT clients use (Paho's schemes).
pub(crate) fn synonym(text: &str) -> Option<&'static str> {
    match text {
        "tcp" => Some("mqtt"),
        "ssl" | "tls" => Some("mqtts"),
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
