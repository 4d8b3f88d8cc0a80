//! The model platform's own count of its actions.

/// The platform's own count of its actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// Publishes it took, those sent again among them.
    pub received: u64,
    /// Publishes it took that were marked as sent before.
    pub received_again: u64,
    /// Publishes it chose to answer as accepted.
    pub accepted: u64,
    /// Publishes it chose to refuse.
    pub rejected: u64,
    /// Accepted and never delivered.
    pub lost: u64,
    /// Neither answered nor delivered.
    pub dropped: u64,
    /// Delivered and never answered.
    pub ignored: u64,
    /// Copies it delivered to each backend.
    pub delivered: u64,
    /// Of these, second ones.
    pub duplicated: u64,
    /// Of these, altered ones.
    pub corrupted: u64,
    /// Sessions it went on with.
    pub resumed: u64,
    /// Right answers to its challenges.
    pub authenticated: u64,
    /// SUBSCRIBEs it granted.
    pub subscribed: u64,
    /// Publishes of links that had subscribed to nothing, where the dialect wants it first.
    pub unsubscribed: u64,
    /// Publishes it acknowledged in a way that cannot be read.
    pub garbled: u64,
    /// Publishes it acknowledged under an id that nobody sent.
    pub misled: u64,
    /// Devices of gateways' links that were said to be there.
    pub announced: u64,
    /// Publishes of gateways' links for devices that were not.
    pub unannounced: u64,
    /// Acknowledgements for devices that were not there.
    pub unheard: u64,
    /// Bytes that were not the protocol.
    pub malformed: u64,
    /// Counts of commands and their replies.
    pub commands: CommandAccount,
}

/// The platform's own count of commands and their replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandAccount {
    /// Commands it took.
    pub taken: u64,
    /// Of these, refused.
    pub refused: u64,
    /// Of these, for devices without a subscription.
    pub unheard: u64,
    /// Taken and never delivered.
    pub lost: u64,
    /// Delivered twice.
    pub doubled: u64,
    /// Delivered late.
    pub delayed: u64,
    /// Delivered and never acknowledged to the application.
    pub ignored: u64,
    /// Replies it took, those sent again among them.
    pub replies: u64,
    /// Of these, refused.
    pub replies_refused: u64,
    /// Delivered and never acknowledged to the device.
    pub replies_ignored: u64,
    /// Taken and never delivered.
    pub replies_lost: u64,
    /// Delivered twice.
    pub replies_doubled: u64,
}

/// Copies that the platform handed to one link that had subscribed to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivered {
    /// Commands.
    pub commands: u64,
    /// Anything else: messages of other devices, and for the application replies.
    pub messages: u64,
}
