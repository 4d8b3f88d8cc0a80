//! One consumer as the run sees it, whatever brings its copies.

use std::fmt::Display;

use muster_conduct::{
    ConsumerAbsence, ConsumerName, ConsumerRefusal, Diagnostic, PushRefusal, RefusalCause,
    RefusalKind, RefusedRequests,
};
use muster_model::{Listening, Micros};

use crate::consumers::ConsumerPlan;

/// State of a consumer, with the diagnostics that the next report takes.
#[derive(Debug)]
pub(crate) struct Consumer {
    plan: ConsumerPlan,
    name: ConsumerName,
    is_up: bool,
    was_up: bool,
    /// True if a loss or an absence was reported and the consumer is not back yet.
    is_missed: bool,
    is_paused: bool,
    /// True if the platform refused its login before it was ever up: another try does not help.
    is_refused: bool,
    /// Start of its listening, and the last instant at which the platform had sent all that it has.
    listening: Listening,
    /// Causes that were reported since it was last up.
    refusals: Vec<RefusalCause>,
    /// Limits of this machine that were reported since it was last up.
    limits: Vec<&'static str>,
    diagnostics: Vec<Diagnostic>,
}

impl Consumer {
    pub(crate) fn new(plan: ConsumerPlan, name: ConsumerName) -> Self {
        Self {
            plan,
            name,
            is_up: false,
            was_up: false,
            is_missed: false,
            is_paused: false,
            is_refused: false,
            listening: Listening::deaf(Micros::ZERO),
            refusals: Vec::new(),
            limits: Vec::new(),
            diagnostics: Vec::new(),
        }
    }

    pub(crate) fn plan(&self) -> &ConsumerPlan {
        &self.plan
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up
    }

    /// Returns true if it was up before.
    pub(crate) fn was_up(&self) -> bool {
        self.was_up
    }

    /// Returns true if it is down and neither a loss nor an absence was reported.
    pub(crate) fn is_starting(&self) -> bool {
        !self.is_up && !self.is_missed
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Returns the time in which it listened; none of it while it is down or paused.
    pub(crate) fn listening(&self, now: Micros) -> Listening {
        if self.is_up && !self.is_paused {
            self.listening
        } else {
            Listening::deaf(now)
        }
    }

    /// Returns the last instant at which the platform had sent all that it has.
    pub(crate) fn received_until(&self) -> Micros {
        self.listening.until
    }

    /// Notes that by this instant the platform had sent all that it has.
    pub(crate) fn note_received(&mut self, at: Micros) {
        self.listening.until = self.listening.until.max(at);
    }

    /// Notes that it stops reading for a while, or resumes.
    pub(crate) fn pause(&mut self, now: Micros, is_paused: bool) {
        self.is_paused = is_paused;
        self.listen_from(now);
    }

    /// Notes that it receives copies from now on.
    pub(crate) fn up(&mut self, now: Micros) {
        (self.is_up, self.was_up, self.is_refused) = (true, true, false);
        self.listen_from(now);
        self.refusals.clear();
        self.limits.clear();
        if std::mem::take(&mut self.is_missed) {
            let name = self.name.clone();
            self.diagnostics.push(Diagnostic::ConsumerBack(name));
        }
    }

    fn listen_from(&mut self, now: Micros) {
        let (since, until) = (now, now);
        self.listening = Listening { since, until };
    }

    /// Notes that it receives no copies any more, without a report.
    pub(crate) fn leave(&mut self) {
        self.is_up = false;
    }

    /// Notes that it starts anew, which is no loss.
    pub(crate) fn restart(&mut self) {
        (self.is_up, self.is_missed) = (false, false);
    }

    /// Notes a loss by the platform's fault. `since` is the last answer of the platform.
    pub(crate) fn lost(&mut self, since: Micros, why: &str) {
        if std::mem::take(&mut self.is_up) {
            self.is_missed = true;
            let absence = self.absence(why);
            self.diagnostics
                .push(Diagnostic::ConsumerLost { absence, since });
        }
    }

    /// Notes an absence by our own fault.
    pub(crate) fn away(&mut self, why: &str) {
        self.is_missed = true;
        let absence = self.absence(why);
        self.diagnostics.push(Diagnostic::ConsumerAway(absence));
    }

    fn absence(&self, why: &str) -> ConsumerAbsence {
        ConsumerAbsence {
            consumer: self.name.clone(),
            why: why.to_owned(),
        }
    }

    /// Notes a refusal. It is reported once until the consumer is up. The absence of an answer is
    /// reported only if nothing else was.
    pub(crate) fn refused(&mut self, cause: &RefusalCause, is_final: bool) {
        self.is_refused |= is_final && !self.was_up;
        let is_silence = matches!(
            cause.kind,
            RefusalKind::Unreachable | RefusalKind::OtherProtocol
        );
        let is_known = self.refusals.iter().any(|known| known.is_like(cause));
        let has_reported = !self.refusals.is_empty() || !self.limits.is_empty();
        if !(is_known || is_silence && has_reported) {
            self.refusals.push(cause.clone());
            self.report_refusal(cause.clone());
        }
    }

    /// Reports a refusal, however often it was reported before.
    pub(crate) fn report_refusal(&mut self, cause: RefusalCause) {
        let consumer = self.name.clone();
        let refusal = ConsumerRefusal { consumer, cause };
        self.diagnostics.push(Diagnostic::ConsumerRefused(refusal));
    }

    /// Reports requests that its backend refused.
    pub(crate) fn report_refused_requests(&mut self, requests: RefusedRequests) {
        let consumer = self.name.clone();
        let refusal = PushRefusal { consumer, requests };
        self.diagnostics.push(Diagnostic::PushRefused(refusal));
    }

    /// Reports a limit of this machine that meets a repeated action: once until the consumer is up.
    pub(crate) fn limited(&mut self, action: &'static str, why: impl Display) {
        if !self.limits.contains(&action) {
            self.limits.push(action);
            self.report(Diagnostic::Limit, format!("{action}: {why}"));
        }
    }

    /// Reports a fact about this consumer.
    pub(crate) fn report(&mut self, kind: fn(String) -> Diagnostic, what: impl Display) {
        self.diagnostics
            .push(kind(format!("{}: {what}", self.name)));
    }

    /// Reports a fact that holds for every consumer of the backend.
    pub(crate) fn report_of_backend(&mut self, kind: fn(String) -> Diagnostic, what: impl Display) {
        let place = self.name.place();
        self.diagnostics.push(kind(format!("{place}: {what}")));
    }

    /// Takes the diagnostics since the last call.
    pub(crate) fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.diagnostics)
    }

    #[cfg(all(test, feature = "kafka"))]
    pub(crate) fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}
