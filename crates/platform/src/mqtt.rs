//! Plain MQTT: nothing is the platform's own.

use crate::dialect::Defaults;

/// The language's own defaults stand.
pub(crate) const DEFAULTS: Defaults = Defaults {
    fleet: &[],
    gateway: &[],
    gateway_stream: &[],
    stream: &[],
    acknowledged: &[],
};
