//! Answers to peers of CoAP, as the dialect has them.

use muster_platform::{Field, Refusal, Status};
use muster_protocol::coap::{Code, Opt, OptionNumber, Pending, Reply, Uint, content_format};

use super::Coap;
use super::request::{PeerRef, RequestRef};
use crate::thread::Context;

/// An answer of the dialect: its code, what stands beside it, and a body.
#[derive(Debug)]
pub(super) struct Content<'a> {
    pub(super) status: Status,
    pub(super) fields: Vec<Field<'a>>,
    pub(super) body: &'a [u8],
}

impl Coap {
    /// Answers no to an uplink, with a code as in HTTP.
    pub(super) fn refuse_upload(&mut self, ctx: &mut Context<'_>, to: RequestRef, code: u16) {
        let status = Status::of_http(code).unwrap_or(Refusal::UNAVAILABLE.status);
        let why = "refused on purpose";
        if self.decline(ctx, to.peer, to.pending, &Refusal { status, why }) {
            ctx.counts().rejected.more();
        }
    }

    /// Answers no; whether that could be said.
    pub(super) fn decline(
        &mut self,
        ctx: &mut Context<'_>,
        to: PeerRef,
        pending: Pending,
        refusal: &Refusal,
    ) -> bool {
        let content = Content {
            status: refusal.status,
            fields: refusal.fields().collect(),
            body: refusal.why.as_bytes(),
        };
        self.respond_with(ctx, to, pending, &content)
    }

    /// Whether the answer could be said.
    pub(super) fn respond_with(
        &mut self,
        ctx: &mut Context<'_>,
        to: PeerRef,
        pending: Pending,
        content: &Content<'_>,
    ) -> bool {
        let fields = &content.fields;
        let values: Vec<Uint> = fields.iter().map(number).collect();
        let options = fields.iter().zip(&values);
        let mut options: Vec<Opt<'_>> = options.filter_map(option).collect();
        options.sort_by_key(|option| option.number);
        let code = Code::new(content.status.class, content.status.detail);
        let reply = Reply::new(code, &options, content.body);
        self.endpoint.respond(ctx, to, pending, &reply)
    }
}

/// The number that a field holds.
fn number(field: &Field<'_>) -> Uint {
    match field {
        Field::ContentType(media_type) => {
            let format = content_format::of_media_type(media_type);
            Uint::of(u32::from(format.unwrap_or(content_format::OCTET_STREAM)))
        }
        Field::MaxAge(seconds) => Uint::of(*seconds),
        Field::PathSegment(_) | Field::Parameter(_) => Uint::of(0),
    }
}

/// The option of a field; a media type that has no number is not told.
fn option<'a>((field, number): (&Field<'a>, &'a Uint)) -> Option<Opt<'a>> {
    Some(match field {
        Field::PathSegment(segment) => Opt::text(OptionNumber::LOCATION_PATH, segment),
        Field::Parameter(parameter) => Opt::text(OptionNumber::LOCATION_QUERY, parameter),
        Field::MaxAge(_) => Opt::new(OptionNumber::MAX_AGE, number),
        Field::ContentType(media_type) => {
            content_format::of_media_type(media_type)?;
            Opt::new(OptionNumber::CONTENT_FORMAT, number)
        }
    })
}
