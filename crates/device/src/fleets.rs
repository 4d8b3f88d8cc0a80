//! The fleets of a shard, and the formulas that place their links, devices and messages.

use std::ops::Range;

use muster_load::AddedHold;
use muster_model::{Cause, DeviceId, LinkId, MessageId, Micros, RunId, StreamId, mix};
use muster_plan::Offline;
use muster_platform::{ApplicationId, Protocol};

use crate::agenda::DueMessage;
use crate::class::{Class, ClassStream};
use crate::links::Link;

/// The fleets of a shard. Only the start of the run is not known from the beginning.
#[derive(Debug)]
pub struct Fleets<C> {
    run: RunId,
    seed: u64,
    fleets: Vec<Fleet<C>>,
    /// Position of each stream: its class and its place there.
    places: Vec<Option<Position>>,
    /// The class of each link.
    of_links: Vec<u8>,
    queues: usize,
    /// True if some devices make connection attempts by a schedule.
    have_attempts: bool,
    /// Start of the warm-up, once that is known.
    origin: Option<Micros>,
}

#[derive(Debug)]
struct Fleet<C> {
    class: Class<C>,
    first: u32,
    /// The first queue of its first link; each link has one a stream.
    first_queue: usize,
}

/// Position of a stream: its class and its place there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    pub(crate) class: u8,
    pub(crate) stream_index: u8,
}

/// The links of a fleet that a shard carries.
#[derive(Debug, Clone, Copy)]
pub struct FleetLinks {
    class: usize,
    /// The first of them, as an index of the shard.
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// The fleet's own, for what its links share.
    pub(crate) seed: u64,
}

impl<C> Fleets<C> {
    pub(crate) fn new(run: RunId, seed: u64, streams: usize) -> Self {
        Self {
            run,
            seed,
            fleets: Vec::new(),
            places: vec![None; streams],
            of_links: Vec::new(),
            queues: 0,
            have_attempts: false,
            origin: None,
        }
    }

    pub(crate) fn add(&mut self, class: Class<C>) -> FleetLinks {
        let index = self.fleets.len() as u8;
        let links = FleetLinks {
            class: self.fleets.len(),
            first: self.of_links.len() as u32,
            count: class.links.len() as u32,
            seed: mix(self.seed, u64::from(class.links.start) << 32),
        };
        for (stream_index, stream) in (0u8..).zip(&class.streams) {
            self.places[stream.id.index()] = Some(Position {
                class: index,
                stream_index,
            });
        }
        self.have_attempts |= class.streams.iter().any(ClassStream::is_connect);
        let first_queue = self.queues;
        self.queues += class.links.len() * class.streams.len();
        self.of_links.extend(class.links.clone().map(|_| index));
        self.fleets.push(Fleet {
            class,
            first: links.first,
            first_queue,
        });
        links
    }

    /// The run of its messages.
    pub(crate) fn run(&self) -> RunId {
        self.run
    }

    /// The first message is due at `origin`.
    pub(crate) fn start(&mut self, origin: Micros) {
        self.origin = Some(origin);
    }

    /// True if some devices make connection attempts by a schedule.
    #[inline]
    pub(crate) fn have_attempts(&self) -> bool {
        self.have_attempts
    }

    /// True once the run has begun for a link that connects by a schedule: it then has no other turns.
    pub(crate) fn connects_by_schedule(&self, link: u32) -> bool {
        let streams = &self.class(link).streams;
        self.origin.is_some() && streams.iter().any(ClassStream::is_connect)
    }

    /// Messages of another hold are rendered.
    pub(crate) fn add_hold(&mut self, hold: &AddedHold) {
        let Some(origin) = self.origin else { return };
        let classes = self.fleets.iter_mut().map(|fleet| &mut fleet.class);
        for stream in classes.flat_map(|class| &mut class.streams) {
            stream.uplink.add_hold(origin + hold.from, hold.factor);
        }
    }

    /// The class of links that were just added.
    pub(crate) fn class_of(&self, links: &FleetLinks) -> &Class<C> {
        &self.fleets[links.class].class
    }

    /// The class of a ramp, which has its number.
    pub(crate) fn class_at(&self, ramp: usize) -> &Class<C> {
        &self.fleets[ramp].class
    }

    pub(crate) fn classes(&self) -> impl Iterator<Item = &Class<C>> {
        self.fleets.iter().map(|fleet| &fleet.class)
    }

    /// Number of links of the shard; they are numbered from 0.
    pub fn links(&self) -> u32 {
        self.of_links.len() as u32
    }

    /// The ramp that a link connects by.
    pub fn ramp_of(&self, link: u32) -> usize {
        usize::from(self.of_links[link as usize])
    }

    /// The number of a link in the whole plan.
    pub fn link_id(&self, link: u32) -> LinkId {
        let fleet = self.fleet(link);
        LinkId(fleet.class.links.start + link - fleet.first)
    }

    /// The name of a link: as a rule that of its first device.
    pub fn name_of(&self, link: u32) -> String {
        self.class(link).name_of(self.link_id(link))
    }

    #[inline]
    fn fleet(&self, link: u32) -> &Fleet<C> {
        &self.fleets[usize::from(self.of_links[link as usize])]
    }

    #[inline]
    pub(crate) fn class(&self, link: u32) -> &Class<C> {
        &self.fleet(link).class
    }

    #[inline]
    pub(crate) fn stream(&self, stream: StreamId) -> &ClassStream {
        let place = self.place(stream);
        &self.fleets[usize::from(place.class)].class.streams[usize::from(place.stream_index)]
    }

    #[inline]
    pub(crate) fn place(&self, stream: StreamId) -> Position {
        self.places[stream.index()].expect("a message's stream is of this shard's plan")
    }

    #[inline]
    pub(crate) fn queue_of(&self, link: u32, stream: StreamId) -> usize {
        self.first_queue(link) + usize::from(self.place(stream).stream_index)
    }

    /// The first of a link's queues, one a stream.
    #[inline]
    pub(crate) fn first_queue(&self, link: u32) -> usize {
        let fleet = self.fleet(link);
        fleet.first_queue + (link - fleet.first) as usize * fleet.class.streams.len()
    }

    /// A link's queues, one a stream.
    pub(crate) fn queues_of(&self, link: u32) -> Range<usize> {
        let first = self.first_queue(link);
        first..first + self.class(link).streams.len()
    }

    /// The streams of all queues, in their order.
    pub(crate) fn streams_of_queues(&self) -> impl Iterator<Item = &ClassStream> + Clone {
        let links = 0..self.links();
        links.flat_map(|link| self.class(link).streams.iter())
    }

    /// The link of a message that is due.
    pub(crate) fn link_of(&self, message: &DueMessage) -> u32 {
        let fleet = &self.fleets[usize::from(self.place(message.stream).class)];
        fleet.first + fleet.class.link_of(message.device)
    }

    /// The device of that name, if the link carries it.
    pub(crate) fn carried(&self, link: u32, name: &str) -> Option<DeviceId> {
        let fleet = self.fleet(link);
        let class = &fleet.class;
        let device = class.directory.device_named(name)?;
        let is_here = class.devices().contains(&device.0);
        (is_here && fleet.first + class.link_of(device) == link).then_some(device)
    }

    /// Returns whether a command to a link names where its reply goes.
    pub(crate) fn names_replies(&self, link: u32, protocol: Protocol) -> bool {
        self.class(link).dialect.names_replies(protocol)
    }

    /// The first device that a link carries.
    pub(crate) fn first_device_of(&self, link: u32) -> DeviceId {
        self.class(link).first_device_of(self.link_id(link))
    }

    pub(crate) fn per_link(&self, link: u32, per_device: u32) -> u32 {
        per_device.saturating_mul(self.class(link).devices_per_link)
    }

    pub(crate) fn message_id(&self, device: DeviceId, stream: StreamId, seq: u32) -> MessageId {
        MessageId {
            run: self.run,
            device,
            stream,
            seq,
        }
    }

    pub(crate) fn id_of(&self, message: &DueMessage) -> MessageId {
        self.message_id(message.device, message.stream, message.seq)
    }

    /// The message that an id names on a link: its stream, queue and number.
    pub(crate) fn named(&self, link: u32, id: ApplicationId) -> Option<(StreamId, usize, u32)> {
        let place = usize::from(id.stream_index);
        let streams = &self.class(link).streams;
        let is_named = |of: &&ClassStream| of.is_acknowledged() || of.is_refused_by_name;
        let stream = streams.get(place).filter(is_named)?;
        Some((stream.id, self.first_queue(link) + place, id.seq))
    }

    /// The stream in whose name is counted what names none: the first that the application
    /// acknowledges, else the first.
    pub(crate) fn spokesman(&self, link: u32) -> Option<StreamId> {
        let streams = &self.class(link).streams;
        let acknowledged = streams.iter().find(|stream| stream.is_acknowledged());
        acknowledged.or(streams.first()).map(|stream| stream.id)
    }

    /// A reproducible value for one link.
    pub(crate) fn seed_of(&self, link: u32) -> u64 {
        mix(self.seed, u64::from(self.link_id(link).0))
    }

    /// A reproducible value for one decision of one link.
    pub(crate) fn random(&self, link: u32, what: u64) -> f64 {
        let key = (u64::from(self.link_id(link).0) << 32) ^ what;
        muster_model::unit(mix(self.seed ^ 0x6a09_e667, key))
    }

    /// Instant at which a link that is up is to end, whatever business it has.
    pub(crate) fn leaves_at(&self, link: u32, of: &Link) -> Option<Micros> {
        let since = of.since();
        if !of.is_wanted() || of.is_renewing() {
            return Some(since);
        }
        let lifetime = self.class(link).client.lifetime;
        let end = lifetime.map(|lifetime| since + lifetime);
        let leave = self.goes_offline_at(link, since);
        [end, leave].into_iter().flatten().min()
    }

    /// Instant at which a link that is up goes offline; none if it never does, or has been.
    fn goes_offline_at(&self, link: u32, since: Micros) -> Option<Micros> {
        let offline = self.offline(link)?;
        (since < offline.until).then(|| offline.from.max(since))
    }

    /// The end of the time in which a link's fleet is offline, if `at` is in it.
    pub(crate) fn offline_until(&self, link: u32, at: Micros) -> Option<Micros> {
        let offline = self.offline(link)?;
        (offline.from..offline.until)
            .contains(&at)
            .then_some(offline.until)
    }

    /// Reason for which a link is closed on purpose now.
    pub(crate) fn why_it_leaves(&self, link: u32, of: &Link, now: Micros) -> Cause {
        let offline_at = self.goes_offline_at(link, of.since());
        match !of.is_wanted() || offline_at.is_some_and(|at| at <= now) {
            true => Cause::Offline,
            false => Cause::Lifetime,
        }
    }

    /// Returns whether a link leaves without a word, as one whose network is gone.
    pub(crate) fn leaves_abruptly(&self, link: u32, cause: Cause) -> bool {
        let offline = self.class(link).client.offline;
        cause == Cause::Offline && offline.is_some_and(|offline| offline.is_abrupt)
    }

    /// Time in which a link's fleet is offline, on the run's clock; none before that is known.
    fn offline(&self, link: u32) -> Option<Offline> {
        let offline = self.class(link).client.offline?;
        let origin = self.origin?;
        Some(Offline {
            from: origin + offline.from,
            until: origin + offline.until,
            is_abrupt: offline.is_abrupt,
        })
    }
}
