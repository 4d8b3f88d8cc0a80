//! Both ends over MQTT: the part of a dialect's table for devices that publish and subscribe.

use crate::command::CommandScratch;
use crate::downlink::Downlink;
use crate::hono::Who;
use crate::server::{Objection, OnRefusal};

/// Words on a topic that the platform lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicLack {
    /// Treatment of such a message, in words behind the topic's name.
    pub what: &'static str,
    /// The remedy.
    pub help: &'static str,
}

/// Both ends over MQTT, where devices publish and subscribe.
#[derive(Debug)]
pub struct Publishing {
    /// The filters to which a link subscribes before its devices may publish; it is up only once all were
    /// granted. At most [`SUBSCRIPTIONS_MAX`].
    pub subscriptions: &'static [Subscription],
    /// The further filter of a link whose device takes commands; `${id}` stands for the device's
    /// name.
    pub commands: Option<&'static str>,
    /// The same for a link of several devices.
    pub gateway_commands: Option<&'static str>,
    /// The same for a device that has no credential and names itself in its topics; `${tenant}` stands
    /// for its tenant. None if it is as of others.
    pub nameless_commands: Option<&'static str>,
    /// True if a command names the topic of its reply.
    pub names_replies: bool,
    /// The filters of the refusals of what a device published; none where the platform has none.
    pub refusals: Option<Refusals>,
    /// The message that a link of `gateway` sends for each of its devices before it publishes; none if it need not.
    pub announcement: Option<Announcement>,
    /// The topics on which devices ask the platform and are answered by its application, where these
    /// are others than the one that stands where a stream names none.
    pub requests: &'static [&'static str],
    /// True if several acknowledgements may stand in one message.
    pub batches: bool,
    /// True if the time-out of what the application acknowledges begins anew with each
    /// acknowledgement that the device gets.
    pub slides: bool,
    /// True if the platform knows devices by something else than their MQTT client ids, so that a run
    /// may choose these.
    pub has_free_client_ids: bool,
    /// The highest quality of service that the platform takes.
    pub qos_maximum: u8,
    /// The longest payload that the platform takes; none where no such limit is known.
    pub payload_limit: Option<usize>,
    /// Reads a message that came to a device.
    pub downlink: for<'a> fn(&'a str, &'a [u8]) -> Downlink<'a>,
}

/// Filters of messages in which a platform refuses what a device published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusals {
    /// The filter of a link with a credential.
    pub filter: &'static str,
    /// The filter of a device without one.
    pub nameless: &'static str,
}

/// A filter to which a link subscribes before its devices may publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscription {
    /// The topic filter, in which `${id}` stands for the name of the link's first device, and
    /// `${tenant}` for its tenant.
    pub filter: &'static str,
    /// The quality of service, 0 to 2.
    pub qos: u8,
}

/// The most subscriptions of a link: those of its dialect, and those of its streams.
pub const SUBSCRIPTIONS_MAX: usize = 16;

/// The message at QoS 1 that announces one device of a link.
#[derive(Debug, Clone, Copy)]
pub struct Announcement {
    /// The topic.
    pub topic: &'static str,
    /// Appends what is said there of a device.
    pub write: fn(&str, &mut Vec<u8>),
    /// The place to look at if the platform leaves it unanswered.
    pub remedy: &'static str,
}

/// Refusals of what devices published over MQTT.
#[derive(Debug, Clone, Copy)]
pub struct Objections {
    /// The treatment of a message, by the topic that it was published on; the flag is true if the link
    /// received a refusal.
    pub treatment: fn(&str, bool) -> OnRefusal,
    /// Renders the refusal in the form of a number, as it is routed; false if there is no such form. The first
    /// form that the link subscribed to is right.
    pub write: fn(usize, &Objection<'_>, &mut CommandScratch) -> bool,
}

/// A broker that devices publish to, and no more.
pub(crate) const PLAIN_PUBLISHING: Publishing = Publishing {
    subscriptions: &[],
    commands: None,
    gateway_commands: None,
    nameless_commands: None,
    names_replies: false,
    refusals: None,
    announcement: None,
    requests: &[],
    batches: false,
    slides: false,
    has_free_client_ids: false,
    qos_maximum: 2,
    payload_limit: None,
    downlink: |_, _| Downlink::Other,
};

impl Publishing {
    /// The filter of the commands to the devices of a link.
    pub const fn filter_of_commands(&self, who: Who) -> Option<&'static str> {
        match (who, self.nameless_commands) {
            (Who::Gateway, _) => self.gateway_commands,
            (Who::Nobody, Some(filter)) => Some(filter),
            (Who::Nobody, None) | (Who::Device, _) => self.commands,
        }
    }

    /// The filter of the refusals of what a link publishes.
    pub fn filter_of_refusals(&self, who: Who) -> Option<&'static str> {
        self.refusals.map(|refusals| match who {
            Who::Nobody => refusals.nameless,
            Who::Device | Who::Gateway => refusals.filter,
        })
    }
}

impl Subscription {
    /// Puts the filter of a link into `out`, which is emptied first.
    pub fn render(&self, tenant: &str, name: &str, out: &mut String) {
        out.clear();
        let mut rest = self.filter;
        while let Some((before, variable)) = rest.split_once("${") {
            let (variable, after) = variable.split_once('}').unwrap_or((variable, ""));
            let value = if variable == "tenant" { tenant } else { name };
            out.extend([before, value]);
            rest = after;
        }
        out.push_str(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_names_the_device() {
        let mut filter = "old".to_owned();
        let subscription = |filter| Subscription { filter, qos: 0 };
        subscription("ack/${id}").render("", "d-1", &mut filter);
        assert_eq!(filter, "ack/d-1");
        subscription("v1/devices/me/rpc/request/+").render("", "d-1", &mut filter);
        assert_eq!(filter, "v1/devices/me/rpc/request/+");
        subscription("c/${tenant}/${id}/q/#").render("t1", "d-1", &mut filter);
        assert_eq!(filter, "c/t1/d-1/q/#");
    }
}
