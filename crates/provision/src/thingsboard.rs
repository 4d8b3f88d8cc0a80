//! ThingsBoard: devices with access tokens, their profile and their customers, by its REST API.

mod bulk;
mod counting;
mod counts;
mod creation;
#[cfg(feature = "postgresql")]
mod database;
mod failures;
mod groups;
mod records;
mod series;
mod session;

pub use self::counting::ServerCounter;
pub use self::counts::NodeCounts;
#[cfg(feature = "postgresql")]
pub(crate) use self::database::Database;
pub(crate) use self::series::Series;

use aws_lc_rs::rand;
use muster_plan::{BoardProvision, Plan, ProvisionPlan, WebAddress};
use muster_platform::board_rest::{
    Call, DELETE_CUSTOMER, DELETE_DEVICE, DELETE_PROFILE, Device, DeviceNameQuery, EntityId,
    FIND_DEVICE, NoQuery,
};

use self::bulk::chunks;
use self::creation::{Creation, is_marked};
use self::groups::{CUSTOMER, PROFILE};
use self::records::{count, records};
use self::session::{Asked, Session};
use crate::journal::Standing;
use crate::rest::NOT_FOUND;
use crate::threads::each;
use crate::work::Work;
use crate::{Journal, ProvisionError, Provisioner, Summary, Watch};

const DEVICE: &str = "device";
/// Devices whose presence is verified by one list.
const VERIFIED: usize = 500;

/// Provisions a tenant of ThingsBoard.
#[derive(Debug)]
pub(crate) struct ThingsBoard {
    session: Session,
    pending: u16,
    settings: BoardProvision,
}

impl Provisioner for ThingsBoard {
    fn create(
        &self,
        plan: &Plan,
        journal: &Journal,
        watch: &dyn Watch,
    ) -> Result<Summary, ProvisionError> {
        records::check(plan)?;
        self.session.user(watch)?;
        let work = Work::new(watch, self.groups() + count(plan));
        let creation = Creation {
            board: self,
            journal,
            work: &work,
            marker: marker()?,
            customers: self.ensure_groups(journal, &work)?,
        };
        match self.settings.bulk {
            Some(size) => {
                let chunks = chunks(records(plan), size.into());
                each(chunks, self.pending, |chunk| creation.import(chunk))?;
            }
            None => each(records(plan), self.pending, |record| {
                creation.ensure(&record)
            })?,
        }
        Ok(work.summary())
    }

    fn verify(&self, plan: &Plan, watch: &dyn Watch) -> Result<Summary, ProvisionError> {
        records::check(plan)?;
        self.session.user(watch)?;
        let work = Work::new(watch, self.groups() + count(plan));
        self.verify_groups(&work)?;
        each(chunks(records(plan), VERIFIED), self.pending, |chunk| {
            let found = self.find_all(&chunk, watch)?;
            for record in &chunk {
                let device = found.get(&record.name);
                let difference = device.map(|device| self.difference(record, device, watch));
                let difference = difference.transpose()?;
                work.done(|summary| summary.looked(DEVICE, &record.name, difference));
            }
            Ok(())
        })?;
        Ok(work.summary())
    }

    fn greet(&self, watch: &dyn Watch) -> Result<(), ProvisionError> {
        self.session.user(watch).map(|_| ())
    }

    /// Devices first: a profile that is in use is not taken away.
    fn remove(&self, journal: &Journal, watch: &dyn Watch) -> Result<Summary, ProvisionError> {
        let removal = Removal {
            board: self,
            journal,
            work: Work::new(watch, journal.len() as u64),
        };
        let devices = journal.all(DEVICE).into_iter();
        each(devices, self.pending, |(name, standing)| {
            let id = match standing {
                Standing::Created(id) => Some(id),
                Standing::Creating(marker) => self.begun(&name, marker.as_deref(), watch)?,
            };
            removal.end(DEVICE, &name, id, &DELETE_DEVICE)
        })?;
        for (kind, delete) in [(PROFILE, DELETE_PROFILE), (CUSTOMER, DELETE_CUSTOMER)] {
            for (name, standing) in journal.all(kind) {
                let id = match standing {
                    Standing::Created(id) => Some(id),
                    Standing::Creating(_) => self.find_group(kind, &name, watch)?,
                };
                removal.end(kind, &name, id, &delete)?;
            }
        }
        Ok(removal.work.summary())
    }

    fn target(&self) -> &str {
        self.session.base()
    }
}

impl ThingsBoard {
    /// # Errors
    /// [`ProvisionError::Transport`] if the trusted certificates cannot be used.
    pub(crate) fn new(plan: &ProvisionPlan, api: &WebAddress) -> Result<Self, ProvisionError> {
        Ok(Self {
            session: Session::new(plan, api)?,
            pending: plan.pending,
            settings: plan.board.clone(),
        })
    }

    fn find_device(&self, name: &str, watch: &dyn Watch) -> Result<Option<Device>, ProvisionError> {
        let query = DeviceNameQuery {
            device_name: name.to_owned(),
        };
        self.session.find(&FIND_DEVICE, &Asked::query(query), watch)
    }

    /// The id of a device whose creation had begun, if it came about: it has our marker.
    fn begun(
        &self,
        name: &str,
        marker: Option<&str>,
        watch: &dyn Watch,
    ) -> Result<Option<String>, ProvisionError> {
        let found = self.find_device(name, watch)?;
        let ours = found.filter(|device| marker.is_some_and(|marker| is_marked(device, marker)));
        Ok(ours.and_then(|device| device.id).map(|id| id.id))
    }
}

/// Things that are being removed.
struct Removal<'a> {
    board: &'a ThingsBoard,
    journal: &'a Journal,
    work: Work<'a>,
}

impl Removal<'_> {
    fn end(
        &self,
        kind: &'static str,
        name: &str,
        id: Option<String>,
        delete: &Call<1, NoQuery, (), ()>,
    ) -> Result<(), ProvisionError> {
        let removed = match id {
            Some(id) => {
                let (session, watch) = (&self.board.session, self.work.watch);
                let answer = session.answer(delete, &Asked::at([&id]), watch)?;
                if !answer.is_yes() && answer.status != NOT_FOUND {
                    return Err(failures::refused(&answer));
                }
                answer.is_yes()
            }
            None => false,
        };
        self.journal.removed(kind, name)?;
        let removed = u64::from(removed);
        self.work.done(|summary| summary.cleared(kind, 1, removed));
        Ok(())
    }
}

/// A mark of what this run creates, so that it is known again after a call that was cut off.
fn marker() -> Result<String, ProvisionError> {
    let mut bytes = [0; 8];
    rand::fill(&mut bytes).map_err(|_| ProvisionError::Random)?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

/// The id of an entity that an answer holds.
fn id_of(id: Option<&EntityId>, call: &str) -> Result<String, ProvisionError> {
    let id = id.map(|id| id.id.clone()).filter(|id| !id.is_empty());
    id.ok_or_else(|| ProvisionError::Unreadable {
        call: call.to_owned(),
        why: "it has no `id`".to_owned(),
    })
}
