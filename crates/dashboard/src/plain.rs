//! The plain mode: one line every five seconds, for logs and CI.

use muster_conduct::Phase;
use muster_model::Micros;

use crate::Live;
use crate::figure::{count, duration, latency, per_second, seconds};

/// Between two lines of the same phase.
pub const PLAIN_EVERY: Micros = Micros::from_secs(5);

/// Decides when a line is due, and writes it.
#[derive(Debug, Default)]
pub struct Plain {
    last: Option<(Phase, Micros)>,
}

impl Plain {
    /// The last line, once settling has ended and the final counts are known, that of the lost
    /// among them.
    #[must_use]
    pub fn last_line(live: &Live) -> String {
        line(&Live {
            phase: Phase::Finish,
            not_arrived: None,
            ..live.clone()
        })
    }

    /// A line, without line feed, if the phase is new or five seconds have passed.
    pub fn line(&mut self, live: &Live) -> Option<String> {
        let is_due = self.last.is_none_or(|(phase, at)| {
            phase != live.phase || live.elapsed.get() >= (at + PLAIN_EVERY).get()
        });
        is_due.then(|| {
            self.last = Some((live.phase, live.elapsed));
            line(live)
        })
    }
}

fn line(live: &Live) -> String {
    let mut line = format!("{:>7} {:<8} ", duration(live.elapsed), live.phase_name());
    line.push_str(&links(live));
    match live.phase {
        Phase::Connect => {}
        Phase::WarmUp | Phase::Measure | Phase::Settle => line.push_str(&traffic(live)),
        Phase::Finish => line.push_str(&totals(live)),
    }
    for fault in &live.health.faults {
        line.push_str(" | generator: ");
        line.push_str(fault);
    }
    for warning in &live.health.warnings {
        line.push_str(" | generator now: ");
        line.push_str(warning);
    }
    line
}

fn links(live: &Live) -> String {
    let (up, wanted) = (count(live.links_up), count(live.links_wanted));
    match live.phase {
        Phase::Connect => format!("connecting {up} of {wanted}"),
        Phase::WarmUp | Phase::Measure | Phase::Settle | Phase::Finish => {
            format!("links {up}/{wanted}")
        }
    }
}

/// Before the first full second there are counts, and no rates.
fn traffic(live: &Live) -> String {
    let rates = &live.rates;
    let errors: Vec<String> = live
        .errors
        .iter()
        .take(3)
        .map(|(code, n)| format!("{code} {}", count(*n)))
        .collect();
    let errors = if errors.is_empty() {
        String::new()
    } else {
        format!(" | {}", errors.join(", "))
    };
    if rates.offered.is_none() {
        let (sent, accepted) = (count(live.sent), count(live.accepted));
        return format!(" | sent {sent} accepted {accepted}{errors}");
    }
    format!(
        " | offered {} issued {} completed {} arrived {} /s | p50 {} p99 {} | backlog {}{}{errors}",
        per_second(rates.offered),
        per_second(rates.issued),
        per_second(rates.completed),
        per_second(rates.arrived),
        latency(live.response.p50),
        latency(live.response.p99),
        seconds(live.backlog_s),
        missing(live),
    )
}

/// What the run came to: the only line that can tell what is lost.
fn totals(live: &Live) -> String {
    let arrived = live
        .arrived
        .map(|arrived| format!(" arrived {}", count(arrived)));
    format!(
        " | sent {} accepted {}{}{}",
        count(live.sent),
        count(live.accepted),
        arrived.unwrap_or_default(),
        missing(live),
    )
}

/// What is lost, where that is known; else what has not arrived, be it lost or on its way.
fn missing(live: &Live) -> String {
    match (live.lost, live.not_arrived) {
        (Some(lost), _) => format!(" | lost {}", count(lost)),
        (None, Some(messages)) => {
            let (messages, behind) = (count(messages), seconds(live.delivery_backlog_s));
            format!(" | not arrived {messages} ({behind})")
        }
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, phase: Phase) -> Live {
        Live {
            phase,
            elapsed: Micros::from_secs(seconds),
            ..Live::default()
        }
    }

    #[test]
    fn a_line_comes_every_five_seconds_and_with_every_new_phase() {
        let mut plain = Plain::default();
        let steps = [
            (0, Phase::Connect, true),
            (4, Phase::Connect, false),
            (5, Phase::Connect, true),
            (6, Phase::WarmUp, true),
            (10, Phase::WarmUp, false),
            (11, Phase::WarmUp, true),
        ];
        for (seconds, phase, wanted) in steps {
            assert_eq!(
                plain.line(&at(seconds, phase)).is_some(),
                wanted,
                "at {seconds} s"
            );
        }
    }

    #[test]
    fn links_that_connect_are_told_as_so_many_of_so_many() {
        let live = Live {
            links_up: 12,
            links_wanted: 2_000,
            ..at(0, Phase::Connect)
        };
        assert_eq!(line(&live), "   0:00 connect  connecting 12 of 2,000");
    }

    #[test]
    fn there_are_no_rates_before_the_first_full_second() {
        let live = Live {
            links_up: 20,
            links_wanted: 20,
            sent: 31,
            accepted: 30,
            ..at(1, Phase::WarmUp)
        };
        let wanted = "   0:01 warm-up  links 20/20 | sent 31 accepted 30";
        assert_eq!(line(&live), wanted);
    }

    #[test]
    fn the_last_line_tells_what_is_lost() {
        let unknown = crate::live::sample();
        let last = Plain::last_line(&Live {
            lost: Some(37),
            ..unknown.clone()
        });
        assert!(
            last.contains("sent 71,234 accepted 70,112 arrived 70,080 | lost 37"),
            "{last}"
        );
        let unknown = Plain::last_line(&unknown);
        assert!(!unknown.contains("lost"), "{unknown}");
    }

    #[test]
    fn a_line_shows_the_run_and_the_generators_faults() {
        let live = crate::live::sample();
        insta::assert_snapshot!(line(&live));
    }
}
