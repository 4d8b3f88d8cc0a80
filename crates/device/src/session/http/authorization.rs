//! The credentials in a request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use muster_model::LinkId;
use muster_plan::HttpSettings;
use muster_protocol::http::{InvalidField, write_field};

use crate::class::Class;

/// Buffers in which the credentials of a link are rendered.
#[derive(Default)]
pub(super) struct Authorization {
    name: String,
    user: String,
    pair: Vec<u8>,
    password: Vec<u8>,
    value: String,
}

impl Authorization {
    /// Appends the credentials of a link, if it has any that go with each request: a user name with a password
    /// (RFC 7617), or a token (RFC 6750 section 2.1).
    pub(super) fn write(
        &mut self,
        class: &Class<HttpSettings>,
        link: LinkId,
        fields: &mut Vec<u8>,
    ) -> Result<(), InvalidField> {
        let Some(login) = &class.client.login else {
            return Ok(());
        };
        let (directory, device) = (&class.directory, class.first_device_of(link));
        let (name, user) = (&mut self.name, &mut self.user);
        class.client.render_user(directory, device, name, user);
        self.value.clear();
        if let Some(password) = &login.password {
            let octets = password.expose();
            directory.render_octets(octets, device, &self.name, &mut self.password);
            self.pair.clear();
            self.pair.extend_from_slice(self.user.as_bytes());
            self.pair.push(b':');
            self.pair.extend_from_slice(&self.password);
            self.value.push_str("Basic ");
            STANDARD.encode_string(&self.pair, &mut self.value);
        } else {
            self.value.extend(["Bearer ", &self.user]);
        }
        write_field(fields, "Authorization", self.value.as_bytes())
    }
}
