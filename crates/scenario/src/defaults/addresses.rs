//! The addresses of devices, and the protocols that follow from them.

use muster_plan::Scheme;
use muster_platform::{Dialect, Protocol};

use crate::endpoint;
use crate::language::Form;
use crate::tree::Node;

/// The schemes of the devices' addresses.
pub(super) fn schemes(root: &Node) -> impl Iterator<Item = Scheme> {
    let devices = root.get("platform").and_then(|it| it.get("devices"));
    let devices = devices.map_or(&[][..], Node::items).iter();
    let urls = devices.filter_map(|item| address(item)?.text());
    urls.filter_map(endpoint::scheme)
}

/// The address of an item of `devices`, which may have a weight as well.
pub(crate) fn address(item: &Node) -> Option<&Node> {
    match item.form() {
        Form::Single => Some(item),
        Form::List | Form::Map => item.get("url"),
    }
}

/// The protocol of the first address; where there is none, the first that the dialect speaks.
pub(super) fn first_protocol(root: &Node, dialect: Dialect) -> Protocol {
    let of_address = schemes(root).next().map(Scheme::protocol);
    of_address.unwrap_or_else(|| default_protocol(dialect))
}

/// The protocol of devices whose addresses are not said.
pub(crate) fn default_protocol(dialect: Dialect) -> Protocol {
    let mut spoken = Protocol::ALL.into_iter().filter(|it| dialect.speaks(*it));
    spoken.next().unwrap_or(Protocol::Mqtt)
}

/// The address of an embedded gateway where the scenario names none.
pub(super) fn of_gateway(dialect: Dialect) -> String {
    let protocol = default_protocol(dialect);
    let mut schemes = Scheme::ALL.into_iter();
    let scheme = schemes.find(|scheme| scheme.spec().devices == Some(protocol));
    let scheme = scheme.unwrap_or(Scheme::Mqtt).name();
    format!("[ '{scheme}://127.0.0.1:0' ]")
}

/// The first address of devices at which the business application can connect too.
pub(super) fn of_applications(platform: &Node) -> Option<&str> {
    let devices = platform.get("devices").map_or(&[][..], Node::items).iter();
    let mut urls = devices.filter_map(|item| address(item)?.text());
    urls.find(|url| {
        let protocol = endpoint::scheme(url).unwrap_or(Scheme::Mqtt).protocol();
        protocol.is_applications
    })
}
