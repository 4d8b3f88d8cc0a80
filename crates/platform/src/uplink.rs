//! A device's message: topic, payload and the carrier of the message's id.

use muster_load::{
    Payload, PayloadError, PayloadSpec, Scope, StampAt, StampForm, Template, UniqueMs,
};
use muster_model::{MessageId, Micros, STAMP_TEXT, Stamp};

use crate::blind::Blind;
use crate::{Carrier, CommandScratch, Dialect, Directory, IntegrityLevel, PROPERTY_NAME};

/// One stream's messages, compiled.
#[derive(Debug, Clone)]
pub struct Uplink {
    topic: Template,
    surface: Template,
    payload: Payload,
    carrier: Carrier,
    blind: Option<Blind>,
    carries_due: bool,
    has_one_topic: bool,
    integrity: IntegrityLevel,
    unique: Option<UniqueMs>,
}

/// Buffers that a message is rendered in; used again for every message.
#[derive(Debug, Default)]
pub struct UplinkScratch {
    name: String,
    topic: String,
    /// The rendered payload.
    pub payload: Vec<u8>,
    stamp: Option<StampAt>,
    property: Option<[u8; STAMP_TEXT]>,
    integrity: IntegrityLevel,
}

impl Uplink {
    /// Compiles a stream's messages. `carries_due` puts the due instant into the stamp, for
    /// streams whose schedule does not give it back from the sequence number.
    ///
    /// # Errors
    /// [`PayloadError`] if there is no such payload, or the id in its field does not lead back.
    pub fn new(
        topic: Template,
        payload: &PayloadSpec,
        carrier: Carrier,
        carries_due: bool,
    ) -> Result<Self, PayloadError> {
        let has_one_topic = topic.names().all(|(name, _)| name != "seq");
        let blind = match &carrier {
            Carrier::Blind(field) => Some(Blind::new(field)?),
            Carrier::Payload
            | Carrier::Property
            | Carrier::Field(_)
            | Carrier::ApplicationId
            | Carrier::Order
            | Carrier::None => None,
        };
        Ok(Self {
            has_one_topic,
            surface: topic.clone(),
            topic,
            payload: Payload::compile(payload)?,
            carrier,
            blind,
            carries_due,
            integrity: IntegrityLevel::Body,
            unique: None,
        })
    }

    /// The same messages, whose stamps have a check of this level.
    pub fn checked_by(self, integrity: IntegrityLevel) -> Self {
        Self { integrity, ..self }
    }

    /// The same messages, in which `${unique_ms}` differs by this rule.
    pub fn keeping_apart(self, unique: UniqueMs) -> Self {
        let unique = Some(unique);
        Self { unique, ..self }
    }

    /// Goes on with another hold, which begins at `from` on the clock of due instants.
    pub fn add_hold(&mut self, from: Micros, factor: f64) {
        self.payload.add_hold(from, factor);
    }

    /// Returns the coverage of the stamps' checks.
    pub(crate) fn integrity(&self) -> IntegrityLevel {
        self.integrity
    }

    /// The same messages, whose copies surface northbound on topics of this template.
    pub fn surfacing_on(self, surface: Template) -> Self {
        Self { surface, ..self }
    }

    /// The template of the topics on which copies surface northbound.
    pub fn surface(&self) -> &Template {
        &self.surface
    }

    /// Returns the carrier of the message's id.
    pub fn carrier(&self) -> &Carrier {
        &self.carrier
    }

    /// Returns the reader of an application's own id.
    pub(crate) fn blind(&self) -> Option<&Blind> {
        self.blind.as_ref()
    }

    /// Returns true if the due instant is in the stamp, because the schedule does not give it back.
    pub fn carries_due(&self) -> bool {
        self.carries_due
    }

    /// Returns true if all messages of a device go out on one topic.
    pub fn has_one_topic(&self) -> bool {
        self.has_one_topic
    }

    /// The template of the topic.
    pub fn topic(&self) -> &Template {
        &self.topic
    }

    /// The payload.
    pub fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Renders a message: a pure function of the directory's seed, the id and the due instant.
    pub fn render(
        &self,
        directory: &Directory,
        id: &MessageId,
        due: Micros,
        scratch: &mut UplinkScratch,
    ) {
        directory.render_name(id.device, &mut scratch.name);
        let scope = Scope {
            unique: self.unique.as_ref(),
            ..directory.scope(id, due, &scratch.name)
        };
        let mut topic = std::mem::take(&mut scratch.topic).into_bytes();
        topic.clear();
        self.topic.render(&scope, &mut topic);
        scratch.payload.clear();
        let place = self.payload.render(&scope, &mut scratch.payload);
        // Literals and variables of a template are text, so their sum is.
        scratch.topic = String::from_utf8(topic).unwrap_or_default();
        let stamp = Stamp {
            id: *id,
            due: self.carries_due.then_some(due),
        };
        scratch.property = None;
        scratch.stamp = None;
        scratch.integrity = self.integrity;
        match &self.carrier {
            Carrier::Payload | Carrier::Field(_) => {
                if let Some(place) = place {
                    write_stamp(&stamp, place, self.integrity, &mut scratch.payload);
                }
                scratch.stamp = place;
            }
            Carrier::Property => {
                let covered = self.integrity.covered([&scratch.payload, &[]]);
                scratch.property = Some(stamp.encode_text(&covered));
            }
            Carrier::ApplicationId | Carrier::Blind(_) | Carrier::Order | Carrier::None => {}
        }
    }
}

impl UplinkScratch {
    /// The rendered topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Returns the instant at which the platform stores the rendered message, in milliseconds of the wall clock; none if the
    /// message leaves that to the platform.
    pub fn point_instant(&self, dialect: Dialect) -> Option<i64> {
        let StampAt { offset, form } = self.stamp?;
        let id = self.payload.get(offset..offset + form.size())?;
        (dialect.point_instant)(&self.payload, id)
    }

    /// Returns the stamp in the rendered message, and the bytes that its check covers besides it.
    pub(crate) fn stamp(&self) -> Option<(&[u8], [&[u8]; 2])> {
        if let Some(text) = &self.property {
            return Some((text, self.integrity.covered([&self.payload, &[]])));
        }
        let StampAt { offset, form } = self.stamp?;
        let (before, rest) = self.payload.split_at(offset);
        let (stamp, after) = rest.split_at(form.size());
        // As a reader finds it: nothing stands before a stamp of bytes.
        let around = match form {
            StampForm::Binary22 => [after, before],
            StampForm::Text30 => [before, after],
        };
        Some((stamp, self.integrity.covered(around)))
    }

    /// Takes over what was rendered elsewhere, and carries no id.
    pub fn say(&mut self, said: &CommandScratch) {
        self.topic.clear();
        self.topic.push_str(&said.topic);
        self.payload.clear();
        self.payload.extend_from_slice(&said.payload);
        self.stamp = None;
        self.property = None;
    }

    /// Lends the user properties of the rendered message.
    pub fn with_property<T>(&self, lend: impl FnOnce(&[(&str, &str)]) -> T) -> T {
        let text = self
            .property
            .as_ref()
            .and_then(|text| std::str::from_utf8(text).ok());
        match text {
            Some(text) => lend(&[(PROPERTY_NAME, text)]),
            None => lend(&[]),
        }
    }
}

fn write_stamp(stamp: &Stamp, at: StampAt, integrity: IntegrityLevel, payload: &mut [u8]) {
    let (before, rest) = payload.split_at_mut(at.offset);
    let (place, after) = rest.split_at_mut(at.form.size());
    let covered = integrity.covered([before, after]);
    match at.form {
        StampForm::Binary22 => place.copy_from_slice(&stamp.encode(&covered)),
        StampForm::Text30 => place.copy_from_slice(&stamp.encode_text(&covered)),
    }
}
