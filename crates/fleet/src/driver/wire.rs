//! Passage of bytes between the socket of a link and its session.

use muster_conduct::Diagnostic;
use muster_device::{Session, Then};
use muster_model::{Cause, ConnectFailure, Micros};
use muster_plan::{PlatformKind, PlatformPlan};
use muster_platform::Protocol;
use muster_protocol::dtls;
use muster_protocol::layer::{Ended, LayerError};
use muster_protocol::websocket::Fault;

use super::lines::Who;
use super::{Above, Driver, Lines, Sockets};

/// Part of a scenario that says how devices check certificates.
const TLS_KEYS: &str = "platform.tls";

impl<P: Session, L: Lines, C: Sockets<P, L>> Driver<P, L, C> {
    /// The socket of a link stands: the line speaks first, and the session once that is open.
    pub(super) fn open(&mut self, link: u32, now: Micros) -> Result<(), LayerError> {
        let who = Who {
            link: self.shard.fleets().link_id(link).0,
            slot: C::slot(self, link),
        };
        let line = self.lines.open(who, now, &mut self.out)?;
        let is_open = L::is_open(&line);
        self.each[link as usize] = line;
        if is_open {
            let from = self.out.len();
            self.shard.opened(link, now, &mut self.out);
            self.wrap(link, from);
        }
        Ok(())
    }

    /// Turns what the session appended to the output into what goes over the wire.
    #[inline]
    pub(super) fn wrap(&mut self, link: u32, from: usize) {
        L::wrap(&mut self.each[link as usize], &mut self.out, from);
    }

    /// Takes bytes through the line to the session: how many are used up, and what to do with the
    /// socket.
    pub(super) fn read(&mut self, link: u32, now: Micros, bytes: &mut [u8]) -> (usize, Then) {
        let mut above = Above {
            shard: &mut self.shard,
            link,
            now,
            out: &mut self.out,
        };
        let line = &mut self.each[link as usize];
        let read = self.lines.read(line, bytes, &mut above);
        match (read.end, read.then) {
            (Some(end), Then::Stay) => (read.used, self.ended(link, now, end)),
            (_, then) => (read.used, then),
        }
    }

    /// A timer of a link ran out: for its line or for its session.
    pub(super) fn time_passed(&mut self, link: u32, now: Micros) -> Then {
        let line = &mut self.each[link as usize];
        if let Some(end) = self.lines.expire(line, now) {
            return self.ended(link, now, end);
        }
        let was_open = L::is_open(line);
        let then = self.shard.timer(link, now, &mut self.out);
        self.wrap(link, 0);
        if let (Then::Abort, false, Some(error)) = (then, was_open, L::silence()) {
            self.report_failure(link, error);
        }
        then
    }

    /// The line of a link is at its end, which ends the link.
    #[cold]
    pub(super) fn ended(&mut self, link: u32, now: Micros, end: Ended) -> Then {
        let error = match end {
            Ended::Closed(_) => return self.shard.lost(link, now, Cause::PeerClosed),
            Ended::Failed(error) => error,
        };
        self.report_failure(link, error);
        if error == LayerError::Dtls(dtls::Fault::NoConnectionId) {
            self.reports.count_declined();
        }
        if self.shard.links().is_handshaking(link) {
            self.shard
                .connect_failed(link, now, failure_of_layer(error));
            return Then::Close;
        }
        self.shard.lost(link, now, cause_of_layer(error))
    }

    /// Reports a failure once for each cause, in detail.
    fn report_failure(&mut self, link: u32, error: LayerError) {
        if !self.reports.is_first(error) {
            return;
        }
        let detail = L::detail(&self.each[link as usize]);
        let (meaning, help) = match error {
            LayerError::Tls(failure) => (failure.meaning(), failure.remedy(TLS_KEYS)),
            LayerError::Dtls(_) | LayerError::WebSocket(_) => (None, self.lines.remedy(error)),
        };
        let detail = detail.map_or_else(|| error.to_string(), str::to_owned);
        let detail = match meaning {
            Some(meaning) => format!("{meaning} ({detail}){help}"),
            None => detail + &help,
        };
        let proof = self.lines.proof(&self.each[link as usize]);
        let proof = proof.map_or_else(String::new, |proof| format!(" ({proof})"));
        let text = format!(
            "device `{}`{proof}: {detail}",
            self.shard.fleets().name_of(link)
        );
        self.reports.note(Diagnostic::Handshake(text));
    }
}

/// Remedy in the scenario for a failure of DTLS, as the end of a sentence; empty if there is none.
pub(super) fn remedy(fault: dtls::Fault, platform: &PlatformPlan) -> String {
    let remedy = match fault {
        dtls::Fault::Certificate(_) => {
            let cause = fault.cause();
            return cause.map_or_else(String::new, |cause| cause.remedy(TLS_KEYS));
        }
        dtls::Fault::NoConnectionId => {
            ", which devices on one socket need to be distinguished: use `sockets: per-device`"
        }
        dtls::Fault::TimedOut => match &platform.kind {
            PlatformKind::Deployed { dialect } => dialect.requests(Protocol::Coap).handshake_hint,
            PlatformKind::Gateway { .. } => "",
        },
        dtls::Fault::Alert(_)
        | dtls::Fault::ClosedEarly
        | dtls::Fault::Malformed
        | dtls::Fault::Unexpected
        | dtls::Fault::Version
        | dtls::Fault::NothingInCommon
        | dtls::Fault::Illegal
        | dtls::Fault::Extension
        | dtls::Fault::NoExtendedMasterSecret
        | dtls::Fault::UnknownIdentity
        | dtls::Fault::Signature
        | dtls::Fault::Finished
        | dtls::Fault::TooLong
        | dtls::Fault::OwnCredential
        | dtls::Fault::NoRandomness
        | dtls::Fault::UsedUp => "",
    };
    remedy.to_owned()
}

/// Returns the failure of a link that was not up when a layer ended.
fn failure_of_layer(error: LayerError) -> ConnectFailure {
    match error {
        LayerError::WebSocket(Fault::Refused(status)) => ConnectFailure::UpgradeRefused(status),
        LayerError::WebSocket(_) => ConnectFailure::Malformed,
        LayerError::Tls(failure) => ConnectFailure::Tls(failure),
        LayerError::Dtls(fault) => match fault.cause() {
            Some(failure) => ConnectFailure::Tls(failure),
            None if fault == dtls::Fault::TimedOut => ConnectFailure::TimedOut,
            None if fault == dtls::Fault::NoRandomness => ConnectFailure::GeneratorLimit,
            None => ConnectFailure::Closed,
        },
    }
}

/// Returns the cause for which a link that was up ended with a layer.
fn cause_of_layer(error: LayerError) -> Cause {
    match error {
        LayerError::WebSocket(_) => Cause::Malformed,
        LayerError::Tls(failure) => Cause::Tls(failure),
        LayerError::Dtls(fault) => fault.cause().map_or(Cause::PeerClosed, Cause::Tls),
    }
}
