//! Reports of a shard to those who conduct the run.

use std::io::ErrorKind;
use std::net::SocketAddr;

use muster_conduct::{Diagnostic, Dispatch, Progress, RecordingSink};
use muster_device::{Note, Session, Shard};
use muster_model::{ConnectFailure, Micros};
use muster_net::{Io, Key};
use muster_plan::Plan;
use muster_protocol::layer::LayerError;

use super::targets::Targets;

/// The most failures of layers that are reported in detail, each cause once; there are fewer causes.
const REPORTED_MAX: usize = 64;

/// The reports of a shard, and what was reported once.
#[derive(Debug, Default)]
pub(super) struct Reports {
    diagnostics: Vec<Diagnostic>,
    /// Failures of lines that were reported in detail.
    reported: Vec<LayerError>,
    /// Handshakes in which the peer declined what a link on a shared socket cannot do without.
    declined: u64,
    /// Number of reported datagrams that our own buffers had no room for.
    dropped: u64,
    /// True if it was reported that somebody refuses datagrams.
    refusing: bool,
    /// True if it was reported that the kernel refuses datagrams.
    unroutable: bool,
    /// Addresses among several to which a link did not connect, as reported: at most all of them.
    dead: Vec<SocketAddr>,
}

impl Reports {
    /// A peer declined what a link on a shared socket cannot do without.
    pub(super) fn count_declined(&mut self) {
        self.declined += 1;
    }

    /// A line failed: whether for the first time by this cause.
    pub(super) fn is_first(&mut self, error: LayerError) -> bool {
        let is_first = !self.reported.contains(&error) && self.reported.len() < REPORTED_MAX;
        if is_first {
            self.reported.push(error);
        }
        is_first
    }

    /// Reports one of several addresses to which a link did not connect, once.
    #[cold]
    pub(super) fn one_unreachable(&mut self, address: SocketAddr, failure: ConnectFailure) {
        if self.dead.contains(&address) {
            return;
        }
        self.dead.push(address);
        let text = format!(
            "a device did not connect to {address}, one of several addresses: {failure}; look at that \
             instance, or remove it from `platform.devices`"
        );
        self.note(Diagnostic::Unreachable(text));
    }

    /// Reports what happened to datagrams of the loop.
    pub(super) fn report_datagrams(&mut self, io: &Io, targets: &Targets) {
        self.report_dropped(io.counts().datagrams_dropped);
        self.report_unreachable(io, targets);
    }

    /// Returns the records since the last dispatch.
    pub(super) fn dispatch<P: Session>(
        &mut self,
        now: Micros,
        shard: &mut Shard<P, RecordingSink>,
        plan: &Plan,
    ) -> Box<Dispatch> {
        self.report_unsendable(shard, plan);
        let progress = Progress {
            links_declined: self.declined,
            ..Progress::of(shard, now)
        };
        for note in shard.recording().refusals().take() {
            self.note(match note {
                Note::Rejecting(text) => Diagnostic::Rejecting(text),
                Note::LinkRefused(text) => Diagnostic::LinkRefused(text),
                Note::LowerQos(text) => Diagnostic::LowerQos(text),
                Note::TakenOver(text) => Diagnostic::TakenOver(text),
                Note::ReasonString(cause, text) => Diagnostic::ReasonString { cause, text },
                Note::Limit(text) => Diagnostic::Limit(text),
            });
        }
        let sink = shard.recording().sink();
        sink.dispatch(progress, &mut self.diagnostics)
    }

    /// Reports what the kernel dropped because our own buffers were full: no loss of the target's.
    fn report_dropped(&mut self, dropped: u64) {
        let more = dropped - std::mem::replace(&mut self.dropped, dropped);
        if more > 0 {
            self.note(Diagnostic::ReceiveDrop(more));
        }
    }

    /// Reports targets that datagrams do not reach, each cause once.
    fn report_unreachable(&mut self, io: &Io, targets: &Targets) {
        let icmp = io.icmp_error().filter(|_| !self.refusing);
        if let Some(why) = icmp {
            self.refusing = true;
            let is_nobody = why.kind() == ErrorKind::ConnectionRefused;
            let hint = if is_nobody {
                ": nobody listens there"
            } else {
                ""
            };
            let text = format!(
                "ICMP reports datagrams to {} as undeliverable: {why}{hint}",
                targets.addresses()
            );
            self.note(Diagnostic::Unreachable(text));
        }
        if let Some(why) = io.refusal().filter(|_| !self.unroutable) {
            self.unroutable = true;
            let text = format!(
                "the kernel refuses datagrams to {}: {why}",
                targets.addresses()
            );
            self.note(Diagnostic::Unreachable(text));
        }
    }

    fn report_unsendable<P: Session>(&mut self, shard: &mut Shard<P, RecordingSink>, plan: &Plan) {
        let Some((id, why)) = shard.take_unsendable() else {
            return;
        };
        if let Some((fleet, stream)) = plan.stream(id) {
            let (fleet, stream) = (&fleet.name, &stream.name);
            let text = format!("messages of stream `{stream}` of fleet `{fleet}`: {why}");
            self.diagnostics.push(Diagnostic::Unsendable(text));
        }
    }

    pub(super) fn diagnostic(&mut self, what: &str) {
        self.note(Diagnostic::Limit(what.to_owned()));
    }

    pub(super) fn note(&mut self, diagnostic: Diagnostic) {
        if !self.diagnostics.contains(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Asks for room for a burst of answers at a shared socket, and reports if the kernel granted less.
    pub(super) fn ask_for_buffer(&mut self, io: &mut Io, key: Key, wanted: usize) {
        io.set_receive_buffer(key, wanted);
        let granted = io.receive_buffer(key).unwrap_or(wanted);
        if granted < wanted {
            let text = format!(
                "a shared socket asked for a receive buffer of {wanted} bytes and was granted {granted}: \
                 raise `net.core.rmem_max`"
            );
            self.note(Diagnostic::ReceiveBuffer(text));
        }
    }

    #[cold]
    pub(super) fn no_buffer(&mut self) {
        self.diagnostic("no buffer was left for an answer or a copy that a socket did not take");
    }

    #[cfg(test)]
    pub(super) fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}
