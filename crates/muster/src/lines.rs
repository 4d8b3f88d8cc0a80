//! Files that have one thing a line: users, devices, keys.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use muster_load::{Lines, text};

/// The lines of a file that have text and are no comment (`#`), each with its number from 1 and without
/// blanks around it.
pub(crate) fn read(path: &Path) -> Result<Vec<(usize, String)>> {
    let file = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("read {file}"))?;
    parse(&file.to_string(), &bytes)
}

/// The same of the bytes of a file.
pub(crate) fn parse(file: &str, bytes: &[u8]) -> Result<Vec<(usize, String)>> {
    let text = text(bytes).map_err(|error| anyhow!("{file}: {error}"))?;
    let mut lines = Vec::new();
    for (number, line) in Lines::new(text) {
        let line = line.map_err(|error| anyhow!("{file}: {error}"))?.trim();
        if !line.is_empty() && !line.starts_with('#') {
            lines.push((number, line.to_owned()));
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_however_a_file_is_written() {
        let expected = [(2, "a:1".to_owned()), (4, "b:2".to_owned())];
        for file in [
            "# who\na:1\n\nb:2\n",
            "\u{feff}# who\r\na:1\r\n\r\nb:2\r\n",
            " # who\n\ta:1 \n  \nb:2",
            "# who\r\na:1\r\n\r\nb:2\r",
        ] {
            let lines = parse("users", file.as_bytes()).expect("it is text");
            assert_eq!(lines, expected, "{file:?}");
        }
        let error = parse("users", b"a:1\nb\xe9:2\n").expect_err("it is no text");
        assert_eq!(
            error.to_string(),
            "users: line 2 is no UTF-8 text; save the file as UTF-8"
        );
    }
}
