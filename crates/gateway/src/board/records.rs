//! Entities as they are kept: one JSON document each, found by number, and by name where names are unique.

use muster_platform::board_rest::{
    Customer, Device, DeviceCredentials, DeviceProfile, Page, PageQuery, RuleChain,
    RuleChainMetadata,
};
use redb::{ReadableTable, WriteTransaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::refusal::{Answer, Refusal};
use super::serial::Serial;
use super::store::{NAMES, NUMBERS, RECORDS, TOKENS, Tables};

const LAST: &str = "last";
const ROOT: &str = "root";

/// Things on a page at the most, as many as the largest tenant of a test has.
const PAGE_MAX: u32 = 1_000_000;

/// A thing that is kept as one document.
pub(super) trait Record: Serialize + DeserializeOwned {
    const KIND: u8;
    /// True if no two have the same name.
    const HAS_UNIQUE_NAME: bool = false;

    /// Returns the name that searches look at; empty if it has none.
    fn name(&self) -> &str {
        ""
    }
}

impl Record for Device {
    const KIND: u8 = 1;
    const HAS_UNIQUE_NAME: bool = true;

    fn name(&self) -> &str {
        &self.name
    }
}

impl Record for DeviceProfile {
    const KIND: u8 = 2;
    const HAS_UNIQUE_NAME: bool = true;

    fn name(&self) -> &str {
        &self.name
    }
}

impl Record for Customer {
    const KIND: u8 = 3;
    const HAS_UNIQUE_NAME: bool = true;

    fn name(&self) -> &str {
        &self.title
    }
}

impl Record for RuleChain {
    const KIND: u8 = 4;

    fn name(&self) -> &str {
        &self.name
    }
}

/// Under the number of its chain.
impl Record for RuleChainMetadata {
    const KIND: u8 = 5;
}

/// Under the number of their device.
impl Record for DeviceCredentials {
    const KIND: u8 = 6;
}

/// Returns the tenant; none in an empty store.
pub(super) fn tenant(tables: &impl Tables) -> Answer<Option<Serial>> {
    let last = tables.table(NUMBERS)?.get(LAST)?.is_some();
    Ok(last.then_some(Serial::TENANT))
}

/// Makes the tenant.
pub(super) fn found_tenant(tables: &WriteTransaction) -> Answer<()> {
    let last = Serial::TENANT.get();
    tables.open_table(NUMBERS)?.insert(LAST, last)?;
    Ok(())
}

/// Returns the number of a new entity.
pub(super) fn next_serial(tables: &WriteTransaction) -> Answer<Serial> {
    let mut numbers = tables.open_table(NUMBERS)?;
    let last = numbers.get(LAST)?.map_or(0, |last| last.value());
    numbers.insert(LAST, last + 1)?;
    Ok(Serial::new(last + 1))
}

/// Returns the root rule chain.
pub(super) fn root_chain(tables: &impl Tables) -> Answer<Option<Serial>> {
    let numbers = tables.table(NUMBERS)?;
    let root = numbers.get(ROOT)?;
    Ok(root.map(|root| Serial::new(root.value())))
}

pub(super) fn set_root_chain(tables: &WriteTransaction, root: Serial) -> Answer<()> {
    tables.open_table(NUMBERS)?.insert(ROOT, root.get())?;
    Ok(())
}

/// Reads a record; none if it is not there.
pub(super) fn find<T: Record>(tables: &impl Tables, of: Serial) -> Answer<Option<T>> {
    let records = tables.table(RECORDS)?;
    let found = records.get((T::KIND, of.get()))?;
    let read = found.map(|found| serde_json::from_slice(found.value()));
    Ok(read.transpose()?)
}

/// Reads a record.
///
/// # Errors
/// 404 if it is not there.
pub(super) fn get<T: Record>(tables: &impl Tables, of: Serial) -> Answer<T> {
    find(tables, of)?.ok_or_else(Refusal::not_found)
}

/// Returns the number of a name; none if nothing of the kind has it.
pub(super) fn named<T: Record>(tables: &impl Tables, name: &str) -> Answer<Option<Serial>> {
    let names = tables.table(NAMES)?;
    let found = names.get((T::KIND, name))?;
    Ok(found.map(|found| Serial::new(found.value())))
}

/// Keeps a record, new or changed, and its name.
pub(super) fn put<T: Record>(tables: &WriteTransaction, of: Serial, record: &T) -> Answer<()> {
    let document = serde_json::to_vec(record)?;
    if T::HAS_UNIQUE_NAME {
        let before = find::<T>(tables, of)?;
        let mut names = tables.open_table(NAMES)?;
        if let Some(before) = before {
            names.remove((T::KIND, before.name()))?;
        }
        names.insert((T::KIND, record.name()), of.get())?;
    }
    let mut records = tables.open_table(RECORDS)?;
    records.insert((T::KIND, of.get()), document.as_slice())?;
    Ok(())
}

/// Forgets a record and its name.
///
/// # Errors
/// 404 if it is not there.
pub(super) fn remove<T: Record>(tables: &WriteTransaction, of: Serial) -> Answer<T> {
    let record = get::<T>(tables, of)?;
    tables.open_table(RECORDS)?.remove((T::KIND, of.get()))?;
    if T::HAS_UNIQUE_NAME {
        tables.open_table(NAMES)?.remove((T::KIND, record.name()))?;
    }
    Ok(record)
}

/// Number of records of a kind.
pub(super) fn count<T: Record>(tables: &impl Tables) -> Answer<u64> {
    let records = tables.table(RECORDS)?;
    let all = records.range((T::KIND, 0)..=(T::KIND, u64::MAX))?;
    Ok(all.count() as u64)
}

/// Reads a page of the records of a kind in the order of their creation; the query may name a part of the name.
pub(super) fn page<T: Record>(tables: &impl Tables, query: &PageQuery) -> Answer<Page<T>> {
    if !(1..=PAGE_MAX).contains(&query.page_size) {
        let what = format!("Incorrect page link page size '{}'.", query.page_size);
        return Err(Refusal::bad_request(&what));
    }
    let size = u64::from(query.page_size);
    let first = u64::from(query.page) * size;
    let search = query
        .text_search
        .as_deref()
        .unwrap_or_default()
        .to_lowercase();
    let mut page = Page {
        data: Vec::new(),
        total_pages: 0,
        total_elements: 0,
        has_next: false,
    };
    let records = tables.table(RECORDS)?;
    for found in records.range((T::KIND, 0)..=(T::KIND, u64::MAX))? {
        let (_, document) = found?;
        let place = page.total_elements;
        let is_on_page = (first..first + size).contains(&place);
        if search.is_empty() && !is_on_page {
            page.total_elements += 1;
            continue;
        }
        let record: T = serde_json::from_slice(document.value())?;
        if record.name().to_lowercase().contains(&search) {
            page.total_elements += 1;
            if is_on_page {
                page.data.push(record);
            }
        }
    }
    page.total_pages = page.total_elements.div_ceil(size);
    page.has_next = first + size < page.total_elements;
    Ok(page)
}

/// Returns the device of an access token.
pub(super) fn owner_of_token(tables: &impl Tables, token: &str) -> Answer<Option<Serial>> {
    let tokens = tables.table(TOKENS)?;
    let found = tokens.get(token)?;
    Ok(found.map(|found| Serial::new(found.value())))
}

/// Returns the numbers of all records of a kind.
pub(super) fn ids<T: Record>(tables: &impl Tables) -> Answer<Vec<Serial>> {
    let records = tables.table(RECORDS)?;
    let found = records.range((T::KIND, 0)..=(T::KIND, u64::MAX))?;
    let read = found.map(|found| {
        let (key, _) = found?;
        let (_, number) = key.value();
        Ok(Serial::new(number))
    });
    read.collect()
}

/// Reads all records of a kind.
pub(super) fn all<T: Record>(tables: &impl Tables) -> Answer<Vec<(Serial, T)>> {
    let records = tables.table(RECORDS)?;
    let found = records.range((T::KIND, 0)..=(T::KIND, u64::MAX))?;
    let read = found.map(|found| {
        let (key, document) = found?;
        let (_, number) = key.value();
        Ok((
            Serial::new(number),
            serde_json::from_slice(document.value())?,
        ))
    });
    read.collect()
}
