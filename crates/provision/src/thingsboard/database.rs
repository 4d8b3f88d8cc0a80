//! Time series of devices, read from ThingsBoard's PostgreSQL.
//!
//! Tables of version 4.3: `device`, `ts_kv` with its partitions, and `key_dictionary`, which was `ts_kv_dictionary` before
//! version 3.7. It only reads.

mod connection;
mod failures;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use muster_model::{DeviceId, Micros};
use muster_plan::{DatabasePlan, Plan, ProvisionPlan};
use tokio_postgres::{Error, Row};

use self::connection::{Connection, Query, Server};
use super::bulk::chunks;
use super::records::read_back;
use super::series::KEY;
use crate::pacer::Pacer;
use crate::store::{Store, Stored, StoredPoint};
use crate::threads::each;
use crate::work::Work;
use crate::{ProvisionError, Watch};

/// Devices of one query for points.
const DEVICES: usize = 100;
/// Devices of one query for tenants: it reads the whole table, which has no index for names alone.
const TENANT_DEVICES: usize = 100_000;
/// Looks for the tables that must be there, and for both names of the dictionary.
const TABLES: &str = "SELECT to_regclass('device') IS NOT NULL, to_regclass('ts_kv') IS NOT NULL, \
     to_regclass('key_dictionary') IS NOT NULL, to_regclass('ts_kv_dictionary') IS NOT NULL";
/// The tenants of devices by their names.
const TENANTS: &str = "SELECT DISTINCT tenant_id::text FROM device \
     WHERE name IN (SELECT unnest($1::text[])) LIMIT 2";

/// An id that no tenant has.
const NO_TENANT: &str = "00000000-0000-0000-0000-000000000000";

/// The stored series of a tenant's devices, in the database.
pub(crate) struct Database {
    server: Server,
    name: String,
    pacer: Pacer,
    pending: u16,
}

/// Connections of one read.
struct Reader<'a> {
    database: &'a Database,
    watch: &'a dyn Watch,
    idle: Mutex<Vec<Connection>>,
}

/// A part of a plan's devices, with their names.
type Devices = Vec<(DeviceId, String)>;

impl Database {
    /// # Errors
    /// [`ProvisionError::Transport`] if the trusted certificates cannot be used.
    pub(crate) fn new(
        plan: &ProvisionPlan,
        database: &DatabasePlan,
    ) -> Result<Self, ProvisionError> {
        Ok(Self {
            server: Server::new(database, plan.timeout)?,
            name: database.to_string(),
            pacer: Pacer::new(plan.rate),
            pending: plan.pending,
        })
    }
}

impl<'a> Reader<'a> {
    fn new(database: &'a Database, watch: &'a dyn Watch) -> Self {
        Self {
            database,
            watch,
            idle: Mutex::default(),
        }
    }

    /// Reads the rows of a query by a connection that is idle, or else a new one.
    fn rows(
        &self,
        query: &Query<'_>,
        found: impl FnMut(&Row) -> Result<(), Error>,
    ) -> Result<(), ProvisionError> {
        let turn = || self.database.pacer.wait(self.watch);
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut connection = match kept {
            Some(connection) => connection,
            None => {
                turn()?;
                self.database.server.connect()?
            }
        };
        connection.rows(query, turn, found)?;
        idle().push(connection);
        Ok(())
    }

    /// Returns the name of the dictionary of keys.
    fn dictionary(&self) -> Result<&'static str, ProvisionError> {
        let query = Query {
            sql: TABLES,
            parameters: &[],
        };
        let mut is_there = [false; 4];
        self.rows(&query, |row| {
            for (column, is_there) in is_there.iter_mut().enumerate() {
                *is_there = row.try_get(column)?;
            }
            Ok(())
        })?;
        let missing = match is_there {
            [true, true, true, _] => return Ok("key_dictionary"),
            [true, true, false, true] => return Ok("ts_kv_dictionary"),
            [false, ..] => "device",
            [_, false, ..] => "ts_kv",
            [..] => "key_dictionary",
        };
        Err(failures::no_table(&self.database.name, missing))
    }

    /// Returns the only tenant whose devices have names of the plan's.
    fn tenant(&self, plan: &Plan) -> Result<String, ProvisionError> {
        let mut tenants = BTreeSet::new();
        for devices in chunks(read_back(plan), TENANT_DEVICES) {
            let names = names(&devices);
            let query = Query {
                sql: TENANTS,
                parameters: &[&names],
            };
            self.rows(&query, |row| {
                tenants.insert(row.try_get(0)?);
                Ok(())
            })?;
        }
        let name = &self.database.name;
        match (tenants.pop_first(), tenants.pop_first()) {
            (Some(tenant), None) => Ok(tenant),
            (Some(one), Some(other)) => Err(failures::two_tenants(name, [&one, &other])),
            (None, _) => Err(failures::no_devices(name)),
        }
    }
}

/// The query of the points of devices: each one's in the order of instants, by the index of each partition.
fn points(dictionary: &str) -> String {
    format!(
        "SELECT wanted.place, point.ts, point.id \
         FROM unnest($1::text[]) WITH ORDINALITY AS wanted (name, place) \
         JOIN device ON device.tenant_id = $2::text::uuid AND device.name = wanted.name \
         CROSS JOIN LATERAL (\
             SELECT ts, coalesce(str_v, '') AS id FROM ts_kv \
             WHERE entity_id = device.id AND ts >= $4 AND ts < $5 \
                 AND key = (SELECT key_id FROM {dictionary} AS names WHERE names.key = $3::text) \
             ORDER BY ts\
         ) AS point"
    )
}

impl Store for Database {
    fn read(
        &self,
        plan: &Plan,
        span: &Range<i64>,
        found: &(dyn Fn(DeviceId, Stored<'_>) + Sync),
        watch: &dyn Watch,
    ) -> Result<(), ProvisionError> {
        let reader = Reader::new(self, watch);
        let sql = points(reader.dictionary()?);
        let tenant = reader.tenant(plan)?;
        let sample = plan.management.reads_back;
        let work = Work::new(watch, sample.map_or(0, |it| it.devices().into()));
        each(chunks(read_back(plan), DEVICES), self.pending, |devices| {
            let names = names(&devices);
            let query = Query {
                sql: &sql,
                parameters: &[&names, &tenant, &KEY, &span.start, &span.end],
            };
            reader.rows(&query, |row| {
                let place: i64 = row.try_get(0)?;
                if let Some((device, _)) = devices.get(place as usize - 1) {
                    let (at, id) = (row.try_get(1)?, row.try_get(2)?);
                    found(*device, Stored::Point(StoredPoint { at, id }));
                }
                Ok(())
            })?;
            for (device, _) in &devices {
                found(*device, Stored::End);
            }
            work.done_all(devices.len() as u64, |_| ());
            Ok(())
        })
    }

    /// Reads no device: the server checks the rights of a query all the same.
    fn greet(&self, watch: &dyn Watch) -> Result<(), ProvisionError> {
        let reader = Reader::new(self, watch);
        let sql = points(reader.dictionary()?);
        let (names, tenant): ([&str; 0], _) = ([], NO_TENANT);
        let query = Query {
            sql: &sql,
            parameters: &[&names.as_slice(), &tenant, &KEY, &0_i64, &0_i64],
        };
        reader.rows(&query, |_| Ok(()))
    }

    fn rest(&self, time: Micros) {
        self.pacer.rest(time);
    }

    fn name(&self) -> &str {
        &self.name
    }
}

fn names(devices: &Devices) -> Vec<&str> {
    devices.iter().map(|(_, name)| name.as_str()).collect()
}
