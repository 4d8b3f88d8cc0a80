//! Devices that are offline on purpose, and come back at the rate at which they first connected.

use muster_model::{Cause, LinkEvent, Micros};

use crate::session::Session;
use crate::{Shard, Sink};

/// When the links of a fleet are closed on purpose, counted from the start of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offline {
    /// From then on.
    pub from: Micros,
    /// The first link comes back then.
    pub until: Micros,
    /// Whether links are reset, so that the platform publishes their wills.
    pub is_abrupt: bool,
}

impl<P: Session, S: Sink> Shard<P, S> {
    /// When a link that is up goes offline; none if it never does, or has been.
    pub(crate) fn goes_offline_at(&self, link: u32) -> Option<Micros> {
        let offline = self.offline(link)?;
        let since = self.links[link as usize].since;
        (since < offline.until).then(|| offline.from.max(since))
    }

    /// When a link may connect that would do so at `at`.
    pub(crate) fn not_offline_at(&self, link: u32, at: Micros) -> Micros {
        let offline = self.offline(link);
        match offline.filter(|offline| (offline.from..offline.until).contains(&at)) {
            Some(offline) => {
                let class = &self.ramps[self.links[link as usize].class as usize];
                offline.until + class.ramp.after(link - class.first)
            }
            None => at,
        }
    }

    /// Why a link is closed on purpose now.
    pub(crate) fn why_it_leaves(&self, link: u32, now: Micros) -> Cause {
        if self.goes_offline_at(link).is_some_and(|at| at <= now) {
            Cause::Offline
        } else {
            Cause::Lifetime
        }
    }

    /// Whether a link leaves without a word, as one whose network is gone.
    pub(crate) fn leaves_abruptly(&self, link: u32, cause: Cause) -> bool {
        let offline = self.class(link).client.offline;
        cause == Cause::Offline && offline.is_some_and(|offline| offline.is_abrupt)
    }

    /// The platform has answered the CONNECT of a link.
    pub(crate) fn tell_return(&mut self, link: u32, now: Micros, is_kept: bool) {
        let was_up = self.links[link as usize].ups > 0;
        if was_up && self.class(link).client.offline.is_some() {
            self.account.returned(self.link_id(link), is_kept);
            self.tell(link, now, LinkEvent::Returned { is_kept });
        }
    }

    /// When a link's fleet is offline, on the run's clock; none before that is known.
    fn offline(&self, link: u32) -> Option<Offline> {
        let offline = self.class(link).client.offline?;
        let origin = self.origin?;
        Some(Offline {
            from: origin + offline.from,
            until: origin + offline.until,
            is_abrupt: offline.is_abrupt,
        })
    }
}
