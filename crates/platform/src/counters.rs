//! The counters that a platform keeps itself, which a ledger can be checked against.

/// Samples of a platform's metrics page that count the results of its devices' messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Its counters; a sample belongs to the first family that has its metric.
    pub families: &'static [CounterFamily],
    /// The label that says whose the messages are; none if a counter counts those of all tenants.
    pub tenant: Option<&'static str>,
    /// The label that says what became of them.
    pub status: &'static str,
    /// Figures over time that follow from them.
    pub figures: &'static [CounterFigure],
}

/// Metrics that count the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterFamily {
    /// The names that the metric goes by, a `*` for any text; of a page that has several, all count.
    pub metrics: &'static [&'static str],
    /// The messages that it counts.
    pub kind: CounterKind,
    /// The values of the status, and their meaning in the ledger.
    pub statuses: &'static [(&'static str, CounterMeans)],
    /// The end of a sentence on pages that have no such metric: what to look at.
    pub remedy: &'static str,
}

/// The kind of messages that a metric counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterKind {
    /// The value of a label, such as [`UplinkTopic::counted_as`](crate::UplinkTopic::counted_as) has it.
    Label(&'static str),
    /// All that is [counted](crate::UplinkTopic::counted_as), under this name.
    All(&'static str),
}

/// Answer to the messages that a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterMeans {
    /// Accepted by the platform.
    Accepted,
    /// Rejected as wrong: a code of class 4. Some such rejections are not counted.
    RefusedAsWrong,
    /// Rejected for want of ability: a code of class 5.
    RefusedAsUnable,
    /// Accepted by the platform, and messages of others.
    AcceptedAndOthers,
    /// Failed behind the acknowledgement and perhaps lost; of others, too.
    Failed,
    /// Nothing that the ledger counts.
    Other,
}

/// A figure over time: a sum of counters, less another sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterFigure {
    /// Its name among the resources of the target.
    pub name: &'static str,
    /// The counters that are added.
    pub plus: &'static [CounterPlace],
    /// The counters that are subtracted.
    pub minus: &'static [CounterPlace],
    /// True if it is the growth per second, false if it is the growth since the first sample.
    pub is_rate: bool,
    /// True if the limit of its entry is that of the figure.
    pub has_limit: bool,
}

/// A counter by kind and status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterPlace {
    /// The kind of its messages.
    pub kind: &'static str,
    /// Their status.
    pub status: &'static str,
}

/// A counter of a page by kind and status.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CounterKey {
    /// The kind of its messages.
    pub kind: String,
    /// Their status.
    pub status: String,
}

impl Counters {
    /// Returns the counter that a sample is of, if it is one; `label` is the value of a label of the sample.
    pub fn key(&self, metric: &str, label: impl Fn(&str) -> Option<String>) -> Option<CounterKey> {
        let family = self.families.iter().find(|family| family.has(metric))?;
        let kind = match family.kind {
            CounterKind::Label(name) => label(name)?,
            CounterKind::All(kind) => kind.to_owned(),
        };
        let status = label(self.status)?;
        Some(CounterKey { kind, status })
    }
}

impl CounterFamily {
    /// Returns true if a counter of this kind belongs to it.
    pub fn has_kind(&self, kind: &str) -> bool {
        match self.kind {
            CounterKind::Label(_) => true,
            CounterKind::All(own) => own == kind,
        }
    }

    /// Its counters; none if their kinds are those that a page has.
    pub fn all(&self) -> Vec<CounterKey> {
        let CounterKind::All(kind) = self.kind else {
            return Vec::new();
        };
        let keys = self.statuses.iter().map(|(status, _)| CounterKey {
            kind: kind.to_owned(),
            status: (*status).to_owned(),
        });
        keys.collect()
    }

    fn has(&self, metric: &str) -> bool {
        self.metrics.iter().any(|name| match name.split_once('*') {
            Some((begin, end)) => metric
                .strip_prefix(begin)
                .is_some_and(|rest| rest.ends_with(end)),
            None => metric == *name,
        })
    }
}
