//! The database of the store: its tables, and transactions on them.
//!
//! `redb` is pure Rust, holds no log that grows, and keeps what a transaction committed through the end of the
//! process, whenever that comes.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::path::Path;

use muster_platform::board_rest::Device;
use redb::backends::InMemoryBackend;
use redb::{
    Database, DatabaseError, Key, ReadTransaction, ReadableDatabase, ReadableTable,
    TableDefinition, TableError, Value, WriteTransaction,
};

use super::owners::{Owners, TokenOwner};
use super::records;
use super::refusal::Answer;
use super::serial::Serial;

type Definition<K, V> = TableDefinition<'static, K, V>;

/// Entity, key and instant of a point.
pub(super) type SeriesKey = (u64, &'static str, i64);

/// Numbers of the store itself, by name.
pub(super) const NUMBERS: Definition<&str, u64> = TableDefinition::new("numbers");
/// Secrets of the store itself, by name.
pub(super) const SECRETS: Definition<&str, &[u8]> = TableDefinition::new("secrets");
/// Entities as JSON, by kind and number.
pub(super) const RECORDS: Definition<(u8, u64), &[u8]> = TableDefinition::new("records");
/// Numbers of entities by kind and name, where names are unique.
pub(super) const NAMES: Definition<(u8, &str), u64> = TableDefinition::new("names");
/// Devices by access token.
pub(super) const TOKENS: Definition<&str, u64> = TableDefinition::new("tokens");
/// Attributes as JSON by entity, scope and key.
pub(super) const ATTRIBUTES: Definition<(u64, u8, &str), (i64, &[u8])> =
    TableDefinition::new("attributes");
/// Values as JSON by entity, key and instant in milliseconds.
pub(super) const SERIES: Definition<SeriesKey, &[u8]> = TableDefinition::new("series");
/// Sessions that were ended, with the second in which their last token expires.
pub(super) const LOGOUTS: Definition<&str, u64> = TableDefinition::new("logouts");

/// A database in memory or in a file.
pub(super) struct Store {
    database: Database,
    owners: Owners,
}

impl Store {
    /// Opens the database of a file, or one in memory; all tables are there.
    ///
    /// # Errors
    /// The reason for which the file cannot be used.
    pub(super) fn open(file: Option<&Path>) -> Result<Self, String> {
        let database = match file {
            Some(file) => Database::create(file),
            None => Database::builder().create_with_backend(InMemoryBackend::new()),
        };
        let store = Self {
            database: database.map_err(|error: DatabaseError| error.to_string())?,
            owners: Owners::default(),
        };
        let made = store.write(|tables| {
            tables.open_table(NUMBERS)?;
            tables.open_table(SECRETS)?;
            tables.open_table(RECORDS)?;
            tables.open_table(NAMES)?;
            tables.open_table(TOKENS)?;
            tables.open_table(ATTRIBUTES)?;
            tables.open_table(SERIES)?;
            tables.open_table(LOGOUTS)?;
            Ok(())
        });
        let devices = made.and_then(|()| records::ids::<Device>(&store.read()?));
        devices
            .and_then(|devices| store.owners.refresh(&devices, || store.read()))
            .map_err(|refusal| refusal.to_string())?;
        Ok(store)
    }

    /// Begins to read: what is committed now, whatever is written meanwhile.
    pub(super) fn read(&self) -> Answer<ReadTransaction> {
        Ok(self.database.begin_read()?)
    }

    /// Makes a change that is durable when this returns; after a refusal nothing of it is kept.
    pub(super) fn write<T>(&self, make: impl FnOnce(&Change) -> Answer<T>) -> Answer<T> {
        let change = Change {
            tables: self.database.begin_write()?,
            devices: RefCell::default(),
        };
        let answer = make(&change)?;
        let Change { tables, devices } = change;
        tables.commit()?;
        let devices = devices.into_inner();
        if !devices.is_empty() {
            self.owners.refresh(&devices, || self.read())?;
        }
        Ok(answer)
    }

    /// Returns the device of an access token, without reading the database; none if no device has it.
    pub(super) fn owner_of(&self, token: &str) -> Option<TokenOwner> {
        self.owners.find(token)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

/// A change under way: a transaction that writes, and the devices whose links it concerns.
pub(super) struct Change {
    tables: WriteTransaction,
    devices: RefCell<Vec<Serial>>,
}

impl Change {
    /// Notes a device that is new or gone, or whose token, name or rights change.
    pub(super) fn note_device(&self, id: Serial) {
        self.devices.borrow_mut().push(id);
    }
}

impl Deref for Change {
    type Target = WriteTransaction;

    fn deref(&self) -> &WriteTransaction {
        &self.tables
    }
}

/// A transaction from which tables are read.
pub(super) trait Tables {
    /// Opens a table to read it. While it is open in a transaction that writes, it cannot be opened again.
    fn table<K: Key + 'static, V: Value + 'static>(
        &self,
        of: Definition<K, V>,
    ) -> Result<impl ReadableTable<K, V>, TableError>;
}

impl Tables for ReadTransaction {
    fn table<K: Key + 'static, V: Value + 'static>(
        &self,
        of: Definition<K, V>,
    ) -> Result<impl ReadableTable<K, V>, TableError> {
        self.open_table(of)
    }
}

impl Tables for WriteTransaction {
    fn table<K: Key + 'static, V: Value + 'static>(
        &self,
        of: Definition<K, V>,
    ) -> Result<impl ReadableTable<K, V>, TableError> {
        self.open_table(of)
    }
}

impl Tables for Change {
    fn table<K: Key + 'static, V: Value + 'static>(
        &self,
        of: Definition<K, V>,
    ) -> Result<impl ReadableTable<K, V>, TableError> {
        self.open_table(of)
    }
}
