//! Sink of a shard's facts: the recorder, and an optional writer of every single one.

use std::fmt;

use muster_device::Sink;
use muster_measure::{Account, Cold, Counts, Identity, PublishedPlan, Recorder, RecorderPlan};
use muster_model::{
    Arrival, Attempt, Command, ConnectFailure, Fact, LinkEvent, LinkFact, LinkId, Micros, Outcome,
    Reason, Reception, RunId, StreamId,
};

use crate::dispatch::{REFUSED_MAX, Refused};
use crate::{Diagnostic, Dispatch, Handover, Progress};

/// Writes every fact, in addition to the recorder.
pub trait FactWriter: fmt::Debug + Send {
    /// Takes note of one fact; never waits.
    fn note(&mut self, fact: &Fact);
}

/// Records of one thread.
#[derive(Debug)]
pub struct RecordingSink {
    recorder: Recorder,
    writer: Option<Box<dyn FactWriter>>,
    /// Refusals by credentials since the last dispatch; none where nobody wants them.
    refused: Option<Vec<Refused>>,
}

impl RecordingSink {
    /// An empty recording.
    pub fn new(recorder: Recorder, writer: Option<Box<dyn FactWriter>>) -> Self {
        Self {
            recorder,
            writer,
            refused: None,
        }
    }

    /// The same recording, which reports those that the platform refuses by their credentials.
    pub fn noting_refused(self, wanted: bool) -> Self {
        let refused = wanted.then(Vec::new);
        Self { refused, ..self }
    }

    /// Notes a refusal, if it is one of credentials and somebody wants it.
    fn note_refused(&mut self, who: Refused, reason: Reason) {
        if let Some(refused) = &mut self.refused
            && refused.len() < REFUSED_MAX
            && is_of_registration(reason)
        {
            refused.push(who);
        }
    }

    /// The recorder.
    pub fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// Returns the records since the last dispatch, and takes the diagnostics since then.
    pub fn dispatch(
        &mut self,
        progress: Progress,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Box<Dispatch> {
        Box::new(Dispatch {
            progress,
            windows: self.recorder.flush(progress.at),
            diagnostics: std::mem::take(diagnostics),
            refused: self
                .refused
                .as_mut()
                .map(std::mem::take)
                .unwrap_or_default(),
            handover: None,
        })
    }

    /// The last dispatch, with all that the thread leaves behind.
    pub fn hand_over(&mut self, account: Account) -> Box<Dispatch> {
        let identity = self.finish();
        Box::new(Dispatch {
            handover: Some(Box::new(Handover { identity, account })),
            ..Dispatch::default()
        })
    }

    /// The identity, when the thread has done its work; what comes after is not recorded.
    pub fn finish(&mut self) -> Identity {
        let nothing = RecorderPlan {
            run: RunId(0),
            warm_up: Micros::ZERO,
            measure: Micros::ZERO,
            streams: Vec::new(),
            fleets: Vec::new(),
            backends: 0,
            store: None,
            cold: Cold::Nothing,
            groups: Vec::new(),
            published: PublishedPlan::Nothing,
        };
        std::mem::replace(&mut self.recorder, Recorder::new(nothing)).finish()
    }

    /// A copy reached a backend.
    pub fn arrival(&mut self, arrival: &Arrival) {
        self.recorder.arrival(arrival);
        if let Some(writer) = &mut self.writer {
            writer.note(&Fact::Arrival(*arrival));
        }
    }
}

/// True for a refusal that a platform gives to whom it does not know: of the credentials, of the client id, or of a
/// device that shows no credentials or is behind a gateway (404).
fn is_of_registration(reason: Reason) -> bool {
    const UNKNOWN: [Reason; 4] = [
        Reason::MqttConnack(2),
        Reason::Mqtt(0x85),
        Reason::Http(404),
        Reason::Coap(0x84),
    ];
    reason.is_of_credentials() || UNKNOWN.contains(&reason)
}

impl Sink for RecordingSink {
    fn attempt(&mut self, attempt: &Attempt) {
        self.recorder.attempt(attempt);
        if let Outcome::Rejected(reason) = attempt.outcome {
            self.note_refused(Refused::Device(attempt.id.device), reason);
        }
        if let Some(writer) = &mut self.writer {
            writer.note(&Fact::Attempt(*attempt));
        }
    }

    fn command(&mut self, command: &Command) {
        self.recorder.command(command);
        if let Some(writer) = &mut self.writer {
            writer.note(&Fact::Command(*command));
        }
    }

    fn reception(&mut self, reception: &Reception) {
        self.recorder.reception(reception);
        if let Some(writer) = &mut self.writer {
            writer.note(&Fact::Reception(*reception));
        }
    }

    fn link(&mut self, fact: &LinkFact) {
        self.recorder.link(fact);
        if let LinkEvent::Failed(ConnectFailure::Rejected(reason)) = fact.event {
            self.note_refused(Refused::Link(fact.link), reason);
        }
        if let Some(writer) = &mut self.writer {
            writer.note(&Fact::Link(*fact));
        }
    }

    fn opened(&mut self, link: LinkId, at: Micros) {
        self.recorder.opened(link, at);
    }

    fn counts(&mut self, stream: StreamId, at: Micros) -> &mut Counts {
        self.recorder.counts(stream, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_known_may_be_registered_and_who_is_not_allowed_to_send_is_not() {
        for code in [
            "connack-2",
            "connack-5",
            "http-401",
            "http-403",
            "http-404",
            "4.01",
            "4.04",
        ] {
            let reason = Reason::named(code).expect("a code");
            assert!(is_of_registration(reason), "{code}");
        }
        for code in [
            "connack-3",
            "http-400",
            "http-413",
            "http-503",
            "4.13",
            "5.03",
        ] {
            let reason = Reason::named(code).expect("a code");
            assert!(!is_of_registration(reason), "{code}");
        }
    }
}
