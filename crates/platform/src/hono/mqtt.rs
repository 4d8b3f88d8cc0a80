//! Hono over MQTT: the topics of devices, of their commands, and of refusals.
//!
//! A device publishes on `telemetry` or `event` (short: `t`, `e`) what is its own by its credentials; a
//! gateway, or a device without credentials, on `telemetry/<tenant>/<device>`, where an empty tenant is the
//! link's own. Metadata follows the topic as a property bag. Commands come on
//! `command/[tenant]/[device]/req/<request id>/<name>` (short: `c/.../q/...`) to whoever subscribed to
//! `command/[tenant]/[device]/req/#`, and replies go to `command/[tenant]/[device]/res/<request id>/<status>`
//! (short: `c/.../s/...`). Refusals come on `error/[tenant]/[device]/<endpoint>/<correlation id>/<status>` (short:
//! `e/...`). What a filter leaves out, the topics of its messages leave out.
//!
//! On the server end the filters of commands and of refusals mean another thing on each link: they are
//! routed below the device that the link logged in as, or that the filter names where nobody logged in.

mod bag;
mod commands;
mod refusals;
mod uplinks;

pub use bag::PropertyBag;
pub use uplinks::Published;

pub(super) use commands::{hand, write_reply};
pub(super) use refusals::{treatment, write as write_refusal};
pub(super) use uplinks::{read, surfaced_reply};

use super::Identity;
use crate::downlink::Downlink;
use crate::scope::scoped;

/// The words of topics of commands and of refusals: long and short.
const COMMAND_WORDS: [&str; 2] = ["command", "c"];
const ERROR_WORDS: [&str; 2] = ["error", "e"];
/// The words behind tenant and device, of commands and of replies to them.
const REQUEST_WORDS: [&str; 2] = ["req", "q"];
const RESPONSE_WORDS: [&str; 2] = ["res", "s"];

/// The filters of a link with credentials.
pub(super) const COMMANDS: &str = "c///q/#";
pub(super) const GATEWAY_COMMANDS: &str = "c//+/q/#";
pub(super) const REFUSALS: &str = "e///#";
/// The filters of a device without credentials.
pub(super) const NAMELESS_COMMANDS: &str = "c/${tenant}/${id}/q/#";
pub(super) const NAMELESS_REFUSALS: &str = "e/${tenant}/${id}/#";

/// The first levels of a topic; the last one may hold slashes. None if there are fewer.
fn levels<const N: usize>(topic: &str) -> Option<[&str; N]> {
    let mut rest = topic.splitn(N, '/');
    let mut levels = [""; N];
    for level in &mut levels {
        *level = rest.next()?;
    }
    Some(levels)
}

/// The name of a link: the user that it logged in as, or nothing.
pub(super) fn link_name(user: Option<&str>, _client_id: &str) -> String {
    user.unwrap_or_default().to_owned()
}

/// Reads a message that came to a device: a command, or a refusal.
pub(super) fn downlink<'a>(topic: &'a str, payload: &'a [u8]) -> Downlink<'a> {
    let command = commands::read(topic, payload).map(Downlink::Command);
    let read = command.or_else(|| refusals::read(topic, payload));
    read.unwrap_or(Downlink::Other)
}

/// Appends a filter of commands or of refusals as it is routed; false for any other.
pub(super) fn route(link: &str, filter: &str, out: &mut String) -> bool {
    let of_commands = levels::<5>(filter)
        .filter(|[word, _, _, request, rest]| {
            COMMAND_WORDS.contains(word) && REQUEST_WORDS.contains(request) && *rest == "#"
        })
        .map(|[_, tenant, device, ..]| (tenant, device));
    let of_refusals = levels::<4>(filter)
        .filter(|[word, _, _, rest]| ERROR_WORDS.contains(word) && *rest == "#")
        .map(|[_, tenant, device, _]| (tenant, device));
    let Some((tenant, device)) = of_commands.or(of_refusals) else {
        return false;
    };
    match Identity::parse(link) {
        Some(own) => scoped(&scope(own.tenant, own.auth_id), filter, out),
        None => scoped(&scope(tenant, device), filter, out),
    }
    true
}

/// The name below which the topics of a device's link are routed.
const fn scope<'a>(tenant: &'a str, device: &'a str) -> [&'a str; 3] {
    [device, "@", tenant]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::unscoped;

    fn routed(link: &str, filter: &str) -> Option<String> {
        let mut out = String::new();
        let is_routed = route(link, filter, &mut out);
        assert_eq!(is_routed, !out.is_empty(), "{filter}");
        is_routed.then_some(out)
    }

    #[test]
    fn filters_of_commands_and_refusals_are_the_links_own() {
        for filter in [
            COMMANDS,
            GATEWAY_COMMANDS,
            REFUSALS,
            "command///req/#",
            "error/t1/dev1/#",
        ] {
            let expected = format!("$device/dev1@t1/{filter}");
            assert_eq!(routed("dev1@t1", filter).as_deref(), Some(&*expected));
            assert_eq!(unscoped(&expected), filter);
        }
        let nameless = routed("", "c/t1/dev1/q/#");
        assert_eq!(nameless.as_deref(), Some("$device/dev1@t1/c/t1/dev1/q/#"));
    }

    #[test]
    fn filters_of_the_application_are_the_same_for_all() {
        for filter in [
            "telemetry/#",
            "event/t1/#",
            "command_response/#",
            "command_failure/#",
            "c///q",
            "c///x/#",
            "command/t1/#",
            "#",
        ] {
            assert_eq!(routed("dev1@t1", filter), None, "{filter}");
        }
    }
}
