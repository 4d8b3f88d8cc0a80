//! Records of comma-separated values (RFC 4180), with the line of each.

use thiserror::Error;

/// Characters that may stand between cells; the first line of a file shows which one does.
const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// Reads a text record by record. Cells are given without the blanks around them, and without their
/// quotes; lines without text are passed over.
#[derive(Debug)]
pub struct Records<'a> {
    rest: &'a str,
    line: usize,
    separator: char,
    cell: String,
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The line it begins on, from 1.
    pub line: usize,
    /// Its cells.
    pub cells: usize,
}

/// A reason why a text has no further record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A quoted cell that does not end, or goes on after its closing quote.
    #[error("line {line} has a quoted cell that is not closed, or goes on after its closing quote")]
    Quote {
        /// The line the record begins on.
        line: usize,
    },
    /// A carriage return within a cell without quotes.
    #[error("line {line} has a carriage return that ends no line; save the file with LF or CRLF")]
    CarriageReturn {
        /// The line the record begins on.
        line: usize,
    },
}

impl<'a> Records<'a> {
    /// The records of a text. The first of comma, semicolon and tab that its first line has between
    /// cells stands between all.
    pub fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let first = text.lines().find(|line| !line.trim().is_empty());
        let unquoted = || first.unwrap_or_default().split('"').step_by(2);
        let has = |separator: &&char| unquoted().any(|part| part.contains(**separator));
        Self {
            rest: text,
            line: 1,
            separator: SEPARATORS.iter().find(has).copied().unwrap_or(','),
            cell: String::new(),
        }
    }

    /// The character between cells.
    pub fn separator(&self) -> char {
        self.separator
    }

    /// Gives the cells of the next record to `take`, in order.
    ///
    /// # Errors
    /// [`RecordError`] names the line.
    pub fn next(&mut self, mut take: impl FnMut(&str)) -> Result<Option<Record>, RecordError> {
        self.skip_blank_lines();
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut record = Record {
            line: self.line,
            cells: 0,
        };
        loop {
            self.cell(record.line)?;
            take(&self.cell);
            record.cells += 1;
            match self.rest.strip_prefix(self.separator) {
                Some(rest) => self.rest = rest,
                None => return Ok(Some(record)),
            }
        }
    }

    fn skip_blank_lines(&mut self) {
        while let Some((line, rest)) = self.rest.split_once('\n') {
            if !self.is_blank(line) {
                return;
            }
            self.rest = rest;
            self.line += 1;
        }
        if self.is_blank(self.rest) {
            self.rest = "";
        }
    }

    /// Returns true for a line without text; a tab that separates cells is text.
    fn is_blank(&self, line: &str) -> bool {
        line.chars()
            .all(|c| c.is_whitespace() && c != self.separator)
    }

    /// Reads one cell and stops at its separator or behind its line end.
    fn cell(&mut self, line: usize) -> Result<(), RecordError> {
        self.cell.clear();
        let blank = |c: char| c.is_whitespace() && c != '\n' && c != self.separator;
        let begun = self.rest.trim_start_matches(blank);
        if let Some(quoted) = begun.strip_prefix('"') {
            return self.quoted(quoted, line);
        }
        let end = self
            .rest
            .find([self.separator, '\n'])
            .unwrap_or(self.rest.len());
        let cell = self.rest[..end].trim();
        if cell.contains('\r') {
            return Err(RecordError::CarriageReturn { line });
        }
        self.cell.push_str(cell);
        self.rest = &self.rest[end..];
        Ok(())
    }

    /// The same, behind its opening quote.
    fn quoted(&mut self, mut quoted: &'a str, line: usize) -> Result<(), RecordError> {
        loop {
            let (text, rest) = quoted.split_once('"').ok_or(RecordError::Quote { line })?;
            self.cell.push_str(text);
            self.line += text.matches('\n').count();
            let Some(more) = rest.strip_prefix('"') else {
                self.rest = rest;
                break;
            };
            self.cell.push('"');
            quoted = more;
        }
        let separator = self.separator;
        let end = self.rest.find([separator, '\n']).unwrap_or(self.rest.len());
        if !self.rest[..end].trim().is_empty() {
            return Err(RecordError::Quote { line });
        }
        self.rest = &self.rest[end..];
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<(usize, Vec<String>)>, RecordError> {
        let mut records = Records::new(text);
        let mut all = Vec::new();
        loop {
            let mut cells = Vec::new();
            match records.next(|cell| cells.push(cell.to_owned()))? {
                Some(record) => {
                    assert_eq!(record.cells, cells.len());
                    all.push((record.line, cells));
                }
                None => return Ok(all),
            }
        }
    }

    /// The right cells of one table, however it is written.
    #[test]
    fn cells_are_the_same_however_they_are_written() {
        for text in [
            "dev,user\nd1,u1\nd2,u2\n",
            "\u{feff}dev,user\r\nd1,u1\r\nd2,u2\r\n",
            "dev , user\n d1,\tu1 \nd2,u2",
            "dev;user\nd1;u1\nd2;u2",
            "dev\tuser\nd1\tu1\nd2 \t u2\r",
            "\"dev\", \"user\" \n\"d1\" ,u1\n\n  \nd2,u2\n\n",
        ] {
            let cells: Vec<_> = all(text)
                .unwrap()
                .into_iter()
                .map(|(_, cells)| cells)
                .collect();
            assert_eq!(
                cells,
                [["dev", "user"], ["d1", "u1"], ["d2", "u2"]],
                "{text:?}"
            );
        }
    }

    #[test]
    fn quotes_keep_blanks_separators_and_lines() {
        let text = "a;b\n\" x; \"\"y\"\"\n\";1,5\nlast;\n";
        let expected = [
            (1, vec!["a", "b"]),
            (2, vec![" x; \"y\"\n", "1,5"]),
            (4, vec!["last", ""]),
        ];
        let expected =
            expected.map(|(line, cells)| (line, cells.into_iter().map(str::to_owned).collect()));
        assert_eq!(all(text), Ok(Vec::from(expected)));
    }

    #[test]
    fn what_is_no_record_is_refused_by_line() {
        assert_eq!(all("a\n\"1\n\n"), Err(RecordError::Quote { line: 2 }));
        assert_eq!(all("a\n\"1\"2"), Err(RecordError::Quote { line: 2 }));
        assert_eq!(all("a\rb\r"), Err(RecordError::CarriageReturn { line: 1 }));
    }
}
