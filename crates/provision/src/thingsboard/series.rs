//! Time series of devices, read by ThingsBoard's REST API.

use std::ops::Range;

use muster_model::{DeviceId, Micros};
use muster_plan::{Plan, ProvisionPlan, WebAddress};
use muster_platform::board_rest::{
    Device, DeviceNameQuery, EntityType, FIND_DEVICE, Point, SERIES, SeriesQuery, SortOrder,
};

use super::id_of;
use super::records::read_back;
use super::session::{Asked, Session};
use crate::store::{Store, Stored, StoredPoint};
use crate::threads::each;
use crate::work::Work;
use crate::{ProvisionError, Watch};

/// The key of the value that names a message.
pub(super) const KEY: &str = "musterId";
/// Points of one answer, which has at most 8 MiB.
const POINTS: u32 = 10_000;

/// The stored series of a tenant's devices.
#[derive(Debug)]
pub(crate) struct Series {
    session: Session,
    pending: u16,
}

impl Series {
    /// # Errors
    /// [`ProvisionError::Transport`] if the trusted certificates cannot be used.
    pub(crate) fn new(plan: &ProvisionPlan, api: &WebAddress) -> Result<Self, ProvisionError> {
        Ok(Self {
            session: Session::new(plan, api)?,
            pending: plan.pending,
        })
    }

    /// Reads one page, ascending.
    fn page(
        &self,
        id: &str,
        span: &Range<i64>,
        watch: &dyn Watch,
    ) -> Result<Vec<Point>, ProvisionError> {
        let asked = Asked {
            path: [EntityType::Device.name(), id],
            query: SeriesQuery {
                keys: KEY.to_owned(),
                start_ts: Some(span.start),
                end_ts: Some(span.end),
                limit: Some(POINTS),
                order_by: Some(SortOrder::Ascending),
                ..SeriesQuery::default()
            },
            body: (),
        };
        let mut series = self.session.call(&SERIES, &asked, watch)?;
        Ok(series.remove(KEY).unwrap_or_default())
    }
}

impl Store for Series {
    fn read(
        &self,
        plan: &Plan,
        span: &Range<i64>,
        found: &(dyn Fn(DeviceId, Stored<'_>) + Sync),
        watch: &dyn Watch,
    ) -> Result<(), ProvisionError> {
        let sample = plan.management.reads_back;
        let work = Work::new(watch, sample.map_or(0, |it| it.devices().into()));
        each(read_back(plan), self.pending, |(device, name)| {
            let query = DeviceNameQuery { device_name: name };
            let query = Asked::query(query);
            let known: Option<Device> = self.session.find(&FIND_DEVICE, &query, watch)?;
            if let Some(known) = known {
                let id = id_of(known.id.as_ref(), FIND_DEVICE.route())?;
                let mut left = span.clone();
                loop {
                    let page = self.page(&id, &left, watch)?;
                    for point in &page {
                        let point = StoredPoint {
                            at: point.ts,
                            id: point.value.as_str().unwrap_or_default(),
                        };
                        found(device, Stored::Point(point));
                    }
                    match page.last() {
                        Some(last) if page.len() >= POINTS as usize => left.start = last.ts + 1,
                        Some(_) | None => break,
                    }
                }
            }
            found(device, Stored::End);
            work.done(|_| ());
            Ok(())
        })
    }

    fn rest(&self, time: Micros) {
        self.session.rest(time);
    }

    fn name(&self) -> &str {
        self.session.base()
    }
}
