//! From one phase to the next.

use muster_load::AddedHold;
use muster_model::Micros;
use serde::{Deserialize, Serialize};

use crate::settling::Settling;
use crate::{Delivery, Progress, Timetable};

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Phase {
    /// Links and consumers come up.
    #[default]
    Connect,
    /// Messages are due, at the shape's first value, and are not judged on latency.
    WarmUp,
    /// Messages are due and are judged.
    Measure,
    /// Nothing is due any more; answers and arrivals are waited for.
    Settle,
    /// The open attempts are walked and the identities are gathered.
    Finish,
}

/// Order to every agent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Start the ramp.
    Connect,
    /// The first message is due at this instant.
    Start {
        /// Start of the warm-up.
        origin: Micros,
    },
    /// A load that was not planned is due for a time.
    Hold(AddedHold),
    /// Connect this share of each fleet's devices, and close the links of the others.
    Activate(f64),
    /// Nothing is due from this instant on.
    EndDue {
        /// The instant.
        at: Micros,
    },
    /// Marks messages that are still on their way as outstanding, not lost, if settling runs out.
    MarkDrain,
    /// Walk the open attempts, close every link, hand in the identity.
    Finish,
}

/// Reason that the due messages ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// The measured phase was over.
    Planned,
    /// The user stopped the run.
    Interrupted,
    /// A `stop-if` rule held.
    StoppedByRule,
    /// No link was up when connecting ended, and no peer refused one: there was nothing to test.
    Unreachable,
    /// No link was up when connecting ended, and a peer refused one in its protocol's words.
    Refused,
    /// The consumers did not come up, so arrivals could not have been counted.
    ConsumersUnreachable,
    /// A peer declined what links on one socket cannot do without, so that they never come up.
    SharingDeclined,
    /// The user stopped the run while it settled: what was open then might still have ended well.
    SettlingInterrupted,
}

/// The state machine of a run.
#[derive(Debug)]
pub struct Conductor {
    timetable: Timetable,
    state: State,
    ending: Ending,
    origin: Option<Micros>,
    stop_at: Option<Micros>,
    /// An early end that was not ordered yet.
    early_end: Option<Micros>,
    /// True if the reported progress is that of every part of the run.
    sees_all_parts: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Idle,
    Connecting { since: Micros },
    Loading { end: Micros },
    Settling(Settling),
    Finishing,
}

impl Conductor {
    /// A run that has not begun.
    pub fn new(timetable: Timetable) -> Self {
        Self {
            timetable,
            state: State::Idle,
            ending: Ending::Planned,
            origin: None,
            stop_at: None,
            early_end: None,
            sees_all_parts: false,
        }
    }

    /// Moves on if it is time to; call until it answers `None`, then again with fresh progress.
    pub fn step(&mut self, now: Micros, progress: &Progress, delivery: &Delivery) -> Option<Order> {
        match self.state {
            State::Idle => {
                self.state = State::Connecting { since: now };
                Some(Order::Connect)
            }
            State::Connecting { since } => self.connecting(now, since, progress),
            State::Loading { end } => self.loading(now, end),
            State::Settling(mut settling) => {
                let seen = (progress, delivery, self.sees_all_parts);
                let order = settling.step(now, &self.timetable, seen);
                self.state = if order == Some(Order::Finish) {
                    State::Finishing
                } else {
                    State::Settling(settling)
                };
                order
            }
            State::Finishing => None,
        }
    }

    /// The user asks for the end: settle, then finish; where the run settles already, finish. To
    /// ask again changes nothing.
    pub fn interrupt(&mut self, now: Micros) {
        if matches!(
            self.ending,
            Ending::Interrupted | Ending::SettlingInterrupted
        ) {
            return;
        }
        match self.state {
            State::Settling(mut settling) => {
                self.ending = match settling.interrupt(now) {
                    true => Ending::SettlingInterrupted,
                    false => Ending::Interrupted,
                };
                self.state = State::Settling(settling);
            }
            State::Idle | State::Connecting { .. } | State::Loading { .. } | State::Finishing => {
                self.stop(now, Ending::Interrupted);
            }
        }
    }

    /// Ends the run early as planned: settle, then finish.
    pub fn end(&mut self, now: Micros) {
        self.stop(now, Ending::Planned);
    }

    /// A `stop-if` rule held: settle, then finish.
    pub fn stop_by_rule(&mut self, now: Micros) {
        self.stop(now, Ending::StoppedByRule);
    }

    /// Sets if the progress and delivery of the next steps are those of every part of the run; from
    /// then on a part settles as a whole run does.
    pub fn see_all_parts(&mut self, sees_all_parts: bool) {
        self.sees_all_parts = sees_all_parts;
    }

    /// The phase that `now` lies in.
    pub fn phase(&self, now: Micros) -> Phase {
        match self.state {
            State::Idle | State::Connecting { .. } => Phase::Connect,
            State::Loading { .. } if now < self.measure_start() => Phase::WarmUp,
            State::Loading { .. } => Phase::Measure,
            State::Settling(_) => Phase::Settle,
            State::Finishing => Phase::Finish,
        }
    }

    /// Returns the longest rest of the current phase from `now` on.
    pub fn time_left(&self, now: Micros) -> Micros {
        match self.state {
            State::Idle => self.timetable.connect_at_most,
            State::Connecting { since } => since + self.timetable.connect_at_most - now,
            State::Loading { .. } if now < self.measure_start() => self.measure_start() - now,
            State::Loading { end } => end - now,
            State::Settling(settling) => settling.time_left(now),
            State::Finishing => Micros::ZERO,
        }
    }

    /// Returns when the warm-up began, once that is known.
    pub fn origin(&self) -> Option<Micros> {
        self.origin
    }

    /// Returns why the due messages ended; meaningful once the phase is [`Phase::Finish`].
    pub fn ending(&self) -> Ending {
        self.ending
    }

    fn measure_start(&self) -> Micros {
        self.origin
            .map_or(Micros::MAX, |origin| origin + self.timetable.warm_up)
    }

    fn connecting(&mut self, now: Micros, since: Micros, progress: &Progress) -> Option<Order> {
        if progress.links_declined > 0 {
            return Some(self.give_up(Ending::SharingDeclined));
        }
        let out_of_time = now >= since + self.timetable.connect_at_most;
        // An agent that has not told since the ramp began is not counted among the wanted yet.
        if progress.at <= since && !out_of_time {
            return None;
        }
        let all_tried = progress.links_wanted > 0 && progress.links_untried == 0;
        let no_link = self.timetable.has_links && progress.links_up == 0;
        let comes_back = self.timetable.registers_refused && progress.links_refused > 0;
        let is_final = out_of_time || (all_tried && !comes_back);
        let hopeless = no_link && progress.links_failed > 0 && is_final;
        // Nobody needs the consumers of a run without devices.
        if hopeless {
            return Some(self.give_up(match progress.links_refused {
                0 => Ending::Unreachable,
                _ => Ending::Refused,
            }));
        }
        if progress.consumers_up < progress.consumers_wanted {
            // A platform that refuses them answers the next try alike.
            let is_final = out_of_time || progress.consumers_refused > 0;
            return is_final.then(|| self.give_up(Ending::ConsumersUnreachable));
        }
        if !self.timetable.has_links {
            return Some(self.start(now));
        }
        let all_up = all_tried && progress.links_up >= progress.links_wanted;
        if !(all_up || out_of_time) {
            return None;
        }
        if no_link {
            return Some(self.give_up(Ending::Unreachable));
        }
        Some(self.start(now))
    }

    fn start(&mut self, now: Micros) -> Order {
        let soon = self.timetable.origin_after(now + self.timetable.lead);
        let origin = self.timetable.agreed_origin.unwrap_or(soon);
        self.origin = Some(origin);
        let end = origin + self.timetable.warm_up + self.timetable.measure;
        self.state = State::Loading { end };
        Order::Start { origin }
    }

    fn loading(&mut self, now: Micros, planned: Micros) -> Option<Order> {
        let early = self.early_end.take().map(|at| at.min(planned));
        let end = early.or((now >= planned).then_some(planned))?;
        self.settle(end);
        Some(Order::EndDue { at: end })
    }

    fn stop(&mut self, now: Micros, ending: Ending) {
        let is_stopping = self.stop_at.is_some();
        if is_stopping || matches!(self.state, State::Settling(_) | State::Finishing) {
            return;
        }
        self.ending = ending;
        // Every agent hears of the end before it comes, so that all count the same messages.
        let at = now + self.timetable.lead;
        self.stop_at = Some(at);
        match self.origin {
            Some(origin) => self.early_end = Some(at.max(origin)),
            None => self.settle(at),
        }
    }

    fn settle(&mut self, end: Micros) {
        self.state = State::Settling(Settling::from(end, &self.timetable));
    }

    fn give_up(&mut self, ending: Ending) -> Order {
        self.ending = ending;
        self.state = State::Finishing;
        Order::Finish
    }
}

#[cfg(test)]
mod tests {
    use muster_model::Listening;

    use super::*;

    const TIMETABLE: Timetable = Timetable {
        connect_at_most: Micros::from_secs(10),
        lead: Micros::from_millis(100),
        warm_up: Micros::from_secs(1),
        measure: Micros::from_secs(5),
        settle_at_most: Micros::from_secs(30),
        quiet: Micros::from_secs(3),
        agreed_origin: None,
        is_part: false,
        has_links: true,
        registers_refused: false,
        devices_receive: false,
    };

    fn up(at: Micros) -> Progress {
        Progress {
            at,
            links_wanted: 2,
            links_up: 2,
            ..Progress::default()
        }
    }

    fn secs(s: f64) -> Micros {
        Micros::from_secs_f64(s)
    }

    const ALL: Delivery = Delivery {
        is_complete: true,
        last_arrival: None,
    };

    fn started() -> Conductor {
        let mut run = Conductor::new(TIMETABLE);
        assert_eq!(
            run.step(secs(0.0), &Progress::default(), &ALL),
            Some(Order::Connect)
        );
        let order = run.step(secs(0.4), &up(secs(0.4)), &ALL);
        assert_eq!(order, Some(Order::Start { origin: secs(1.0) }));
        run
    }

    fn settling() -> Conductor {
        let mut run = started();
        let order = run.step(secs(7.0), &up(secs(6.9)), &ALL);
        assert_eq!(order, Some(Order::EndDue { at: secs(7.0) }));
        run
    }

    #[test]
    fn parts_that_agree_begin_at_one_origin() {
        for connected in [0.4, 3.0, 10.0] {
            let mut run = Conductor::new(TIMETABLE.agreed());
            run.step(secs(0.0), &Progress::default(), &ALL);
            let order = run.step(secs(connected), &up(secs(connected)), &ALL);
            assert_eq!(order, Some(Order::Start { origin: secs(11.0) }));
        }
    }

    #[test]
    fn a_part_without_devices_begins_once_its_consumers_are_up() {
        let timetable = Timetable {
            is_part: true,
            has_links: false,
            ..TIMETABLE.agreed()
        };
        let mut run = Conductor::new(timetable);
        run.step(secs(0.0), &Progress::default(), &ALL);
        let consumers = |consumers_up, at| Progress {
            at: secs(at),
            consumers_wanted: 2,
            consumers_up,
            ..Progress::default()
        };
        assert_eq!(run.step(secs(0.3), &consumers(1, 0.3), &ALL), None);
        let order = run.step(secs(0.6), &consumers(2, 0.6), &ALL);
        assert_eq!(order, Some(Order::Start { origin: secs(11.0) }));
    }

    #[test]
    fn phases_follow_the_origin() {
        let run = started();
        assert_eq!(run.phase(secs(1.1)), Phase::WarmUp);
        assert_eq!(run.phase(secs(2.0)), Phase::Measure);
    }

    #[test]
    fn settling_ends_at_once_when_everything_arrived() {
        let mut run = settling();
        assert_eq!(
            run.step(secs(7.1), &up(secs(7.1)), &ALL),
            Some(Order::Finish)
        );
    }

    #[test]
    fn settling_does_not_trust_progress_of_before_its_start() {
        let mut run = settling();
        assert_eq!(run.step(secs(7.1), &up(secs(6.9)), &ALL), None);
    }

    #[test]
    fn settling_waits_for_what_is_due_and_not_yet_taken() {
        let mut run = settling();
        let behind = Progress {
            behind: 1,
            ..up(secs(7.1))
        };
        assert_eq!(run.step(secs(7.1), &behind, &ALL), None);
        assert_eq!(
            run.step(secs(7.2), &up(secs(7.2)), &ALL),
            Some(Order::Finish)
        );
    }

    #[test]
    fn settling_does_not_wait_for_what_a_refused_link_holds() {
        let open = |stranded| Progress {
            open: 5,
            stranded,
            ..up(secs(7.1))
        };
        assert_eq!(settling().step(secs(7.1), &open(4), &ALL), None);
        let order = settling().step(secs(7.1), &open(5), &ALL);
        assert_eq!(order, Some(Order::Finish));
    }

    #[test]
    fn settling_waits_for_quiet_when_something_is_missing() {
        let mut run = settling();
        let missing = Delivery {
            is_complete: false,
            last_arrival: Some(secs(7.5)),
        };
        assert_eq!(run.step(secs(10.4), &up(secs(10.4)), &missing), None);
        assert_eq!(
            run.step(secs(10.5), &up(secs(10.5)), &missing),
            Some(Order::Finish)
        );
    }

    fn heard(at: f64, listening: Listening) -> Progress {
        Progress {
            consumers_wanted: 1,
            listening,
            ..up(secs(at))
        }
    }

    const MISSING: Delivery = Delivery {
        is_complete: false,
        last_arrival: Some(Micros::from_millis(6_900)),
    };

    #[test]
    fn silence_counts_only_while_every_consumer_listens() {
        let mut run = settling();
        let deaf = |at| heard(at, Listening::deaf(secs(at)));
        for at in [7.1, 10.0, 25.0] {
            assert_eq!(run.step(secs(at), &deaf(at), &MISSING), None, "{at} s");
        }
        let since = secs(26.0);
        let back = |at| {
            heard(
                at,
                Listening {
                    since,
                    until: secs(at),
                },
            )
        };
        assert_eq!(run.step(secs(28.9), &back(28.9), &MISSING), None);
        let order = run.step(secs(29.0), &back(29.0), &MISSING);
        assert_eq!(order, Some(Order::Finish));
    }

    #[test]
    fn a_consumer_that_stays_away_is_waited_for_to_the_bound() {
        let mut run = settling();
        let deaf = |at| heard(at, Listening::deaf(secs(at)));
        assert_eq!(run.step(secs(33.9), &deaf(33.9), &MISSING), None);
        let order = run.step(secs(34.0), &deaf(34.0), &MISSING);
        assert_eq!(order, Some(Order::MarkDrain));
        let order = run.step(secs(37.0), &deaf(37.0), &MISSING);
        assert_eq!(order, Some(Order::Finish));
    }

    /// A broker that is frozen is known to be some seconds later.
    #[test]
    fn silence_counts_no_further_than_a_consumer_is_known_to_have_listened() {
        let mut run = settling();
        let until = |s| Listening::until(secs(s));
        let order = run.step(secs(12.0), &heard(12.0, until(9.9)), &MISSING);
        assert_eq!(order, None);
        let open = Progress {
            open: 1,
            ..heard(12.5, until(11.0))
        };
        assert_eq!(run.step(secs(12.5), &open, &MISSING), None);
        let order = run.step(secs(13.0), &heard(13.0, until(12.4)), &MISSING);
        assert_eq!(order, None, "what was open at 12.5 s may have come since");
        let order = run.step(secs(13.2), &heard(13.2, until(12.5)), &MISSING);
        assert_eq!(order, Some(Order::Finish));
    }

    #[test]
    fn the_consumers_of_a_part_listen_until_every_other_part_must_be_final() {
        // The other part has a link in back-off, which sends what it queued 10 s after the end.
        let timetable = Timetable {
            is_part: true,
            ..TIMETABLE
        };
        let settling = || {
            let mut run = Conductor::new(timetable);
            run.step(secs(0.0), &Progress::default(), &ALL);
            run.step(secs(0.4), &up(secs(0.4)), &ALL);
            run.step(secs(7.0), &up(secs(6.9)), &ALL);
            run
        };
        let silent = Delivery {
            is_complete: false,
            last_arrival: Some(secs(6.9)),
        };
        let listening = |at| Progress {
            consumers_wanted: 1,
            consumers_up: 1,
            ..up(at)
        };
        let mut run = settling();
        for at in [8.0, 17.0, 33.9] {
            assert_eq!(run.step(secs(at), &listening(secs(at)), &silent), None);
            assert_eq!(run.step(secs(at), &listening(secs(at)), &ALL), None);
        }
        let order = run.step(secs(34.0), &listening(secs(34.0)), &silent);
        assert_eq!(order, Some(Order::MarkDrain));
        let order = run.step(secs(37.0), &listening(secs(37.0)), &silent);
        assert_eq!(order, Some(Order::Finish));
        // Devices alone wait for their own answers only.
        let mut run = settling();
        let order = run.step(secs(7.1), &up(secs(7.1)), &silent);
        assert_eq!(order, Some(Order::Finish));
    }

    fn settling_part(devices_receive: bool, sees_all_parts: bool) -> Conductor {
        let mut run = Conductor::new(Timetable {
            is_part: true,
            devices_receive,
            ..TIMETABLE
        });
        run.step(secs(0.0), &Progress::default(), &ALL);
        run.step(secs(0.4), &up(secs(0.4)), &ALL);
        run.step(secs(7.0), &up(secs(6.9)), &ALL);
        run.see_all_parts(sees_all_parts);
        run
    }

    /// The backend may issue, and other parts' devices may send, what this one knows nothing of.
    #[test]
    fn devices_that_hear_of_others_stay_to_the_bound_if_nobody_tells_when_those_are_final() {
        let mut run = settling_part(true, false);
        for at in [7.1, 20.0, 33.9] {
            assert_eq!(run.step(secs(at), &up(secs(at)), &ALL), None, "{at} s");
        }
        let order = run.step(secs(34.0), &up(secs(34.0)), &ALL);
        assert_eq!(order, Some(Order::MarkDrain));
        let order = run.step(secs(37.0), &up(secs(37.0)), &ALL);
        assert_eq!(order, Some(Order::Finish));
        let backend = Timetable {
            has_links: false,
            devices_receive: true,
            ..TIMETABLE
        };
        assert!(!backend.receives_at_links());
    }

    #[test]
    fn devices_of_several_parts_that_hear_each_other_settle_together_without_a_backend() {
        let mut run = settling_part(true, true);
        let open = Progress {
            open: 1,
            ..up(secs(7.1))
        };
        assert_eq!(run.step(secs(7.1), &open, &MISSING), None);
        assert_eq!(run.step(secs(9.9), &up(secs(9.9)), &MISSING), None);
        let order = run.step(secs(10.0), &up(secs(10.0)), &MISSING);
        assert_eq!(order, Some(Order::Finish), "quiet for 3 s");
        let mut run = settling_part(false, true);
        let order = run.step(secs(7.1), &up(secs(7.1)), &MISSING);
        assert_eq!(order, Some(Order::Finish), "nothing can come to them");
    }

    #[test]
    fn a_part_that_hears_all_others_settles_as_a_whole_run_does() {
        let timetable = Timetable {
            is_part: true,
            ..TIMETABLE
        };
        let silent = Delivery {
            is_complete: false,
            last_arrival: Some(secs(7.5)),
        };
        let listening = |at, open| Progress {
            consumers_wanted: 1,
            consumers_up: 1,
            listening: Listening::until(secs(at)),
            open,
            ..up(secs(at))
        };
        let settling = || {
            let mut run = Conductor::new(timetable);
            run.step(secs(0.0), &Progress::default(), &ALL);
            run.step(secs(0.4), &up(secs(0.4)), &ALL);
            run.step(secs(7.0), &up(secs(6.9)), &ALL);
            run.see_all_parts(true);
            run
        };
        let mut run = settling();
        assert_eq!(run.step(secs(7.2), &listening(7.2, 1), &ALL), None);
        let order = run.step(secs(7.4), &listening(7.4, 0), &ALL);
        assert_eq!(order, Some(Order::Finish), "all has arrived");
        let mut run = settling();
        assert_eq!(run.step(secs(10.4), &listening(10.4, 0), &silent), None);
        let order = run.step(secs(10.6), &listening(10.6, 0), &silent);
        assert_eq!(order, Some(Order::Finish), "quiet for 3 s");
        // Once somebody is not heard of any more, nobody knows whether all is final.
        let mut run = settling();
        run.see_all_parts(false);
        assert_eq!(run.step(secs(10.6), &listening(10.6, 0), &ALL), None);
    }

    #[test]
    fn settling_marks_the_drain_and_ends_at_its_bound() {
        let mut run = settling();
        let open = |at| Progress { open: 1, ..up(at) };
        assert_eq!(
            run.step(secs(34.0), &open(secs(34.0)), &ALL),
            Some(Order::MarkDrain)
        );
        assert_eq!(run.step(secs(34.1), &open(secs(34.1)), &ALL), None);
        assert_eq!(
            run.step(secs(37.0), &open(secs(37.0)), &ALL),
            Some(Order::Finish)
        );
    }

    #[test]
    fn nothing_is_due_before_every_agent_has_told_of_its_ramp() {
        let mut run = Conductor::new(TIMETABLE);
        run.step(secs(0.1), &Progress::default(), &ALL);
        let told = Progress::united([up(secs(0.3)), Progress::default()]);
        assert_eq!(run.step(secs(0.4), &told, &ALL), None);
        assert!(matches!(
            run.step(secs(0.5), &up(secs(0.4)), &ALL),
            Some(Order::Start { .. })
        ));
    }

    #[test]
    fn a_silent_target_ends_the_run_as_unreachable() {
        let mut run = Conductor::new(TIMETABLE);
        run.step(secs(0.0), &Progress::default(), &ALL);
        let dead = Progress {
            at: secs(0.2),
            links_wanted: 2,
            links_failed: 2,
            ..Progress::default()
        };
        assert_eq!(run.step(secs(0.2), &dead, &ALL), Some(Order::Finish));
        assert_eq!(run.ending(), Ending::Unreachable);
    }

    /// Of two links one is up and one on a shared socket never will be, whatever others still wait for.
    #[test]
    fn a_link_that_cannot_share_its_socket_ends_the_run_before_anything_is_due() {
        let mut run = Conductor::new(TIMETABLE);
        run.step(secs(0.0), &Progress::default(), &ALL);
        let declined = Progress {
            links_up: 1,
            links_failed: 1,
            links_declined: 1,
            consumers_wanted: 1,
            ..up(secs(0.2))
        };
        let told = Progress::united([declined, up(secs(0.2))]);
        assert_eq!(run.step(secs(0.2), &told, &ALL), Some(Order::Finish));
        assert_eq!(run.ending(), Ending::SharingDeclined);
        assert_eq!(run.origin(), None);
    }

    /// Returns the end of a run with these links, while its consumer is not up yet.
    fn ended_at(at: f64, links: Progress) -> Option<Ending> {
        let mut run = Conductor::new(TIMETABLE);
        run.step(secs(0.0), &Progress::default(), &ALL);
        let links = Progress {
            at: secs(at),
            links_wanted: 2,
            consumers_wanted: 1,
            ..links
        };
        let order = run.step(secs(at), &links, &ALL);
        (order == Some(Order::Finish)).then(|| run.ending())
    }

    #[test]
    fn a_run_without_a_link_ends_where_connecting_ends() {
        let failed = |links_failed, links_refused, links_untried| Progress {
            links_failed,
            links_refused,
            links_untried,
            ..Progress::default()
        };
        assert_eq!(ended_at(0.2, failed(2, 2, 0)), Some(Ending::Refused));
        assert_eq!(ended_at(0.2, failed(2, 1, 0)), Some(Ending::Refused));
        assert_eq!(ended_at(0.2, failed(2, 0, 0)), Some(Ending::Unreachable));
        assert_eq!(ended_at(0.2, failed(1, 1, 1)), None, "one is not tried");
        assert_eq!(ended_at(10.0, failed(1, 1, 1)), Some(Ending::Refused));
        let up = Progress {
            links_up: 1,
            ..failed(1, 1, 0)
        };
        let ending = ended_at(10.0, up);
        assert_eq!(ending, Some(Ending::ConsumersUnreachable));
    }

    /// Law: a run whose links are registered once they are refused waits for them to come back, no longer than
    /// its ramp may take, and not for a target that nobody hears.
    #[test]
    fn a_run_that_registers_the_refused_waits_for_them() {
        let step = |at: f64, links_up, links_refused| {
            let mut run = Conductor::new(Timetable {
                registers_refused: true,
                ..TIMETABLE
            });
            run.step(secs(0.0), &Progress::default(), &ALL);
            let links = Progress {
                links_up,
                links_refused,
                links_failed: 2,
                ..up(secs(at))
            };
            (run.step(secs(at), &links, &ALL), run.ending())
        };
        assert_eq!(step(0.2, 0, 2), (None, Ending::Planned));
        assert_eq!(step(0.4, 1, 2), (None, Ending::Planned), "one is back");
        let (order, _) = step(0.6, 2, 2);
        assert!(matches!(order, Some(Order::Start { .. })), "{order:?}");
        let over = Some(Order::Finish);
        assert_eq!(step(10.0, 0, 2), (over, Ending::Refused));
        assert_eq!(step(0.2, 0, 0), (over, Ending::Unreachable));
    }

    #[test]
    fn a_run_goes_on_with_the_links_that_were_not_refused() {
        let mut run = Conductor::new(TIMETABLE);
        run.step(secs(0.0), &Progress::default(), &ALL);
        let most = Progress {
            links_up: 1,
            links_failed: 4,
            links_refused: 4,
            ..up(secs(10.0))
        };
        let order = run.step(secs(10.0), &most, &ALL);
        assert!(matches!(order, Some(Order::Start { .. })), "{order:?}");
    }

    #[test]
    fn consumers_that_never_come_up_end_the_run_before_the_first_message() {
        let mut run = Conductor::new(TIMETABLE);
        run.step(secs(0.0), &Progress::default(), &ALL);
        let deaf = Progress {
            consumers_wanted: 1,
            ..up(secs(1.0))
        };
        assert_eq!(run.step(secs(1.0), &deaf, &ALL), None);
        assert_eq!(run.step(secs(10.0), &deaf, &ALL), Some(Order::Finish));
        assert_eq!(run.ending(), Ending::ConsumersUnreachable);
    }

    #[test]
    fn consumers_that_are_refused_end_the_run_at_once() {
        let mut run = Conductor::new(TIMETABLE);
        run.step(secs(0.0), &Progress::default(), &ALL);
        let refused = Progress {
            consumers_wanted: 2,
            consumers_refused: 1,
            ..up(secs(0.2))
        };
        assert_eq!(run.step(secs(0.2), &refused, &ALL), Some(Order::Finish));
        assert_eq!(run.ending(), Ending::ConsumersUnreachable);
    }

    #[test]
    fn an_interrupt_ends_settling() {
        let mut run = settling();
        let open = Progress {
            open: 1,
            ..up(secs(8.0))
        };
        assert_eq!(run.step(secs(8.0), &open, &ALL), None);
        run.interrupt(secs(8.0));
        assert_eq!(run.step(secs(8.0), &open, &ALL), Some(Order::Finish));
        assert_eq!(run.ending(), Ending::SettlingInterrupted);
    }

    #[test]
    fn the_interrupt_that_began_settling_does_not_end_it() {
        let mut run = started();
        let open = |at| Progress { open: 1, ..up(at) };
        for now in [2.0, 2.1, 2.2, 31.0] {
            run.interrupt(secs(now));
            let order = run.step(secs(now), &open(secs(now)), &ALL);
            assert_ne!(order, Some(Order::Finish), "at {now} s");
        }
    }

    #[test]
    fn an_interrupt_just_after_a_rule_stopped_the_run_ends_settling() {
        let mut run = started();
        run.stop_by_rule(secs(3.0));
        run.interrupt(secs(3.0));
        let order = run.step(secs(3.0), &up(secs(3.0)), &ALL);
        assert_eq!(order, Some(Order::EndDue { at: secs(3.1) }));
        run.interrupt(secs(3.1));
        let open = Progress {
            open: 1,
            ..up(secs(3.1))
        };
        assert_eq!(run.step(secs(3.1), &open, &ALL), Some(Order::Finish));
        assert_eq!(run.ending(), Ending::SettlingInterrupted);
    }

    #[test]
    fn an_interrupt_ends_the_due_messages_and_settles() {
        let mut run = started();
        run.interrupt(secs(2.0));
        let order = run.step(secs(2.0), &up(secs(2.0)), &ALL);
        assert_eq!(order, Some(Order::EndDue { at: secs(2.1) }));
        assert_eq!(run.step(secs(2.1), &up(secs(2.1)), &ALL), None);
        assert_eq!(
            run.step(secs(2.2), &up(secs(2.2)), &ALL),
            Some(Order::Finish)
        );
        assert_eq!(run.ending(), Ending::Interrupted);
    }
}
