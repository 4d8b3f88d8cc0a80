//! From the plan to the pure half of a shard.

use std::ops::Range;
use std::sync::Arc;

use muster_device::{
    Answer, Class, ClassStream, Client, Gateway, Kind, Listener, Ramp, SLOT_MAX, Server, Session,
    Shard, ShardPlan, Sink,
};
use muster_load::{PayloadError, StreamSchedule};
use muster_measure::{Account, RecorderPlan};
use muster_model::{Rate, RunId};
use muster_plan::{Ack, Credential, FleetPlan, Plan, StreamKind, StreamPlan};
use muster_platform::{DueTimes, Protocol};

use crate::{Slice, directory, reader, uplink};

/// Inputs of a shard.
#[derive(Debug, Clone, Copy)]
pub struct Placement<'a> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// Plan of its recorders.
    pub recorder: &'a RecorderPlan,
    /// The schedules of its streams.
    pub schedules: &'a [Arc<StreamSchedule>],
    /// Id of the run.
    pub run: RunId,
    /// The share of all links that this shard carries.
    pub slice: Slice,
    /// The wall clock at T0 in milliseconds since the Unix epoch.
    pub wall_ms_at_t0: u64,
    /// The most messages that may be waiting or unanswered at once, at most [`SLOT_MAX`].
    pub slot_limit: u32,
}

impl Placement<'_> {
    /// The shard of the fleets that speak a protocol, with every link down.
    ///
    /// # Errors
    /// [`PayloadError`] for a payload that the scenario's checks let through.
    pub fn shard<P: Session, S: Sink>(&self, sink: S) -> Result<Shard<P, S>, PayloadError> {
        let fleets = self.plan.fleets.iter();
        let client = |fleet| {
            Some(Client {
                servers: self.servers(P::PROTOCOL),
                ..Self::client::<P>(fleet)?
            })
        };
        let fleets = fleets.filter_map(|fleet| Some((fleet, client(fleet)?)));
        let classes = fleets.map(|(fleet, client)| self.class(fleet, client));
        let plan = ShardPlan {
            run: self.run,
            seed: self.plan.seed,
            max_lateness: self.plan.rules.validity.max_lateness,
            slot_limit: self.slot_limit.min(SLOT_MAX),
            streams: self.schedules.len(),
            account: Account::new(self.recorder),
            listener: self.listener()?,
            registers_refused: self.plan.management.registers_refused,
            first_share: self.plan.added.and_then(|load| load.first_share()),
            classes: classes.collect::<Result<_, _>>()?,
        };
        Ok(Shard::new(plan, sink))
    }

    /// Returns the settings of the sessions of a fleet; none if the fleet speaks another protocol.
    pub fn client<P: Session>(fleet: &FleetPlan) -> Option<Client<P::Settings>> {
        Some(Client {
            settings: P::settings(&fleet.client)?.clone(),
            login: fleet.credential.login(),
            is_nameless: matches!(
                fleet.credential,
                Credential::None | Credential::Certificate { .. }
            ),
            gateway: fleet.link_names.clone().map(|names| Gateway {
                names,
                devices: fleet.devices_per_link,
            }),
            handshake_timeout: fleet.connect.timeout,
            lifetime: fleet.connect.lifetime,
            offline: fleet.offline,
            servers: Vec::new(),
        })
    }

    /// Returns the servers of the devices that speak a protocol, as requests name them.
    fn servers(&self, protocol: Protocol) -> Vec<Server> {
        let endpoints = self.plan.platform.endpoints_of(protocol);
        let servers = endpoints.map(|endpoint| Server {
            host: endpoint.http_host(),
            path: endpoint.path.trim_end_matches('/').to_owned(),
        });
        servers.collect()
    }

    fn class<C>(
        &self,
        fleet: &FleetPlan,
        client: Client<C>,
    ) -> Result<(Class<C>, Ramp), PayloadError> {
        let links = self.slice.cut(fleet.first_link.0, fleet.links);
        let share = f64::from(links.end - links.start) / f64::from(fleet.links.max(1));
        let rate = Rate::per_second(fleet.connect.rate.get() * share);
        let pending = pending_share(fleet, &links, self.slice.of);
        let pack = (f64::from(fleet.connect.pack) * share).round() as u32;
        let ramp = Ramp::new(rate.unwrap_or(Rate::ZERO), pending).in_packs(pack);
        let streams = fleet.streams.iter().map(|stream| self.stream(stream));
        let class = Class {
            directory: directory(self.plan, fleet, self.wall_ms_at_t0),
            dialect: self.plan.platform.dialect(),
            first_link: fleet.first_link,
            links,
            devices_per_link: fleet.devices_per_link,
            announces: self
                .plan
                .platform
                .dialect()
                .publishing()
                .announcement
                .filter(|_| fleet.is_gateway),
            streams: streams.collect::<Result<_, _>>()?,
            client,
            back_off: fleet.reconnect,
        };
        Ok((class, ramp))
    }

    /// Returns the reader of subscribed messages; none where devices do not subscribe.
    fn listener(&self) -> Result<Option<Listener>, PayloadError> {
        let mut streams = self.plan.streams();
        if !streams.any(|(_, stream)| stream.kind == StreamKind::Receive) {
            return Ok(None);
        }
        Ok(Some(Listener {
            reader: reader(self.plan, self.run, self.wall_ms_at_t0)?,
            due_times: DueTimes::new(self.schedules),
        }))
    }

    fn stream(&self, stream: &StreamPlan) -> Result<ClassStream, PayloadError> {
        let dialect = self.plan.platform.dialect();
        let topic = (dialect.topic)(stream.topic.source());
        Ok(ClassStream {
            id: stream.id,
            kind: self.kind(stream),
            uplink: uplink(stream)?,
            qos: stream.qos.into(),
            is_confirmable: stream.is_confirmable,
            retain: stream.retain,
            content_type: stream.content_type.clone(),
            answer: match stream.ack {
                Ack::None => Answer::None,
                Ack::Transport => Answer::Transport,
                Ack::Application => Answer::Application {
                    slides: dialect.publishing().slides,
                },
            },
            is_refused_by_name: topic.names_messages,
            is_read_by_path: topic.makes_devices,
            timeout: stream.timeout,
            policy: stream.policy,
            retry: stream.retry,
            schedule: Arc::clone(&self.schedules[stream.id.index()]),
            http: stream.http.clone(),
        })
    }

    fn kind(&self, stream: &StreamPlan) -> Kind {
        match (stream.kind, &stream.filter) {
            (StreamKind::CommandQuery { ttd }, _) => Kind::Query { ttd },
            (
                StreamKind::Command {
                    is_two_way,
                    status,
                    to,
                },
                _,
            ) => {
                let track = self.recorder.stream(stream.id);
                Kind::Command {
                    is_two_way,
                    status,
                    to,
                    most_per_device: track.map_or(0, |track| track.most_per_device),
                }
            }
            (StreamKind::Receive, Some(filter)) => Kind::Receive {
                filter: filter.clone(),
            },
            (StreamKind::Connect, _) => Kind::Connect,
            (StreamKind::Telemetry | StreamKind::Event | StreamKind::Receive, _) => Kind::Uplink,
        }
    }
}

/// Returns how many handshakes of a fleet may be in flight on one of `shards` with these links:
/// one, since no link could connect without, and its share of the rest.
fn pending_share(fleet: &FleetPlan, links: &Range<u32>, shards: u32) -> u32 {
    let carriers = shards.min(fleet.links);
    let rest = u64::from(fleet.connect.pending.saturating_sub(carriers));
    let before = |link: u32| {
        let place = u64::from(link - fleet.first_link.0);
        rest * place / u64::from(fleet.links.max(1))
    };
    let share = before(links.end) - before(links.start);
    u32::try_from(share).map_or(u32::MAX, |share| share.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use muster_device::Mqtt;
    use muster_model::LinkId;
    use muster_scenario::{NoFiles, Overrides, Source, parse};
    use proptest::prelude::*;

    use super::*;

    fn fleet(links: u32, pending: u32) -> FleetPlan {
        let text = format!(
            "
name: ramp
fleet:
  - {{ name: before, count: 7, streams: [ {{ name: r, rate: 1/s, payload: {{ size: 64 }} }} ] }}
  - {{ name: meters, count: {links}, connect: {{ pending: {pending} }}, streams: [ {{ name: r, rate: 1/s, payload: {{ size: 64 }} }} ] }}
phases: {{ measure: 1s }}
"
        );
        let (name, text) = ("ramp.yaml", text.as_str());
        let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles).unwrap();
        plan.fleets[1].clone()
    }

    #[test]
    fn a_link_is_called_the_same_by_its_session_and_by_its_credential() {
        for (gateway, second) in [
            ("devices: 5, id: \"gw-${index:02}\"", "gw-01"),
            ("devices: 5", "d-5"),
        ] {
            let text = format!(
                "name: t\nfleet:\n  - {{ count: 3, streams: [ {{ rate: 1/s }} ] }}\n  - {{ name: g, count: 12, id: \"d-${{index}}\", \
                 gateway: {{ {gateway} }}, streams: [ {{ rate: 1/s }} ] }}\nphases: {{ measure: 1s }}\n"
            );
            let (name, text) = ("names.yaml", text.as_str());
            let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles).unwrap();
            let (fleet, directory) = (&plan.fleets[1], directory(&plan, &plan.fleets[1], 0));
            let client = Placement::client::<Mqtt>(fleet).expect("it speaks MQTT");
            let (mut called, mut proved) = (String::new(), String::new());
            for link in (fleet.first_link.0..fleet.first_link.0 + fleet.links).map(LinkId) {
                client.render_name(&directory, fleet.first_device_of(link), &mut called);
                fleet.render_link_name(link, &directory, &mut proved);
                assert_eq!(called, proved);
            }
            fleet.render_link_name(LinkId(fleet.first_link.0 + 1), &directory, &mut proved);
            assert_eq!(proved, second);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// The shares of all shards that carry links make the declared bound, or one each where it
        /// is less than there are shards.
        #[test]
        fn shards_share_the_bound_on_handshakes(links in 1u32..200, pending in 1u32..300, of in 1u32..9) {
            let fleet = fleet(links, pending);
            let parts = (0..of).map(|index| Slice { index, of }.cut(fleet.first_link.0, links));
            let carriers = Vec::from_iter(parts.filter(|links| !links.is_empty()));
            let shares = carriers.iter().map(|links| pending_share(&fleet, links, of));
            prop_assert_eq!(shares.sum::<u32>(), pending.max(carriers.len() as u32));
        }
    }
}
