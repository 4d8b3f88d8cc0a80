//! Dialects: what a device of a platform says, how an answer reads, and where the message's id
//! travels.
//!
//! Layer 2. In the straight line this stands between the schedule and the protocol session on
//! the device side ([`Directory`], [`Uplink`]), and between the session and the arrival on the
//! backend side ([`Reader`]). Each [`Dialect`] is a table of values and plain functions ([`Spec`]) that
//! describes the device's end, the business application's and the platform's. This crate must never know
//! a protocol's bytes, a socket, or who drives it.
//!
//! ```
//! use muster_load::{Names, PayloadSpec, Template};
//! use muster_model::{DeviceId, MessageId, Micros, RunId, StreamId};
//! use muster_platform::{Carrier, Directory, DirectorySpec, Uplink, UplinkScratch};
//!
//! let directory = Directory::new(DirectorySpec {
//!     seed: 1,
//!     wall_ms_at_t0: 0,
//!     first_device: DeviceId(0),
//!     devices: 10,
//!     first_index: 0,
//!     names: Names::formula("meter-${index}")?,
//!     tenant: String::new(),
//!     table: None,
//! });
//! let topic = Template::parse("muster/${id}/t")?;
//! let uplink = Uplink::new(topic, &PayloadSpec::Size(100), Carrier::Payload, false)?;
//! let id = MessageId { run: RunId(1), device: DeviceId(7), stream: StreamId(0), seq: 3 };
//! let mut scratch = UplinkScratch::default();
//! uplink.render(&directory, &id, Micros::ZERO, &mut scratch);
//! assert_eq!(scratch.topic(), "muster/meter-7/t");
//! assert_eq!(scratch.payload.len(), 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod amqp;
mod amqp_server;
mod blind;
mod carrier;
mod command;
mod counters;
mod dialect;
mod directory;
mod downlink;
mod due_times;
mod hono;
mod http;
mod incoming;
mod json;
mod kafka;
mod mqtt;
mod payload;
mod place;
mod pointer;
mod protocol;
mod publishing;
mod reader;
mod request;
mod rest_commands;
mod sap_edge;
mod scope;
mod server;
mod spec;
mod thingsboard;
mod uplink;
mod waiting;

pub use amqp::{Amqp, AmqpCommand};
pub use amqp_server::{AmqpSent, AmqpServer, AmqpSurface, AmqpValue, AmqpWay};
pub use blind::BlindField;
pub use carrier::{Carrier, IntegrityLevel, PROPERTY_NAME};
pub use command::{
    COMMAND_BYTES, CommandCopy, CommandScratch, Commanded, Handing, Notice, OutboundCommand,
    REPLY_BYTES, ReplyTopic, Replying, Returned,
};
pub use counters::{
    CounterFamily, CounterFigure, CounterKey, CounterKind, CounterMeans, CounterPlace, Counters,
};
pub use dialect::Dialect;
pub use directory::{Directory, DirectorySpec};
pub use downlink::{
    Acknowledgement, Acknowledgements, ApplicationId, Downlink, NotAnAcknowledgement,
};
pub use due_times::DueTimes;
pub use hono::{
    CONTENT_TYPE, DEFAULT_TENANT, DittoPayload, Endpoint, Identity, PropertyBag, Published, Who,
    is_own_media_type,
};
pub use incoming::{
    HandedCommand, Incoming, Manner, Peer, Question, Refusal, Unanswered, Upload, Wanted,
};
pub use kafka::{Headers, Kafka, KafkaClass, KafkaCommand, KafkaRecords, TENANT};
pub use payload::NamedPayload;
pub use place::field_before;
pub use pointer::id_at;
pub use protocol::{Protocol, ProtocolSpec};
pub use publishing::{
    Announcement, Objections, Publishing, Refusals, SUBSCRIPTIONS_MAX, Subscription, TopicLack,
};
pub use reader::{Copy, Reader, ReaderStream};
pub use request::{
    Answered, Answering, Asking, Field, Fields, LateRefusal, Method, ReplyPath, Request,
    RequestLimits, SEGMENT_MAX, SEGMENTS_MAX, Segments, Status,
};
pub use rest_commands::RestCommands;
pub use server::{DevicePublish, Objection, OnRefusal, Reply};
pub use spec::{
    Application, Default, Defaults, Handover, ManagementApi, PathToken, Promises, PublishedFigures,
    ReadAnswer, Requests, Rest, Rewrite, Server, Spec, SurfaceReply, UplinkTopic,
};
pub use thingsboard::rest as board_rest;
pub use thingsboard::{BoardPayload, BoardShare, BoardValues, Data, Devices, Rare};
pub use uplink::{Uplink, UplinkScratch};
pub use waiting::Waiting;
