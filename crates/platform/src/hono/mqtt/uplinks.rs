//! Messages of devices at the server end: uploads, and replies to commands.

use super::super::northbound::write_reply_topic;
use super::super::requests::Endpoint;
use super::super::server::{EMPTY_NOTIFICATION, correlation_id};
use super::{COMMAND_WORDS, Identity, PropertyBag, RESPONSE_WORDS, levels};
use crate::incoming::Peer;
use crate::server::DevicePublish;

const BAD_REQUEST: u16 = 400;
const UNAUTHORIZED: u16 = 401;
const FORBIDDEN: u16 = 403;
const NOT_FOUND: u16 = 404;

/// A message of one device, by its topic and the link that it came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published<'a> {
    /// The device's tenant.
    pub tenant: &'a str,
    /// The device.
    pub device: &'a str,
    /// The gateway that speaks for it, if one does.
    pub gateway: Option<&'a str>,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Metadata behind the topic.
    pub properties: PropertyBag<'a>,
}

impl Published<'_> {
    /// Puts the topic on which the message surfaces into `out`, which is emptied first.
    pub fn write_surface(&self, out: &mut String) {
        out.clear();
        out.extend([
            self.endpoint.word(false),
            "/",
            self.tenant,
            "/",
            self.device,
        ]);
    }

    /// Returns the seconds after which the message is void; none if it never is.
    pub fn ttl_s(&self) -> Option<u32> {
        let written = self.properties.raw(PropertyBag::TTL);
        written.and_then(|text| text.parse().ok())
    }
}

/// Reads what a link published: an upload, or the status of its refusal.
pub(in super::super) fn read<'a>(
    link: &'a str,
    topic: &'a str,
    payload: &'a [u8],
) -> DevicePublish<'a> {
    match upload(link, topic, payload) {
        Ok(published) => DevicePublish::Published(published),
        Err(status) => DevicePublish::Refused(status),
    }
}

fn upload<'a>(link: &'a str, topic: &'a str, payload: &[u8]) -> Result<Published<'a>, u16> {
    let (path, properties) = PropertyBag::split(topic);
    let word = path.split('/').next().unwrap_or_default();
    let (endpoint, _) = Endpoint::named(word).ok_or(NOT_FOUND)?;
    let link = peer(link);
    let whose = match levels::<3>(path) {
        Some([_, tenant, device]) if !device.contains('/') => named(tenant, device, link)?,
        None if path == word => link.ok_or(UNAUTHORIZED)?,
        Some(_) | None => return Err(BAD_REQUEST),
    };
    let mut media_type = String::new();
    properties.read(PropertyBag::CONTENT_TYPE, &mut media_type);
    // An empty message has to say that it is one, and no other may.
    if payload.is_empty() != (media_type == EMPTY_NOTIFICATION) {
        return Err(BAD_REQUEST);
    }
    Ok(Published {
        tenant: whose.tenant,
        device: whose.device,
        gateway: link.filter(|link| *link != whose).map(|link| link.device),
        endpoint,
        properties,
    })
}

/// The device, or the gateway, that a link logged in as; none where it has no credential.
fn peer(link: &str) -> Option<Peer<'_>> {
    Identity::parse(link).map(|identity| Peer {
        tenant: identity.tenant,
        device: identity.auth_id,
    })
}

/// The device that a topic names; an empty tenant is the link's own.
fn named<'a>(tenant: &'a str, device: &'a str, link: Option<Peer<'a>>) -> Result<Peer<'a>, u16> {
    let tenant = match (tenant, link) {
        ("", Some(link)) => link.tenant,
        _ => tenant,
    };
    if tenant.is_empty() || device.is_empty() {
        return Err(BAD_REQUEST);
    }
    if link.is_some_and(|link| link.tenant != tenant) {
        return Err(FORBIDDEN);
    }
    Ok(Peer { tenant, device })
}

/// Finds what surfaces of a reply to a command; none if the topic is none of one. The topic on which it
/// surfaces goes into `out`, which is emptied first.
pub(in super::super) fn surfaced_reply<'a>(
    link: &str,
    topic: &str,
    payload: &'a [u8],
    out: &mut String,
) -> Option<&'a [u8]> {
    out.clear();
    let (path, _) = PropertyBag::split(topic);
    let [word, tenant, device, response, request_id, status] = levels(path)?;
    let is_reply = COMMAND_WORDS.contains(&word) && RESPONSE_WORDS.contains(&response);
    let link = peer(link);
    let whose = match (tenant, device, link) {
        ("", "", Some(link)) => link,
        _ => named(tenant, device, link).ok()?,
    };
    let status = status
        .parse()
        .ok()
        .filter(|status| (200..600).contains(status));
    let id = correlation_id(request_id).filter(|_| is_reply)?;
    write_reply_topic([whose.tenant, whose.device, id], status?, out);
    Some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The device, its gateway and the topic of what surfaces, or the status of the refusal.
    fn heard(link: &str, topic: &str) -> Result<(Option<String>, String), u16> {
        let published = upload(link, topic, b"{}")?;
        let mut surface = String::new();
        published.write_surface(&mut surface);
        Ok((published.gateway.map(str::to_owned), surface))
    }

    #[test]
    fn a_device_is_known_by_its_link_or_by_its_topic() {
        for (link, topic, gateway, surface) in [
            ("dev1@t1", "telemetry", None, "telemetry/t1/dev1"),
            ("dev1@t1", "e/?hono-ttl=3", None, "event/t1/dev1"),
            ("dev1@t1", "t/t1/dev1", None, "telemetry/t1/dev1"),
            ("gw1@t1", "t//dev2", Some("gw1"), "telemetry/t1/dev2"),
            ("gw1@t1", "event/t1/dev2", Some("gw1"), "event/t1/dev2"),
            ("", "t/t1/dev1", None, "telemetry/t1/dev1"),
        ] {
            let expected = (gateway.map(str::to_owned), surface.to_owned());
            assert_eq!(heard(link, topic), Ok(expected), "{link} {topic}");
        }
    }

    #[test]
    fn each_refusal_has_the_status_of_its_cause() {
        for (link, topic, status) in [
            ("", "telemetry", UNAUTHORIZED),
            ("", "telemetry//dev1", BAD_REQUEST),
            ("dev1@t1", "telemetry/t1", BAD_REQUEST),
            ("dev1@t1", "telemetry/t1/", BAD_REQUEST),
            ("dev1@t1", "telemetry/t1/dev1/more", BAD_REQUEST),
            ("dev1@t1", "t/t2/dev1", FORBIDDEN),
            ("dev1@t1", "telementry", NOT_FOUND),
            ("dev1@t1", "c///s/203abc/200", NOT_FOUND),
        ] {
            assert_eq!(heard(link, topic), Err(status), "{link} {topic}");
        }
    }

    #[test]
    fn an_empty_message_says_that_it_is_one() {
        let empty = "t/?content-type=application%2Fvnd.eclipse-hono-empty-notification".to_owned();
        let is_taken = |topic: &str, payload: &[u8]| {
            matches!(read("d@t", topic, payload), DevicePublish::Published(_))
        };
        assert!(is_taken(&empty, b"") && !is_taken("t", b""));
        assert!(!is_taken(&empty, b"1") && is_taken("t", b"1"));
    }

    #[test]
    fn a_reply_surfaces_under_its_correlation_id() {
        for (link, topic, expected) in [
            (
                "dev1@t1",
                "c///s/2047f3a/200",
                Some("command_response/t1/dev1/7f3a/200"),
            ),
            (
                "gw1@t1",
                "command//dev2/res/2047f3a/503",
                Some("command_response/t1/dev2/7f3a/503"),
            ),
            (
                "",
                "c/t1/dev1/s/2047f3a/200",
                Some("command_response/t1/dev1/7f3a/200"),
            ),
            ("", "c///s/2047f3a/200", None),
            ("dev1@t1", "c///s/2047f3a/600", None),
            ("dev1@t1", "c///s/7f3a/200", None),
            ("dev1@t1", "c///q/2047f3a/200", None),
            ("dev1@t1", "telemetry", None),
        ] {
            let mut surface = String::new();
            let reply = surfaced_reply(link, topic, b"{}", &mut surface);
            assert_eq!(reply.map(|_| surface.as_str()), expected, "{topic}");
        }
    }
}
