//! Enhanced authentication of a link (MQTT 5 section 4.12).

use muster_model::Micros;
use muster_protocol::mqtt::packet::Auth;
use muster_protocol::mqtt::reason;

use super::{Mqtt, MqttSettings, MqttState};
use crate::session::Context;

impl MqttState {
    /// The instant at which an open link begins a further authentication.
    #[inline]
    pub(super) fn next_authentication(&self, settings: &MqttSettings) -> Option<Micros> {
        let again = settings.authentication.as_ref()?.again?;
        Some(self.client.authentication_began()? + again)
    }
}

impl Mqtt {
    /// Answers a challenge of the platform; that an authentication has succeeded needs no answer.
    pub(super) fn answer_challenge(
        &mut self,
        at: &mut Context<'_, Self>,
        auth: &Auth<'_>,
        out: &mut Vec<u8>,
    ) {
        let class = at.class;
        let known = class.client.settings.authentication.as_ref();
        let Some(known) = known.filter(|_| auth.reason == reason::CONTINUE_AUTHENTICATION) else {
            return;
        };
        let device = class.first_device_of(at.id);
        let challenge = auth.data().unwrap_or_default();
        let answer = self
            .hello
            .answer(&class.directory, known, device, challenge);
        // A platform that takes no packet so large gets none and ends the link by itself.
        let _answered = at.state.client.authenticate(at.now, answer, out);
    }

    pub(super) fn authenticate_again(&mut self, at: &mut Context<'_, Self>, out: &mut Vec<u8>) {
        let class = at.class;
        let device = class.first_device_of(at.id);
        self.hello.fill(&class.directory, &class.client, device);
        // As in `answer_challenge`; the session counts the try, so that it is not made at once
        // again.
        let client = &mut at.state.client;
        let _begun = client.reauthenticate(at.now, self.hello.data(), out);
    }
}
