//! A stream: when and how it is sent.

use muster_load::{HoldRate, ScheduleSpec, Shape, StreamSchedule, Template, needs_escapes};
use muster_model::{DeviceId, Micros, mix};
use muster_plan::{Ack, Policy, StreamKind, StreamPlan};
use muster_platform::{ApplicationId, Carrier, Dialect, Who};
use muster_protocol::mqtt::{Qos, Version};

use super::body::body;
use super::command;
use super::fleet::{FleetContext, is_topic};
use super::hono;
use super::http;
use super::query;
use super::requests;
use super::shape;
use super::subscriptions;
use super::templates::Variables;
use super::thingsboard;
use crate::view::View;

pub(super) struct Class<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) context: &'a FleetContext<'a>,
    pub(super) devices: u32,
    pub(super) version: Version,
    pub(super) variables: &'a Variables<'a>,
}

pub(super) fn streams(class: &Class<'_>) -> Option<Vec<StreamPlan>> {
    let views = class.view.list("streams");
    let numbered = (class.context.stream..).zip(&views);
    let built: Vec<_> = numbered
        .map(|(number, view)| stream(class, view, number))
        .collect();
    let streams: Vec<StreamPlan> = built.into_iter().collect::<Option<_>>()?;
    query::one_of_each_kind(&streams, &views)?;
    for (at, (stream, view)) in streams.iter().zip(&views).enumerate() {
        if by_topic(stream).is_some() {
            lead_back(stream, view, &streams[..at])?;
        }
    }
    subscriptions::are_distinct(class, &streams, &views)?;
    thingsboard::warn(class, &streams, &views);
    Some(streams)
}

/// The carrier of a stream by whose topic a copy finds its device.
fn by_topic(stream: &StreamPlan) -> Option<&'static str> {
    match stream.carrier {
        Carrier::Order => Some("order"),
        Carrier::Blind(_) => Some("blind"),
        Carrier::Payload
        | Carrier::Property
        | Carrier::Field(_)
        | Carrier::ApplicationId
        | Carrier::None => None,
    }
}

/// Checks that a topic leads back to one device and one stream: without a stamp it alone says whose
/// messages they are.
fn lead_back(stream: &StreamPlan, view: &View<'_>, earlier: &[StreamPlan]) -> Option<()> {
    let carrier = by_topic(stream)?;
    let topic = http::address(view)?;
    let mut variables = stream
        .surface
        .names()
        .skip_while(|(name, _)| *name == "tenant");
    let is_invertible = variables.next().is_some_and(|(name, _)| name == "id");
    if !is_invertible || variables.next().is_some() {
        let what = format!("`carrier: {carrier}` needs a topic that leads back to its device");
        return topic.refuse(
            what,
            "fixed text around one `${id}`, such as muster/${id}/t",
        );
    }
    let same = |other: &&StreamPlan| {
        by_topic(other).is_some() && other.surface.source() == stream.surface.source()
    };
    if let Some(other) = earlier.iter().find(same) {
        let what = format!(
            "`{}` has this topic too, and neither carries a stamp",
            other.name
        );
        return topic.refuse(
            what,
            &format!("give each stream of `carrier: {carrier}` its own topic"),
        );
    }
    Some(())
}

impl Class<'_> {
    /// The role of the fleet's links on the platform.
    pub(super) fn role(&self) -> Who {
        let kind = self.view.get("credential");
        let kind = kind.map_or("none", |credential| credential.text_of("kind"));
        match kind {
            _ if self.view.get("gateway").is_some() => Who::Gateway,
            "none" | "certificate" => Who::Nobody,
            _ => Who::Device,
        }
    }
}

pub(super) struct Delivery {
    pub(super) qos: Qos,
    pub(super) is_confirmable: bool,
    pub(super) ack: Ack,
    /// Messages without an answer, and how they would have one.
    pub(super) unanswered: (&'static str, &'static str),
}

fn delivery(class: &Class<'_>, view: &View<'_>) -> Option<Delivery> {
    let protocol = class.context.scheme.protocol();
    if !protocol.has_qos {
        return requests::delivery(view, protocol, class.context.dialect);
    }
    let qos = Qos::from_bits(view.whole("qos")?)?;
    takes_qos(view, qos, class.context.dialect)?;
    Some(Delivery {
        qos,
        is_confirmable: true,
        ack: ack(view, qos, class.context.dialect)?,
        unanswered: ("QoS 0", "use `qos: 1`"),
    })
}

fn stream(class: &Class<'_>, view: &View<'_>, number: u16) -> Option<StreamPlan> {
    query::takes_kind(class, view)?;
    hono::takes(class, view)?;
    http::takes(class, view)?;
    match view.text_of("kind") {
        "command" => command::command_stream(class, view, number),
        "receive" => command::receive_stream(class, view, number),
        _ => uplink_stream(class, view, number),
    }
}

fn uplink_stream(class: &Class<'_>, view: &View<'_>, number: u16) -> Option<StreamPlan> {
    let schedule = schedule(class, view, number);
    let delivery = delivery(class, view)?;
    is_of_its_link(class, view)?;
    let topic = http::destination(class, view);
    let surface = topic.as_ref().and_then(|topic| surface(class, view, topic));
    let position = (number - class.context.stream) as u8;
    let topic = topic.and_then(|topic| numbered(class, view, (topic, position), schedule.as_ref()));
    let body = body(class, view, position, schedule.as_ref());
    let http = http::call(class, view);
    let Delivery { qos, ack, .. } = delivery;
    let silent = (ack == Ack::None).then_some(delivery.unanswered);
    let kind = kind(class, view, qos)?;
    let is_query = matches!(kind, StreamKind::CommandQuery { .. });
    let loop_ = if is_query {
        query::loop_(view)
    } else {
        loop_(view, silent)
    };
    let retry = retry(view, silent);
    if let (Some(Policy::Closed), Some(schedule)) = (&loop_, &schedule) {
        has_period(view, schedule)?;
    }
    let mut body = body?;
    let topic = hono::properties(class, view, topic?, &mut body, position);
    is_found(view, ack, &body.carrier)?;
    requests::can_be_sent(class, view, (&body, topic.as_ref()?), ack)?;
    hono::warn_of_large_bodies(class, view, body.most);
    Some(StreamPlan {
        name: view.text_of("name").to_owned(),
        id: super::stream_id(number),
        kind,
        filter: None,
        schedule: schedule?,
        policy: loop_?,
        topic: topic?,
        surface: surface?,
        qos,
        is_confirmable: delivery.is_confirmable,
        retain: view.truth("retain").unwrap_or(false),
        ack,
        timeout: view.time("timeout")?,
        deadline: view.time("deadline"),
        payload: body.payload,
        largest: u32::try_from(body.most).unwrap_or(u32::MAX),
        content_type: body.content_type,
        carrier: body.carrier,
        integrity: body.integrity,
        retry: retry?,
        http: http?,
    })
}

/// The topic with the number of each message, where the dialect has it there.
fn numbered(
    class: &Class<'_>,
    view: &View<'_>,
    (topic, position): (Template, u8),
    schedule: Option<&ScheduleSpec>,
) -> Option<Template> {
    let written = class.context.dialect.numbered(topic.source(), position);
    // The answer to a request needs no number.
    if written == topic.source() || class.context.scheme.protocol().asks {
        return Some(topic);
    }
    let schedule = StreamSchedule::new(schedule?.clone()).ok()?;
    let most = schedule.count().div_ceil(u64::from(class.devices.max(1)));
    let is_small = most <= u64::from(ApplicationId::NUMBERED_MAX);
    if !is_small || u32::from(position) >= ApplicationId::NUMBERED_STREAMS {
        let what = format!(
            "{most} requests of a device, in the stream at place {position} of its fleet, have no number of at most 2147483647"
        );
        let help = "at most 21474836 of a device, in one of the first 100 streams";
        return view.refuse_at("topic", what, help);
    }
    Template::parse(&written).ok()
}

/// Topic of the messages northbound, which for every device is a topic name too.
fn surface(class: &Class<'_>, view: &View<'_>, topic: &Template) -> Option<Template> {
    let address = http::address(view)?;
    // No topic has the query of a path.
    let source = match view.get("path") {
        Some(_) => topic.source().split('?').next().unwrap_or_default(),
        None => class.context.dialect.surface(topic.source()),
    };
    let surface = Template::parse(source).ok()?;
    // An API that runs elsewhere has topics of its own.
    let has_own = view.get("path").is_some() && !class.context.is_embedded;
    (has_own || is_topic(&address, &surface, class.variables)).then_some(surface)
}

/// Checks that a topic is for links of the fleet's kind, and its devices can be named there.
fn is_of_its_link(class: &Class<'_>, view: &View<'_>) -> Option<()> {
    let topic = http::address(view)?;
    let is_gateway = class.view.get("gateway").is_some();
    let dialect = class.context.dialect;
    requests::has_path(class, &topic)?;
    let Some(is_for_gateways) = (dialect.topic)(topic.text()).is_for_gateways else {
        if let Some(lack) = (dialect.topic)(topic.text()).lack {
            topic.warn(format!("`{}` {}", topic.text(), lack.what), lack.help);
        }
        return Some(());
    };
    if is_for_gateways != is_gateway {
        let (what, help) = match is_gateway {
            true => ("for a link of one device", "such as v1/gateway/telemetry"),
            false => (
                "for a gateway",
                "such as v1/devices/me/telemetry, or give the fleet `gateway`",
            ),
        };
        return topic.refuse(format!("`{}` is {what}", topic.text()), help);
    }
    if !is_gateway {
        return Some(());
    }
    let variables = class.variables;
    let mut names = variables
        .named_places()
        .map(|place| (place, variables.name(place)));
    let Some((place, name)) = names.find(|(_, name)| needs_escapes(name)) else {
        return Some(());
    };
    let id = class.view.get("id")?;
    let owner = variables.owner(Template::parse(id.text()).ok().as_ref(), place);
    let what = format!("`{name}`{owner} cannot stand in the JSON of a gateway as it is");
    id.refuse(
        what,
        "a name without quotes, backslashes and control characters",
    )
}

fn takes_qos(view: &View<'_>, qos: Qos, dialect: Dialect) -> Option<()> {
    let most = dialect.publishing().qos_maximum;
    if qos.bits() <= most {
        return Some(());
    }
    let what = format!("{dialect} takes nothing at QoS {}", qos.bits());
    view.refuse_at("qos", what, &format!("at most {most}"))
}

fn kind(class: &Class<'_>, view: &View<'_>, qos: Qos) -> Option<StreamKind> {
    match view.text_of("kind") {
        "event" => Some(StreamKind::Event),
        "command-query" => query::kind(class, view, qos),
        _ => Some(StreamKind::Telemetry),
    }
}

fn schedule(class: &Class<'_>, view: &View<'_>, number: u16) -> Option<ScheduleSpec> {
    let load = shape::load(view, class.devices)?;
    let spec = ScheduleSpec {
        shape: load.shape,
        rate: load.rate,
        phase: shape::phase(view),
        hold_rate: HoldRate::default(),
        poisson: load.poisson,
        first_device: DeviceId(class.context.device),
        devices: class.devices,
        limit_per_device: view.whole("count"),
        warm_up: class.context.phases.warm_up,
        measure: class.context.phases.measure,
        seed: mix(class.context.seed, u64::from(number)),
    };
    match StreamSchedule::new(spec) {
        Ok(schedule) => {
            if schedule.count() == 0 {
                let help = "a run in which nothing is due is invalid: a higher rate, a longer run";
                view.warn("not one message of this stream is due", help);
            } else if schedule.spec().limit_per_device.is_none() {
                warn_of_late_instants(view, &schedule);
            }
            warn_of_stages(view, schedule.spec());
            Some(schedule.spec().clone())
        }
        Err(error) => view.refuse(
            format!("this schedule is impossible: {error}"),
            "see the keys of `shape`",
        ),
    }
}

/// Says so where the end of the run leaves out instants of a replay.
fn warn_of_late_instants(view: &View<'_>, schedule: &StreamSchedule) {
    let Shape::Replay(instants) = &schedule.spec().shape else {
        return;
    };
    let late = (instants.len() as u64).saturating_sub(schedule.count());
    if late > 0 {
        let what = format!(
            "{late} of {} instants lie beyond the measured phase of {}, and are left out",
            instants.len(),
            schedule.spec().measure
        );
        view.warn(what, "a longer `phases.measure`, or a shorter file");
    }
}

/// Says so where the end of the run leaves out stages, and where it makes the last hold longer than it states.
fn warn_of_stages(view: &View<'_>, spec: &ScheduleSpec) {
    let measure = spec.measure;
    let stretches = spec.shape.stretches(measure);
    let Some(last) = stretches.last() else {
        return;
    };
    let shape = view.get("shape");
    let stages = shape.map_or_else(Vec::new, |shape| shape.list("stages"));
    if let Some(late) = stretches.iter().find(|it| it.from >= measure)
        && let Some(view) = stages.get(late.stage)
    {
        let mut reached = stretches.iter().filter(|it| it.from < measure);
        let what = match reached.any(|it| it.stage == late.stage) {
            true => "the hold of this stage begins",
            false => "this stage begins",
        };
        let what = format!(
            "{what} {} after the warm-up, and the measured phase lasts {measure}",
            late.from
        );
        let help =
            "what lies behind the end is left out: a longer `phases.measure`, or shorter stages";
        view.warn(what, help);
    }
    let stated = stages.last().and_then(|stage| stage.time("hold"));
    let held = last.until - last.from;
    if let (Some(stated), Some(view)) = (stated, stages.last())
        && last.is_hold
        && stated > Micros::ZERO
        && stated < held
    {
        let what = format!("the last stage holds for {held}, to the end of the measured phase");
        view.warn(what, "a longer `hold`, or a shorter `phases.measure`");
    }
}

/// An acknowledgement by the application names the message.
fn is_found(view: &View<'_>, ack: Ack, carrier: &Carrier) -> Option<()> {
    if ack != Ack::Application || *carrier == Carrier::ApplicationId {
        return Some(());
    }
    let what =
        format!("`ack: application` names a message by its id, and the carrier is {carrier}");
    view.refuse_at(
        "carrier",
        what,
        "use `carrier: application-id`, or `ack: transport`",
    )
}

fn ack(view: &View<'_>, qos: Qos, dialect: Dialect) -> Option<Ack> {
    let declared = view.text_of("ack");
    match (declared, qos) {
        ("application", _) if (dialect.topic)(view.text_of("topic")).is_acknowledged => {
            Some(Ack::Application)
        }
        ("application", _) => {
            let what = format!("no application acknowledges messages with {dialect}");
            let help =
                "use `ack: transport`, or a platform or topic where one does, such as sap-edge";
            view.refuse_at("ack", what, help)
        }
        ("none", Qos::AtMostOnce) => Some(Ack::None),
        ("transport", Qos::AtLeastOnce | Qos::ExactlyOnce) => Some(Ack::Transport),
        ("none", Qos::AtLeastOnce | Qos::ExactlyOnce) => {
            let what = format!("QoS {} is always acknowledged by MQTT itself", qos.bits());
            view.refuse_at("ack", what, "use `qos: 0`, or `ack: transport`")
        }
        _ => {
            let help = "use `qos: 1`, or `ack: none`";
            view.refuse_at("ack", "QoS 0 is never acknowledged", help)
        }
    }
}

fn loop_(view: &View<'_>, silent: Option<(&str, &str)>) -> Option<Policy> {
    let loop_view = view.get("loop")?;
    let policy = match loop_view.text() {
        "open" => {
            return Some(Policy::Queue {
                bound: crate::defaults::DEFAULT_BOUND.parse().ok()?,
                in_flight: None,
            });
        }
        "closed" => Policy::Closed,
        _ => in_flight(&loop_view)?,
    };
    if let Some((silent, help)) = silent {
        let what = format!("this loop waits for answers, and {silent} has none");
        return loop_view.refuse(what, &format!("{help}, or `loop: open`"));
    }
    Some(policy)
}

/// A closed loop's next message is due a period after the last one (docs/semantics.md#instants).
fn has_period(view: &View<'_>, schedule: &ScheduleSpec) -> Option<()> {
    let shape = match &schedule.shape {
        Shape::Replay(_) => "a replay",
        _ if schedule.poisson => "Poisson arrivals",
        Shape::Constant
        | Shape::Ramp { .. }
        | Shape::Stages(_)
        | Shape::Spike { .. }
        | Shape::Sine { .. }
        | Shape::Burst { .. } => return Some(()),
    };
    let what = format!("a closed loop needs a period, and {shape} has none");
    view.refuse_at("loop", what, "use `loop: open`, or another shape")
}

pub(super) fn in_flight(view: &View<'_>) -> Option<Policy> {
    let in_flight = view.whole("in-flight")?;
    if view.text_of("overflow") == "queue" {
        return Some(Policy::Queue {
            bound: view.whole("bound")?,
            in_flight: Some(in_flight),
        });
    }
    if let Some(bound) = view.get("bound") {
        return bound.refuse("`bound` has no meaning with `overflow: shed`", "remove it");
    }
    Some(Policy::Shed { in_flight })
}

fn retry(view: &View<'_>, silent: Option<(&str, &str)>) -> Option<u8> {
    let retry: u8 = view.whole("retry")?;
    if let (Some((silent, help)), 1..) = (silent, retry) {
        let what = format!("{silent} has no answer whose absence could be noticed");
        return view.refuse_at("retry", what, &format!("{help}, or `retry: 0`"));
    }
    Some(retry)
}
