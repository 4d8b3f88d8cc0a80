//! Enhanced authentication of a link (MQTT 5 section 4.12).

use muster_model::Micros;
use muster_protocol::mqtt::packet::Auth;
use muster_protocol::mqtt::reason;

use crate::{Shard, Sink};

impl<S: Sink> Shard<S> {
    /// Answers a challenge of the platform; that an authentication has succeeded needs no answer.
    pub(crate) fn answer_challenge(
        &mut self,
        link: u32,
        now: Micros,
        auth: &Auth<'_>,
        out: &mut Vec<u8>,
    ) {
        let id = self.link_id(link);
        let state = &mut self.links[link as usize];
        let class = &self.classes[state.class as usize];
        let settings = class.client.mqtt();
        let known = settings.and_then(|mqtt| mqtt.authentication.as_ref());
        let Some(known) = known.filter(|_| auth.reason == reason::CONTINUE_AUTHENTICATION) else {
            return;
        };
        let device = class.first_device_of(id);
        let challenge = auth.data().unwrap_or_default();
        let hello = &mut self.scratch.hello;
        let answer = hello.answer(&class.roster, known, device, challenge);
        // A platform that takes no packet so large gets none and ends the link by itself.
        let client = state.session.mqtt();
        let _answered = client.map(|client| client.authenticate(now, answer, out));
    }

    /// When an open link begins a further authentication.
    pub(crate) fn next_authentication(&self, link: u32) -> Option<Micros> {
        let settings = self.class(link).client.mqtt()?;
        let again = settings.authentication.as_ref()?.again?;
        let began = self.links[link as usize].session.authentication_began()?;
        Some(began + again)
    }

    pub(crate) fn authenticate_again(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) {
        let id = self.link_id(link);
        let state = &mut self.links[link as usize];
        let class = &self.classes[state.class as usize];
        let hello = &mut self.scratch.hello;
        hello.fill(&class.roster, &class.client, class.first_device_of(id));
        // As in `answer_challenge`; the session counts the try, so that it is not made at once
        // again.
        let client = state.session.mqtt();
        let _begun = client.map(|client| client.reauthenticate(now, hello.data(), out));
    }
}
