//! The command of a check and its reply.

use std::collections::BTreeMap;

use muster_measure::CommandLedger;
use muster_model::Micros;

use super::Found;
use crate::outcome;

/// The commands to the one device of a fleet.
pub(super) struct Taking<'a> {
    pub(super) ledger: &'a CommandLedger,
    /// True if each query is answered with a command.
    pub(super) follows_queries: bool,
    /// True if the first is for a name that no device has.
    pub(super) is_absent: bool,
    /// The time from the first to its reply.
    pub(super) after: Option<Micros>,
}

impl Taking<'_> {
    /// The line for a query that was accepted and brought no command; one that was not has a line already.
    pub(super) fn of_query(&self, query: &CommandLedger) -> Option<Found> {
        let is_answered = self.follows_queries || (self.ledger.issued > 0 && !self.is_absent);
        (is_answered && query.no_command > 0).then(|| lost("no command came for the query"))
    }

    /// The line for the command and its reply.
    pub(super) fn of_command(&self) -> Found {
        if self.ledger.issued == 0 {
            return self.unissued();
        }
        if self.ledger.received == 0 {
            return self.unreceived();
        }
        self.unanswered().unwrap_or_else(|| self.answered())
    }

    fn unissued(&self) -> Found {
        let (code, why) = if self.ledger.withheld > 0 {
            let causes = names(&self.ledger.withheld_by_cause);
            (outcome::SILENT, format!(" (withheld: {causes})"))
        } else if self.follows_queries {
            // Why none came is told of the query, with the code that it deserves.
            let why = ", as no query came to the backend".to_owned();
            (outcome::USAGE, why)
        } else {
            (outcome::SILENT, String::new())
        };
        Found::new(code, "unsent", format!("no command was issued{why}"))
    }

    fn unreceived(&self) -> Found {
        if self.is_absent {
            let text = "a command was issued to a name that nobody plays";
            return Found::new(outcome::PASS, "ok", text);
        }
        let by_status = &self.ledger.undeliverable_by_status;
        let why = match by_status.is_empty() {
            true => String::new(),
            false => format!(" (undeliverable: {})", names(by_status)),
        };
        lost(&format!("a command was issued, and did not come{why}"))
    }

    /// A reply that the platform did not take.
    fn unanswered(&self) -> Option<Found> {
        let ledger = self.ledger;
        let (code, mark, how) = if ledger.answer_rejected > 0 {
            let codes = names(&ledger.answer_rejected_by_code);
            (outcome::USAGE, "refused", format!("refused with {codes}"))
        } else if ledger.answer_timed_out + ledger.answer_in_flight > 0 {
            let how = "sent, and not answered".to_owned();
            (outcome::SILENT, "silent", how)
        } else if ledger.answer_broken > 0 {
            let how = "sent, and its link ended before the answer".to_owned();
            (outcome::SILENT, "broken", how)
        } else if ledger.answer_shed > 0 {
            let causes = names(&ledger.answer_shed_by_cause);
            (outcome::SILENT, "unsent", format!("never sent ({causes})"))
        } else {
            return None;
        };
        let text = format!("a command was received, and its reply was {how}");
        Some(Found::new(code, mark, text))
    }

    fn answered(&self) -> Found {
        let how = match (self.ledger.answered, self.ledger.replies_arrived) {
            (0, _) if self.ledger.one_way > 0 => "received".to_owned(),
            (0, _) => return lost("a command was received, and nothing is known of its reply"),
            (_, Some(0)) => {
                return lost("the reply to a command was accepted, and not seen at the backend");
            }
            (_, Some(_) | None) => match self.after {
                Some(after) => format!("received, and its reply seen within {after}"),
                None => "received, and replied to".to_owned(),
            },
        };
        Found::new(outcome::PASS, "ok", format!("a command was {how}"))
    }
}

fn lost(text: &str) -> Found {
    Found::new(outcome::SILENT, "lost", text)
}

fn names(counts: &BTreeMap<String, u64>) -> String {
    counts
        .keys()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taking(ledger: &CommandLedger) -> Taking<'_> {
        Taking {
            ledger,
            follows_queries: true,
            is_absent: false,
            after: Some(Micros::from_millis(3)),
        }
    }

    fn told(said: &Found) -> (u8, &str, &str) {
        (said.code, said.mark, &said.text)
    }

    /// One command that came, which wanted a reply.
    fn received() -> CommandLedger {
        CommandLedger {
            issued: 1,
            delivered: 1,
            received: 1,
            ..CommandLedger::default()
        }
    }

    fn once(name: &str) -> BTreeMap<String, u64> {
        BTreeMap::from([(name.to_owned(), 1)])
    }

    #[test]
    fn a_reply_that_was_not_taken_is_no_success_and_told_with_what_became_of_it() {
        let cases = [
            (
                CommandLedger {
                    answer_rejected: 1,
                    answer_rejected_by_code: once("4.13"),
                    ..received()
                },
                (outcome::USAGE, "refused", "refused with 4.13"),
            ),
            (
                CommandLedger {
                    answer_timed_out: 1,
                    ..received()
                },
                (outcome::SILENT, "silent", "sent, and not answered"),
            ),
            (
                CommandLedger {
                    answer_in_flight: 1,
                    ..received()
                },
                (outcome::SILENT, "silent", "sent, and not answered"),
            ),
            (
                CommandLedger {
                    answer_broken: 1,
                    ..received()
                },
                (
                    outcome::SILENT,
                    "broken",
                    "sent, and its link ended before the answer",
                ),
            ),
            (
                CommandLedger {
                    answer_shed: 1,
                    answer_shed_by_cause: once("offline"),
                    ..received()
                },
                (outcome::SILENT, "unsent", "never sent (offline)"),
            ),
        ];
        for (ledger, (code, mark, how)) in cases {
            let said = taking(&ledger).of_command();
            let text = format!("a command was received, and its reply was {how}");
            assert_eq!(told(&said), (code, mark, text.as_str()));
        }
    }

    #[test]
    fn a_reply_that_was_taken_has_to_be_seen_and_one_that_nobody_wants_is_none() {
        let of = |answered, one_way, replies_arrived| {
            let ledger = CommandLedger {
                answered,
                one_way,
                replies_arrived,
                ..received()
            };
            let said = taking(&ledger).of_command();
            (said.code, said.text)
        };
        let seen = "a command was received, and its reply seen within 3 ms";
        assert_eq!(of(1, 0, Some(1)), (outcome::PASS, seen.to_owned()));
        assert_eq!(of(1, 0, Some(0)).0, outcome::SILENT);
        let alone = "a command was received".to_owned();
        assert_eq!(of(0, 1, Some(0)), (outcome::PASS, alone));
        assert_eq!(of(0, 0, Some(0)).0, outcome::SILENT);
    }

    #[test]
    fn where_no_command_was_issued_it_is_told_why_and_the_query_had_none() {
        let withheld = CommandLedger {
            withheld: 1,
            withheld_by_cause: once("unsendable"),
            ..CommandLedger::default()
        };
        let said = taking(&withheld).of_command();
        let why = "no command was issued (withheld: unsendable)";
        assert_eq!(told(&said), (outcome::SILENT, "unsent", why));
        let asked = CommandLedger {
            queries: 1,
            no_command: 1,
            ..CommandLedger::default()
        };
        let said = taking(&withheld).of_query(&asked);
        let why = "no command came for the query";
        assert_eq!(
            said.as_ref().map(told),
            Some((outcome::SILENT, "lost", why))
        );
        let nobody_asked = CommandLedger::default();
        let said = taking(&nobody_asked).of_command();
        let why = "no command was issued, as no query came to the backend";
        assert_eq!(told(&said), (outcome::USAGE, "unsent", why));
    }

    #[test]
    fn what_is_issued_comes_unless_it_is_for_nobody() {
        let ledger = CommandLedger {
            issued: 1,
            undeliverable: 1,
            undeliverable_by_status: once("503"),
            ..CommandLedger::default()
        };
        let said = taking(&ledger).of_command();
        let text = "a command was issued, and did not come (undeliverable: 503)";
        assert_eq!(told(&said), (outcome::SILENT, "lost", text));
        let absent = Taking {
            follows_queries: false,
            is_absent: true,
            ..taking(&ledger)
        };
        let asked = CommandLedger {
            queries: 1,
            no_command: 1,
            ..CommandLedger::default()
        };
        assert_eq!(absent.of_command().code, outcome::PASS);
        assert!(absent.of_query(&asked).is_none());
    }
}
