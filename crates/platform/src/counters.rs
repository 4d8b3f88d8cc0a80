//! The counters that a platform keeps itself, which a ledger can be checked against.

/// Samples of a platform's metrics page that count the results of its devices' messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// The names that the metric goes by; of a page that has several, all count.
    pub metrics: &'static [&'static str],
    /// The label that says whose the messages are.
    pub tenant: &'static str,
    /// The label that says what kind they are of, such as [`UplinkTopic::counted_as`](crate::UplinkTopic::counted_as) has it.
    pub kind: &'static str,
    /// The label that says what became of them.
    pub status: &'static str,
    /// Its values, and their meaning in the ledger.
    pub statuses: &'static [(&'static str, CounterMeans)],
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
}
