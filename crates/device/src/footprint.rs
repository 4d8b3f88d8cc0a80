//! Memory that a link takes while nothing happens on it.

use muster_model::Micros;
use muster_protocol::coap;

use crate::agenda::ClosedDevice;
use crate::links::Link;
use crate::messages::{Outbox, StreamQueue};
use crate::session::coap::CoapState;
use crate::session::http::HttpState;
use crate::session::mqtt::MqttState;

/// A session's list of publishes in flight keeps the room for four after its first one.
const IN_FLIGHT_BYTES: usize = 4 * 8;

/// The link itself, what it writes, and its fleet.
const COMMON_BYTES: usize = size_of::<Link>() + size_of::<Outbox>() + size_of::<u8>();

/// User memory in bytes of one link at rest after traffic: its state and session, and its place
/// among those that wait to connect again.
pub const LINK_BYTES: usize =
    COMMON_BYTES + size_of::<MqttState>() + IN_FLIGHT_BYTES + size_of::<(Micros, u32)>();

/// User memory in bytes of one link of CoAP at rest, likewise.
pub const COAP_LINK_BYTES: usize =
    COMMON_BYTES + size_of::<CoapState>() + coap::AT_REST_BYTES + size_of::<(Micros, u32)>();

/// User memory in bytes of one link of HTTP at rest, likewise, without pipelining.
pub const HTTP_LINK_BYTES: usize =
    COMMON_BYTES + size_of::<HttpState>() + size_of::<(Micros, u32)>();

/// User memory in bytes of one stream on a link at rest: the queue of what waits.
pub const STREAM_QUEUE_BYTES: usize = size_of::<StreamQueue>();

/// User memory in bytes that one device of a closed stream adds to that: its state, and its place
/// among those that wait for their period or are ready.
pub const CLOSED_LOOP_BYTES: usize =
    size_of::<ClosedDevice>() + size_of::<(Micros, u32)>() + size_of::<u32>();
