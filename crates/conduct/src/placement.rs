//! From the plan to the pure half of a shard.

use std::sync::Arc;

use muster_device::{
    BackOff, Class, ClassStream, Client, Login, Policy, Ramp, SLOT_MAX, Shard, ShardPlan, Sink,
    Will,
};
use muster_load::{PayloadError, StreamSchedule};
use muster_measure::{Account, RecorderPlan};
use muster_model::{Micros, Rate, RunId};
use muster_scenario::{Ack, ClientPlan, Credential, FleetPlan, Loop, Overflow, Plan, StreamPlan};

use crate::{Slice, roster, uplink};

/// What a shard is made from.
#[derive(Debug, Clone, Copy)]
pub struct Placement<'a> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// What its recorders must know.
    pub recorder: &'a RecorderPlan,
    /// The schedules of its streams.
    pub schedules: &'a [Arc<StreamSchedule>],
    /// Which run it is.
    pub run: RunId,
    /// The share of all links that this shard carries.
    pub slice: Slice,
    /// The wall clock at T0 in milliseconds since the Unix epoch.
    pub wall_ms_at_t0: u64,
    /// The most messages that may be waiting or unanswered at once, at most [`SLOT_MAX`].
    pub slot_limit: u32,
}

impl Placement<'_> {
    /// The shard, with every link down.
    ///
    /// # Errors
    /// [`PayloadError`] for a payload that the scenario's checks let through.
    pub fn shard<S: Sink>(&self, sink: S) -> Result<Shard<S>, PayloadError> {
        let classes = self.plan.fleets.iter().map(|fleet| self.class(fleet));
        let plan = ShardPlan {
            run: self.run,
            seed: self.plan.seed,
            max_lateness: self.plan.rules.validity.max_lateness,
            slot_limit: self.slot_limit.min(SLOT_MAX),
            streams: self.schedules.len(),
            account: Account::new(self.recorder),
            classes: classes.collect::<Result<_, _>>()?,
        };
        Ok(Shard::new(plan, sink))
    }

    /// How the sessions of a fleet are opened.
    #[must_use]
    pub fn client(fleet: &FleetPlan) -> Client {
        let plan: &ClientPlan = &fleet.client;
        Client {
            version: plan.version,
            clean_start: plan.clean_start,
            session_expiry_s: whole_seconds(plan.session_expiry),
            keep_alive_s: u16::try_from(whole_seconds(plan.keep_alive)).unwrap_or(u16::MAX),
            receive_maximum: plan.receive_maximum,
            login: match &fleet.credential {
                Credential::None => None,
                Credential::Password { user, secret } => Some(Login {
                    user: user.clone(),
                    password: secret.expose().clone(),
                }),
            },
            will: plan.will.as_ref().map(|will| Will {
                topic: will.topic.clone(),
                payload: will.payload.clone(),
                qos: will.qos,
                retain: will.retain,
            }),
            handshake_timeout: fleet.connect.timeout,
            lifetime: fleet.connect.lifetime,
        }
    }

    fn class(&self, fleet: &FleetPlan) -> Result<(Class, Ramp), PayloadError> {
        let shards = self.slice.of.max(1);
        let rate = Rate::per_second(fleet.connect.rate.get() / f64::from(shards));
        let ramp = Ramp::new(
            rate.unwrap_or(Rate::ZERO),
            (fleet.connect.pending / shards).max(1),
        );
        let streams = fleet.streams.iter().map(|stream| self.stream(stream));
        let class = Class {
            roster: roster(self.plan, fleet, self.wall_ms_at_t0),
            first_link: fleet.first_link,
            links: self.slice.cut(fleet.first_link.0, fleet.links),
            devices_per_link: fleet.devices_per_link,
            streams: streams.collect::<Result<_, _>>()?,
            client: Self::client(fleet),
            back_off: BackOff {
                min: fleet.reconnect.min,
                max: fleet.reconnect.max,
                jitter: fleet.reconnect.jitter,
            },
        };
        Ok((class, ramp))
    }

    fn stream(&self, stream: &StreamPlan) -> Result<ClassStream, PayloadError> {
        Ok(ClassStream {
            id: stream.id,
            uplink: uplink(stream)?,
            qos: stream.qos,
            retain: stream.retain,
            content_type: stream.content_type.clone(),
            is_answered: stream.ack != Ack::None,
            timeout: stream.timeout,
            policy: policy(stream.loop_),
            retry: stream.retry,
            schedule: Arc::clone(&self.schedules[stream.id.index()]),
        })
    }
}

fn policy(declared: Loop) -> Policy {
    match declared {
        Loop::Open { bound } => Policy::Queue {
            bound,
            in_flight: None,
        },
        Loop::Closed => Policy::Closed,
        Loop::InFlight {
            limit,
            overflow: Overflow::Queue { bound },
        } => Policy::Queue {
            bound,
            in_flight: Some(limit),
        },
        Loop::InFlight {
            limit,
            overflow: Overflow::Shed,
        } => Policy::Shed { in_flight: limit },
    }
}

fn whole_seconds(time: Micros) -> u32 {
    u32::try_from(time.get() / 1_000_000).unwrap_or(u32::MAX)
}
