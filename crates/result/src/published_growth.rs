//! The published policy of growing, while a run goes on: its figures from the run's windows, and its load.

use std::collections::BTreeMap;

use muster_conduct::{Standing, Steer};
use muster_load::AddedHold;
use muster_measure::{PublishedSecond, State, WindowDelta};
use muster_model::{BackendId, Dimension, Micros};
use muster_plan::Plan;
use muster_scale::{Event, Published, Second, Seconds};

use crate::live::LAG_S;

/// Time between the order of a hold and its begin, so that every thread knows of it before. A check is early by as
/// much, so that the load goes on without a gap.
const LEAD: Micros = Micros::from_secs(1);
/// The first backend is the application whose messages count as received.
const APPLICATION: BackendId = BackendId(0);

/// The published policy in one run, whose target does not change.
#[derive(Debug)]
pub struct PublishedGrowth {
    policy: Published,
    seconds: Seconds,
    /// Seconds of the run whose windows may not all be in.
    open: BTreeMap<u32, Counts>,
    /// The first of them.
    first_open: u32,
    has_backend: bool,
    /// The wall clock at the begin of the run's clock.
    wall: Micros,
    instances: u32,
    /// A unit of load as a multiple of what the scenario states.
    unit: f64,
    /// True if a unit adds devices.
    adds_devices: bool,
    /// True if the devices of the level were not ordered to connect yet.
    is_to_connect: bool,
    /// End of the last hold; none before the first one.
    held_until: Option<Micros>,
    holds: Vec<AddedHold>,
    is_over: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    requests: PublishedSecond,
    answered: u64,
    received: u64,
}

impl PublishedGrowth {
    /// Goes on with a policy whose level is set on a target that is ready, on a plan whose load is added while it
    /// runs ([`Plan::adding`]), and whose first added load is that level's. `wall` is the time since the Unix epoch at which the run's clock begins.
    pub fn new(policy: Published, seconds: Seconds, plan: &Plan, wall: Micros) -> Self {
        let units = f64::from(policy.level().units);
        Self {
            instances: policy.level().instances,
            policy,
            seconds,
            open: BTreeMap::new(),
            first_open: 0,
            has_backend: plan.accounts() > 0,
            wall,
            unit: plan.added.map_or(1.0, |added| added.first / units),
            adds_devices: plan
                .added
                .is_some_and(|added| added.dimension == Dimension::Devices),
            is_to_connect: false,
            held_until: None,
            holds: Vec::new(),
            is_over: false,
        }
    }

    /// Takes in what came.
    pub fn windows(&mut self, delta: &WindowDelta) {
        let has_backend = self.has_backend;
        for ((_, key), window) in &delta.uplinks {
            let flow = &window.flow;
            let of = self.second(key.second);
            let failed = [State::Rejected, State::TimedOut, State::Broken];
            of.requests.sent += flow.sent;
            of.requests.success += flow.of(State::Accepted);
            of.requests.failure += failed.iter().map(|state| flow.of(*state)).sum::<u64>();
            // By due: the time of a request that ended late counts in the first second that is still open.
            of.requests.took_us += window.service.sum_us;
            of.answered += window.service.count;
            if !has_backend {
                of.received += flow.of(State::Accepted);
            }
        }
        for ((backend, _, key), window) in &delta.arrivals {
            if *backend == APPLICATION {
                self.second(key.second).received += window.arrived;
            }
        }
    }

    /// The next order, and the events that led to it; no order while the load stays as it is.
    pub fn turn(&mut self, standing: &Standing) -> (Vec<Event>, Option<Steer>) {
        let now = standing.now;
        if self.is_over {
            return (Vec::new(), None);
        }
        let Some(held_until) = self.held_until else {
            let from = whole_second(now + LEAD);
            self.first_open = from.second();
            self.policy.applied(self.wall + from);
            return (Vec::new(), Some(self.hold(from, standing)));
        };
        if std::mem::take(&mut self.is_to_connect) {
            return (Vec::new(), Some(Steer::Activate(self.factor())));
        }
        self.close(now.second().saturating_sub(LAG_S));
        let check = self.policy.next_check();
        if self.wall + now + LEAD < check {
            return (Vec::new(), None);
        }
        let events = self.check(check.max(self.wall + now));
        if self.is_over {
            return (events, Some(Steer::End));
        }
        let is_short = self.policy.constant_until() > self.wall + held_until;
        let steer = is_short.then(|| self.hold(held_until.max(whole_second(now)), standing));
        (events, steer)
    }

    /// Adds every hold of this run so far to its plan.
    pub fn add_to(&self, plan: &mut Plan) {
        self.holds.iter().for_each(|hold| plan.add_hold(hold));
    }

    /// True once this run can do no more: the target is to be changed, or the test is over.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The policy and its figures, to go on with in another run.
    pub fn into_parts(self) -> (Published, Seconds) {
        (self.policy, self.seconds)
    }

    fn check(&mut self, at: Micros) -> Vec<Event> {
        let reading = self.seconds.reading(at);
        let mut events = Vec::new();
        while let Some(event) = self.policy.step(at, &reading) {
            events.push(event);
            match event {
                Event::Set(level) if level.instances == self.instances => {
                    self.is_to_connect = self.adds_devices;
                    self.policy.applied(at);
                }
                Event::Set(_) | Event::End(_) => {
                    self.is_over = true;
                    return events;
                }
                Event::Log(_) | Event::StableStart => {}
            }
        }
        events
    }

    /// Holds the load of the level for as long as it is surely constant.
    fn hold(&mut self, from: Micros, standing: &Standing) -> Steer {
        let until = whole_second(self.policy.constant_until() - self.wall);
        let origin = standing.timeline.origin;
        let hold = AddedHold {
            from: from - origin,
            until: until - origin,
            factor: self.factor(),
        };
        self.held_until = Some(until);
        self.holds.push(hold);
        Steer::Hold(hold)
    }

    /// The load of the level as a multiple of what the scenario states.
    fn factor(&self) -> f64 {
        f64::from(self.policy.level().units) * self.unit
    }

    fn second(&mut self, second: u32) -> &mut Counts {
        let second = second.max(self.first_open);
        self.open.entry(second).or_default()
    }

    /// Closes all seconds before one.
    fn close(&mut self, until: u32) {
        while self.first_open < until {
            let counts = self.open.remove(&self.first_open).unwrap_or_default();
            let at = self.wall + Micros::from_secs(u64::from(self.first_open));
            self.seconds.add(Second {
                at: at.get() / 1_000_000,
                requests: counts.requests,
                answered: counts.answered,
                received: counts.received,
            });
            self.first_open += 1;
        }
    }
}

/// The first whole second that is not before an instant.
fn whole_second(at: Micros) -> Micros {
    Micros(at.get().next_multiple_of(1_000_000))
}

#[cfg(test)]
mod tests {
    use muster_conduct::{Phase, Progress};
    use muster_measure::{Flow, Timeline, UplinkWindow, WindowKey};
    use muster_model::StreamId;
    use muster_plan::AddedLoad;
    use muster_scale::{Level, PublishedSpec};
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    const ONE: Level = Level {
        units: 1,
        instances: 1,
    };
    const BEGUN: u64 = 5;

    fn growth(plan: &Plan) -> PublishedGrowth {
        let spec = PublishedSpec {
            failure_ratio: 0.02,
            window: Micros::from_secs(20),
            offset: Micros::from_secs(10),
            stable_within: Micros::from_secs(40),
            improve: Micros::from_secs(20),
            least: ONE,
            most: Level {
                units: 4,
                instances: 2,
            },
        };
        let seconds = Seconds::new(spec.window, spec.offset);
        let wall = Micros::from_millis(1_532_500_000_250);
        PublishedGrowth::new(Published::new(spec), seconds, plan, wall)
    }

    /// The windows of a second in which an instance accepted 250 messages at the most.
    fn windows(second: u32, sent: u64) -> WindowDelta {
        let mut flow = Flow {
            sent,
            ..Flow::default()
        };
        flow.ended[State::Accepted.index()] = sent.min(250);
        flow.ended[State::Rejected.index()] = sent.saturating_sub(250);
        let key = WindowKey {
            second,
            ..WindowKey::default()
        };
        let window = UplinkWindow {
            flow,
            ..UplinkWindow::default()
        };
        WindowDelta {
            uplinks: BTreeMap::from([((StreamId(0), key), window)]),
            ..WindowDelta::default()
        }
    }

    /// A plan that grows in a dimension; each of 4 units is `unit` of what it states.
    fn plan(dimension: Dimension, unit: f64) -> Plan {
        let source = Source {
            name: "growth.yaml",
            text: "name: growth\nfleet: [ { streams: [ { rate: 100/s } ] } ]\nplatform: { kind: mqtt, devices: \
                   [ \"mqtt://127.0.0.1:1\" ] }\n",
        };
        let plan = parse(source, &Overrides::new(), &NoFiles).expect("a scenario");
        let load = AddedLoad {
            dimension,
            first: unit,
            most: 4.0 * unit,
        };
        plan.adding(Micros::from_secs(3_600), load)
            .expect("its load can be added")
    }

    /// Grows the load until the policy is over, with 100 messages a second a unit. Returns every order.
    fn grown(dimension: Dimension, unit: f64) -> Vec<Steer> {
        let mut growth = growth(&plan(dimension, unit));
        let mut steers = Vec::new();
        let (mut holds, mut lines) = (Vec::<AddedHold>::new(), Vec::new());
        let timeline = Timeline::starting(
            Micros::from_secs(BEGUN),
            Micros::ZERO,
            Micros::from_secs(3_600),
        );
        for tenth in 10 * BEGUN..36_000 {
            let now = Micros::from_millis(100 * tenth);
            if tenth.is_multiple_of(10) {
                let before = now - Micros::from_secs(1);
                let at = before - Micros::from_secs(BEGUN);
                let hold = holds.iter().find(|it| it.from <= at && at < it.until);
                let factor = hold.map_or(0.0, |hold| hold.factor);
                let sent = (100.0 * factor / unit).round();
                growth.windows(&windows(before.second(), sent as u64));
            }
            let standing = Standing {
                now,
                phase: Phase::Measure,
                time_left: Micros::ZERO,
                timeline,
                progress: Progress::default(),
            };
            let (events, steer) = growth.turn(&standing);
            for event in events {
                if let Event::Log(line) = event
                    && line.is_stable
                {
                    lines.push((line.level.units, line.summed.received_per_s));
                }
            }
            steers.extend(steer);
            match steer {
                Some(Steer::Hold(hold)) => {
                    // Every thread knows of it before it begins.
                    assert!(timeline.origin + hold.from >= now + LEAD);
                    holds.push(hold);
                }
                Some(Steer::End) => break,
                Some(Steer::Activate(_)) | None => {}
            }
        }
        assert!(growth.is_over());
        assert_eq!(lines, [(2, 200.0)]);
        let (policy, _) = growth.into_parts();
        let wanted = Level {
            units: 3,
            instances: 2,
        };
        assert_eq!((policy.level(), policy.end()), (wanted, None));
        assert!(holds.windows(2).all(|pair| pair[0].until == pair[1].from));
        let mut factors: Vec<f64> = holds.iter().map(|hold| hold.factor).collect();
        factors.dedup();
        assert_eq!(factors, [1.0, 2.0, 3.0].map(|units| units * unit));
        steers
    }

    fn shares(steers: &[Steer]) -> Vec<f64> {
        let shares = steers.iter().filter_map(|steer| match steer {
            Steer::Activate(share) => Some(*share),
            Steer::Hold(_) | Steer::End => None,
        });
        shares.collect()
    }

    #[test]
    fn the_rate_grows_without_a_gap_until_an_instance_is_wanted() {
        assert!(shares(&grown(Dimension::Rate, 1.0)).is_empty());
    }

    #[test]
    fn devices_of_a_unit_connect_while_the_others_go_on() {
        // The first unit is connected when the run begins.
        assert_eq!(shares(&grown(Dimension::Devices, 0.25)), [0.5, 0.75]);
    }
}
