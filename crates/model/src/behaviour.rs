//! Misbehaviour of the reference gateway, by an exact amount.
//!
//! A count stands for that number of positions, chosen by the run's seed over the uplinks that the run
//! expects; an instant counts from the first uplink that the gateway receives. Each uplink is
//! given at most one of the counted misbehaviours, so that their sums stay readable.

use serde::{Deserialize, Serialize};

use crate::{Micros, Rate};

/// Faults of the reference gateway; the default has none.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Behaviour {
    /// Delay of each uplink by itself, any number at once, before it is accepted and delivered.
    pub service_time: Option<ServiceTime>,
    /// One server with a bounded queue before it, through which every uplink passes.
    pub capacity: Option<Capacity>,
    /// Uplinks that are accepted and never delivered.
    pub lose_after_accept: u32,
    /// Uplinks that are neither answered nor delivered.
    pub drop: u32,
    /// Uplinks that are delivered and never answered.
    pub ignore: u32,
    /// Uplinks that are delivered at once and answered late.
    pub answer_late: Delayed,
    /// Uplinks whose answer is sent twice.
    pub answer_twice: u32,
    /// Uplinks whose acknowledgement by the application is not readable.
    pub answer_garbled: u32,
    /// Uplinks whose acknowledgement by the application names a message that nobody sent.
    pub answer_unknown: u32,
    /// Acknowledgements by the application that wait for others of their device.
    pub answer_batch: Option<Batch>,
    /// Uplinks that are delivered twice.
    pub duplicate: u32,
    /// Uplinks that are delivered after the next uplink of the same link.
    pub reorder: u32,
    /// Uplinks that are answered at once and delivered late.
    pub deliver_late: Delayed,
    /// Uplinks delivered with one bit of the payload flipped.
    pub corrupt: u32,
    /// Uplinks that are answered no and not delivered.
    pub reject: Option<Reject>,
    /// Uplinks that are answered no at once, with [`Reject::DEFAULT_CODE`] or the code of `reject`, and
    /// delivered nevertheless: at once, too, or late.
    pub reject_but_deliver: Delayed,
    /// Uplinks that are accepted and delivered, and never stored.
    pub lose_stored: u32,
    /// A time in which the store stands still while uplinks are accepted.
    pub stall_store: Option<Stall>,
    /// Devices that the tenant may have. None: any number.
    pub device_limit: Option<u32>,
    /// Messages that the tenant may send, and the time until that is noticed: from then on, new links and requests
    /// are refused. Of count 0: any number.
    pub message_limit: Delayed,
    /// Calls of the REST API a second that are answered; further ones are refused. None: all. Above zero.
    pub rest_rate: Option<Rate>,
    /// Commands that are accepted and never delivered.
    pub lose_commands: u32,
    /// Commands that are delivered twice.
    pub duplicate_commands: u32,
    /// Commands that are answered at once and delivered late.
    pub delay_commands: Delayed,
    /// Commands a second that are passed on, in their order; further ones wait. None: all at once. Above zero.
    pub command_rate: Option<Rate>,
    /// New connections over TCP a second, in their order; further ones wait to be read. None: all at once. Above zero.
    pub connect_rate: Option<Rate>,
    /// Most messages that are kept for a device that is offline; a further one is dropped. None:
    /// the gateway's own bound.
    pub session_queue: Option<u32>,
    /// A time in which the gateway reads nothing and says nothing.
    pub stall: Option<Stall>,
    /// An instant at which it closes part of the device links.
    pub close_links: Option<CloseLinks>,
    /// True if no link is a gateway's: messages for other devices are never answered.
    pub no_gateways: bool,
    /// Memory that the gateway takes and never releases.
    pub leak: Option<Leak>,
    /// Memory that the gateway takes and releases again and again.
    pub sawtooth: Option<Sawtooth>,
}

impl Behaviour {
    /// Returns the faults of commands, in the fields of uplinks.
    pub fn of_commands(&self) -> Behaviour {
        Behaviour {
            lose_after_accept: self.lose_commands,
            duplicate: self.duplicate_commands,
            deliver_late: self.delay_commands,
            ..Behaviour::default()
        }
    }

    /// Returns true if the gateway has no fault.
    pub fn behaves(&self) -> bool {
        *self == Self::default()
    }
}

/// Time that one uplink takes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceTime {
    /// Always so long.
    Fixed(Micros),
    /// Exponentially distributed with this mean.
    Exponential(Micros),
    /// On a straight line from one time to another, then always that.
    Drift {
        /// For the first uplink.
        from: Micros,
        /// In the end.
        to: Micros,
        /// Time of the change.
        over: Micros,
    },
}

/// One server: it takes one uplink at a time, in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Capacity {
    /// Uplinks a second; the mean service time is its inverse. Above zero.
    pub rate: Rate,
    /// The distribution of the service time.
    pub service: Service,
    /// Most uplinks that wait for the server.
    pub queue: u32,
    /// Treatment of an uplink that finds the queue full.
    pub full: Full,
}

impl Capacity {
    /// Places in the queue where the scenario names none: four seconds of traffic at 5,000/s.
    pub const DEFAULT_QUEUE: u32 = 20_000;
}

/// The distribution of the one server's service time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Every uplink takes the mean.
    #[default]
    Fixed,
    /// Exponential with that mean.
    Exponential,
}

/// Treatment of an uplink that finds the queue full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Full {
    /// Drops it: neither answered nor delivered.
    #[default]
    Drop,
    /// Rejects it (MQTT 5 code 0x97; 3.1.1 has no such answer and closes the link).
    Reject,
    /// The gateway stops reading until there is room.
    Block,
}

/// A number of uplinks, each delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Delayed {
    /// Their number.
    pub count: u32,
    /// By how much.
    pub by: Micros,
}

impl Delayed {
    /// Returns `count` uplinks without a delay.
    pub const fn at_once(count: u32) -> Self {
        let by = Micros::ZERO;
        Self { count, by }
    }
}

/// Gathering of the application's acknowledgements, device by device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Batch {
    /// Most acknowledgements in one message; at least 1.
    pub most: u32,
    /// Longest wait of the first of a batch.
    pub within: Micros,
}

/// Uplinks that are answered no.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Reject {
    /// The code on the wire: of the dialect's application where that answers, else the MQTT 5
    /// reason code (3.1.1 has no such answer and closes the link).
    pub code: u16,
    /// The uplinks.
    pub amount: Amount,
}

impl Reject {
    /// "Quota exceeded" (MQTT 5 section 3.4.2.1).
    pub const DEFAULT_CODE: u16 = 0x97;
}

/// A share or number of the expected uplinks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// This fraction, in `[0, 1]`, rounded to the nearest count.
    Share(f64),
    /// Exactly this number.
    Count(u32),
}

impl Amount {
    /// Returns how many of `expected` uplinks it is.
    pub fn of(self, expected: u64) -> u64 {
        match self {
            Self::Share(share) => (share.clamp(0.0, 1.0) * expected as f64).round() as u64,
            Self::Count(count) => u64::from(count),
        }
    }
}

/// A time in which the gateway reads nothing and says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stall {
    /// Since the first uplink received.
    pub at: Micros,
    /// Its length.
    pub lasts: Micros,
}

/// An instant at which part of the device links are closed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CloseLinks {
    /// Since the first uplink received.
    pub at: Micros,
    /// Fraction of the device links then open, in `[0, 1]`, rounded to the nearest count.
    pub share: f64,
}

/// Memory that grows at a constant rate up to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Leak {
    /// Bytes a second, from the start of the gateway.
    pub bytes: Rate,
    /// Most bytes.
    pub at_most: u64,
}

impl Leak {
    /// Returns the bytes held at a time after the start of the gateway.
    pub fn held(self, after: Micros) -> u64 {
        let grown = self.bytes.get() * after.as_secs_f64();
        self.at_most.min(grown as u64)
    }
}

/// Memory that grows on a straight line and is then released, as a garbage collection releases it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sawtooth {
    /// Bytes held just before a release.
    pub bytes: u64,
    /// Time between two releases; above zero.
    pub every: Micros,
}

impl Sawtooth {
    /// Returns the bytes held at a time after the start of the gateway.
    pub fn held(self, after: Micros) -> u64 {
        let every = self.every.get().max(1);
        let grown = u128::from(self.bytes) * u128::from(after.get() % every);
        (grown / u128::from(every)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_grows_up_to_its_limit_and_a_sawtooth_begins_anew() {
        let leak = Leak {
            bytes: Rate::per_second(1e6).expect("a rate"),
            at_most: 5_000_000,
        };
        let sawtooth = Sawtooth {
            bytes: 8_000_000,
            every: Micros::from_secs(4),
        };
        let held = |second| {
            let after = Micros::from_secs(second);
            (leak.held(after), sawtooth.held(after))
        };
        assert_eq!(held(0), (0, 0));
        assert_eq!(held(3), (3_000_000, 6_000_000));
        assert_eq!(held(4), (4_000_000, 0));
        assert_eq!(held(3_601), (5_000_000, 2_000_000));
    }

    #[test]
    fn the_default_behaves() {
        assert!(Behaviour::default().behaves());
        assert!(
            !Behaviour {
                drop: 1,
                ..Behaviour::default()
            }
            .behaves()
        );
    }

    #[test]
    fn a_share_is_rounded_to_the_nearest_count() {
        assert_eq!(Amount::Share(0.1).of(15), 2);
        assert_eq!(Amount::Share(2.0).of(15), 15);
        assert_eq!(Amount::Count(37).of(1_000), 37);
        assert_eq!(Amount::Count(37).of(0), 37);
    }
}
