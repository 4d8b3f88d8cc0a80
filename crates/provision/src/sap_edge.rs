//! SAP Edge: a capability, a sensor type that has it, and devices with one sensor of that type, by
//! the Device Connectivity API.

mod model;

use muster_plan::{Plan, ProvisionPlan, WebAddress};
use serde_json::Value;

use self::model::{CAPABILITY, DEVICE, Entity, GATEWAY, Kind, Model, SENSOR_TYPE};
use crate::journal::Standing;
use crate::rest::{Answer, Ask, Begun, CONFLICT, Rest, segment};
use crate::threads::each;
use crate::work::Work;
use crate::{Journal, ProvisionError, Provisioner, Summary, Watch};

/// Path of the API, unless the address has one.
const PATH: &str = "/api/v1";

#[derive(Debug)]
pub(crate) struct SapEdge {
    rest: Rest,
    gateway: String,
    pending: u16,
}

/// A thing of the platform, and the call that found it.
struct Found {
    answer: Answer,
    thing: Value,
}

impl Provisioner for SapEdge {
    fn create(
        &self,
        plan: &Plan,
        journal: &Journal,
        watch: &dyn Watch,
    ) -> Result<Summary, ProvisionError> {
        let work = Work::new(watch, u64::from(plan.devices()) + 2);
        let mut model = Model {
            gateway: Some(self.gateway(watch)?),
            ..Model::default()
        };
        model.capability = Some(self.ensure(&model.capability(), journal, &work)?);
        model.sensor_type = Some(self.ensure(&model.sensor_type(), journal, &work)?);
        each(names(plan), self.pending, |name| {
            let _ = self.ensure(&model.device(&name), journal, &work)?;
            Ok(())
        })?;
        Ok(work.summary())
    }

    fn verify(&self, plan: &Plan, watch: &dyn Watch) -> Result<Summary, ProvisionError> {
        let work = Work::new(watch, u64::from(plan.devices()) + 2);
        let mut model = Model {
            gateway: Some(self.gateway(watch)?),
            ..Model::default()
        };
        model.capability = self.look(&model.capability(), &work)?;
        model.sensor_type = self.look(&model.sensor_type(), &work)?;
        each(names(plan), self.pending, |name| {
            let _ = self.look(&model.device(&name), &work)?;
            Ok(())
        })?;
        Ok(work.summary())
    }

    fn greet(&self, watch: &dyn Watch) -> Result<(), ProvisionError> {
        self.gateway(watch).map(|_| ())
    }

    /// Devices first: a type that is in use is not taken away.
    fn remove(&self, journal: &Journal, watch: &dyn Watch) -> Result<Summary, ProvisionError> {
        let work = Work::new(watch, journal.len() as u64);
        let mut refused = Ok(());
        for kind in [&DEVICE, &SENSOR_TYPE, &CAPABILITY] {
            let things = journal.all(kind.name);
            let ended = each(things.into_iter(), self.pending, |thing| {
                self.end(kind, &thing, journal, &work)
            });
            // One kind that is refused does not keep the next from being tried.
            match ended {
                Err(ProvisionError::Refused { .. }) if refused.is_err() => {}
                Err(error @ ProvisionError::Refused { .. }) => refused = Err(error),
                other => other?,
            }
        }
        refused.map(|()| work.summary())
    }

    fn target(&self) -> &str {
        self.rest.base()
    }
}

impl SapEdge {
    /// # Errors
    /// [`ProvisionError::Transport`] if the trusted certificates cannot be used.
    pub(crate) fn new(plan: &ProvisionPlan, api: &WebAddress) -> Result<Self, ProvisionError> {
        Ok(Self {
            rest: Rest::new(plan, api, PATH)?,
            gateway: plan.gateway.clone(),
            pending: plan.pending,
        })
    }

    fn gateway(&self, watch: &dyn Watch) -> Result<String, ProvisionError> {
        let mut found = self.list(&GATEWAY, &self.gateway, watch)?;
        let Some(thing) = found.1.pop() else {
            return Err(ProvisionError::NoGateway {
                call: found.0.call,
                gateway: self.gateway.clone(),
            });
        };
        id_of(&found.0, &thing)
    }

    /// Creates a thing unless it is there; its id.
    fn ensure(
        &self,
        wanted: &Entity,
        journal: &Journal,
        work: &Work<'_>,
    ) -> Result<String, ProvisionError> {
        let (id, is_created) = match self.find(wanted, work.watch)? {
            Some(found) => (self.take(wanted, &found, journal)?, false),
            None => self.make(wanted, journal, work.watch)?,
        };
        let created = u64::from(is_created);
        work.done(|summary| summary.ensured(wanted.kind.name, 1, created));
        Ok(id)
    }

    /// A thing that is there serves if it has the wanted content. One whose creation a killed
    /// process had begun is ours.
    fn take(
        &self,
        wanted: &Entity,
        found: &Found,
        journal: &Journal,
    ) -> Result<String, ProvisionError> {
        if let Some(how) = wanted.difference(&found.thing) {
            return Err(ProvisionError::Differs {
                call: found.answer.call.clone(),
                kind: wanted.kind.name,
                key: wanted.key.clone(),
                how,
            });
        }
        let id = id_of(&found.answer, &found.thing)?;
        if journal.is_begun(wanted.kind.name, &wanted.key) {
            journal.created(wanted.kind.name, &wanted.key, &id)?;
        }
        Ok(id)
    }

    /// Creates a thing; its id, and true if this call created it.
    fn make(
        &self,
        wanted: &Entity,
        journal: &Journal,
        watch: &dyn Watch,
    ) -> Result<(String, bool), ProvisionError> {
        let (kind, key) = (wanted.kind.name, wanted.key.as_str());
        let begun = Begun {
            journal,
            kind,
            key,
            id: None,
        };
        let path = wanted.kind.path;
        let answer = self.rest.create(path, &wanted.body, &begun, watch)?;
        if answer.status == CONFLICT {
            // Somebody else was faster, or the name is that of something the filter does not show.
            let found = self.find(wanted, watch)?.ok_or_else(|| answer.refused())?;
            return Ok((self.take(wanted, &found, journal)?, false));
        }
        let id = id_of(&answer, &answer.json()?)?;
        journal.created(kind, key, &id)?;
        Ok((id, true))
    }

    /// Looks whether a thing is there as it is wanted; its id.
    fn look(&self, wanted: &Entity, work: &Work<'_>) -> Result<Option<String>, ProvisionError> {
        let (kind, key) = (wanted.kind.name, &wanted.key);
        let Some(found) = self.find(wanted, work.watch)? else {
            work.done(|summary| summary.looked(kind, key, None));
            return Ok(None);
        };
        let difference = wanted.difference(&found.thing);
        work.done(|summary| summary.looked(kind, key, Some(difference)));
        id_of(&found.answer, &found.thing).map(Some)
    }

    fn end(
        &self,
        kind: &'static Kind,
        (key, standing): &(String, Standing),
        journal: &Journal,
        work: &Work<'_>,
    ) -> Result<(), ProvisionError> {
        let id = match standing {
            Standing::Created(id) => Some(id.clone()),
            Standing::Creating(_) => self.begun(kind, key, work.watch)?,
        };
        let removed = match id {
            Some(id) => {
                let path = format!("{}/{}", kind.path, segment(&id));
                self.rest.delete(&path, work.watch)?
            }
            None => false,
        };
        journal.removed(kind.name, key)?;
        work.done(|summary| summary.cleared(kind.name, 1, u64::from(removed)));
        Ok(())
    }

    /// The id of a thing whose creation had begun, if it came about: it was not there before, and
    /// looks like ours.
    fn begun(
        &self,
        kind: &'static Kind,
        key: &str,
        watch: &dyn Watch,
    ) -> Result<Option<String>, ProvisionError> {
        let wanted = Model::default().entity(kind, key);
        let found = self.find(&wanted, watch)?;
        let ours = found.filter(|found| wanted.difference(&found.thing).is_none());
        ours.map(|found| id_of(&found.answer, &found.thing))
            .transpose()
    }

    /// The thing of this name; of several the one that is as wanted.
    fn find(&self, wanted: &Entity, watch: &dyn Watch) -> Result<Option<Found>, ProvisionError> {
        let (answer, mut things) = self.list(wanted.kind, &wanted.key, watch)?;
        let is_as_wanted = |thing: &Value| wanted.difference(thing).is_none();
        let place = things.iter().position(is_as_wanted).unwrap_or(0);
        Ok((place < things.len()).then(|| Found {
            thing: things.swap_remove(place),
            answer,
        }))
    }

    /// The things of this name. What an API sends beyond its filter is left out.
    fn list(
        &self,
        kind: &Kind,
        key: &str,
        watch: &dyn Watch,
    ) -> Result<(Answer, Vec<Value>), ProvisionError> {
        let filter = format!("{} eq '{}'", kind.key, key.replace('\'', "''"));
        let answer = self.rest.call(kind.path, Ask::List(&filter), watch)?;
        let Value::Array(mut things) = answer.json()? else {
            return Err(answer.unreadable("it is no list"));
        };
        things.retain(|thing| thing[kind.key] == key);
        Ok((answer, things))
    }
}

fn id_of(answer: &Answer, thing: &Value) -> Result<String, ProvisionError> {
    let id = &thing["id"];
    let number = || id.as_number().map(ToString::to_string);
    let text = id.as_str().map(str::to_owned).or_else(number);
    let text = text.filter(|text| !text.is_empty());
    text.ok_or_else(|| answer.unreadable("it has no `id`"))
}

/// The names of all devices, each made when it is asked for.
fn names(plan: &Plan) -> impl Iterator<Item = String> + Send {
    plan.fleets.iter().flat_map(|fleet| {
        (0..fleet.devices).map(move |number| {
            let mut name = String::new();
            fleet.names.render(fleet.first_index + number, &mut name);
            name
        })
    })
}
