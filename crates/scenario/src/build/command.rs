//! The commands of a run: which backend issues them, how often, and which streams take them.

use muster_load::{HoldRate, PayloadSpec, Phase, ScheduleSpec, Shape, StreamSchedule, Template};
use muster_model::{CommandTarget, DeviceId, MessageId, Rate, RunId, Stamp, StreamId, mix};
use muster_plan::{Ack, Policy, StreamKind, StreamPlan};
use muster_platform::{
    Carrier, CommandScratch, Dialect, IntegrityLevel, OutboundCommand, Replying,
};
use muster_protocol::mqtt::{Qos, topic};

use super::query;
use super::stream::Class;
use super::templates::device_template;
use crate::view::View;

#[derive(Debug, Clone, Copy)]
pub(super) struct Commands {
    is_two_way: bool,
    to: CommandTarget,
    /// To all devices together; 0 where commands follow queries.
    rate: Rate,
    devices: u32,
}

/// Reads `commands` of the backend that has it. The outer option: whether it could be read; the
/// inner one: whether there is any.
pub(super) fn commands(root: &View<'_>, dialect: Dialect) -> Option<Option<Commands>> {
    let platform = root.get("platform")?;
    let backends = platform.list("backend");
    let mut having = backends
        .iter()
        .filter_map(|backend| Some((backend, backend.get("commands")?)));
    let Some((backend, view)) = having.next() else {
        return Some(None);
    };
    if let Some((_, second)) = having.next() {
        let help = "keep one: the numbers of commands are given out in one place";
        return second.refuse("another backend issues commands too", help);
    }
    if let Some(consumers) = backend.get("consumers")
        && backend.whole("consumers") != Some(1_u16)
    {
        let what = "commands are issued by one session, and this backend has several";
        return consumers.refuse(what, "use `consumers: 1`, and another backend for the rest");
    }
    consumes_no_commands(backend, dialect)?;
    let commands = Commands {
        is_two_way: is_two_way(&view, dialect)?,
        to: target(&view),
        rate: rate(&view)?,
        devices: devices(root),
    };
    let asks = kinds(root).any(|kind| kind == "command-query");
    if commands.devices == 0 {
        let help = "add `{ kind: command }` to the streams of a fleet";
        return view.refuse("no device takes commands", help);
    }
    if commands.to == CommandTarget::Waiting && !asks {
        let help = "add `{ kind: command-query, every: 10s }` to its streams, or use `to: online`";
        return view.refuse_at("to", "no device asks for commands", help);
    }
    Some(Some(commands))
}

/// Refuses a filter that brings a backend its own commands, as messages that nobody sent.
fn consumes_no_commands(backend: &View<'_>, dialect: Dialect) -> Option<()> {
    let issued = dialect
        .publishing()
        .commands
        .filter(|topic| topic.contains("${id}"));
    let filter = backend.text_of("filter");
    let Some(issued) = issued.map(|topic| topic.replace("${id}", "+")) else {
        return Some(());
    };
    if !topic::overlap(filter, &issued) {
        return Some(());
    }
    let what =
        format!("the filter `{filter}` takes the commands that this backend issues on `{issued}`");
    let help =
        "name `platform.backend.filter`; topics with a common first level have one by themselves";
    backend.refuse(what, help)
}

fn is_two_way(view: &View<'_>, dialect: Dialect) -> Option<bool> {
    let is_two_way = view.text_of("mode") == "two-way";
    if is_two_way && dialect.application.replies.is_none() {
        let what = format!("devices do not reply to commands with {dialect}");
        return view.refuse_at("mode", what, "use `mode: one-way`");
    }
    Some(is_two_way)
}

fn target(view: &View<'_>) -> CommandTarget {
    match view.text_of("to") {
        "waiting" => CommandTarget::Waiting,
        "absent" => CommandTarget::Absent,
        "all" => CommandTarget::All,
        _ => CommandTarget::Online,
    }
}

fn rate(view: &View<'_>) -> Option<Rate> {
    match (target(view), view.rate("rate")) {
        (CommandTarget::Waiting, None) => Some(Rate::ZERO),
        (CommandTarget::Waiting, Some(_)) => {
            let what = "with `to: waiting` each query is answered with a command";
            view.refuse_at("rate", what, "remove `rate`: queries have their own rate")
        }
        (_, Some(rate)) => Some(rate),
        (_, None) => view.refuse(
            "commands have no rate",
            "add `rate: 50/s`, or `to: waiting`",
        ),
    }
}

fn kinds<'a>(root: &View<'a>) -> impl Iterator<Item = &'a str> {
    streams(root).map(|stream| stream.text_of("kind"))
}

pub(super) fn streams<'a>(root: &View<'a>) -> impl Iterator<Item = View<'a>> {
    let fleets = root.list("fleet").into_iter();
    fleets.flat_map(|fleet| fleet.list("streams"))
}

fn devices(root: &View<'_>) -> u32 {
    let fleets = root.list("fleet").into_iter();
    let takes_commands = |fleet: &View<'_>| {
        let streams = fleet.list("streams");
        streams
            .iter()
            .any(|stream| stream.text_of("kind") == "command")
    };
    let counts = fleets.filter(takes_commands);
    counts
        .filter_map(|fleet| fleet.whole::<u32>("count"))
        .fold(0, u32::saturating_add)
}

/// A stream of kind `command`: what a fleet's devices take and reply to.
pub(super) fn command_stream(
    class: &Class<'_>,
    view: &View<'_>,
    number: u16,
) -> Option<StreamPlan> {
    let Some(commands) = class.context.commands else {
        let help = "add `commands: { rate: 50/s }` to `platform.backend`, or remove the stream";
        return view.refuse(
            "this stream takes commands, and no backend issues any",
            help,
        );
    };
    if !class
        .context
        .dialect
        .commands_gateways(class.context.scheme.protocol())
    {
        one_device_a_link(class, view, "commands")?;
    }
    topics_lead_to_one_device(class, commands.is_two_way)?;
    let qos = command_qos(class, view, commands)?;
    let share = f64::from(class.devices) / f64::from(commands.devices.max(1));
    let rate = Rate::per_second(commands.rate.get() * share)?;
    let kind = StreamKind::Command {
        is_two_way: commands.is_two_way,
        status: status(view, commands.is_two_way)?,
        to: commands.to,
    };
    let plan = silent(class, view, number)?;
    let schedule = ScheduleSpec {
        rate,
        ..plan.schedule
    };
    if let Err(error) = StreamSchedule::new(schedule.clone()) {
        return view.refuse(
            format!("commands cannot be issued so: {error}"),
            "another rate",
        );
    }
    Some(StreamPlan {
        kind,
        schedule,
        qos,
        ..plan
    })
}

fn status(view: &View<'_>, is_two_way: bool) -> Option<u16> {
    let Some(written) = view.get("status") else {
        return Some(DONE);
    };
    if !is_two_way {
        let what = "no device replies to commands that are one-way";
        return written.refuse(what, "remove it, or use `commands: { mode: two-way }`");
    }
    view.whole("status")
}

/// The status of a reply that says nothing else: what was asked is done.
const DONE: u16 = 200;

/// The quality of service of what devices subscribe to and of their replies.
fn command_qos(class: &Class<'_>, view: &View<'_>, commands: Commands) -> Option<Qos> {
    if class.context.scheme.protocol().asks {
        let requests = class
            .context
            .dialect
            .requests(class.context.scheme.protocol());
        if commands.to != CommandTarget::Absent && requests.observed.is_none() {
            query::warn_of_deaf_devices(class.view, view);
        }
        return Some(Qos::AtLeastOnce);
    }
    let qos = Qos::from_bits(view.whole("qos")?)?;
    if commands.is_two_way && qos == Qos::AtMostOnce {
        let what = "no answer shows that a reply at QoS 0 was accepted";
        return view.refuse_at("qos", what, "use `qos: 1`, or `mode: one-way`");
    }
    Some(qos)
}

/// Names stand in the topics of commands and replies, which must reach one device and come back.
fn topics_lead_to_one_device(class: &Class<'_>, is_two_way: bool) -> Option<()> {
    let mut command = CommandScratch::default();
    let mut places = class.variables.named_places();
    places.try_for_each(|place| {
        let name = class.variables.name(place);
        topic_leads_to_one_device(class, &name, is_two_way, &mut command)
    })
}

fn topic_leads_to_one_device(
    class: &Class<'_>,
    name: &str,
    is_two_way: bool,
    command: &mut CommandScratch,
) -> Option<()> {
    let (dialect, protocol) = (class.context.dialect, class.context.scheme.protocol());
    let nobody = Stamp {
        id: MessageId {
            run: RunId(0),
            device: DeviceId(0),
            stream: StreamId(0),
            seq: 0,
        },
        due: None,
    };
    let id = || class.view.get("id");
    let to = OutboundCommand {
        stamp: &nobody,
        device: name,
        tenant: class.variables.tenant,
        is_two_way,
    };
    (dialect.application.write_command)(&to, command);
    if dialect.names_replies(protocol) && (dialect.server.command)(&command.topic).is_none() {
        let what = format!("`{name}` cannot be one segment of a path or topic of {dialect}");
        return id()?.refuse(what, "a name without `/`");
    }
    if !command.topic.is_empty() && !topic::is_name(&command.topic) {
        let what = format!("a command to `{name}` would have no topic");
        return id()?.refuse(what, "a name without `+` and `#`");
    }
    // A reply goes where its command said, whatever the names are.
    let is_published = is_two_way && !dialect.names_replies(protocol);
    let Some(filter) = dialect.application.replies.filter(|_| is_published) else {
        return Some(());
    };
    let to = Replying {
        stamp: &nobody,
        request: 0,
        device: name,
        is_gateways: false,
        path: None,
        status: DONE,
    };
    (dialect.write_reply)(&to, command);
    let mut surfaced = String::new();
    let reply =
        (dialect.server.surfaced_reply)(name, &command.topic, &command.payload, &mut surfaced);
    if reply.is_some() && topic::matches(filter, &surfaced) {
        return Some(());
    }
    let what = format!("the replies of `{name}` come on a topic that `{filter}` does not take");
    id()?.refuse(what, "a name without `/`, or `mode: one-way`")
}

/// A stream of kind `receive`: what a fleet's devices subscribe to.
pub(super) fn receive_stream(
    class: &Class<'_>,
    view: &View<'_>,
    number: u16,
) -> Option<StreamPlan> {
    one_device_a_link(class, view, "its own subscriptions")?;
    let Some(filter_view) = view.get("filter") else {
        let help = "add `filter: \"broadcast/#\"`";
        return view.refuse("this stream receives, and does not say what", help);
    };
    let filter = device_template(&filter_view, class.variables)?;
    let first = class.variables.render(&filter, 0);
    if let Err(error) = topic::check_filter(&first) {
        return filter_view.refuse(format!("`{first}` is no topic filter"), &error.to_string());
    }
    if first.starts_with("$share/") {
        let what = "of a shared subscription nobody knows who gets what";
        return filter_view.refuse(
            what,
            "the filter alone: each subscriber has its own account",
        );
    }
    let qos = Qos::from_bits(view.whole("qos")?)?;
    Some(StreamPlan {
        kind: StreamKind::Receive,
        filter: Some(filter),
        qos,
        ..silent(class, view, number)?
    })
}

/// A stream without a schedule.
fn silent(class: &Class<'_>, view: &View<'_>, number: u16) -> Option<StreamPlan> {
    let context = class.context;
    Some(StreamPlan {
        name: view.text_of("name").to_owned(),
        id: super::stream_id(number),
        kind: StreamKind::Receive,
        filter: None,
        schedule: ScheduleSpec {
            shape: Shape::Constant,
            rate: Rate::ZERO,
            phase: Phase::Even,
            hold_rate: HoldRate::default(),
            poisson: false,
            first_device: DeviceId(context.device),
            devices: class.devices,
            limit_per_device: None,
            warm_up: context.phases.warm_up,
            measure: context.phases.measure,
            seed: mix(context.seed, u64::from(number)),
        },
        policy: Policy::Queue {
            bound: crate::defaults::DEFAULT_BOUND.parse().ok()?,
            in_flight: None,
        },
        topic: Template::parse("").ok()?,
        surface: Template::parse("").ok()?,
        qos: Qos::AtLeastOnce,
        is_confirmable: true,
        retain: false,
        ack: Ack::Transport,
        timeout: view.time("timeout")?,
        deadline: None,
        payload: PayloadSpec::Size(100),
        largest: 100,
        content_type: None,
        carrier: Carrier::Payload,
        integrity: IntegrityLevel::Body,
        retry: 0,
        http: None,
    })
}

pub(super) fn one_device_a_link(class: &Class<'_>, view: &View<'_>, taken: &str) -> Option<()> {
    if super::fleet::devices_per_link(class.view) > 1 {
        let what = format!("a link of many devices cannot take {taken} for each of them yet");
        return view.refuse(what, "remove `gateway` from the fleet, or this stream");
    }
    Some(())
}
