//! Groups that devices belong to: their profile and their customers.

use muster_platform::board_rest::{
    CREATE_CUSTOMER, CREATE_PROFILE, Customer, DeviceProfile, EntityId, FIND_CUSTOMER,
    LIST_PROFILES, PageQuery, TitleQuery,
};

use super::failures::refused;
use super::session::Asked;
use super::{ThingsBoard, id_of};
use crate::rest::{Answer, Begun};
use crate::work::Work;
use crate::{Journal, ProvisionError, Watch};

pub(super) const PROFILE: &str = "device profile";
pub(super) const CUSTOMER: &str = "customer";
/// Profiles of similar names that are looked through.
const PROFILES_MAX: u32 = 1_000;

impl ThingsBoard {
    /// Number of them.
    pub(super) fn groups(&self) -> u64 {
        u64::from(self.settings.profile.is_some()) + u64::from(self.settings.customers)
    }

    /// Creates those that are missing; the ids of the customers.
    pub(super) fn ensure_groups(
        &self,
        journal: &Journal,
        work: &Work<'_>,
    ) -> Result<Vec<String>, ProvisionError> {
        if let Some(profile) = &self.settings.profile {
            self.ensure_group((PROFILE, profile), journal, work)?;
        }
        let customers = (0..self.settings.customers).map(title);
        customers
            .map(|title| self.ensure_group((CUSTOMER, &title), journal, work))
            .collect()
    }

    pub(super) fn verify_groups(&self, work: &Work<'_>) -> Result<(), ProvisionError> {
        let profile = self
            .settings
            .profile
            .iter()
            .map(|name| (PROFILE, name.clone()));
        let customers = (0..self.settings.customers).map(|place| (CUSTOMER, title(place)));
        for (kind, name) in profile.chain(customers) {
            let found = self.find_group(kind, &name, work.watch)?;
            let difference = found.map(|_| None);
            work.done(|summary| summary.looked(kind, &name, difference));
        }
        Ok(())
    }

    /// The id of a group that is there.
    pub(super) fn find_group(
        &self,
        kind: &str,
        name: &str,
        watch: &dyn Watch,
    ) -> Result<Option<String>, ProvisionError> {
        if kind == CUSTOMER {
            let query = TitleQuery {
                customer_title: name.to_owned(),
            };
            let found = self
                .session
                .find(&FIND_CUSTOMER, &Asked::query(query), watch)?;
            return Ok(found.and_then(|customer| customer.id).map(|id| id.id));
        }
        let query = PageQuery {
            page_size: PROFILES_MAX,
            page: 0,
            text_search: Some(name.to_owned()),
        };
        let page = self
            .session
            .call(&LIST_PROFILES, &Asked::query(query), watch)?;
        let mut profiles = page.data.into_iter();
        let found = profiles.find(|profile| profile.name == name);
        Ok(found.and_then(|profile| profile.id).map(|id| id.id))
    }

    /// Creates a group unless it is there. One whose creation a killed process had begun is ours.
    fn ensure_group(
        &self,
        (kind, name): (&'static str, &str),
        journal: &Journal,
        work: &Work<'_>,
    ) -> Result<String, ProvisionError> {
        let found = self.find_group(kind, name, work.watch)?;
        let is_created = found.is_none();
        let id = match found {
            Some(id) => {
                if journal.is_begun(kind, name) {
                    journal.created(kind, name, &id)?;
                }
                id
            }
            None => {
                let begun = Begun {
                    journal,
                    kind,
                    key: name,
                    id: None,
                };
                let answer = begun.record(|| self.create_group(kind, name, work.watch))?;
                let id = created_id(&answer)?;
                journal.created(kind, name, &id)?;
                id
            }
        };
        work.done(|summary| summary.ensured(kind, 1, u64::from(is_created)));
        Ok(id)
    }

    fn create_group(
        &self,
        kind: &str,
        name: &str,
        watch: &dyn Watch,
    ) -> Result<Answer, ProvisionError> {
        let name = name.to_owned();
        if kind == CUSTOMER {
            let customer = Customer {
                id: None,
                title: name,
            };
            return self
                .session
                .answer(&CREATE_CUSTOMER, &Asked::body(customer), watch);
        }
        let profile = DeviceProfile::plain(name);
        self.session
            .answer(&CREATE_PROFILE, &Asked::body(profile), watch)
    }
}

/// The title of a customer, as the published tool has it.
fn title(place: u32) -> String {
    format!("C{place:08}")
}

/// The id in the answer to the creation of any entity.
pub(super) fn created_id(answer: &Answer) -> Result<String, ProvisionError> {
    #[derive(serde::Deserialize)]
    struct Created {
        id: Option<EntityId>,
    }
    if !answer.is_yes() {
        return Err(refused(answer));
    }
    let created: Created = serde_json::from_str(answer.text())
        .map_err(|error| answer.unreadable(&error.to_string()))?;
    id_of(created.id.as_ref(), &answer.call)
}
