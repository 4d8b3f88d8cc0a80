//! The one server of `capacity`, in virtual time: when an uplink that arrives now is done.

use std::collections::VecDeque;

use muster_model::behaviour::{Capacity, Full, Service, ServiceTime};
use muster_model::{Micros, Rate, mix, unit};

/// Keeps draws for service times apart from those for faults.
const SERVICE_STREAM: u64 = 0x5e41;
/// Keeps draws for the time each uplink takes by itself apart from both.
const OWN_TIME_STREAM: u64 = 0x0a11;

/// One server and its queue. Nothing waits in it: it knows from the start when each uplink
/// begins and ends, so timers play no part in its exactness.
#[derive(Debug)]
pub(crate) struct OneServer {
    capacity: Capacity,
    seed: u64,
    /// Ends of service so far, in fractions of a microsecond so that rates stay exact.
    free_at_us: f64,
    /// Beginnings of service that are still to come.
    begins: VecDeque<Micros>,
}

/// Service of an uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) done: Micros,
    /// Instant at which the queue has a place for the uplink; until then its link must not be read.
    pub(crate) blocked_until: Option<Micros>,
}

/// Treatment of an uplink that finds no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// Neither answered nor delivered.
    Drop,
    /// Answered no.
    Reject,
}

impl OneServer {
    pub(crate) fn new(capacity: Capacity, seed: u64) -> Self {
        Self {
            capacity,
            seed,
            free_at_us: 0.0,
            begins: VecDeque::new(),
        }
    }

    /// A server that all wait for, in their order.
    pub(crate) fn with_rate(rate: Rate, seed: u64) -> Self {
        let capacity = Capacity {
            rate,
            service: Service::Fixed,
            queue: u32::MAX,
            full: Full::default(),
        };
        Self::new(capacity, seed)
    }

    pub(crate) fn admit(&mut self, now: Micros, position: u64) -> Result<Served, NoRoom> {
        while self.begins.front().is_some_and(|begin| *begin <= now) {
            self.begins.pop_front();
        }
        let waiting = self.begins.len();
        let queue = self.capacity.queue as usize;
        // A free server takes an uplink without its queueing, whatever the queue's length.
        let has_room = waiting < queue || self.free_at_us <= now.get() as f64;
        let blocked_until = match self.capacity.full {
            _ if has_room => None,
            Full::Drop => return Err(NoRoom::Drop),
            Full::Reject => return Err(NoRoom::Reject),
            // It enters the queue at the beginning of service that frees a place.
            Full::Block if queue == 0 => Some(Micros(self.free_at_us.round() as u64)),
            Full::Block => Some(self.begins[waiting - queue]),
        };
        let done = self.serve(now, position);
        Ok(Served {
            done,
            blocked_until,
        })
    }

    /// The instant at which a request that comes now is done, whatever waits before it.
    pub(crate) fn serve(&mut self, now: Micros, position: u64) -> Micros {
        let mean_us = 1e6 / self.capacity.rate.get();
        let takes_us = match self.capacity.service {
            Service::Fixed => mean_us,
            Service::Exponential => exponential(mean_us, mix(self.seed ^ SERVICE_STREAM, position)),
        };
        let begin_us = self.free_at_us.max(now.get() as f64);
        if begin_us > now.get() as f64 {
            self.begins.push_back(Micros(begin_us.round() as u64));
        }
        self.free_at_us = begin_us + takes_us;
        Micros(self.free_at_us.round() as u64)
    }
}

/// Service time of one uplink; `after` is its time since the first.
pub(crate) fn own_time(time: ServiceTime, seed: u64, position: u64, after: Micros) -> Micros {
    match time {
        ServiceTime::Drift { from, to, over } => {
            let share = after.as_secs_f64() / over.as_secs_f64();
            // Without a length the line is at its end at once.
            let share = if share.is_nan() { 1.0 } else { share.min(1.0) };
            let us = from.get() as f64 + share * (to.get() as f64 - from.get() as f64);
            Micros(us.round() as u64)
        }
        ServiceTime::Fixed(time) => time,
        ServiceTime::Exponential(mean) => {
            let us = exponential(mean.get() as f64, mix(seed ^ OWN_TIME_STREAM, position));
            Micros(us.round() as u64)
        }
    }
}

fn exponential(mean: f64, draw: u64) -> f64 {
    -mean * (1.0 - unit(draw)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(rate: f64, queue: u32, full: Full, service: Service) -> OneServer {
        let rate = Rate::per_second(rate).expect("a rate");
        OneServer::new(
            Capacity {
                rate,
                service,
                queue,
                full,
            },
            7,
        )
    }

    fn done(at: u64) -> Result<Served, NoRoom> {
        served(at, None)
    }

    fn served(done: u64, until: Option<u64>) -> Result<Served, NoRoom> {
        let (done, blocked_until) = (Micros(done), until.map(Micros));
        Ok(Served {
            done,
            blocked_until,
        })
    }

    #[test]
    fn a_burst_is_served_one_by_one_in_order() {
        let mut server = server(1_000.0, 10, Full::Drop, Service::Fixed);
        let all: Vec<_> = (0..4).map(|n| server.admit(Micros(500), n)).collect();
        assert_eq!(all, [1_500, 2_500, 3_500, 4_500].map(done));
    }

    #[test]
    fn beyond_one_in_service_and_the_queue_uplinks_are_turned_away() {
        for (full, away) in [
            (Full::Drop, Err(NoRoom::Drop)),
            (Full::Reject, Err(NoRoom::Reject)),
        ] {
            let mut server = server(1_000.0, 2, full, Service::Fixed);
            let all: Vec<_> = (0..5).map(|n| server.admit(Micros(0), n)).collect();
            assert_eq!(all, [done(1_000), done(2_000), done(3_000), away, away]);
            assert_eq!(
                server.admit(Micros(1_000), 5),
                done(4_000),
                "a place is free again"
            );
        }
    }

    #[test]
    fn a_blocked_link_waits_until_a_place_is_free_and_keeps_its_turn() {
        let mut server = server(1_000.0, 1, Full::Block, Service::Fixed);
        let all: Vec<_> = (0..4).map(|n| server.admit(Micros(0), n)).collect();
        assert_eq!(all[1], done(2_000));
        let blocked = |done, until| served(done, Some(until));
        assert_eq!(all[2..], [blocked(3_000, 1_000), blocked(4_000, 2_000)]);
    }

    #[test]
    fn an_overloaded_server_completes_at_its_rate() {
        let mut server = server(700.0, u32::MAX, Full::Drop, Service::Fixed);
        let last = (0..7_000).map(|n| server.admit(Micros(n * 100), n)).last();
        assert_eq!(last, Some(done(10_000_000)));
    }

    #[test]
    fn a_drift_is_a_straight_line_that_ends() {
        let drift = ServiceTime::Drift {
            from: Micros(50_000),
            to: Micros(40_000),
            over: Micros::from_secs(10),
        };
        let at = |seconds| own_time(drift, 1, 0, Micros::from_secs(seconds)).get();
        assert_eq!(
            [at(0), at(5), at(10), at(99)],
            [50_000, 45_000, 40_000, 40_000]
        );
    }

    #[test]
    fn exponential_times_have_the_mean_and_the_spread_of_their_law() {
        let times: Vec<f64> = (0..100_000)
            .map(|n| {
                own_time(ServiceTime::Exponential(Micros(2_000)), 3, n, Micros::ZERO).get() as f64
            })
            .collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let squares = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>();
        let deviation = (squares / times.len() as f64).sqrt();
        assert!((mean / 2_000.0 - 1.0).abs() < 0.02, "mean {mean}");
        assert!(
            (deviation / 2_000.0 - 1.0).abs() < 0.02,
            "deviation {deviation}"
        );
    }
}
