//! Settings of a fleet's sessions.

use muster_load::Names;
use muster_model::{DeviceId, LinkId, Micros};
use muster_plan::{Login, Offline};
use muster_platform::Directory;

/// Settings of a fleet's sessions.
#[derive(Debug)]
pub struct Client<C> {
    /// The settings of the protocol.
    pub settings: C,
    /// The user name and password of its links.
    pub login: Option<Login>,
    /// True if its links give no name, so that devices name themselves in their topics.
    pub is_nameless: bool,
    /// Names of its links; if none, each link is named by its first device.
    pub gateway: Option<Gateway>,
    /// Longest time that a handshake may take, from the SYN.
    pub handshake_timeout: Micros,
    /// A link is closed on purpose after this long.
    pub lifetime: Option<Micros>,
    /// Time in which its devices are offline on purpose.
    pub offline: Option<Offline>,
    /// The servers that its links connect to: link n to the one at n modulo their number.
    pub servers: Vec<Server>,
}

/// A server as requests name it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Server {
    /// Host and port.
    pub host: String,
    /// The path before those of all requests, without a slash at its end.
    pub path: String,
}

impl<C> Client<C> {
    /// The server of a link; none if requests name none.
    pub(crate) fn server_of(&self, link: LinkId) -> Option<&Server> {
        let place = (link.0 as usize).checked_rem(self.servers.len())?;
        self.servers.get(place)
    }

    /// Renders the user name, or the token, that a link logs in with into `out`; `name` is a buffer, and `device`
    /// is the link's first. Empty where the link has none.
    pub(crate) fn render_user(
        &self,
        directory: &Directory,
        device: DeviceId,
        name: &mut String,
        out: &mut String,
    ) {
        out.clear();
        if let Some(login) = &self.login {
            self.render_name(directory, device, name);
            directory.render_text(login.user.expose(), device, name, out);
        }
    }

    /// Renders a link's name into `out`, which is emptied first; `device` is the link's first.
    pub fn render_name(&self, directory: &Directory, device: DeviceId, out: &mut String) {
        let Some(gateway) = &self.gateway else {
            return directory.render_name(device, out);
        };
        let place = device.0 - directory.first_device().0;
        out.clear();
        gateway.names.render(place / gateway.devices.max(1), out);
    }
}

/// Links that are not named by their devices.
#[derive(Debug, Clone)]
pub struct Gateway {
    /// Their names, by the number of the link in its fleet from 0.
    pub names: Names,
    /// Number of devices on each link.
    pub devices: u32,
}
