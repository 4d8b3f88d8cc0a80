//! Parts of the CONNECT that a link sends.

use std::fmt::Write as _;

use muster_model::{DeviceId, RunId};
use muster_plan::{Authentication, ClientId, Login, MqttSettings};
use muster_platform::Directory;
use muster_protocol::mqtt::{Connect, Properties, Property, Will};

use super::Mqtt;
use crate::client::Client;
use crate::session::Context;

/// Rendered parts of a link's CONNECT.
#[derive(Default)]
pub struct Hello {
    name: String,
    client_id: String,
    user: String,
    password: Vec<u8>,
    will_topic: String,
    will_payload: String,
    will_delay: Option<Property<'static>>,
    data: Vec<u8>,
    answer: Vec<u8>,
}

impl std::fmt::Debug for Hello {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hello")
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

impl Mqtt {
    pub(super) fn render_connect(&mut self, at: &mut Context<'_, Self>, out: &mut Vec<u8>) {
        let class = at.class;
        let hello = &mut self.hello;
        hello.fill(
            &class.directory,
            &class.client,
            class.first_device_of(at.id),
        );
        if class.names_run() {
            hello.name_run(at.messages.fleets.run());
        }
        // The plan has checked the lengths of all texts, so that a CONNECT can always be written.
        let connect = hello.connect(&class.client);
        let is_written = at.state.client.connect(at.now, &connect, out).is_ok();
        debug_assert!(is_written, "a plan's CONNECT can be written");
    }
}

impl Hello {
    /// Adds the run to a client id that nobody named: another run on the same broker would take the
    /// session over.
    fn name_run(&mut self, run: RunId) {
        let is_written = write!(self.client_id, "-{:08x}", run.0);
        debug_assert!(is_written.is_ok(), "a text takes more text");
    }

    /// Renders what the link says whose first device this is.
    pub fn fill(&mut self, directory: &Directory, client: &Client<MqttSettings>, device: DeviceId) {
        client.render_name(directory, device, &mut self.name);
        let settings = &client.settings;
        let name = &self.name;
        let text = |template, out| directory.render_text(template, device, name, out);
        let octets = |octets, out| directory.render_octets(octets, device, name, out);
        match &settings.client_id {
            ClientId::Name => self.client_id.clone_from(name),
            ClientId::Template(template) => text(template, &mut self.client_id),
            ClientId::Assigned => self.client_id.clear(),
        }
        if let Some(Login { user, password }) = &client.login {
            text(user.expose(), &mut self.user);
            if let Some(password) = password {
                octets(password.expose(), &mut self.password);
            }
        }
        if let Some(authentication) = &settings.authentication {
            octets(authentication.data.expose(), &mut self.data);
        }
        if let Some(will) = &settings.will {
            text(&will.topic, &mut self.will_topic);
            text(&will.payload, &mut self.will_payload);
            self.will_delay = (will.delay_s > 0).then_some(Property::WillDelay(will.delay_s));
        }
    }

    /// Assembles the CONNECT from its parts.
    pub fn connect<'a>(&'a self, client: &'a Client<MqttSettings>) -> Connect<'a> {
        let settings = &client.settings;
        let mut connect = Connect::new(&self.client_id);
        connect.clean_start = settings.clean_start;
        connect.session_expiry = settings.session_expiry_s;
        connect.keep_alive = settings.keep_alive_s;
        connect.receive_maximum = settings.receive_maximum.unwrap_or(u16::MAX);
        connect.maximum_packet_size = Some(settings.maximum_packet_size);
        if let Some(login) = &client.login {
            let has_password = login.password.is_some();
            connect.user = Some(&self.user);
            connect.password = has_password.then_some(&self.password[..]);
        }
        let authentication = settings.authentication.as_ref();
        connect.authentication =
            authentication.map(|known| (known.method.as_str(), &self.data[..]));
        connect.will = settings.will.as_ref().map(|will| Will {
            topic: &self.will_topic,
            payload: self.will_payload.as_bytes(),
            qos: will.qos,
            retain: will.retain,
            properties: Properties::new(self.will_delay.as_slice()),
        });
        connect
    }

    /// Data that begins a further authentication, as [`Hello::fill`] has rendered it.
    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Renders what the link whose first device this is answers to a challenge.
    pub fn answer(
        &mut self,
        directory: &Directory,
        authentication: &Authentication,
        device: DeviceId,
        challenge: &[u8],
    ) -> &[u8] {
        directory.render_name(device, &mut self.name);
        let answer = authentication.answer.expose();
        directory.render_octets(answer, device, &self.name, &mut self.data);
        self.answer.clear();
        if authentication.echo {
            self.answer.extend_from_slice(challenge);
        }
        self.answer.extend_from_slice(&self.data);
        &self.answer
    }
}
