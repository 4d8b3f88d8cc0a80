//! The plain mode: one line every five seconds, for logs and CI.

use muster_conduct::Phase;
use muster_model::Micros;

use crate::figure::{at_least, count, duration, per_second, seconds};
use muster_result::Live;

/// Between two lines of the same phase.
pub const PLAIN_EVERY: Micros = Micros::from_secs(5);

/// Messages a second below which the second before a line says little of the run.
const LOW_RATE: f64 = 10.0;

/// Decides when a line is due, and writes it.
#[derive(Debug, Default)]
pub struct Plain {
    last: Option<(Phase, Micros)>,
    /// True if a line has reported links that fail to connect.
    has_failing: bool,
}

impl Plain {
    /// The last line, once settling has ended and the final counts are known, that of the lost
    /// among them.
    pub fn last_line(mut live: Live) -> String {
        live.clock.phase = Phase::Finish;
        live.messages.not_arrived = None;
        line(&live)
    }

    /// A line, without line feed, if the phase is new or five seconds have passed.
    pub fn line(&mut self, live: &Live) -> Option<String> {
        let is_due = self.last.is_none_or(|(phase, at)| {
            let is_new = !self.has_failing && !live.links.failures.is_empty();
            is_new
                || phase != live.clock.phase
                || live.clock.elapsed.get() >= (at + PLAIN_EVERY).get()
        });
        is_due.then(|| {
            self.last = Some((live.clock.phase, live.clock.elapsed));
            self.has_failing |= !live.links.failures.is_empty();
            line(live)
        })
    }
}

/// Decides when a short line is due, at an interval that the user names, and writes it with the state of
/// the SLOs.
#[derive(Debug)]
pub struct Brief {
    every: Micros,
    next: Micros,
}

impl Brief {
    /// Lines at multiples of an interval; the first one comes at once.
    pub const fn new(every: Micros) -> Self {
        Self {
            every,
            next: Micros::ZERO,
        }
    }

    /// A line, without line feed, if one is due.
    pub fn line(&mut self, live: &Live) -> Option<String> {
        let is_due = live.clock.elapsed >= self.next;
        is_due.then(|| {
            let every = self.every.get().max(1);
            self.next = Micros((live.clock.elapsed.get() / every + 1) * every);
            brief(live)
        })
    }
}

/// Time, phase, rates, p99, the state of the SLOs, and what goes wrong most.
fn brief(live: &Live) -> String {
    let mut line = format!(
        "{:>7} {:<8} ",
        duration(live.clock.elapsed),
        live.clock.phase_name()
    );
    let rates = &live.rates;
    match (live.clock.phase, rates.offered) {
        (Phase::WarmUp | Phase::Measure | Phase::Settle, Some(_)) => {
            let arrived = match rates.arrived {
                Some(_) => format!(", arrived {}", per_second(rates.arrived)),
                None => String::new(),
            };
            line.push_str(&format!(
                "issued {} of {}/s, answered {}{arrived} | p99 {}",
                per_second(rates.issued),
                per_second(rates.offered),
                per_second(rates.completed),
                p99(live),
            ));
            if rates.offered.is_some_and(|offered| offered < LOW_RATE) {
                line.push_str(&format!(" | {} sent so far", count(live.messages.sent)));
            }
        }
        (Phase::Connect, _) => {
            line.push_str(&links(live));
            line.push_str(&failing(live));
        }
        (Phase::WarmUp | Phase::Measure | Phase::Settle | Phase::Finish, _) => {
            line.push_str(&links(live));
        }
    }
    line.push_str(&match live.slos.as_deref() {
        None => " | SLOs -".to_owned(),
        Some([]) => " | SLOs ok".to_owned(),
        Some(failing) => format!(" | SLOs failing: {}", failing.join(", ")),
    });
    let errors = (live.clock.phase != Phase::Connect).then(|| live.errors.first());
    if let Some((what, count)) = errors.flatten() {
        line.push_str(&format!(" | {what} {}", self::count(*count)));
    }
    if let Some(fault) = live.health.faults.first() {
        line.push_str(&format!(" | generator: {fault}"));
    }
    line
}

fn line(live: &Live) -> String {
    let mut line = format!(
        "{:>7} {:<8} ",
        duration(live.clock.elapsed),
        live.clock.phase_name()
    );
    line.push_str(&links(live));
    match live.clock.phase {
        Phase::Connect => line.push_str(&failing(live)),
        Phase::WarmUp | Phase::Measure | Phase::Settle => line.push_str(&traffic(live)),
        Phase::Finish => {
            if live.links.up == 0 {
                line.push_str(&failing(live));
            }
            line.push_str(&totals(live));
        }
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
    let (up, wanted) = (count(live.links.up), count(live.links.wanted));
    match live.clock.phase {
        Phase::Connect => format!("connecting {up} of {wanted}"),
        Phase::WarmUp | Phase::Measure | Phase::Settle | Phase::Finish => {
            format!("links {up}/{wanted}")
        }
    }
}

/// Returns why links fail to connect: "2,000 refused: not authorized (0x87)".
fn failing(live: &Live) -> String {
    let causes = live.links.failures.iter().take(3);
    let causes = causes.map(|(cause, n)| format!(" | {} {cause}", count(*n)));
    causes.collect()
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
        let (sent, accepted) = (count(live.messages.sent), count(live.messages.accepted));
        return format!(" | sent {sent} accepted {accepted}{errors}");
    }
    format!(
        " | offered {} issued {} answered {} arrived {} /s | p50 {} p99 {} | backlog {}{}{errors}",
        per_second(rates.offered),
        per_second(rates.issued),
        per_second(rates.completed),
        per_second(rates.arrived),
        at_least(live.response.p50, live.response.is_p50_at_least),
        p99(live),
        seconds(live.backlog_s),
        missing(live),
    )
}

/// The p99 of the response, with the seconds it was taken over where that is more than one; why there is
/// none yet.
fn p99(live: &Live) -> String {
    let of = &live.response;
    if of.p99.is_none() && of.p99_of > 0 {
        return format!(
            "n/a ({} of {} messages)",
            count(of.p99_of),
            count(of.p99_needs)
        );
    }
    let words = at_least(of.p99, of.is_p99_at_least);
    match of.p99_over_s {
        over @ 2.. if of.p99.is_some() => format!("{words} over {over} s"),
        _ => words,
    }
}

/// Renders the totals of the run, the only line that can report losses.
fn totals(live: &Live) -> String {
    let arrived = live
        .messages
        .arrived
        .map(|arrived| format!(" arrived {}", count(arrived)));
    format!(
        " | sent {} accepted {}{}{}",
        count(live.messages.sent),
        count(live.messages.accepted),
        arrived.unwrap_or_default(),
        missing(live),
    )
}

/// Renders the lost messages if they are known, else those that have not arrived.
fn missing(live: &Live) -> String {
    match (live.messages.lost, live.messages.not_arrived) {
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
        let mut live = Live::default();
        (live.clock.phase, live.clock.elapsed) = (phase, Micros::from_secs(seconds));
        live
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
        let mut live = at(0, Phase::Connect);
        (live.links.up, live.links.wanted) = (12, 2_000);
        assert_eq!(line(&live), "   0:00 connect  connecting 12 of 2,000");
    }

    #[test]
    fn a_line_says_why_links_do_not_come_up_while_it_happens() {
        let mut live = at(1, Phase::Connect);
        live.links.wanted = 2_000;
        live.links.failures = vec![("refused: not authorized (0x87)".to_owned(), 2_000)];
        let wanted =
            "   0:01 connect  connecting 0 of 2,000 | 2,000 refused: not authorized (0x87)";
        let mut plain = Plain::default();
        assert!(plain.line(&at(0, Phase::Connect)).is_some());
        assert_eq!(plain.line(&live).as_deref(), Some(wanted), "at once");
        assert_eq!(plain.line(&live), None);
    }

    #[test]
    fn there_are_no_rates_before_the_first_full_second() {
        let mut live = at(1, Phase::WarmUp);
        (live.links.up, live.links.wanted) = (20, 20);
        (live.messages.sent, live.messages.accepted) = (31, 30);
        let wanted = "   0:01 warm-up  links 20/20 | sent 31 accepted 30";
        assert_eq!(line(&live), wanted);
    }

    #[test]
    fn the_last_line_tells_what_is_lost() {
        let unknown = crate::sample::sample();
        let mut known = unknown.clone();
        known.messages.lost = Some(37);
        let last = Plain::last_line(known);
        assert!(
            last.contains("sent 71,234 accepted 70,112 arrived 70,080 | lost 37"),
            "{last}"
        );
        let unknown = Plain::last_line(unknown);
        assert!(!unknown.contains("lost"), "{unknown}");
    }

    #[test]
    fn a_short_line_comes_at_each_multiple_of_the_interval() {
        let mut brief = Brief::new(Micros::from_secs(10));
        let told = [0, 5, 9, 12, 19, 20, 35]
            .map(|seconds| brief.line(&at(seconds, Phase::Connect)).is_some());
        assert_eq!(told, [true, false, false, true, false, true, true]);
    }

    #[test]
    fn a_short_line_tells_the_state_of_the_slos() {
        let mut live = crate::sample::sample();
        live.response.p99_over_s = 12;
        assert_eq!(
            brief(&live),
            "   0:47 measure  issued 1,998 of 2,000/s, answered 1,940, arrived 1,937 | p99 41.7 ms over 12 s | SLOs \
             failing: failure-ratio 1.2 % (at most 0.1 %) | 0x97 840 | generator: shape 131 ms (max 100 ms)"
        );
        live.response.p99 = None;
        (live.response.p99_of, live.response.p99_needs) = (120, 1_000);
        assert!(brief(&live).contains("| p99 n/a (120 of 1,000 messages) |"));
        live.response.p99_of = 0;
        assert!(brief(&live).contains("| p99 - |"));
        live.slos = Some(Vec::new());
        assert!(brief(&live).contains("| SLOs ok |"));
        live.rates.offered = Some(0.0);
        let sent = "| p99 - | 71,234 sent so far | SLOs ok";
        assert!(brief(&live).contains(sent), "{}", brief(&live));
        let early = at(3, Phase::Connect);
        assert_eq!(brief(&early), "   0:03 connect  connecting 0 of 0 | SLOs -");
    }

    #[test]
    fn a_line_shows_the_run_and_the_generators_faults() {
        let live = crate::sample::sample();
        insta::assert_snapshot!(line(&live));
    }
}
