//! The counters that a platform keeps itself, of which a ledger can be checked.

/// Which samples of a platform's page of counters tell what became of its devices' messages.
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
    /// What it says then, and what the ledger calls it.
    pub statuses: &'static [(&'static str, CounterMeans)],
}

/// What a device was told of the messages that a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterMeans {
    /// That the platform took them.
    Accepted,
    /// That they were wrong: a code of class 4. Not all that are refused so get as far as being counted.
    RefusedAsWrong,
    /// That the platform could not take them: a code of class 5.
    RefusedAsUnable,
}
