//! The rows of a CSV file whose columns are variables, one row a device.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::records::{Record, RecordError, Records};

/// The most bytes a table may hold: offsets are 32 bits, and a file beyond this is no device list.
pub const MAX_TABLE_BYTES: usize = 1 << 30;

/// A table in one piece of text: 4 bytes a cell in addition to the text.
///
/// Comma-separated values of RFC 4180, as [`Records`] reads them; the first record is the header. A fleet without a table
/// holds none of this, and a row is two words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    header: Vec<String>,
    cells: String,
    /// End of each cell in `cells`, record by record.
    ends: Vec<u32>,
    /// The rows that do not begin on the line behind that of the row before, with their lines.
    jumps: Vec<(u32, u32)>,
}

/// One record of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    table: &'a Table,
    first_cell: usize,
}

/// Reasons that a text is no table. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TableError {
    /// No header, or a header without records.
    #[error(
        "the file has no rows; its first line names the columns, each further line is a device"
    )]
    Empty,
    /// A column without a name, or two of one name.
    #[error(
        "column {column} is named `{name}`, which is empty or taken; give each column its own name"
    )]
    ColumnName {
        /// Number of the column, from 1.
        column: usize,
        /// Its name.
        name: String,
    },
    /// A record of another length than the header.
    #[error(
        "line {line} has {found} cells where the header has {wanted}; write decimals with a point, and \
         quote a cell that holds a separator"
    )]
    Cells {
        /// The line the record begins on.
        line: usize,
        /// Its cells.
        found: usize,
        /// The header's cells.
        wanted: usize,
    },
    /// A record that cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// More than [`MAX_TABLE_BYTES`].
    #[error("the file has {0} bytes; the most is {MAX_TABLE_BYTES}")]
    TooLarge(usize),
}

impl Table {
    /// Reads a table. Lines end in LF or CRLF; lines without text are passed over.
    ///
    /// # Errors
    /// [`TableError`] names the line.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        if text.len() > MAX_TABLE_BYTES {
            return Err(TableError::TooLarge(text.len()));
        }
        let mut records = Records::new(text);
        let mut table = Self {
            header: Vec::new(),
            cells: String::new(),
            ends: Vec::new(),
            jumps: Vec::new(),
        };
        let header = table.read(&mut records)?.ok_or(TableError::Empty)?;
        table.take_header(header.cells)?;
        while let Some(record) = table.read(&mut records)? {
            let (found, wanted) = (record.cells, table.header.len());
            if found != wanted {
                return Err(TableError::Cells {
                    line: record.line,
                    found,
                    wanted,
                });
            }
            table.note_line(record.line);
        }
        if table.ends.is_empty() {
            Err(TableError::Empty)
        } else {
            Ok(table)
        }
    }

    /// Keeps the line of the row that was read last, unless it follows from that of the row before.
    fn note_line(&mut self, line: usize) {
        let row = self.len() - 1;
        if self.line(row) != line {
            self.jumps.push((row as u32, line as u32));
        }
    }

    /// The line that a row begins on in the file, from 1.
    pub fn line(&self, row: usize) -> usize {
        let after = self
            .jumps
            .partition_point(|(from, _)| *from as usize <= row);
        match after.checked_sub(1).map(|at| self.jumps[at]) {
            Some((from, line)) => line as usize + row - from as usize,
            None => row + 2,
        }
    }

    /// The lines of the rows alone, for where no cell may be kept.
    pub fn without_cells(&self) -> Self {
        Self {
            header: self.header.clone(),
            cells: String::new(),
            ends: Vec::new(),
            jumps: self.jumps.clone(),
        }
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.header
    }

    /// The number of rows without the header.
    pub fn len(&self) -> usize {
        self.ends.len() / self.header.len()
    }

    /// Returns true if there is no row; a parsed table has at least one.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes that its cells take.
    pub fn memory(&self) -> usize {
        self.cells.len() + self.ends.len() * size_of::<u32>()
    }

    /// Row `index`, from 0.
    pub fn row(&self, index: usize) -> Option<Row<'_>> {
        (index < self.len()).then(|| Row {
            table: self,
            first_cell: index * self.header.len(),
        })
    }

    /// The cells of a column, row by row; none if the table has no such column.
    pub fn column(&self, column: &str) -> impl Iterator<Item = &str> {
        let cells = self.place(column).map(|place| {
            let cells = (place..self.ends.len()).step_by(self.header.len());
            cells.map(|cell| self.cell(cell))
        });
        cells.into_iter().flatten()
    }

    /// The least and greatest length of the cells of a column, as `length` measures them.
    pub fn lengths(&self, column: &str, length: impl Fn(&str) -> usize) -> Option<(usize, usize)> {
        let lengths = self.column(column).map(length);
        lengths.fold(None, |bounds: Option<(usize, usize)>, length| {
            let (least, most) = bounds.unwrap_or((length, length));
            Some((least.min(length), most.max(length)))
        })
    }

    fn place(&self, column: &str) -> Option<usize> {
        self.header.iter().position(|name| name == column)
    }

    fn cell(&self, cell: usize) -> &str {
        let start = cell
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize);
        &self.cells[start..self.ends[cell] as usize]
    }

    /// Appends the cells of the next record.
    fn read(&mut self, records: &mut Records<'_>) -> Result<Option<Record>, RecordError> {
        records.next(|cell| {
            self.cells.push_str(cell);
            self.ends.push(self.cells.len() as u32);
        })
    }

    /// Makes the cells read so far the names of the columns.
    fn take_header(&mut self, cells: usize) -> Result<(), TableError> {
        for cell in 0..cells {
            let name = self.cell(cell).trim().to_owned();
            if name.is_empty() || self.header.contains(&name) {
                return Err(TableError::ColumnName {
                    column: cell + 1,
                    name,
                });
            }
            self.header.push(name);
        }
        self.cells.clear();
        self.ends.clear();
        Ok(())
    }
}

impl<'a> Row<'a> {
    /// The cell of a column; none if the table has no such column.
    pub fn get(&self, column: &str) -> Option<&'a str> {
        self.table
            .place(column)
            .map(|place| self.table.cell(self.first_cell + place))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Result<&[(&str, &str)], TableError>) {
        let table = Table::parse(text);
        match expected {
            Err(error) => assert_eq!(table, Err(error), "{text:?}"),
            Ok(cells) => {
                let table = table.unwrap();
                let row = table.row(table.len() - 1).unwrap();
                for (column, cell) in cells {
                    assert_eq!(row.get(column), Some(*cell), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn cells_are_read_as_rfc_4180_says() {
        check("a,b\n1,2\n", Ok(&[("a", "1"), ("b", "2")]));
        check("a,b\r\n1,\r\n", Ok(&[("a", "1"), ("b", "")]));
        check("a,b\n\n1,2\r", Ok(&[("b", "2")]));
        check(
            "a,b\n\"x, \"\"y\"\"\n\",z",
            Ok(&[("a", "x, \"y\"\n"), ("b", "z")]),
        );
        check("\u{feff}a\n7", Ok(&[("a", "7")]));
    }

    #[test]
    fn a_broken_file_is_refused_by_line() {
        check("", Err(TableError::Empty));
        check("a,b\n", Err(TableError::Empty));
        check(
            "a,a\n1,2",
            Err(TableError::ColumnName {
                column: 2,
                name: "a".into(),
            }),
        );
        check(
            "a,\n1,2",
            Err(TableError::ColumnName {
                column: 2,
                name: String::new(),
            }),
        );
        check(
            "a,b\n1,2\n3\n",
            Err(TableError::Cells {
                line: 3,
                found: 1,
                wanted: 2,
            }),
        );
        check(
            "a\n\"1\n\n",
            Err(TableError::Record(RecordError::Quote { line: 2 })),
        );
        check(
            "a;b\n1,5;2\n3;1;5\n",
            Err(TableError::Cells {
                line: 3,
                found: 3,
                wanted: 2,
            }),
        );
        check(
            "a,b\n\"x\ny\",1\n3\n",
            Err(TableError::Cells {
                line: 4,
                found: 1,
                wanted: 2,
            }),
        );
    }

    #[test]
    fn a_row_has_a_line() {
        let text = "a,b\n\n1,\"x\ny\"\n2,z\n";
        let table = Table::parse(text).unwrap();
        assert_eq!([0, 1].map(|row| table.line(row)), [3, 5]);
        let table = Table::parse("a\n1\n2\n\n3\n4\n").unwrap();
        assert_eq!([0, 1, 2, 3].map(|row| table.line(row)), [2, 3, 5, 6]);
        let table = table.without_cells();
        assert_eq!([0, 1, 2, 3].map(|row| table.line(row)), [2, 3, 5, 6]);
        assert_eq!(table.row(0), None);
    }

    #[test]
    fn lengths_are_those_of_one_column() {
        let table = Table::parse("a,b\n1,22\n333,\n").unwrap();
        assert_eq!(table.lengths("a", str::len), Some((1, 3)));
        assert_eq!(table.lengths("b", str::len), Some((0, 2)));
        assert_eq!(table.lengths("c", str::len), None);
        assert!(table.row(2).is_none());
    }

    proptest! {
        /// Quoted text of any kind reads back as itself.
        #[test]
        fn quoted_cells_read_back(cells in prop::collection::vec("\\PC*|[,\"\r\n]*", 3)) {
            let quote = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
            let record: Vec<_> = cells.iter().map(quote).collect();
            let table = Table::parse(&format!("x,y,z\r\n{}\r\n", record.join(","))).unwrap();
            for (column, cell) in ["x", "y", "z"].iter().zip(&cells) {
                prop_assert_eq!(table.row(0).unwrap().get(column), Some(cell.as_str()));
            }
        }

        /// No text makes the parser panic.
        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = Table::parse(&text);
        }
    }
}
