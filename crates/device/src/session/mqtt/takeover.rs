//! Client ids that another client seems to use.

use muster_model::{Cause, Reason};
use muster_plan::ClientId;

use super::{Mqtt, MqttSettings};
use crate::class::Class;
use crate::links::BRIEF;
use crate::session::Context;

/// Brief lives in a row from which on a takeover is likely.
const BRIEF_LIVES: u8 = 3;
/// The session was taken over by another client (MQTT 5 section 4.13).
const TAKEN_OVER: Reason = Reason::Mqtt(0x8e);

/// Notes the first link that ended as one does whose client id another client uses.
pub(super) fn note(at: &mut Context<'_, Mqtt>, cause: Cause, brief_lives: u8) {
    let (class, id) = (at.class, at.id);
    let is_reported = cause == Cause::PeerDisconnect(TAKEN_OVER);
    if !is_reported && (brief_lives < BRIEF_LIVES || !class.may_share_client_ids()) {
        return;
    }
    at.refusals.note_takeover(|| {
        let name = class.name_of(id);
        let why = match is_reported {
            true => format!(
                "the platform ended its link with {}: another client uses",
                TAKEN_OVER.in_words()
            ),
            false => format!(
                "the platform ended its link {brief_lives} times in a row within {BRIEF} of taking it: another client may use"
            ),
        };
        format!(
            "device `{name}`: {why} its client id, as a second run of this scenario would; use client ids that \
             no other client has (`client.id`, or `id` of the fleet)"
        )
    });
}

impl Class<MqttSettings> {
    /// True if client ids contain the run: nobody named them, and the platform does not care.
    pub(super) fn names_run(&self) -> bool {
        let is_unnamed = self.client.settings.client_id == ClientId::Name;
        is_unnamed && self.dialect.publishing().has_free_client_ids
    }

    /// True if a client of another run may have a client id of a link.
    fn may_share_client_ids(&self) -> bool {
        let has_own = self.client.settings.client_id != ClientId::Assigned;
        has_own && !self.names_run()
    }
}
