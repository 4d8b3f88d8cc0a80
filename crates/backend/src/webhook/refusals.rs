//! Requests that are no copies of messages: counted by cause, reported at the first and at the end.

use std::collections::BTreeMap;

use muster_conduct::{Diagnostic, RefusedRequests};

use crate::consumer::Consumer;

/// Cause for which a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// Shows no proof, or another.
    Unproven,
    /// Names another path.
    Path,
    /// Has a method other than POST and PUT.
    Method,
    /// Has a compressed body.
    Compressed,
    /// Cannot be read; answered with this status.
    Malformed(u16),
    /// Does not come to its end in time.
    Slow,
    /// Comes while the consumer is paused.
    Paused,
    /// Its answer is not read.
    Unread,
    /// Fails in the handshake of TLS.
    Handshake,
}

impl Cause {
    /// The status of the answer; none if there is none.
    pub(super) const fn status(self) -> Option<u16> {
        Some(match self {
            Self::Unproven => 401,
            Self::Path => 404,
            Self::Method => 405,
            Self::Compressed => 415,
            Self::Malformed(status) => status,
            Self::Slow => 408,
            Self::Paused => 503,
            Self::Unread | Self::Handshake => return None,
        })
    }

    /// Returns true for a pause, which is the scenario's own doing.
    fn is_planned(self) -> bool {
        self == Self::Paused
    }

    /// All requests of a run that were refused for it.
    fn requests(self, count: u64) -> RefusedRequests {
        RefusedRequests {
            count,
            status: self.status(),
            why: self.in_words().to_owned(),
            is_total: true,
            is_planned: self.is_planned(),
        }
    }

    /// The mistake, and its remedy, as the end of a sentence.
    const fn in_words(self) -> &'static str {
        match self {
            Self::Unproven => {
                "it shows another secret than this backend's, or none; see platform.backend.webhook and the \
                 headers of the platform's rule"
            }
            Self::Path => {
                "it is sent to another path; see the path of platform.backend.webhook.listen and the platform's rule"
            }
            Self::Method => "its method is neither POST nor PUT; see the platform's rule",
            Self::Compressed => "its body is compressed; switch that off in the platform's rule",
            Self::Malformed(413) => {
                "its body is longer than a message of this scenario can be, or a batch of them"
            }
            Self::Malformed(_) => "the request is malformed HTTP/1.1",
            Self::Slow => "its last byte did not come in time",
            Self::Unread => "the platform does not read the answers to its pushes",
            Self::Paused => "the backend is paused (platform.backend.pause)",
            Self::Handshake => {
                "the platform does not agree to TLS: does it trust the certificate of platform.backend.tls?"
            }
        }
    }
}

/// The refusals of one webhook.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    by_cause: BTreeMap<Cause, u64>,
    /// True once a push was accepted.
    has_accepted: bool,
}

impl Refusals {
    /// Counts one, and reports the first of its cause. `detail` says more of it.
    pub(super) fn add(&mut self, cause: Cause, detail: Option<String>, consumer: &mut Consumer) {
        let count = self.by_cause.entry(cause).or_default();
        *count += 1;
        if *count == 1 && !cause.is_planned() {
            let detail = detail.map_or(String::new(), |detail| format!(" ({detail})"));
            consumer.report_refused_requests(RefusedRequests {
                why: format!("{}{detail}", cause.in_words()),
                is_total: false,
                ..cause.requests(1)
            });
        }
    }

    /// Notes that a push was accepted.
    pub(super) const fn note_accepted(&mut self) {
        self.has_accepted = true;
    }

    /// Reports how many there were of each cause, at the end of the run.
    pub(super) fn finish(&mut self, consumer: &mut Consumer) {
        let has_failed = self.by_cause.keys().any(|cause| !cause.is_planned());
        if has_failed && !self.has_accepted {
            let what = "no push was accepted; see the other events `push-refused` for the causes";
            consumer.report_of_backend(Diagnostic::NoPushAccepted, what);
        }
        for (cause, count) in std::mem::take(&mut self.by_cause) {
            if count > 1 || cause.is_planned() {
                consumer.report_refused_requests(cause.requests(count));
            }
        }
    }
}
