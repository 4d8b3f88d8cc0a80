//! The payloads of the published tests of ThingsBoard, by their names.

use muster_load::{PayloadSpec, Schedule, ScheduleSpec, StreamSchedule};
use muster_platform::{BoardPayload, BoardShare, BoardValues, Carrier, NamedPayload, Rare};

use super::stream::Class;
use crate::view::View;

pub(crate) const NAMES: [&str; 5] = [
    "smart-meter",
    "smart-tracker",
    "industrial-plc",
    "random-mix",
    "long-key",
];

/// The payload, if it is one of these and the only form: the outer option.
pub(super) fn payload(
    class: &Class<'_>,
    (view, number): (&View<'_>, u8),
    carrier: &Carrier,
    schedule: Option<&ScheduleSpec>,
) -> Option<Option<PayloadSpec>> {
    let payload = view.get("payload")?;
    let (name, keys) = named(&payload)?;
    let values = values_of(name, keys.as_ref());
    let alarms = match keys.and_then(|keys| keys.get("alarms")) {
        Some(alarms) => rare(class, &alarms, schedule).map(Some),
        None => Some(None),
    };
    let (Some(values), Some(alarms)) = (values, alarms) else {
        return Some(None);
    };
    let named = NamedPayload::Board(BoardPayload {
        values,
        topic: view.text_of("topic"),
        is_stamped: matches!(carrier, Carrier::Payload | Carrier::Field(_)),
        alarms,
        share: share(class, number),
    });
    Some(Some(named.spec(0)))
}

/// The part of its devices' milliseconds that the stream at `number` of its fleet has.
fn share(class: &Class<'_>, number: u8) -> BoardShare {
    let streams = class.view.list("streams");
    let places = (0..)
        .zip(&streams)
        .filter(|(_, stream)| has_instant(stream));
    let places: Vec<usize> = places.map(|(place, _)| place).collect();
    let before = places.iter().filter(|place| **place < usize::from(number));
    BoardShare {
        streams: places.len().max(1) as u32,
        place: before.count() as u32,
    }
}

/// Returns true if the messages of a stream are a payload of these names with a `ts`.
fn has_instant(stream: &View<'_>) -> bool {
    let payload = stream.get("payload");
    let values = payload.as_ref().and_then(named);
    let values = values.and_then(|(name, keys)| values_of(name, keys.as_ref()));
    values.is_some_and(|values| {
        let payload = BoardPayload {
            values,
            topic: stream.text_of("topic"),
            is_stamped: false,
            alarms: None,
            share: BoardShare::WHOLE,
        };
        payload.has_instant()
    })
}

/// The name, and what stands under it as a key.
fn named<'a>(payload: &View<'a>) -> Option<(&'static str, Option<View<'a>>)> {
    if let Some(word) = NAMES.into_iter().find(|name| *name == payload.text()) {
        return Some((word, None));
    }
    let forms = payload.entries().map(|(key, _)| key);
    if forms.filter(|key| *key != "content-type").count() > 1 {
        return None;
    }
    let name = NAMES.into_iter().find(|name| payload.get(name).is_some())?;
    Some((name, payload.get(name)))
}

fn values_of(name: &str, keys: Option<&View<'_>>) -> Option<BoardValues> {
    match name {
        "smart-meter" => Some(BoardValues::SmartMeter),
        "smart-tracker" => Some(BoardValues::SmartTracker),
        "random-mix" => Some(BoardValues::RandomMix),
        "long-key" => Some(BoardValues::LongKey),
        _ => Some(BoardValues::IndustrialPlc {
            datapoints: match keys {
                Some(keys) => keys.whole("datapoints")?,
                None => BoardValues::DATAPOINTS,
            },
        }),
    }
}

/// Messages that raise an alarm: whole rounds of the k-th messages of all devices, so that their
/// number is exact.
fn rare(class: &Class<'_>, view: &View<'_>, schedule: Option<&ScheduleSpec>) -> Option<Rare> {
    let (rate, from) = (view.rate("rate")?, view.time("from")?);
    let due_end = class.context.phases.warm_up + class.context.phases.measure;
    if from >= due_end {
        let what = format!("alarms from {from} on: the last message is due before {due_end}");
        return view.refuse_at(
            "from",
            what,
            "begin earlier; 0 s is the start of the warm-up",
        );
    }
    let schedule = StreamSchedule::new(schedule?.clone()).ok()?;
    let until = view.time("until").unwrap_or(due_end).min(due_end);
    let devices = class.devices.max(1);
    let messages_until = |at| schedule.count_until(at);
    let first = messages_until(from).div_ceil(u64::from(devices));
    let last = messages_until(until) / u64::from(devices);
    if first >= last {
        let what = format!("no round of messages of all devices is due from {from} to {until}");
        return view.refuse(what, "a longer time, or an earlier one");
    }
    let count = (rate.get() * (until - from).as_secs_f64()).round() as u64;
    let messages = (last - first) * u64::from(devices);
    if count > messages {
        let what =
            format!("{count} alarms are asked for, and only {messages} messages are due then");
        return view.refuse_at("rate", what, "a lower rate of alarms");
    }
    let round = |round: u64| u32::try_from(round).unwrap_or(u32::MAX);
    Some(Rare {
        count,
        first: round(first),
        end: round(last),
        devices,
    })
}
