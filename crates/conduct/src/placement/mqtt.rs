//! The MQTT of a plan's fleets.

use muster_device::{Authentication, ClientId, Login, Mqtt, MqttSettings, Will};
use muster_model::Micros;
use muster_plan::{ClientIdPlan, ClientPlan, Credential, FleetPlan, MqttPlan, Plan};
use muster_protocol::mqtt::Property;

use super::Protocol;

impl Protocol for Mqtt {
    fn settings(plan: &Plan, fleet: &FleetPlan) -> Option<MqttSettings> {
        if let ClientPlan::Mqtt(mqtt) = &fleet.client {
            Some(settings(plan.receive_limit(), fleet, mqtt))
        } else {
            None
        }
    }
}

fn settings(limit: u32, fleet: &FleetPlan, plan: &MqttPlan) -> MqttSettings {
    MqttSettings {
        version: plan.version,
        client_id: match &plan.client_id {
            ClientIdPlan::LinkName => ClientId::Name,
            ClientIdPlan::Template(template) => ClientId::Template(template.clone()),
            ClientIdPlan::Assigned => ClientId::Assigned,
        },
        clean_start: plan.clean_start,
        session_expiry_s: whole_seconds(plan.session_expiry),
        keep_alive_s: u16::try_from(whole_seconds(plan.keep_alive)).unwrap_or(u16::MAX),
        receive_maximum: plan.receive_maximum,
        maximum_packet_size: limit,
        login: match &fleet.credential {
            Credential::None | Credential::Certificate { .. } | Credential::Psk { .. } => None,
            Credential::Password { user, secret } => Some(Login {
                user: user.clone(),
                password: Some(secret.expose().clone()),
            }),
            Credential::Token { token } => Some(Login {
                user: token.expose().clone(),
                password: None,
            }),
        },
        authentication: plan.authentication.as_ref().map(|plan| Authentication {
            method: plan.method.clone(),
            data: plan.data.expose().clone(),
            answer: plan.answer.expose().clone(),
            echo: plan.echo,
            again: plan.again,
        }),
        will: plan.will.as_ref().map(|will| Will {
            topic: will.topic.clone(),
            payload: will.payload.clone(),
            qos: will.qos,
            retain: will.retain,
            delay: (will.delay > Micros::ZERO)
                .then(|| Property::WillDelay(whole_seconds(will.delay))),
        }),
    }
}

fn whole_seconds(time: Micros) -> u32 {
    u32::try_from(time.get() / 1_000_000).unwrap_or(u32::MAX)
}
