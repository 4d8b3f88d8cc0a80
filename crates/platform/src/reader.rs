//! What arrives at a backend: which message is it, and is it what was sent?

use std::sync::Arc;

use muster_model::{
    DeviceId, Integrity, MessageId, Micros, RunId, STAMP_BYTES, STAMP_TEXT, Stamp, StampError,
    StreamId,
};

use crate::pointer::string_at;
use crate::{Carrier, Roster, Uplink, UplinkScratch};

/// Reads the ids of arriving messages back; one a consumer.
#[derive(Debug)]
pub struct Reader {
    run: RunId,
    streams: Vec<ReaderStream>,
    places: Vec<Place>,
    /// Per stream with carrier `order`: the next sequence number of each device.
    order: Vec<Vec<u32>>,
    scratch: UplinkScratch,
}

/// One stream whose messages may arrive.
#[derive(Debug, Clone)]
pub struct ReaderStream {
    /// Its place in the plan.
    pub id: StreamId,
    /// Its devices.
    pub roster: Arc<Roster>,
    /// What they say.
    pub uplink: Arc<Uplink>,
}

/// What one copy says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// Which message it is a copy of; none if that cannot be read.
    pub id: Option<MessageId>,
    /// When that was due, if the carrier tells.
    pub due: Option<Micros>,
    /// Whether it is what was sent.
    pub integrity: Integrity,
}

/// Where a stamp may be found; streams that agree share one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Head,
    After(String),
    Property,
    Field(String),
}

impl Reader {
    /// A reader for all streams of a plan.
    #[must_use]
    pub fn new(run: RunId, streams: Vec<ReaderStream>) -> Self {
        let mut places: Vec<Place> = Vec::new();
        for place in streams.iter().filter_map(|stream| place_of(&stream.uplink)) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let order = streams.iter().map(|stream| match stream.uplink.carrier() {
            Carrier::Order => vec![0; stream.roster.devices() as usize],
            Carrier::Payload | Carrier::Property | Carrier::Field(_) | Carrier::None => Vec::new(),
        });
        let order = order.collect();
        Self {
            run,
            streams,
            places,
            order,
            scratch: UplinkScratch::default(),
        }
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
        for place in &self.places {
            match place.find(self.run, payload, property) {
                Some(Ok(stamp)) => {
                    let due = stamp.due.or_else(|| due_of(&stamp.id));
                    return Copy {
                        id: Some(stamp.id),
                        due,
                        integrity: Integrity::Intact,
                    };
                }
                Some(Err(StampError::Check(stamp))) => damaged = damaged.or(Some(stamp)),
                Some(Err(StampError::NotText)) | None => {}
            }
        }
        if let Some(copy) = self.by_order(topic, due_of) {
            return copy;
        }
        let is_ours = self.streams.iter().any(|stream| stream.may_send_on(topic));
        if !is_ours {
            return Copy {
                id: None,
                due: None,
                integrity: Integrity::Unchecked,
            };
        }
        let known = damaged.filter(|stamp| self.is_readable(stamp, payload, due_of));
        Copy {
            id: known.map(|stamp| stamp.id),
            due: known.and_then(|stamp| self.due_of_damaged(&stamp, due_of)),
            integrity: Integrity::Corrupted,
        }
    }

    /// The due instant of a damaged copy whose id is believed: the damage may be in the instant,
    /// so only the schedule can tell it.
    fn due_of_damaged(
        &self,
        stamp: &Stamp,
        due_of: &mut dyn FnMut(&MessageId) -> Option<Micros>,
    ) -> Option<Micros> {
        let of_stream = self
            .streams
            .iter()
            .find(|stream| stream.id == stamp.id.stream);
        let has_schedule = of_stream.is_some_and(|stream| !stream.uplink.carries_due());
        has_schedule.then(|| due_of(&stamp.id)).flatten()
    }

    fn by_order(
        &mut self,
        topic: &str,
        due_of: &mut dyn FnMut(&MessageId) -> Option<Micros>,
    ) -> Option<Copy> {
        for (stream, next) in self.streams.iter().zip(&mut self.order) {
            if next.is_empty() {
                continue;
            }
            let Some(device) = stream.device_of(topic) else {
                continue;
            };
            let place = (device.0 - stream.roster.first_device().0) as usize;
            let seq = next[place];
            next[place] += 1;
            let id = MessageId {
                run: self.run,
                device,
                stream: stream.id,
                seq,
            };
            let due = due_of(&id);
            return Some(Copy {
                id: Some(id),
                due,
                integrity: Integrity::Unchecked,
            });
        }
        None
    }

    /// Whether the id of a damaged copy may be believed: a message is a pure function of its id,
    /// so either the stamp's check or all the rest must be those of the message it names.
    fn is_readable(
        &mut self,
        stamp: &Stamp,
        payload: &[u8],
        due_of: &mut dyn FnMut(&MessageId) -> Option<Micros>,
    ) -> bool {
        let of_stream = self
            .streams
            .iter()
            .find(|stream| stream.id == stamp.id.stream);
        let Some(stream) = of_stream.filter(|stream| stream.has(stamp.id.device)) else {
            return false;
        };
        let Some(due) = stamp.due.or_else(|| due_of(&stamp.id)) else {
            return false;
        };
        if stamp.id.run != self.run {
            return false;
        }
        stream
            .uplink
            .render(&stream.roster, &stamp.id, due, &mut self.scratch);
        differing(&self.scratch.payload, payload).is_some_and(|bytes| bytes <= DAMAGE_MAX)
    }
}

/// A damaged copy of a message differs from it in few bytes; another message differs in its
/// stamp's check at least, and at a seeded payload in nearly all bytes.
const DAMAGE_MAX: usize = 3;

fn differing(sent: &[u8], came: &[u8]) -> Option<usize> {
    (sent.len() == came.len()).then(|| sent.iter().zip(came).filter(|(a, b)| a != b).count())
}

impl ReaderStream {
    fn has(&self, device: DeviceId) -> bool {
        let first = self.roster.first_device().0;
        device
            .0
            .checked_sub(first)
            .is_some_and(|place| place < self.roster.devices())
    }

    /// Whether one of the stream's devices may publish on that topic, as far as its fixed texts
    /// tell.
    fn may_send_on(&self, topic: &str) -> bool {
        let source = self.uplink.topic().source();
        match source.split_once("${") {
            None => topic == source,
            Some((prefix, rest)) => {
                let suffix = rest.rsplit_once('}').map_or("", |(_, suffix)| suffix);
                topic.starts_with(prefix) && topic.ends_with(suffix)
            }
        }
    }

    /// The device that publishes on that topic, if the topic leads back to it by `${id}`.
    fn device_of(&self, topic: &str) -> Option<DeviceId> {
        let (prefix, suffix) = self.uplink.topic().source().split_once("${id}")?;
        let name = topic.strip_prefix(prefix)?.strip_suffix(suffix)?;
        self.roster.device_named(name)
    }
}

fn place_of(uplink: &Uplink) -> Option<Place> {
    match uplink.carrier() {
        Carrier::Payload => Some(match uplink.payload().template() {
            Some(template) => Place::After(template.stamp_anchor()?.to_owned()),
            None => Place::Head,
        }),
        Carrier::Property => Some(Place::Property),
        Carrier::Field(pointer) => Some(Place::Field(pointer.clone())),
        Carrier::Order | Carrier::None => None,
    }
}

impl Place {
    fn find(
        &self,
        run: RunId,
        payload: &[u8],
        property: Option<&str>,
    ) -> Option<Result<Stamp, StampError>> {
        match self {
            Place::Head => {
                let (head, rest) = payload.split_first_chunk::<STAMP_BYTES>()?;
                Some(Stamp::decode(head, &[rest]))
            }
            Place::After(anchor) if anchor.is_empty() => find_anywhere(run, payload),
            Place::After(anchor) => find_after(anchor.as_bytes(), payload),
            Place::Property => {
                let text = property?.as_bytes().try_into().ok()?;
                Some(Stamp::decode_text(text, &[payload]))
            }
            Place::Field(pointer) => {
                let text = string_at(payload, pointer)?;
                let at = text.as_ptr() as usize - payload.as_ptr() as usize;
                decode_at(payload, at)
            }
        }
    }
}

fn decode_at(payload: &[u8], at: usize) -> Option<Result<Stamp, StampError>> {
    let text = payload.get(at..)?.first_chunk::<STAMP_TEXT>()?;
    Some(Stamp::decode_text(
        text,
        &[&payload[..at], &payload[at + STAMP_TEXT..]],
    ))
}

/// The stamp behind one of the places where the anchor stands: the first that is intact, else
/// the first that is one at all.
fn find_after(anchor: &[u8], payload: &[u8]) -> Option<Result<Stamp, StampError>> {
    let mut best = None;
    let mut from = 0;
    while let Some(at) = find(anchor, &payload[from..]) {
        let start = from + at + anchor.len();
        match decode_at(payload, start) {
            Some(Ok(stamp)) => return Some(Ok(stamp)),
            Some(Err(damage)) => best = best.or(Some(Err(damage))),
            None => {}
        }
        from += at + 1;
    }
    best
}

/// Without a fixed text before it, a stamp is known by the run at its head.
fn find_anywhere(run: RunId, payload: &[u8]) -> Option<Result<Stamp, StampError>> {
    let mut best = None;
    for start in 0..=payload.len().checked_sub(STAMP_TEXT)? {
        match decode_at(payload, start) {
            Some(Ok(stamp)) => return Some(Ok(stamp)),
            Some(Err(StampError::Check(stamp))) if stamp.id.run == run => {
                best = best.or(Some(Err(StampError::Check(stamp))));
            }
            Some(Err(_)) | None => {}
        }
    }
    best
}

fn find(needle: &[u8], text: &[u8]) -> Option<usize> {
    text.windows(needle.len())
        .position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use muster_load::{NameTemplate, PayloadSpec, Template};
    use proptest::prelude::*;

    use super::*;
    use crate::RosterSpec;

    const RUN: RunId = RunId(77);
    const TEXT: &str =
        r#"{"ts":${due_ms},"headers":{"correlation-id":"${stamp}"},"v":${normal:20:3}}"#;

    struct World {
        roster: Arc<Roster>,
        uplink: Arc<Uplink>,
        reader: Reader,
    }

    fn world(payload: &PayloadSpec, carrier: Carrier) -> World {
        let roster = Arc::new(Roster::new(RosterSpec {
            seed: 5,
            wall_ms_at_t0: 1_700_000_000_000,
            first_device: DeviceId(100),
            devices: 50,
            first_index: 1,
            names: NameTemplate::parse("meter-${index:04}").unwrap(),
            tenant: String::new(),
            table: None,
        }));
        let topic = Template::parse("muster/${id}/t").unwrap();
        let uplink = Arc::new(Uplink::new(topic, payload, carrier, false).unwrap());
        let stream = ReaderStream {
            id: StreamId(2),
            roster: Arc::clone(&roster),
            uplink: Arc::clone(&uplink),
        };
        World {
            roster,
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
            .render(&world.roster, id, due(id).unwrap(), &mut scratch);
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
                let (topic, mut payload, property) = sent(&world, &id);
                let at = at.index(payload.len());
                payload[at] ^= flip;
                let copy = world.reader.read(&topic, &payload, property.as_deref(), &mut due);
                prop_assert_eq!(copy.integrity, Integrity::Corrupted);
                prop_assert!(copy.id.is_none_or(|read| read == id), "{:?}", copy);
                prop_assert_eq!(copy.due, copy.id.and_then(|id| due(&id)));
            }
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
    fn order_counts_the_arrivals_of_each_device() {
        let mut world = world(&PayloadSpec::Size(4), Carrier::Order);
        let mut read = |topic: &str| world.reader.read(topic, b"abcd", None, &mut due).id;
        assert_eq!(read("muster/meter-0001/t"), Some(id(100, 0)));
        assert_eq!(read("muster/meter-0002/t"), Some(id(101, 0)));
        assert_eq!(read("muster/meter-0001/t"), Some(id(100, 1)));
        assert_eq!(read("muster/meter-9999/t"), None);
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
