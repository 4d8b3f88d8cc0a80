//! Reads copies at a backend: the message, and its integrity.

use std::sync::Arc;

use muster_model::{DeviceId, Integrity, MessageId, Micros, RunId, Stamp, StreamId};

use crate::blind::BlindScratch;
use crate::place::{Damaged, Place};
use crate::{Carrier, Directory, Uplink, UplinkScratch};

/// Reads the ids of arriving messages back; one a consumer.
#[derive(Debug)]
pub struct Reader {
    run: RunId,
    streams: Vec<ReaderStream>,
    places: Vec<Place>,
    /// Per stream with carrier `order`: the next sequence number of each device.
    order: Vec<Vec<u32>>,
    scratch: UplinkScratch,
    blind_scratch: BlindScratch,
}

/// One stream whose messages may arrive.
#[derive(Debug, Clone)]
pub struct ReaderStream {
    /// Its place in the plan.
    pub id: StreamId,
    /// Its devices.
    pub directory: Arc<Directory>,
    /// Their uplink.
    pub uplink: Arc<Uplink>,
}

/// Content of one copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// Its message; none if that cannot be read.
    pub id: Option<MessageId>,
    /// Due instant of the message, if the carrier has it.
    pub due: Option<Micros>,
    /// Comparison with the bytes that were sent.
    pub integrity: Integrity,
}

impl Reader {
    /// A reader for all streams of a plan.
    pub fn new(run: RunId, streams: Vec<ReaderStream>) -> Self {
        let mut places: Vec<Place> = Vec::new();
        for place in streams
            .iter()
            .filter_map(|stream| Place::of(&stream.uplink))
        {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let order = streams.iter().map(|stream| match stream.uplink.carrier() {
            Carrier::Order => vec![0; stream.directory.devices() as usize],
            Carrier::Payload
            | Carrier::Property
            | Carrier::Field(_)
            | Carrier::ApplicationId
            | Carrier::Blind(_)
            | Carrier::None => Vec::new(),
        });
        let order = order.collect();
        Self {
            run,
            streams,
            places,
            order,
            scratch: UplinkScratch::default(),
            blind_scratch: BlindScratch::default(),
        }
    }

    /// Goes on with another hold, which begins at `from` on the clock of due instants.
    pub fn add_hold(&mut self, from: Micros, factor: f64) {
        for stream in &mut self.streams {
            Arc::make_mut(&mut stream.uplink).add_hold(from, factor);
        }
    }

    /// Returns true if the stamps of some stream travel in a property.
    pub fn reads_properties(&self) -> bool {
        let mut places = self.places.iter();
        places.any(|place| matches!(place, Place::Property(_)))
    }

    /// Reads one copy; `due_of` gives the due instant of a message back from the schedule.
    pub fn read(
        &mut self,
        topic: &str,
        payload: &[u8],
        property: Option<&str>,
        due_of: &mut dyn FnMut(&MessageId) -> Option<Micros>,
    ) -> Copy {
        let mut damaged = None;
        for place in &mut self.places {
            match place.find(self.run, payload, property) {
                Some(Ok(stamp)) => {
                    let due = stamp.due.or_else(|| due_of(&stamp.id));
                    return Copy {
                        id: Some(stamp.id),
                        due,
                        integrity: Integrity::Intact,
                    };
                }
                Some(Err(found)) => damaged = damaged.or(Some(found)),
                None => {}
            }
        }
        let by_own_id = self.by_own_id(topic, payload);
        if let Some(id) = by_own_id.or_else(|| self.by_order(topic)) {
            return Copy {
                id: Some(id),
                due: due_of(&id),
                integrity: Integrity::Unchecked,
            };
        }
        let is_ours = self.streams.iter().any(|stream| stream.may_send_on(topic));
        if !is_ours {
            return Copy {
                id: None,
                due: None,
                integrity: Integrity::Unchecked,
            };
        }
        let known = damaged.and_then(|damaged| self.named(&damaged, due_of));
        Copy {
            id: known.map(|(id, _)| id),
            due: known.map(|(_, due)| due),
            integrity: Integrity::Corrupted,
        }
    }

    fn by_own_id(&mut self, topic: &str, payload: &[u8]) -> Option<MessageId> {
        let (run, scratch) = (self.run, &mut self.blind_scratch);
        self.streams.iter().find_map(|stream| {
            let blind = stream.uplink.blind()?;
            let id = MessageId {
                run,
                device: stream.device_of(topic)?,
                stream: stream.id,
                seq: blind.number(payload)?,
            };
            let is_its = blind.is_of(payload, &id, &stream.directory, scratch);
            is_its.then_some(id)
        })
    }

    fn by_order(&mut self, topic: &str) -> Option<MessageId> {
        let ordered = self.streams.iter().zip(&mut self.order);
        let mut ordered = ordered.filter(|(_, next)| !next.is_empty());
        ordered.find_map(|(stream, next)| {
            let device = stream.device_of(topic)?;
            let place = (device.0 - stream.directory.first_device().0) as usize;
            let seq = next[place];
            next[place] += 1;
            Some(MessageId {
                run: self.run,
                device,
                stream: stream.id,
                seq,
            })
        })
    }

    /// The message that a damaged stamp names, and when that was due, if it may be believed: a
    /// message is a pure function of its id, so it is rendered and compared.
    fn named(
        &mut self,
        damaged: &Damaged<'_>,
        due_of: &mut dyn FnMut(&MessageId) -> Option<Micros>,
    ) -> Option<(MessageId, Micros)> {
        let Stamp { id, due } = damaged.stamp;
        let of_stream = self.streams.iter().find(|stream| stream.id == id.stream);
        let stream = of_stream.filter(|stream| id.run == self.run && stream.has(id.device))?;
        let due = if stream.uplink.carries_due() {
            due?
        } else {
            due_of(&id)?
        };
        stream
            .uplink
            .render(&stream.directory, &id, due, &mut self.scratch);
        damaged.is_of(&self.scratch).then_some((id, due))
    }
}

impl ReaderStream {
    fn has(&self, device: DeviceId) -> bool {
        let first = self.directory.first_device().0;
        device
            .0
            .checked_sub(first)
            .is_some_and(|place| place < self.directory.devices())
    }

    /// Returns false if the fixed texts show that no message of the stream's devices surfaces on
    /// that topic.
    fn may_send_on(&self, topic: &str) -> bool {
        let source = self.uplink.surface().source();
        match source.split_once("${") {
            None => topic == source,
            Some((prefix, rest)) => {
                let suffix = rest.rsplit_once('}').map_or("", |(_, suffix)| suffix);
                topic.starts_with(prefix) && topic.ends_with(suffix)
            }
        }
    }

    /// The device whose messages surface on that topic, if the topic leads back to it by `${id}`,
    /// before which at most the tenant stands.
    fn device_of(&self, topic: &str) -> Option<DeviceId> {
        let (prefix, suffix) = self.uplink.surface().source().split_once("${id}")?;
        let mut name = topic.strip_suffix(suffix)?;
        for (n, fixed) in prefix.split("${tenant}").enumerate() {
            let tenant = if n == 0 { "" } else { self.directory.tenant() };
            name = name.strip_prefix(tenant)?.strip_prefix(fixed)?;
        }
        self.directory.device_named(name)
    }
}

#[cfg(test)]
mod tests {
    use muster_load::{NameTable, Names, PayloadSpec, Template};
    use proptest::prelude::*;

    use super::*;
    use crate::{BlindField, DirectorySpec, IntegrityLevel};

    const RUN: RunId = RunId(77);
    const TEXT: &str =
        r#"{"ts":${due_ms},"headers":{"correlation-id":"${stamp}"},"v":${normal:20:3}}"#;

    struct World {
        directory: Arc<Directory>,
        uplink: Arc<Uplink>,
        reader: Reader,
    }

    fn world(payload: &PayloadSpec, carrier: Carrier) -> World {
        let names = Names::formula("meter-${index:04}").unwrap();
        world_of(payload, carrier, names)
    }

    fn world_of(payload: &PayloadSpec, carrier: Carrier, names: Names) -> World {
        let directory = Arc::new(Directory::new(DirectorySpec {
            seed: 5,
            wall_ms_at_t0: 1_700_000_000_000,
            first_device: DeviceId(100),
            devices: 50,
            first_index: 1,
            names,
            tenant: String::new(),
            table: None,
        }));
        let topic = Template::parse("muster/${id}/t").unwrap();
        let uplink = Arc::new(Uplink::new(topic, payload, carrier, false).unwrap());
        let stream = ReaderStream {
            id: StreamId(2),
            directory: Arc::clone(&directory),
            uplink: Arc::clone(&uplink),
        };
        World {
            directory,
            uplink,
            reader: Reader::new(RUN, vec![stream]),
        }
    }

    fn id(device: u32, seq: u32) -> MessageId {
        MessageId {
            run: RUN,
            device: DeviceId(device),
            stream: StreamId(2),
            seq,
        }
    }

    fn due(id: &MessageId) -> Option<Micros> {
        Some(Micros(u64::from(id.seq) * 1_000))
    }

    fn sent(world: &World, id: &MessageId) -> (String, Vec<u8>, Option<String>) {
        let mut scratch = UplinkScratch::default();
        world
            .uplink
            .render(&world.directory, id, due(id).unwrap(), &mut scratch);
        let property = scratch.with_property(|all| all.first().map(|(_, text)| (*text).to_owned()));
        (
            scratch.topic().to_owned(),
            scratch.payload.clone(),
            property,
        )
    }

    fn forms() -> Vec<(PayloadSpec, Carrier)> {
        let text = || PayloadSpec::Template(TEXT.to_owned());
        vec![
            (PayloadSpec::Size(100), Carrier::Payload),
            (text(), Carrier::Payload),
            (text(), Carrier::Field("/headers/correlation-id".to_owned())),
            (PayloadSpec::Size(7), Carrier::Property),
            (
                PayloadSpec::Template("${hex:8}${stamp}".to_owned()),
                Carrier::Payload,
            ),
            // Alike for every message but for its stamp.
            (PayloadSpec::Template("on".to_owned()), Carrier::Property),
            (
                PayloadSpec::Template(r#"{"id":"${stamp}"}"#.to_owned()),
                Carrier::Payload,
            ),
            (PayloadSpec::Size(22), Carrier::Payload),
            (
                PayloadSpec::LogNormal {
                    median: 40,
                    p99: 60,
                    least: 22,
                },
                Carrier::Payload,
            ),
        ]
    }

    proptest! {
        /// read(render(id)) = id, intact, with its due instant, for every carrier.
        #[test]
        fn a_message_is_read_back(device in 100u32..150, seq in 0u32..1_000_000) {
            for (payload, carrier) in forms() {
                let mut world = world(&payload, carrier);
                let id = id(device, seq);
                let (topic, payload, property) = sent(&world, &id);
                let copy = world.reader.read(&topic, &payload, property.as_deref(), &mut due);
                let expected = Copy { id: Some(id), due: due(&id), integrity: Integrity::Intact };
                prop_assert_eq!(copy, expected);
            }
        }

        /// A copy with one altered byte is corrupted, and never taken for another message.
        #[test]
        fn a_damaged_message_is_never_another_one(
            device in 100u32..150, seq in 0u32..1_000, at: prop::sample::Index, flip in 1u8..,
        ) {
            for (payload, carrier) in forms() {
                let mut world = world(&payload, carrier);
                let id = id(device, seq);
                let (topic, mut payload, mut property) = sent(&world, &id);
                let at = at.index(payload.len() + property.as_ref().map_or(0, String::len));
                if let Some(byte) = payload.get_mut(at) {
                    *byte ^= flip;
                } else if let Some(text) = &mut property {
                    let at = at - payload.len();
                    let other = char::from(b'!' + flip % 94);
                    prop_assume!(!text[at..].starts_with(other));
                    text.replace_range(at..=at, &other.to_string());
                }
                let copy = world.reader.read(&topic, &payload, property.as_deref(), &mut due);
                prop_assert_eq!(copy.integrity, Integrity::Corrupted);
                prop_assert!(copy.id.is_none_or(|read| read == id), "{:?}", copy);
                prop_assert_eq!(copy.due, copy.id.and_then(|id| due(&id)));
            }
        }
    }

    /// A copy as a rule chain with a node that publishes would write it: the values of a point alone, with
    /// numbers in their shortest form and keys in another order.
    fn by_rule_chain(payload: &[u8]) -> Vec<u8> {
        let message: serde_json::Value = serde_json::from_slice(payload).unwrap();
        let point = message.get("values").unwrap_or(&message);
        serde_json::to_vec(point).unwrap()
    }

    #[test]
    fn a_stamp_with_a_check_over_itself_survives_a_rule_chain() {
        const METER: &str = r#"{"ts":${unique_ms},"values":{"musterId":"${stamp}","a":1.50,"z":"x","b":${uniform:1.00:9.00}}}"#;
        const FLAT: &str = r#"{"a":1.50,"musterId":"${stamp}"}"#;
        for (template, carrier) in [
            (METER, Carrier::Payload),
            (METER, Carrier::Field("/values/musterId".to_owned())),
            (FLAT, Carrier::Payload),
            (FLAT, Carrier::Field("/musterId".to_owned())),
        ] {
            let spec = PayloadSpec::Template(template.to_owned());
            let world = world(&spec, carrier.clone());
            let sent_as = |integrity| {
                let uplink = (*world.uplink).clone().checked_by(integrity);
                let stream = ReaderStream {
                    id: StreamId(2),
                    directory: Arc::clone(&world.directory),
                    uplink: Arc::new(uplink),
                };
                let reader = Reader::new(RUN, vec![stream.clone()]);
                let (uplink, directory) = (stream.uplink, Arc::clone(&world.directory));
                World {
                    directory,
                    uplink,
                    reader,
                }
            };
            let id = id(120, 3);
            let mut level = sent_as(IntegrityLevel::Stamp);
            let (topic, payload, _) = sent(&level, &id);
            let northbound = by_rule_chain(&payload);
            let escaped =
                serde_json::to_vec(&String::from_utf8(northbound.clone()).unwrap()).unwrap();
            for copy in [&payload, &northbound, &escaped] {
                let copy = level.reader.read(&topic, copy, None, &mut due);
                let expected = (Some(id), due(&id), Integrity::Intact);
                assert_eq!((copy.id, copy.due, copy.integrity), expected, "{template}");
            }
            let mut altered = northbound.clone();
            let at = northbound
                .windows(8)
                .position(|it| it == b"musterId")
                .unwrap()
                + 15;
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let copy = level.reader.read(&topic, &altered, None, &mut due);
            assert_eq!(copy.integrity, Integrity::Corrupted, "{template}");
            assert!(copy.id.is_none_or(|read| read == id));
            // A check over the body does not survive it.
            let mut body = sent_as(IntegrityLevel::Body);
            let (topic, payload, _) = sent(&body, &id);
            let copy = body
                .reader
                .read(&topic, &by_rule_chain(&payload), None, &mut due);
            assert_eq!(copy.integrity, Integrity::Corrupted, "{template}");
        }
    }

    #[test]
    fn damage_outside_the_stamp_leaves_the_id_readable() {
        let mut world = world(&PayloadSpec::Size(100), Carrier::Payload);
        let (topic, mut payload, _) = sent(&world, &id(120, 3));
        payload[50] ^= 1;
        let copy = world.reader.read(&topic, &payload, None, &mut due);
        assert_eq!(
            (copy.id, copy.integrity),
            (Some(id(120, 3)), Integrity::Corrupted)
        );
    }

    #[test]
    fn an_id_whose_stamp_is_whole_is_believed_whatever_became_of_the_rest() {
        let mut world = world(&PayloadSpec::Size(100), Carrier::Payload);
        let (topic, mut payload, _) = sent(&world, &id(120, 3));
        payload.truncate(60);
        payload[30..].fill(0);
        let copy = world.reader.read(&topic, &payload, None, &mut due);
        let expected = (Some(id(120, 3)), due(&id(120, 3)), Integrity::Corrupted);
        assert_eq!((copy.id, copy.due, copy.integrity), expected);
    }

    #[test]
    fn damage_in_the_check_leaves_the_id_readable() {
        let mut world = world(&PayloadSpec::Template("on".to_owned()), Carrier::Property);
        let (topic, payload, property) = sent(&world, &id(120, 3));
        let mut property = property.unwrap();
        let altered = if property.ends_with('A') { "B" } else { "A" };
        property.replace_range(29.., altered);
        let copy = world
            .reader
            .read(&topic, &payload, Some(&property), &mut due);
        assert_eq!(
            (copy.id, copy.integrity),
            (Some(id(120, 3)), Integrity::Corrupted)
        );
    }

    #[test]
    fn damage_in_the_due_instant_does_not_date_the_message() {
        let mut world = world(&PayloadSpec::Size(100), Carrier::Payload);
        let (topic, mut payload, _) = sent(&world, &id(120, 3));
        payload[17] ^= 8;
        let copy = world.reader.read(&topic, &payload, None, &mut due);
        let expected = (Some(id(120, 3)), due(&id(120, 3)), Integrity::Corrupted);
        assert_eq!((copy.id, copy.due, copy.integrity), expected);
    }

    #[test]
    fn damage_in_the_number_leaves_no_id() {
        let mut world = world(&PayloadSpec::Size(100), Carrier::Payload);
        let (topic, mut payload, _) = sent(&world, &id(120, 3));
        payload[12] ^= 1;
        let copy = world.reader.read(&topic, &payload, None, &mut due);
        assert_eq!((copy.id, copy.integrity), (None, Integrity::Corrupted));
    }

    #[test]
    fn topics_lead_back_to_devices_of_a_list() {
        let names = ["SN/7", "\u{c4}-1", "x"];
        let table = NameTable::build(1, 3, |place, out| out.push_str(names[place as usize]));
        let names = Names::Listed(Arc::new(table.unwrap()));
        let mut world = world_of(&PayloadSpec::Size(4), Carrier::Order, names);
        let mut read = |topic: &str| world.reader.read(topic, b"abcd", None, &mut due).id;
        assert_eq!(read("muster/\u{c4}-1/t"), Some(id(101, 0)));
        assert_eq!(read("muster/SN/7/t"), Some(id(100, 0)));
        assert_eq!(read("muster/\u{c4}-1/t"), Some(id(101, 1)));
        assert_eq!(read("muster/\u{c4}-2/t"), None);
    }

    #[test]
    fn order_counts_the_arrivals_of_each_device() {
        let mut world = world(&PayloadSpec::Size(4), Carrier::Order);
        let mut read = |topic: &str| world.reader.read(topic, b"abcd", None, &mut due).id;
        assert_eq!(read("muster/meter-0001/t"), Some(id(100, 0)));
        assert_eq!(read("muster/meter-0002/t"), Some(id(101, 0)));
        assert_eq!(read("muster/meter-0001/t"), Some(id(100, 1)));
        assert_eq!(read("muster/meter-9999/t"), None);
    }

    fn blind(text: &str) -> Carrier {
        Carrier::Blind(BlindField {
            pointer: "/h/id".to_owned(),
            text: text.to_owned(),
        })
    }

    /// For all messages: the id that the device itself gave one leads back to it.
    #[test]
    fn an_id_of_the_applications_own_leads_back_to_its_message() {
        for (json, text) in [
            (r#""${id}-${seq}""#, "${id}-${seq}"),
            (
                r#""r${run}/${index:04}:${seq}.x""#,
                "r${run}/${index:04}:${seq}.x",
            ),
            ("${seq}", "${seq}"),
        ] {
            let payload = format!(r#"{{"v":${{normal:20:3}},"h":{{"id":{json}}}}}"#);
            let mut world = world(&PayloadSpec::Template(payload), blind(text));
            for id in [id(100, 0), id(149, 7), id(120, 4_000_000_000)] {
                let (topic, payload, property) = sent(&world, &id);
                assert_eq!(property, None);
                let copy = world.reader.read(&topic, &payload, None, &mut due);
                let expected = (Some(id), due(&id), Integrity::Unchecked);
                assert_eq!((copy.id, copy.due, copy.integrity), expected, "{text}");
            }
        }
    }

    #[test]
    fn another_id_is_nobodys() {
        let payload = PayloadSpec::Template(r#"{"h":{"id":"${id}-${seq}"}}"#.to_owned());
        let mut world = world(&payload, blind("${id}-${seq}"));
        for (payload, expected) in [
            (r#"{"h":{"id":"meter-0001-7"}}"#, Some(id(100, 7))),
            // Another device, a number as no message has it, none, and no field.
            (r#"{"h":{"id":"meter-0002-7"}}"#, None),
            (r#"{"h":{"id":"meter-0001-07"}}"#, None),
            (r#"{"h":{"id":"meter-0001-4294967296"}}"#, None),
            (r#"{"h":{"id":"meter-0001-"}}"#, None),
            (r#"{"h":{"id":["meter-0001-7"]}}"#, None),
            (r#"{"h":1}"#, None),
            ("", None),
        ] {
            let topic = "muster/meter-0001/t";
            let copy = world.reader.read(topic, payload.as_bytes(), None, &mut due);
            assert_eq!(copy.id, expected, "{payload}");
        }
    }

    #[test]
    fn a_message_of_somebody_else_is_unstamped_and_not_corrupted() {
        let mut world = world(&PayloadSpec::Size(100), Carrier::Payload);
        let copy = world.reader.read("other/topic", b"hello", None, &mut due);
        assert_eq!(
            copy,
            Copy {
                id: None,
                due: None,
                integrity: Integrity::Unchecked
            }
        );
    }
}
