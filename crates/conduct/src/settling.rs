//! The wait for answers and arrivals after the last message was due.

use muster_model::Micros;

use crate::{Delivery, Order, Progress, Timetable};

/// A run that settles.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settling {
    /// Due instant of the last message.
    end: Micros,
    deadline: Micros,
    marked: bool,
    /// Last instant at which something was not final.
    busy: Micros,
}

impl Settling {
    /// Nothing is due from `end` on.
    pub(crate) fn from(end: Micros, timetable: &Timetable) -> Self {
        Self {
            end,
            deadline: end + timetable.settle_at_most,
            marked: false,
            busy: end,
        }
    }

    /// Returns true when it is time to mark the drain, or to finish.
    pub(crate) fn step(
        &mut self,
        now: Micros,
        timetable: &Timetable,
        (progress, delivery, sees_all_parts): (&Progress, &Delivery, bool),
    ) -> Option<Order> {
        if is_busy(progress) {
            self.busy = progress.at;
        }
        if self.is_over(timetable, (progress, delivery, sees_all_parts)) || now >= self.deadline {
            return Some(Order::Finish);
        }
        let is_to_mark = !self.marked && now >= self.deadline - timetable.quiet;
        self.marked |= is_to_mark;
        is_to_mark.then_some(Order::MarkDrain)
    }

    /// Ends settling now. Without a mark nothing is called lost that may only be late; with one,
    /// that takes the quiet time to which settling is down then.
    pub(crate) fn interrupt(&mut self, now: Micros) -> bool {
        if !self.marked {
            self.deadline = now;
        }
        !self.marked
    }

    /// Returns its longest rest from `now` on.
    pub(crate) fn time_left(&self, now: Micros) -> Micros {
        self.deadline - now
    }

    /// Consumers that were away may have missed what was under way: their silence counts from when
    /// they are back, and up to when they are known to have listened.
    fn is_over(
        &self,
        timetable: &Timetable,
        (progress, delivery, sees_all_parts): (&Progress, &Delivery, bool),
    ) -> bool {
        if progress.at <= self.end || is_busy(progress) {
            return false;
        }
        let has_receivers = progress.consumers_wanted > 0 || timetable.receives_at_links();
        if timetable.is_part && !(has_receivers && sees_all_parts) {
            return !has_receivers;
        }
        let last = delivery
            .last_arrival
            .map_or(self.end, |at| at.max(self.end));
        let (quiet, listening) = (timetable.quiet, progress.listening);
        let is_quiet = progress.at >= last + quiet && listening.is_quiet(last, quiet);
        delivery.is_complete || is_quiet && listening.until >= self.busy
    }
}

/// True while a message is open, due and not yet taken, or to be completed. A message that waits on a link that was
/// refused for good is left out: it ends when settling does.
fn is_busy(progress: &Progress) -> bool {
    progress.open > progress.stranded || progress.behind > 0 || progress.completing > 0
}
