//! Messages that found no success by a fault of an address or a credential.

use std::collections::BTreeMap;

use muster_measure::{ScopeSummary, TargetCounts};
use muster_model::{Cause, ConnectFailure, Reason, TlsFailure, figure};

use super::{FleetHints, LinkCause, fleet_name, most_frequent, place, quoted, requests};
use crate::Evidence;

/// Messages of a fleet without success, by faults that another load would not mend: credentials where links need
/// none, redirects, and answers that cannot be read.
pub(super) fn of(at: usize, scope: &ScopeSummary, evidence: &Evidence<'_>) -> Vec<LinkCause> {
    let uplink = &scope.uplink;
    let codes = uplink.rejected_by_code.iter();
    let codes = codes.chain(&uplink.refused_unawaited_by_code);
    let codes = codes.filter_map(|(code, count)| Some((Reason::named(code)?, *count)));
    let mut refused: BTreeMap<Reason, u64> = BTreeMap::new();
    codes.for_each(|(reason, count)| *refused.entry(reason).or_default() += count);
    let fleet = Fleet {
        at,
        name: fleet_name(at, evidence),
        sent: uplink.sent,
        hints: evidence.hints.fleets.get(at).cloned().unwrap_or_default(),
        evidence,
    };
    let unauthorized = most_frequent(&refused, Reason::is_of_credentials);
    let redirected = most_frequent(&refused, Reason::is_redirect);
    let broken = |cause: Cause| {
        let count = uplink.broken_by_cause.get(&cause.to_string())?;
        Some((cause, *count))
    };
    let by_tls = uplink.broken_by_cause.iter();
    let by_tls = by_tls.filter_map(|(cause, count)| Some((TlsFailure::named(cause)?, *count)));
    let in_tls = by_tls.max_by_key(|(_, count)| *count);
    let all = [
        unauthorized.map(|(reason, count)| fleet.unauthorized(reason, count)),
        redirected.map(|(reason, count)| fleet.redirected(reason, count)),
        broken(Cause::Malformed).map(|(cause, count)| fleet.unreadable(cause, count)),
        broken(Cause::AnswerCutOff).map(|(cause, count)| fleet.unreadable(cause, count)),
        match in_tls {
            Some((failure, count)) => Some(fleet.in_tls(failure, count)),
            None => fleet.ended_in_tls(scope),
        },
    ];
    let requests = match fleet.hints.has_requests {
        true => requests::of(&fleet, scope, &refused),
        false => Vec::new(),
    };
    all.into_iter().flatten().chain(requests).collect()
}

/// A fleet whose messages found no success.
pub(super) struct Fleet<'a> {
    pub(super) at: usize,
    pub(super) name: String,
    sent: u64,
    pub(super) hints: FleetHints,
    pub(super) evidence: &'a Evidence<'a>,
}

impl Fleet<'_> {
    fn unauthorized(&self, reason: Reason, count: u64) -> LinkCause {
        LinkCause {
            cause: reason.to_string(),
            count,
            text: ConnectFailure::Rejected(reason).in_words(),
            ..self.cause(format!("fleet.{}.credential", self.name))
        }
        .of_messages()
    }

    fn redirected(&self, reason: Reason, count: u64) -> LinkCause {
        let place = self.place(|of| of.rejected > 0 && of.accepted == 0);
        let words = format!("redirected: {}{place}", reason.in_words());
        LinkCause {
            cause: reason.to_string(),
            count,
            text: quoted(words, &reason.to_string(), self.evidence),
            ..self.cause(format!("platform.devices and fleet.{}.streams", self.name))
        }
        .of_messages()
    }

    /// Messages whose answer is not the protocol's, or ends too early.
    fn unreadable(&self, cause: Cause, count: u64) -> LinkCause {
        let place = self.place(|of| of.broken > 0 && of.accepted == 0);
        let said = self.evidence.reason_strings.get(&cause.to_string());
        let other = &self.hints.other_protocol_words;
        // A fault within the protocol is none of TLS.
        let is_other = other.is_empty() || said.is_none_or(|said| said == other);
        let (what, hint) = match cause == Cause::Malformed {
            true if is_other => ("an unreadable answer", self.hints.other_protocol.as_str()),
            true => ("an unreadable answer", ""),
            false => ("an answer without its end", ""),
        };
        let words = format!("ended with {what} ({cause}){place}");
        LinkCause {
            cause: cause.to_string(),
            count,
            text: quoted(words, &cause.to_string(), self.evidence) + hint,
            ..self.cause("platform.devices".to_owned())
        }
        .of_messages()
    }

    /// Messages whose connection TLS ended, such as by a server that does not take the device's certificate: TLS 1.3
    /// shows that after the handshake.
    fn in_tls(&self, failure: TlsFailure, count: u64) -> LinkCause {
        let place = self.place(|of| of.broken > 0 && of.accepted == 0);
        LinkCause {
            cause: failure.to_string(),
            count,
            text: format!("ended {}{place}", failure.in_words()),
            ..self.cause(format!("fleet.{}.credential and platform.tls", self.name))
        }
        .of_messages()
    }

    /// Links that came up and ended by TLS before a message was sent.
    fn ended_in_tls(&self, scope: &ScopeSummary) -> Option<LinkCause> {
        let links = &scope.links;
        if self.sent > 0 || links.up_at_start < links.wanted {
            return None;
        }
        let ended = links.disconnects.iter();
        let ended = ended.filter_map(|(cause, count)| Some((TlsFailure::named(cause)?, *count)));
        let (failure, count) = ended.max_by_key(|(_, count)| *count)?;
        let place = self.place(|of| of.lost > 0 && of.accepted == 0);
        let cause = self.cause(format!("fleet.{}.credential and platform.tls", self.name));
        let (ended, of) = (figure::count(count), figure::count(links.connected));
        Some(LinkCause {
            cause: failure.to_string(),
            count,
            of: links.connected,
            text: format!(
                "{ended} of {of} connections of fleet `{}` ended {}{place}, and nothing was sent; see {}",
                self.name,
                failure.in_words(),
                cause.see
            ),
            ..cause
        })
    }

    pub(super) fn cause(&self, see: String) -> LinkCause {
        LinkCause {
            fleet: self.name.clone(),
            backend: None,
            count: 0,
            of: self.sent,
            cause: String::new(),
            see,
            text: String::new(),
        }
    }

    pub(super) fn place(&self, is_at_fault: impl Fn(&TargetCounts) -> bool) -> String {
        place(&self.hints, self.evidence, is_at_fault)
    }
}

impl LinkCause {
    /// The cause with its text as a sentence about messages.
    pub(super) fn of_messages(self) -> Self {
        let (count, of) = (figure::count(self.count), figure::count(self.of));
        let Self {
            fleet, text, see, ..
        } = &self;
        let text = format!("{count} of {of} messages of fleet `{fleet}` {text}; see {see}");
        Self { text, ..self }
    }
}
