//! Requests that found no success, where another load would not help: at an address that takes none, and by answers
//! that the scenario does not name.

use std::collections::BTreeMap;

use muster_measure::{Ledger, ScopeSummary, TargetCounts};
use muster_model::{Cause, FleetId, Reason, ShedCause, StreamId, figure};

use super::messages::Fleet;
use super::{LinkCause, RequestHints, most_frequent, quoted};

/// Causes of a fleet's requests; `refused` are its refusals by reason.
pub(super) fn of(
    fleet: &Fleet<'_>,
    scope: &ScopeSummary,
    refused: &BTreeMap<Reason, u64>,
) -> Vec<LinkCause> {
    let requests = Requests { fleet, scope };
    let unlisted = most_frequent(refused, is_success);
    // These have causes of their own.
    let has_own = |it: Reason| is_success(it) || it.is_of_credentials() || it.is_redirect();
    let other = most_frequent(refused, |it| !has_own(it));
    let all = [
        unlisted.map(|(reason, count)| requests.unlisted(reason, count)),
        other.and_then(|(reason, count)| requests.rejected(reason, count)),
        requests.closed(),
        requests.timed_out(),
        requests.malformed_behind(),
        requests.kept_silent(),
    ];
    all.into_iter().flatten().collect()
}

const fn is_success(reason: Reason) -> bool {
    matches!(reason, Reason::Http(200..=299))
}

/// The requests of a fleet.
struct Requests<'a> {
    fleet: &'a Fleet<'a>,
    scope: &'a ScopeSummary,
}

/// A key of the stream that a cause is about.
struct StreamKey<'a> {
    see: String,
    /// Words for the requests of the stream; none if no single stream is meant.
    request: Option<&'a RequestHints>,
}

/// Messages that failed where none found success.
struct Failed {
    count: u64,
    has_one_reason: bool,
}

impl Requests<'_> {
    /// Messages that ended in one way where none found success: all of the fleet with one reason, or all at its dead
    /// addresses, whatever of the `reasons` they had.
    fn where_none_succeeds(
        &self,
        all: u64,
        reasons: usize,
        at: impl Fn(&TargetCounts) -> u64,
    ) -> Option<Failed> {
        if all == 0 || self.scope.uplink.accepted == 0 {
            return (all > 0).then_some(Failed {
                count: all,
                has_one_reason: true,
            });
        }
        // An address counts the messages of all fleets together.
        let evidence = self.fleet.evidence;
        if evidence.hints.fleets.len() > 1 {
            return None;
        }
        let targets = evidence.summary.run.links.targets.values();
        let dead = targets.filter(|target| target.accepted == 0);
        let count: u64 = dead.map(at).sum();
        (count > 0).then_some(Failed {
            count,
            has_one_reason: reasons == 1,
        })
    }

    /// A success of the protocol that is none of the scenario.
    fn unlisted(&self, reason: Reason, count: u64) -> LinkCause {
        let key = self.key("success", rejected_by(reason));
        let success = key.request.map_or("success", |request| &request.success);
        let text = format!(
            "rejected: {} is not in `{success}`; add it if the API means that it took the message",
            reason.in_words()
        );
        LinkCause {
            cause: reason.to_string(),
            count,
            text,
            ..self.fleet.cause(key.see)
        }
        .of_messages()
    }

    fn rejected(&self, reason: Reason, count: u64) -> Option<LinkCause> {
        let uplink = &self.scope.uplink;
        let reasons = uplink.rejected_by_code.len();
        let failed = self.where_none_succeeds(count, reasons, |of| of.rejected)?;
        let place = self.fleet.place(|of| of.rejected > 0 && of.accepted == 0);
        let count = failed.count;
        if !failed.has_one_reason {
            let text = format!("rejected, for several reasons{place}");
            return Some(self.of_several("rejected", count, text));
        }
        let name = key_of(reason);
        let key = self.key(name, rejected_by(reason));
        let see = match name.is_empty() {
            true => format!("platform.devices and {}", key.see),
            false => key.see,
        };
        let to = key
            .request
            .map_or_else(String::new, |request| format!(" to {}", request.line));
        let words = format!("rejected: {}{to}{place}", reason.in_words());
        let cause = LinkCause {
            cause: reason.to_string(),
            count,
            text: quoted(words, &reason.to_string(), self.fleet.evidence),
            ..self.fleet.cause(see)
        };
        Some(cause.of_messages())
    }

    /// Messages whose connection the peer closed before any answer.
    fn closed(&self) -> Option<LinkCause> {
        let broken = &self.scope.uplink.broken_by_cause;
        let count = |cause: Cause| broken.get(&cause.to_string()).copied().unwrap_or(0);
        let causes = [Cause::Reset, Cause::PeerClosed].into_iter();
        let cause = causes.max_by_key(|cause| count(*cause))?;
        let failed = self.where_none_succeeds(count(cause), broken.len(), |of| of.broken)?;
        let place = self.fleet.place(|of| of.broken > 0 && of.accepted == 0);
        if !failed.has_one_reason {
            let text = format!("ended without an answer, for several reasons{place}");
            return Some(self.of_several("broken", failed.count, text));
        }
        let hint = match self.scope.uplink.accepted {
            0 => self.fleet.hints.other_protocol.as_str(),
            _ => "",
        };
        let cause = LinkCause {
            cause: cause.to_string(),
            count: failed.count,
            text: format!("ended without an answer ({cause}){place}{hint}"),
            ..self.fleet.cause("platform.devices".to_owned())
        };
        Some(cause.of_messages())
    }

    /// Messages that failed at dead addresses by reasons that are not known by address.
    fn of_several(&self, state: &str, count: u64, text: String) -> LinkCause {
        LinkCause {
            cause: state.to_owned(),
            count,
            text,
            ..self.fleet.cause("platform.devices".to_owned())
        }
        .of_messages()
    }

    /// Messages without an answer in time, or with one that began and did not end.
    fn timed_out(&self) -> Option<LinkCause> {
        let timed_out = self.scope.uplink.timed_out;
        let failed = self.where_none_succeeds(timed_out, 1, |of| of.timed_out)?;
        let place = self.fleet.place(|of| of.timed_out > 0 && of.accepted == 0);
        let ended = |cause: Cause| {
            let count = self.scope.links.disconnects.get(&cause.to_string());
            count.copied().unwrap_or(0)
        };
        let is_begun = ended(Cause::AnswerUnfinished) > ended(Cause::Unanswered);
        let (cause, what) = match is_begun {
            true => (Cause::AnswerUnfinished.to_string(), "the end of an answer"),
            false => ("timed-out".to_owned(), "an answer"),
        };
        let words = format!("timed out without {what} ({cause}){place}");
        let key = self.key("timeout", |of| of.timed_out);
        let found = LinkCause {
            count: failed.count,
            text: quoted(words, &cause, self.fleet.evidence),
            cause,
            ..self
                .fleet
                .cause(format!("platform.devices and {}", key.see))
        };
        Some(found.of_messages())
    }

    /// Links that ended by unreadable bytes behind an answer, so that no message is broken by them.
    fn malformed_behind(&self) -> Option<LinkCause> {
        let name = Cause::Malformed.to_string();
        if self.scope.uplink.broken_by_cause.contains_key(&name) {
            return None;
        }
        let count = self.scope.links.disconnects.get(&name)?;
        let place = self.fleet.place(|of| of.lost > 0);
        let (ended, of) = (
            figure::count(*count),
            figure::count(self.scope.links.connected),
        );
        let words = format!(
            "{ended} of {of} connections of fleet `{}` ended with unreadable bytes ({name}){place}",
            self.fleet.name
        );
        let see = "platform.devices".to_owned();
        Some(LinkCause {
            count: *count,
            of: self.scope.links.connected,
            text: quoted(words, &name, self.fleet.evidence) + "; see " + &see,
            cause: name,
            ..self.fleet.cause(see)
        })
    }

    /// Messages that were shed in a silence that the platform asked for, if it is longer than the load: the session
    /// says so.
    fn kept_silent(&self) -> Option<LinkCause> {
        let name = ShedCause::RetryAfter.name();
        self.fleet.evidence.reason_strings.get(name)?;
        let uplink = &self.scope.uplink;
        let count = *uplink.shed_by_cause.get(name)?;
        let see = format!("fleet.{}.obey-retry-after", self.fleet.name);
        let of = uplink.sent + uplink.shed;
        let words = format!("not sent: the platform asks for silence ({name})");
        let found = LinkCause {
            count,
            of,
            cause: name.to_owned(),
            text: quoted(words, name, self.fleet.evidence),
            ..self.fleet.cause(see)
        };
        Some(found.of_messages())
    }

    /// A key of the stream with most of some messages; the key of all streams if `of` finds none. An empty name is
    /// the stream itself.
    fn key(&self, name: &str, of: impl Fn(&Ledger) -> u64) -> StreamKey<'_> {
        let evidence = self.fleet.evidence;
        let streams = evidence.streams.iter().zip(&evidence.summary.streams);
        let own = streams.zip(0u8..=u8::MAX).filter(|((stream, _), _)| {
            stream.fleet == FleetId(u8::try_from(self.fleet.at).unwrap_or(u8::MAX))
        });
        let counted = own.map(|((stream, scope), id)| (of(&scope.uplink), stream, id));
        let found = counted.max_by_key(|(count, ..)| *count);
        let fleet = &self.fleet.name;
        let Some((_, stream, id)) = found.filter(|(count, ..)| *count > 0) else {
            return StreamKey {
                see: format!("fleet.{fleet}.streams"),
                request: None,
            };
        };
        let in_fleet = stream.name.strip_prefix(fleet.as_str());
        let in_fleet = in_fleet.and_then(|it| it.strip_prefix('/'));
        let in_fleet = in_fleet.unwrap_or(&stream.name);
        let dot = if name.is_empty() { "" } else { "." };
        let mut requests = self.fleet.hints.requests.iter();
        StreamKey {
            see: format!("fleet.{fleet}.streams.{in_fleet}{dot}{name}"),
            request: requests.find(|it| it.stream == StreamId(id)),
        }
    }
}

/// The key of a stream that decides over a refusal; empty where no single one does.
const fn key_of(reason: Reason) -> &'static str {
    let Reason::Http(status) = reason else {
        return "answer-id";
    };
    match status {
        400 | 411 | 413 | 415 | 422 => "payload",
        404 | 410 | 414 => "path",
        405 => "method",
        _ => "",
    }
}

/// Refusals of a reason, in a ledger.
fn rejected_by(reason: Reason) -> impl Fn(&Ledger) -> u64 {
    let code = reason.to_string();
    move |ledger| ledger.rejected_by_code.get(&code).copied().unwrap_or(0)
}
