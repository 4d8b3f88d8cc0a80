//! The table that describes a dialect, and its plain default.
//!
//! A dialect is one `static` in its folder, which says what differs from [`PLAIN`]: values, and plain
//! functions where behaviour is needed. What depends on how devices speak is in [`Publishing`] and
//! [`Requests`], and is asked of dialect and protocol.

use muster_model::Promise;
use muster_model::behaviour::Reject;

use crate::amqp::Amqp;
use crate::amqp_server::{AmqpServer, PLAIN_AMQP};
use crate::command::{CommandScratch, Commanded, Handing, OutboundCommand, Replying, Returned};
use crate::counters::Counters;
use crate::hono::{Endpoint, Who};
use crate::incoming::{
    HandedCommand, Incoming, Manner, Peer, Question, Refusal, Unanswered, Upload, Wanted,
};
use crate::kafka::Kafka;
use crate::protocol::Protocol;
use crate::request::{
    Answered, Answering, Asking, Fields, LateRefusal, Method, ReplyPath, Request, RequestLimits,
    Segments, Status,
};
use crate::server::{DevicePublish, Reply};

pub(crate) use crate::publishing::PLAIN_PUBLISHING;
pub(crate) use crate::publishing::{
    Announcement, Objections, Publishing, Refusals, Subscription, TopicLack,
};

/// A key of a scenario, and what stands there where it is left out.
pub type Default = (&'static str, &'static str);

/// A dialect.
#[derive(Debug)]
pub struct Spec {
    /// The name in a scenario, and in results.
    pub name: &'static str,
    /// The values of keys that a scenario leaves out.
    pub defaults: Defaults,
    /// The promises that its acknowledgements make.
    pub promises: Promises,
    /// The form in which results hold the figures of the test that was published for this platform.
    pub published_figures: PublishedFigures,
    /// True if the platform itself is a broker, so that a backend finds there what devices publish.
    pub is_broker: bool,
    /// True if a device is known by what its link logged in as, and not by its topics.
    pub knows_links: bool,
    /// True if the form of requests is the scenario's: method, path, headers and the codes of a yes.
    pub has_free_calls: bool,
    /// True if a template without a stamp is sent as it is where no backend looks for one.
    pub takes_bare_templates: bool,
    /// True if a link may carry many devices.
    pub shares_links: bool,
    /// API that creates devices; none if no device must be created first.
    pub management: Option<ManagementApi>,
    /// True if messages surface northbound where a backend can consume them.
    pub has_northbound: bool,
    /// True if the platform, or a system behind it, writes payloads anew before they surface, so that
    /// numbers and the order of keys change.
    pub rewrites_bodies: bool,
    /// The counters of the platform's own; none where none are known.
    pub counters: Option<Counters>,
    /// Facts about a topic that devices publish on, or the path of their requests.
    pub topic: fn(&str) -> UplinkTopic,
    /// Finds the instant, in milliseconds, of the point with an id in a message; none if the platform sets it.
    pub(crate) point_instant: fn(&[u8], &[u8]) -> Option<i64>,
    /// Renders a device's reply to a command: topic and payload, and the payload alone where the
    /// reply is a request ([`Requests::reply`]).
    pub write_reply: fn(&Replying<'_>, &mut CommandScratch),
    /// The business application's end.
    pub application: Application,
    /// The platform's end, for the reference gateway and the model platform.
    pub server: Server,
    /// The ends over MQTT; none where devices do not speak it.
    pub(crate) mqtt: Option<Publishing>,
    /// The ends over protocols of requests: those that devices speak.
    pub(crate) requests: &'static [(Protocol, Requests)],
}

/// API that creates devices on a platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagementApi {
    /// Hono's device registry, or its database.
    HonoRegistry,
    /// SAP Edge's REST API, where a device belongs to a gateway with an alternate id.
    SapEdge,
    /// ThingsBoard's REST API: devices, their profile, customers and rule chains.
    ThingsBoard,
}

/// Calls of the reference gateway over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Creates, reads and deletes devices.
    Devices,
    /// Keeps devices, what they send and rule chains, and reads and changes all of it.
    Stored,
}

/// The values of keys that a scenario of a dialect leaves out, each as it would be written. Those that
/// depend on a stream's topic are in [`UplinkTopic::defaults`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// Keys of a fleet.
    pub fleet: &'static [Default],
    /// Keys of `gateway`, where links carry several devices.
    pub gateway: &'static [Default],
    /// Keys of a stream there, which go before those of any stream.
    pub gateway_stream: &'static [Default],
    /// Keys of a stream.
    pub stream: &'static [Default],
    /// Keys of a stream whose messages the application acknowledges.
    pub acknowledged: &'static [Default],
}

/// The formulas for the figures of a published test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedFigures {
    /// No carrier.
    None,
    /// Device by device.
    ByDevice,
    /// From times in slots, stream by stream.
    BySlot,
}

/// The promises that a platform's acknowledgements make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promises {
    /// The promise of the protocol's acknowledgement: PUBACK, PUBREC, 2.xx.
    pub transport: Promise,
    /// The promise of the application's acknowledgement; of no meaning where there is none.
    pub application: Promise,
}

/// A topic that devices publish on, or the path of their requests, as the platform knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UplinkTopic {
    /// Mistake and remedy where the platform lacks it; none if the platform has it, or may have it.
    pub lack: Option<TopicLack>,
    /// True if the application acknowledges what is published there, so that `ack: application` has a
    /// meaning.
    pub is_acknowledged: bool,
    /// The filter that takes the answers to numbered requests; none where requests have no number.
    pub answers: Option<&'static str>,
    /// True if messages surface northbound where a backend can consume them.
    pub surfaces: bool,
    /// The template of the topics on which they surface; none where it is the topic itself.
    pub surface: Option<&'static str>,
    /// True if a refusal of a message names it by its id.
    pub names_messages: bool,
    /// True if it is for links of `gateway`, which name their devices in the payload; false if for links of
    /// one device; none if for either.
    pub is_for_gateways: Option<bool>,
    /// True if the platform stores messages as keys and values.
    pub has_data: bool,
    /// True if each of these values has an instant, and replaces the one of the same instant.
    pub has_instants: bool,
    /// True if a request asks the platform to make a device, whose credential the answer names.
    pub makes_devices: bool,
    /// The kind under which the platform counts messages; none if it does not.
    pub counted_as: Option<&'static str>,
    /// The values of keys that a stream leaves out, before the defaults of all streams.
    pub defaults: &'static [Default],
}

/// Both ends of requests: each message is a request, and its answer may carry a command.
#[derive(Debug)]
pub struct Requests {
    /// The limits of the platform unless its operator has set others; none where nothing is known
    /// of it.
    pub limits: Option<RequestLimits>,
    /// The path that stands where a stream names none, as a template.
    pub resource: fn(Endpoint, Who) -> &'static str,
    /// The template of what a device calls itself where it logs in and the scenario names nothing.
    pub login: &'static str,
    /// Makes a request of a message; the text is where its parameters are put together, and is emptied
    /// first. Nothing is allocated once it has room.
    pub uplink: for<'a> fn(&Asking<'a>, &'a mut String) -> Request<'a>,
    /// Makes the request that replies to a command: on the path that came with it, with a status as
    /// of HTTP.
    pub reply: for<'a> fn(&Answering<'a>, &'a mut String) -> Request<'a>,
    /// Reads an answer to a device. Where a command comes with it that wants a reply, the path of the
    /// reply goes into the last argument; else that is empty afterwards.
    pub answered: ReadAnswer,
    /// The code of a yes.
    pub accepted: Status,
    /// The code of a no, where the server end refuses a message on purpose by a code that is none of requests.
    pub refused: Status,
    /// The code of a yes that brings a command, or the answer to a question.
    pub commanded: Status,
    /// The meaning of a refusal on this platform, and what to look at; none where the code says it all.
    pub hint: fn(Status) -> Option<&'static str>,
    /// A further place to look at where a handshake is not answered, as the end of a sentence; empty where the
    /// platform answers it whoever asks.
    pub handshake_hint: &'static str,
    /// Returns true for a topic that devices have a path for.
    pub has: fn(&str) -> bool,
    /// Finds the token of the device in the path of a request; none where credentials stand elsewhere.
    pub path_token: Option<PathToken>,
    /// The methods that paths of the server end take, as a list.
    pub methods: &'static str,
    /// Appends the body of the answer that refuses a request of that payload, and returns its media type; none
    /// if it has no body.
    pub explain: fn(&Refusal, &[u8], &mut Vec<u8>) -> Option<&'static str>,
    /// Returns true for the code of an answer behind which the server end closes a connection.
    pub closes: fn(Status) -> bool,
    /// Reads a request at the server end. The peer is who the link's credentials belong to. The topic
    /// on which it surfaces goes into the last argument, which is emptied first.
    pub read: for<'a> fn(&Incoming<'a>, Option<&Peer<'a>>, &mut String) -> Wanted<'a>,
    /// Takes over a command into the answer to a device that asked in that manner; the error says why it
    /// cannot be handed over.
    pub hand: fn(Manner, &Commanded<'_>, &mut HandedCommand) -> Result<(), &'static str>,
    /// Appends the body of an answer that brings a command, from the command as it came; false, and nothing is
    /// appended, if that is the body.
    pub command_body: fn(&Handing<'_>, &[u8], &mut Vec<u8>) -> bool,
    /// Appends the body that answers a question, and returns its media type.
    pub answer: fn(&Question<'_>, &mut Vec<u8>) -> &'static str,
    /// The topic of streams that ask for commands by requests which are no messages; none where a message asks.
    pub poll: Option<&'static str>,
    /// The topic of the request that observes the commands to a device; none where commands come in answers alone.
    pub observed: Option<&'static str>,
    /// Turns a question that nobody answers into a wait.
    pub unanswered: for<'a> fn(Upload<'a>) -> Upload<'a>,
    /// The answer to a question for values beyond a limit of its device; none if it is refused as messages are.
    pub values_beyond_limit: Option<LateRefusal>,
    /// Finds the number of the command in the path of its reply; none where paths have no such number.
    pub reply_number: fn(&Incoming<'_>) -> Option<u32>,
}

/// Finds the token in the path of a request.
pub type PathToken = for<'a> fn(&Incoming<'a>) -> Option<&'a str>;

/// Reads an answer by its code, its fields, its body and the path of the request, which may be empty where no
/// command can come. The path of the command's reply goes into the last argument.
pub type ReadAnswer =
    for<'a> fn(Status, Fields<'_, 'a>, &'a [u8], Segments<'_>, &mut ReplyPath) -> Answered<'a>;

/// The business application's end: commands it issues, and what comes back.
#[derive(Debug)]
pub struct Application {
    /// The filter of the replies of all devices; none where commands are one-way.
    pub replies: Option<&'static str>,
    /// True if a reply reports what became of its command by a status of the device's choice.
    pub replies_with_status: bool,
    /// The filter of notices on the delivery of commands that want a reply;
    /// none where its first word on them is its last.
    pub notices: Option<&'static str>,
    /// Renders a command as it is published over MQTT: topic and payload.
    pub write_command: fn(&OutboundCommand<'_>, &mut CommandScratch),
    /// Reads a message that came over MQTT; none if its topic is not one of replies or notices.
    pub returned: fn(&str, &[u8]) -> Option<Returned>,
    /// The same over Kafka; none if the platform defines no topics there.
    pub kafka: Option<Kafka>,
    /// The same over AMQP 1.0; none if the platform defines no addresses there.
    pub amqp: Option<Amqp>,
    /// Commands by calls of the platform's REST API; none if it takes none there.
    pub calls: Option<crate::RestCommands>,
}

/// The platform's end.
#[derive(Debug)]
pub struct Server {
    /// Addresses over AMQP 1.0.
    pub amqp: AmqpServer,
    /// Calls of the reference gateway over HTTP; none if it has none.
    pub rest: Option<Rest>,
    /// The service time of a message where a scenario does not say one.
    pub service_time: Option<&'static str>,
    /// The code of a yes.
    pub acceptance: u16,
    /// The code of a no, where the scenario names none.
    pub refusal: u16,
    /// True for a code that can be a refusal.
    pub is_refusal: fn(u16) -> bool,
    /// Returns true for a code of MQTT 5 with which a refused message ends its link and has no other answer.
    pub ends_link: fn(u16) -> bool,
    /// True if a refused login is answered as bad credentials, whatever was wrong with it; false if a
    /// missing or an unknown name has another code.
    pub hides_logins: bool,
    /// The name of a link that logged in as that user, if any, with that client id.
    pub link_name: fn(Option<&str>, &str) -> String,
    /// True for a topic name on which it answers a link that never subscribed.
    pub answers_unasked: fn(&str) -> bool,
    /// Reads what a link of that name published: topic and payload.
    pub read: for<'a> fn(&'a str, &'a str, &'a [u8]) -> DevicePublish<'a>,
    /// Appends the topic on which a device's message of that id is acknowledged.
    pub write_acknowledgement_topic: fn(&str, Option<&[u8]>, &mut String),
    /// Appends one message that acknowledges several of a device's messages, where the
    /// dialect [batches](Publishing::batches), else the first.
    pub write_acknowledgement: fn(&mut dyn Iterator<Item = Reply<'_>>, &mut Vec<u8>),
    /// The id that no message has, for an answer in place of that to the message of an id.
    pub nobodys: fn(Option<&[u8]>) -> Vec<u8>,
    /// Appends the topic, or the filter, of a link of that name as it is routed; false if it means the
    /// same on every link, and nothing is appended.
    pub route: fn(&str, &str, &mut String) -> bool,
    /// A topic that was routed, as its link knows it.
    pub unrouted: fn(&str) -> &str,
    /// Returns true for a filter that a device may subscribe to, where it can be distinguished from the business
    /// application.
    pub has_filter: fn(&str) -> bool,
    /// Reads the topic of a command of the business application; none if it is no such topic.
    pub command: fn(&str) -> Option<Commanded<'_>>,
    /// The reason why a command can be handed to no device, whatever that speaks; none if it can.
    pub unfit: fn(&Commanded<'_>) -> Option<&'static str>,
    /// True for a payload that is a command which it takes.
    pub takes_command: fn(&[u8]) -> bool,
    /// The way in which it hands a command on.
    pub handover: Handover,
    /// The way in which it refuses what a device published; none where the protocol's answer is all.
    pub objections: Option<Objections>,
    /// Renders the notice to the business application on a command that was not delivered, from a status as
    /// of HTTP and a reason. Returns false if there is no such notice.
    pub write_notice: fn(&Commanded<'_>, u16, &str, &mut CommandScratch) -> bool,
    /// A device's reply as it surfaces; none if the topic is not one of replies.
    pub surfaced_reply: SurfaceReply,
    /// The number of the command that a device's reply is to, from topic and payload; none if it has none.
    pub reply_number: fn(&str, &[u8]) -> Option<u32>,
    /// The question in a message that the application acknowledges, from topic and payload; none if it is none.
    pub question: for<'a> fn(&str, &'a [u8]) -> Option<Question<'a>>,
    /// The answer to a question that nobody answers.
    pub unanswered: Unanswered,
    /// Seconds after which a link of that name is closed, whatever it does; none if it may stay.
    pub lifetime_s: fn(&str) -> Option<u32>,
}

/// Finds what surfaces of a device's reply, from the link's name, topic and payload. The topic on which it
/// surfaces goes into the last argument, which is emptied first.
pub type SurfaceReply = for<'a> fn(&str, &str, &'a [u8], &mut String) -> Option<&'a [u8]>;

/// The way in which the server end hands a command on to its device.
#[derive(Debug, Clone, Copy)]
pub enum Handover {
    /// On the topic that it came on.
    AsItCame,
    /// In words of the platform's own, in one of several forms, numbered from 0: the first that somebody
    /// subscribed to is right.
    Rewritten(Rewrite),
    /// In words of the platform's own, as [`Handover::Rewritten`], to a link that subscribed to commands; else in
    /// the answer to a request that waits for one.
    RewrittenOrInAnswer(Rewrite),
}

/// Renders a command, with its payload as it came, in the form of a number; false if there is no such form.
pub type Rewrite = fn(usize, &Handing<'_>, &[u8], &mut CommandScratch) -> bool;

/// An unknown platform: it has no commands, and messages surface as they came.
pub(crate) const PLAIN: Spec = Spec {
    name: "",
    defaults: Defaults {
        fleet: &[],
        gateway: &[],
        gateway_stream: &[],
        stream: &[],
        acknowledged: &[],
    },
    promises: Promises {
        transport: Promise::Enqueued,
        application: Promise::Nothing,
    },
    published_figures: PublishedFigures::None,
    is_broker: false,
    knows_links: false,
    has_free_calls: false,
    takes_bare_templates: false,
    shares_links: true,
    management: None,
    has_northbound: true,
    rewrites_bodies: false,
    counters: None,
    topic: |_| PLAIN_TOPIC,
    point_instant: |_, _| None,
    write_reply: |_, _| {},
    application: PLAIN_APPLICATION,
    server: PLAIN_SERVER,
    mqtt: None,
    requests: &[],
};

/// An unknown topic.
pub(crate) const PLAIN_TOPIC: UplinkTopic = UplinkTopic {
    lack: None,
    is_acknowledged: false,
    answers: None,
    surfaces: true,
    surface: None,
    names_messages: false,
    is_for_gateways: None,
    has_data: false,
    has_instants: false,
    makes_devices: false,
    counted_as: None,
    defaults: &[],
};

const NO_RESOURCES: &str = "this platform has no resources over this protocol";

/// Resources that messages are posted to as they are, and a server that has none.
pub(crate) const PLAIN_REQUESTS: Requests = Requests {
    limits: None,
    resource: |_, _| "",
    login: "",
    uplink: |asking, _| Request {
        method: Method::Post,
        path: Segments::of(asking.path),
        query: "",
        content_type: asking.content_type,
        headers: &[],
        is_at_least_once: asking.is_at_least_once,
        payload: asking.payload,
    },
    reply: |answering, _| Request {
        method: Method::Post,
        path: answering.to.segments(),
        query: "",
        content_type: None,
        headers: &[],
        is_at_least_once: true,
        payload: answering.payload,
    },
    answered: |status, _, _, _, _| match status.is_yes() {
        true => Answered::Accepted,
        false => Answered::Rejected(status),
    },
    accepted: Status(204),
    refused: Status(503),
    commanded: Status(204),
    hint: |_| None,
    handshake_hint: "",
    has: |_| true,
    path_token: None,
    methods: "POST, PUT",
    explain: |refusal, _, out| {
        out.extend_from_slice(refusal.why.as_bytes());
        Some("text/plain")
    },
    closes: |_| false,
    read: |_, _, _| {
        Wanted::Refused(Refusal {
            status: Status(404),
            why: NO_RESOURCES,
        })
    },
    hand: |_, _, _| Err(NO_RESOURCES),
    command_body: |_, _, _| false,
    answer: |_, _| "",
    poll: None,
    observed: None,
    values_beyond_limit: None,
    unanswered: |question| question,
    reply_number: |_| None,
};

const PLAIN_APPLICATION: Application = Application {
    replies: None,
    replies_with_status: false,
    notices: None,
    write_command: |_, _| {},
    returned: |_, _| None,
    kafka: None,
    amqp: None,
    calls: None,
};

/// A broker's answers to messages and commands, with codes of MQTT 5.
pub(crate) const PLAIN_SERVER: Server = Server {
    amqp: PLAIN_AMQP,
    rest: None,
    service_time: None,
    acceptance: 0,
    refusal: Reject::DEFAULT_CODE,
    is_refusal: |code| matches!(code, 0x80..=0xff),
    ends_link: |_| false,
    hides_logins: false,
    link_name: |user, client_id| user.unwrap_or(client_id).to_owned(),
    answers_unasked: |_| false,
    read: |_, _, _| DevicePublish::Other,
    write_acknowledgement_topic: |_, _, _| {},
    write_acknowledgement: |_, _| {},
    nobodys: |_| b"\"nobody\"".to_vec(),
    route: |_, _, _| false,
    unrouted: |topic| topic,
    has_filter: |_| true,
    command: |_| None,
    unfit: |_| None,
    takes_command: |_| true,
    handover: Handover::AsItCame,
    objections: None,
    write_notice: |_, _, _, _| false,
    surfaced_reply: |_, _, _, _| None,
    reply_number: |_, _| None,
    question: |_, _| None,
    unanswered: Unanswered {
        after_s: 0,
        code: 0,
        body: b"",
    },
    lifetime_s: |_| None,
};
