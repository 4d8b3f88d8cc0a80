//! A message as a request of HTTP.

use std::fmt;

use muster_model::Micros;
use muster_model::percent::Part;
use muster_platform::{Method, Protocol, Request};
use muster_protocol::http::{self, InvalidField, Refused, Ticket, write_field};

use super::authorization::Authorization;
use super::{Http, Unfit};
use crate::session::{Context, Outgoing, Session as _, Unsent};
use crate::token::unawaited;

/// Parts of a request that are rendered for the connection.
#[derive(Default)]
pub(super) struct Rendered {
    target: String,
    fields: Vec<u8>,
    authorization: Authorization,
    /// A device's name.
    name: String,
    /// The value of a header.
    value: String,
}

/// Hides what holds credentials.
impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rendered").finish_non_exhaustive()
    }
}

impl Http {
    /// Sends the message in the scratch buffers.
    pub(super) fn request(
        &mut self,
        at: &mut Context<'_, Self>,
        message: &Outgoing,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsent<Unfit>> {
        if at.state.silent_until > at.now {
            return Err(Unsent::Silence);
        }
        if self.window_free(at.state) == 0 {
            return Err(Unsent::Waits);
        }
        let slot = at.messages.slots.get(message.slot);
        let token = match message.is_tracked {
            true => at.messages.slots.token(message.slot),
            false => unawaited(slot.stream, slot.due),
        };
        let (class, device, due) = (at.class, slot.device, slot.due);
        let id = at.messages.fleets.message_id(device, slot.stream, slot.seq);
        let stream = &class.streams[usize::from(message.stream_index)];
        let scratch = &mut *at.messages.scratch;
        let requests = class.dialect.requests(Protocol::Http);
        scratch.render_login::<Self>(class, at.id);
        let parts = scratch.parts();
        let uplink = parts.uplink;
        let paths = at.messages.paths;
        let request = stream.request(requests, parts, || paths.get(slot.request));
        let rendered = &mut self.rendered;
        let server = class.client.server_of(at.id);
        let (host, prefix) = server.map_or(("", ""), |it| (&it.host[..], &it.path[..]));
        rendered.target.clear();
        rendered.target.push_str(prefix);
        rendered.fields.clear();
        let fields = &mut rendered.fields;
        if requests.path_token.is_none() {
            rendered.authorization.write(class, at.id, fields)?;
        }
        write_fields(&request, fields)?;
        let method = if let Some(call) = &stream.http {
            class.directory.render_name(device, &mut rendered.name);
            write_path(uplink.topic(), &mut rendered.target);
            for (name, value) in &call.headers {
                let (of, value, text) = (&rendered.name, value.expose(), &mut rendered.value);
                let directory = &class.directory;
                directory.render_message_text(value, (&id, due), of, text);
                write_field(&mut rendered.fields, name, text.as_bytes())?;
            }
            &call.method[..]
        } else {
            write_target(&request, &mut rendered.target);
            method(request.method)
        };
        let request = http::Request {
            fields: &rendered.fields,
            body: request.payload,
            is_last: class.client.settings.closes,
            ..http::Request::new(method, &rendered.target, host)
        };
        at.state.client.submit(Ticket(token.0), &request, out)?;
        at.state.leaves_at = Micros::MAX;
        Ok(())
    }
}

impl From<InvalidField> for Unsent<Unfit> {
    fn from(why: InvalidField) -> Self {
        Self::Never(Unfit::Header(why))
    }
}

impl From<Refused> for Unsent<Unfit> {
    fn from(why: Refused) -> Self {
        match why {
            Refused::Window | Refused::Closing => Self::Waits,
        }
    }
}

const fn method(method: Method) -> &'static str {
    match method {
        Method::Get | Method::Other => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
    }
}

/// Appends the headers of a dialect's request.
fn write_fields(request: &Request<'_>, fields: &mut Vec<u8>) -> Result<(), InvalidField> {
    if let Some(media_type) = request.content_type {
        write_field(fields, "Content-Type", media_type.as_bytes())?;
    }
    for (name, value) in request.headers {
        write_field(fields, name, value.as_bytes())?;
    }
    Ok(())
}

/// Appends path and query of a dialect's request.
fn write_target(request: &Request<'_>, target: &mut String) {
    for segment in request.path {
        target.push('/');
        Part::Segment.encode(segment, target);
    }
    if !request.query.is_empty() {
        target.push('?');
        Part::Query.encode(request.query, target);
    }
}

/// Appends a path that the scenario writes as it goes over the wire, without its first slash and with a query
/// where it has one.
fn write_path(path: &str, target: &mut String) {
    target.push('/');
    Part::Target.encode(path, target);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> String {
        let mut target = String::new();
        write_path(text, &mut target);
        target
    }

    #[test]
    fn a_path_of_the_scenario_goes_out_as_it_is_written() {
        assert_eq!(
            path("api/v1/d-1?full=1&x=a%20b"),
            "/api/v1/d-1?full=1&x=a%20b"
        );
        assert_eq!(path("api//v1?x[]=|"), "/api//v1?x[]=|");
        assert_eq!(path(""), "/");
        assert_eq!(path("a b/\u{e4}#"), "/a%20b/%C3%A4%23");
        assert_eq!(path("a\r\nHost: x"), "/a%0D%0AHost:%20x");
    }
}
