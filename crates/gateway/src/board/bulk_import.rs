//! Devices from lines of CSV.

use std::collections::BTreeSet;

use muster_platform::board_rest::{BulkColumnType, BulkImport, BulkImported, Device, DeviceInfo};

use super::devices::{self, Admission};
use super::records;
use super::refusal::{Answer, Refusal};
use super::store::Change;

/// Creates a device for each line. A line that fails is counted, and leaves nothing behind.
pub(super) fn import(
    tables: &Change,
    import: &BulkImport,
    admission: &Admission<'_>,
) -> Answer<BulkImported> {
    let columns = &import.mapping.columns;
    if !columns
        .iter()
        .any(|column| column.kind == BulkColumnType::Name)
    {
        return Err(Refusal::bad_request("Column with entity name is required!"));
    }
    let mut imported = BulkImported::default();
    let mut errors = BTreeSet::new();
    let lines = lines(&import.file, import.mapping.delimiter);
    for line in lines.skip(usize::from(import.mapping.header)) {
        let fields = columns.iter().map(|column| column.kind).zip(&line);
        match save(tables, &Line::new(fields), import.mapping.update, admission) {
            Ok(true) => imported.created += 1,
            Ok(false) => imported.updated += 1,
            Err(refusal) => {
                imported.errors += 1;
                errors.insert(refusal.0.message);
            }
        }
    }
    imported.errors_list = errors.into_iter().collect();
    Ok(imported)
}

/// Meaning of a line.
#[derive(Debug, Default)]
struct Line<'a> {
    name: &'a str,
    profile: Option<&'a str>,
    label: Option<&'a str>,
    token: Option<&'a str>,
    is_gateway: bool,
    description: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn new(fields: impl Iterator<Item = (BulkColumnType, &'a String)>) -> Self {
        let mut line = Self::default();
        for (kind, field) in fields.filter(|(_, field)| !field.is_empty()) {
            match kind {
                BulkColumnType::Name => line.name = field,
                BulkColumnType::Type => line.profile = Some(field),
                BulkColumnType::Label => line.label = Some(field),
                BulkColumnType::AccessToken => line.token = Some(field),
                BulkColumnType::IsGateway => line.is_gateway = field == "true",
                BulkColumnType::Description => line.description = Some(field),
                BulkColumnType::Other => {}
            }
        }
        line
    }
}

/// True if the device is new. One that is there counts as changed, also if it is left as it is.
fn save(
    tables: &Change,
    line: &Line<'_>,
    updates: bool,
    admission: &Admission<'_>,
) -> Answer<bool> {
    let known = records::named::<Device>(tables, line.name)?;
    let mut device = match known {
        Some(_) if !updates => return Ok(false),
        Some(id) => records::get::<Device>(tables, id)?,
        None => Device {
            name: line.name.to_owned(),
            ..Device::default()
        },
    };
    if let Some(profile) = line.profile {
        device.profile = Some(profile.to_owned());
        device.device_profile_id = None;
    }
    if let Some(label) = line.label {
        device.label = Some(label.to_owned());
    }
    if line.is_gateway || line.description.is_some() {
        let info = device
            .additional_info
            .get_or_insert_with(DeviceInfo::default);
        info.gateway |= line.is_gateway;
        let description = line
            .description
            .map(|text| ("description".to_owned(), text.into()));
        info.others.extend(description);
    }
    let admission = Admission {
        token: line.token,
        ..*admission
    };
    devices::save(tables, device, &admission)?;
    Ok(known.is_none())
}

/// The fields of each line that is not empty (RFC 4180); a quote in a quoted field stands twice.
fn lines(file: &str, delimiter: char) -> impl Iterator<Item = Vec<String>> {
    let mut rest = file.chars().peekable();
    std::iter::from_fn(move || {
        while rest.next_if(|next| matches!(next, '\n' | '\r')).is_some() {}
        rest.peek()?;
        let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
        while let Some(next) = rest.next() {
            if is_quoted && next == '"' {
                is_quoted = rest.next_if_eq(&'"').is_some();
                field.extend(is_quoted.then_some('"'));
            } else if !is_quoted && next == '"' && field.is_empty() {
                is_quoted = true;
            } else if !is_quoted && next == delimiter {
                fields.push(std::mem::take(&mut field));
            } else if !is_quoted && matches!(next, '\n' | '\r') {
                break;
            } else {
                field.push(next);
            }
        }
        fields.push(field);
        Some(fields)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_fields_with_or_without_quotes() {
        let file = "NAME,TYPE\r\n\"a, \"\"b\"\"\",c\n\n\"two\nlines\",\nlast";
        let read: Vec<Vec<String>> = lines(file, ',').collect();
        let wanted = [
            vec!["NAME", "TYPE"],
            vec!["a, \"b\"", "c"],
            vec!["two\nlines", ""],
            vec!["last"],
        ];
        assert_eq!(read, wanted);
        assert_eq!(
            lines("a;b", ';').next(),
            Some(vec!["a".to_owned(), "b".to_owned()])
        );
        assert_eq!(lines("\n\r\n", ',').count(), 0);
    }
}
