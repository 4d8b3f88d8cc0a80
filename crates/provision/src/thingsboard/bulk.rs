//! Creation of many devices by one call, and one look at many.

use std::collections::{BTreeMap, BTreeSet};

use muster_platform::board_rest::{
    BulkColumn, BulkColumnType, BulkImport, BulkImported, BulkMapping, Device, IMPORT_DEVICES,
    LIST_DEVICES, PageQuery,
};

use super::creation::{Creation, description, is_marked};
use super::failures::refused;
use super::records::Record;
use super::session::{Asked, read};
use super::{DEVICE, ThingsBoard, id_of};
use crate::journal::Did;
use crate::{ProvisionError, Watch};

/// Devices on a page of a list.
const PAGE: u32 = 1_000;
/// Pages that are read for one look; in a larger tenant the rest is looked for one by one.
const PAGES_MAX: u32 = 4;
/// The columns of a file.
const COLUMNS: [BulkColumnType; 5] = [
    BulkColumnType::Name,
    BulkColumnType::Type,
    BulkColumnType::AccessToken,
    BulkColumnType::IsGateway,
    BulkColumnType::Description,
];

/// Groups of at most `size` things.
pub(super) fn chunks<T>(
    mut things: impl Iterator<Item = T> + Send,
    size: usize,
) -> impl Iterator<Item = Vec<T>> + Send {
    std::iter::from_fn(move || {
        let chunk: Vec<T> = things.by_ref().take(size).collect();
        (!chunk.is_empty()).then_some(chunk)
    })
}

impl Creation<'_> {
    /// Creates those devices of a group that are missing, by one call. An import changes devices that are there,
    /// so that it gets none of those; it makes a token for a device that has none, so that these are created one
    /// by one.
    pub(super) fn import(&self, chunk: Vec<Record>) -> Result<(), ProvisionError> {
        let found = self.board.find_all(&chunk, self.work.watch)?;
        let mut missing = Vec::new();
        for record in chunk {
            match found.get(&record.name) {
                Some(device) => {
                    let is_ours = self.take(&record, device)?;
                    self.done(is_ours);
                }
                None if record.token.is_none() => self.ensure(&record)?,
                None => missing.push(record),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        self.import_missing(&missing)
    }

    fn import_missing(&self, records: &[Record]) -> Result<(), ProvisionError> {
        let names = || records.iter().map(|record| record.name.as_str());
        let marker = Some(self.marker.as_str());
        let marked = names().map(|name| (name, marker));
        self.journal.note_all(Did::Creating, DEVICE, marked)?;
        let import = BulkImport {
            file: self.file(records),
            mapping: mapping(),
        };
        let session = &self.board.session;
        let answer = session.answer(&IMPORT_DEVICES, &Asked::body(import), self.work.watch)?;
        if !answer.is_yes() {
            if answer.status < 500 {
                let none = names().map(|name| (name, None));
                self.journal.note_all(Did::Refused, DEVICE, none)?;
            }
            return Err(refused(&answer));
        }
        let imported: BulkImported = read(&answer)?;
        // The answer has no ids.
        let found = self.board.find_all(records, self.work.watch)?;
        for record in records {
            let device = found.get(&record.name);
            let ours = device.filter(|device| is_marked(device, &self.marker));
            let Some(device) = ours else {
                self.journal.refused(DEVICE, &record.name)?;
                continue;
            };
            let id = id_of(device.id.as_ref(), IMPORT_DEVICES.route())?;
            self.own(record, &id)?;
            self.done(true);
        }
        if imported.errors == 0 {
            return Ok(());
        }
        Err(ProvisionError::Import {
            call: answer.call,
            errors: imported.errors,
            of: records.len(),
            reasons: imported.errors_list.join("; "),
        })
    }

    fn file(&self, records: &[Record]) -> String {
        let profile = self.board.profile();
        let description = description(&self.marker);
        let mut file = String::new();
        for record in records {
            let token = record.token.as_ref().map_or("", |token| token.expose());
            let gateway = if record.is_gateway { "true" } else { "false" };
            let cells = [&record.name, profile, token, gateway, &description];
            file.push_str(&cells.map(cell).join(","));
            file.push('\n');
        }
        file
    }
}

impl ThingsBoard {
    /// The devices of a group that exist, by name.
    pub(super) fn find_all(
        &self,
        records: &[Record],
        watch: &dyn Watch,
    ) -> Result<BTreeMap<String, Device>, ProvisionError> {
        let mut wanted: BTreeSet<&str> = records.iter().map(|it| it.name.as_str()).collect();
        let search = shared_beginning(records);
        let mut found = BTreeMap::new();
        for page in 0..PAGES_MAX {
            let query = PageQuery {
                page_size: PAGE,
                page,
                text_search: Some(search.to_owned()),
            };
            let page = self
                .session
                .call(&LIST_DEVICES, &Asked::query(query), watch)?;
            for device in page.data {
                if wanted.remove(device.name.as_str()) {
                    found.insert(device.name.clone(), device);
                }
            }
            if wanted.is_empty() || !page.has_next {
                return Ok(found);
            }
        }
        for name in wanted {
            if let Some(device) = self.find_device(name, watch)? {
                found.insert(name.to_owned(), device);
            }
        }
        Ok(found)
    }
}

fn mapping() -> BulkMapping {
    let column = |kind| BulkColumn { kind, key: None };
    BulkMapping {
        columns: COLUMNS.map(column).to_vec(),
        delimiter: ',',
        update: false,
        header: false,
    }
}

/// A cell of CSV (RFC 4180 section 2).
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

/// The beginning that all names share.
fn shared_beginning(records: &[Record]) -> &str {
    let mut names = records.iter().map(|record| record.name.as_str());
    let first = names.next().unwrap_or_default();
    names.fold(first, |shared, name| {
        let pairs = shared.char_indices().zip(name.chars());
        let end = pairs.take_while(|((_, a), b)| a == b).last();
        let end = end.map_or(0, |((at, letter), _)| at + letter.len_utf8());
        &shared[..end]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str) -> Record {
        Record {
            place: 0,
            device: None,
            name: name.to_owned(),
            token: None,
            is_gateway: false,
        }
    }

    #[test]
    fn a_search_is_by_what_all_names_share() {
        let shared = |names: &[&str]| {
            let records: Vec<_> = names.iter().map(|name| record(name)).collect();
            shared_beginning(&records).to_owned()
        };
        assert_eq!(shared(&["DW0001", "DW0002", "DW0010"]), "DW00");
        assert_eq!(shared(&["a"]), "a");
        assert_eq!(shared(&["\u{e9}a", "\u{e9}b"]), "\u{e9}");
        assert_eq!(shared(&["a", "b"]), "");
    }

    #[test]
    fn a_cell_with_marks_of_the_file_is_quoted() {
        let cells = ["a b", "a,b", "a\"b"].map(cell);
        assert_eq!(cells, ["a b", "\"a,b\"", "\"a\"\"b\""]);
    }

    #[test]
    fn groups_hold_all_records_in_their_order() {
        let records = ["a", "b", "c"].map(record).into_iter();
        let groups = chunks(records, 2).map(|chunk| {
            let names = chunk.iter().map(|record| record.name.clone());
            names.collect::<Vec<_>>().join("")
        });
        assert_eq!(groups.collect::<Vec<_>>(), ["ab", "c"]);
    }
}
