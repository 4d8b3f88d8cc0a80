//! The receiving half of a session: what has come and is not settled, and topic aliases.
//!
//! Client and server receive by the same rules (sections 3.3.2.3.4, 4.3 and 4.9).

use std::collections::VecDeque;
use std::sync::Arc;

use super::property::find;
use super::{Malformed, Properties, Qos, Topic};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// QoS 1, PUBACK is due.
    Puback,
    /// QoS 2, PUBREC is due.
    Pubrec,
    /// QoS 2, PUBREC was sent; the other side's PUBREL is due.
    Pubrel,
}

/// One packet id of the other side in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Received {
    id: u16,
    stage: Stage,
    /// True if its PUBLISH came on this connection, and so counts against the receive maximum.
    is_counted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrived {
    /// One to report.
    Fresh,
    /// At QoS 2 one that was reported before; it waits for the caller's answer.
    Undecided,
    /// At QoS 2 one that was reported and answered before; PUBREC is sent again.
    Answered,
}

#[derive(Debug, Clone)]
struct Alias {
    topic: Arc<str>,
    /// True if this connection has given it. A text of an earlier one is kept only so that another
    /// connection that gives the same topic allocates nothing.
    is_given: bool,
}

/// The receiving half of a session.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    /// Sorted by id: ids come in growing order, so that both ends are where most changes are.
    received: VecDeque<Received>,
    /// Topics by alias, the first at index 0.
    aliases: Vec<Option<Alias>>,
    /// Publishes of this connection that are not settled.
    used: u16,
}

impl Inbound {
    /// The connection is gone: aliases end with it (section 3.3.2.3.4), and what the caller had
    /// not answered will come again and be reported again.
    pub(super) fn closed(&mut self) {
        for alias in self.aliases.iter_mut().flatten() {
            alias.is_given = false;
        }
        self.received
            .retain(|received| received.stage == Stage::Pubrel);
        self.received
            .iter_mut()
            .for_each(|received| received.is_counted = false);
        self.used = 0;
    }

    pub(super) fn forget(&mut self) {
        self.received.clear();
        self.used = 0;
    }

    /// Notes a publish at QoS 1 or 2.
    #[inline]
    pub(super) fn publish(
        &mut self,
        id: u16,
        qos: Qos,
        maximum: u16,
    ) -> Result<Arrived, Malformed> {
        let due = if qos == Qos::ExactlyOnce {
            Stage::Pubrec
        } else {
            Stage::Puback
        };
        let (at, arrived) = match self.position(id) {
            Ok(at) => (at, self.again(at, due)?),
            Err(at) => {
                self.received.insert(
                    at,
                    Received {
                        id,
                        stage: due,
                        is_counted: false,
                    },
                );
                (at, Arrived::Fresh)
            }
        };
        self.count(at, maximum)?;
        Ok(arrived)
    }

    pub(super) const fn used(&self) -> u16 {
        self.used
    }

    /// Notes that the caller has answered with PUBACK, or with PUBREC and so refused or accepted.
    #[inline]
    pub(super) fn answered(&mut self, id: u16, is_refusal: bool) {
        let Ok(at) = self.position(id) else {
            return;
        };
        if self.received[at].stage == Stage::Pubrec && !is_refusal {
            self.received[at].stage = Stage::Pubrel;
        } else if self.received[at].stage != Stage::Pubrel {
            self.remove(at);
        }
    }

    pub(super) fn released(&mut self, id: u16) -> bool {
        let Ok(at) = self.position(id) else {
            return false;
        };
        self.remove(at);
        true
    }

    /// The topic of a publish (section 3.3.2.3.4).
    #[inline]
    pub(super) fn topic<'a>(
        &mut self,
        name: &'a str,
        properties: Properties<'a>,
        maximum: u16,
    ) -> Result<Topic<'a>, Malformed> {
        let Some(alias) = alias_of(properties) else {
            return if name.is_empty() {
                Err(Malformed::TopicName)
            } else {
                Ok(Topic::Wire(name))
            };
        };
        if alias > maximum {
            return Err(Malformed::TopicAlias(alias));
        }
        if name.is_empty() {
            self.resolve(alias)
        } else {
            Ok(self.give(alias, name))
        }
    }

    fn resolve<'a>(&self, alias: u16) -> Result<Topic<'a>, Malformed> {
        let known = self
            .aliases
            .get(usize::from(alias) - 1)
            .and_then(Option::as_ref);
        let given = known.filter(|known| known.is_given);
        given
            .map(|given| Topic::Alias(given.topic.clone()))
            .ok_or(Malformed::TopicAlias(alias))
    }

    fn give<'a>(&mut self, alias: u16, name: &'a str) -> Topic<'a> {
        let at = usize::from(alias) - 1;
        if self.aliases.len() <= at {
            self.aliases.resize(at + 1, None);
        }
        let slot = &mut self.aliases[at];
        match slot {
            Some(known) if *known.topic == *name => known.is_given = true,
            Some(_) | None => {
                let topic = Arc::from(name);
                *slot = Some(Alias {
                    topic,
                    is_given: true,
                });
            }
        }
        Topic::Wire(name)
    }

    #[inline]
    fn position(&self, id: u16) -> Result<usize, usize> {
        if self.received.back().is_none_or(|last| last.id < id) {
            return Err(self.received.len());
        }
        self.received
            .binary_search_by_key(&id, |received| received.id)
    }

    fn again(&self, at: usize, due: Stage) -> Result<Arrived, Malformed> {
        let Received { id, stage, .. } = self.received[at];
        match (stage, due) {
            (Stage::Puback, Stage::Puback) => Ok(Arrived::Fresh),
            (Stage::Pubrec, Stage::Pubrec) => Ok(Arrived::Undecided),
            (Stage::Pubrel, Stage::Pubrec) => Ok(Arrived::Answered),
            (Stage::Puback | Stage::Pubrec | Stage::Pubrel, _) => Err(Malformed::PacketIdInUse(id)),
        }
    }

    #[inline]
    fn count(&mut self, at: usize, maximum: u16) -> Result<(), Malformed> {
        if self.received[at].is_counted {
            return Ok(());
        }
        if self.used >= maximum {
            return Err(Malformed::ReceiveMaximum);
        }
        self.received[at].is_counted = true;
        self.used += 1;
        Ok(())
    }

    #[inline]
    fn remove(&mut self, at: usize) {
        if let Some(removed) = self.received.remove(at) {
            self.used -= u16::from(removed.is_counted);
        }
    }
}

#[inline]
pub(super) fn alias_of(properties: Properties<'_>) -> Option<u16> {
    find!(properties, TopicAlias)
}
