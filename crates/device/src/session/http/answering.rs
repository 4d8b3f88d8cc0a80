//! Answers of HTTP.

use muster_model::{Micros, Reason, ShedCause, figure};
use muster_plan::{AnswerId, HttpCall};
use muster_platform::{Answered, Field, Protocol, Segments, Status, id_at};
use muster_protocol::http::{LentResponse, Response, read_date};

use super::{Http, LINGER};
use crate::session::{Context, Event, Input, Reply};
use crate::slots::SlotId;
use crate::token::{Token, due_of, is_unawaited, stream_of};

/// The longest silence that a link keeps, in seconds: no run waits for longer.
const RETRY_AFTER_MAX_S: u32 = 24 * 3_600;
/// Bytes of an unreadable `Retry-After` that are shown.
const RETRY_AFTER_SHOWN: usize = 40;
/// The remedy for a status that is a success of HTTP, and not one of the scenario.
const UNLISTED: &str =
    "`success` does not name this status; add it if the API means that it took the message";
/// Bytes of the target of a redirect that are shown.
const LOCATION_MAX: usize = 120;
/// Bytes of the longest id that counts as one.
const ID_MAX: usize = 256;

impl Http {
    /// The meaning of an answer; none if nobody waits for it.
    pub(super) fn answered<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        input: &Input<'a>,
        token: Token,
        response: Response<'a>,
    ) -> Option<Event<'a>> {
        let client = &at.state.client;
        // A server may keep a connection whose last request was announced.
        let is_over = client.is_closing() && client.waiting().next().is_none();
        if response.is_last || is_over {
            at.state.leaves_at = at.now + LINGER;
        }
        let response = response.lent(|bytes| input.keep(bytes));
        at.obey(&response);
        // What was sent behind a request that timed out may still be answered in time.
        let is_open = || is_unawaited(token) || at.open_attempt(token).is_some();
        if at.state.is_given_up && !is_open() {
            let is_accepted = (200..300).contains(&response.status);
            return Some(Event::AnsweredLate { token, is_accepted });
        }
        let reply = at.read(token, &response);
        if is_unawaited(token) {
            return match reply {
                Reply::Rejected(reason) => Some(Event::RefusedUnawaited {
                    stream: stream_of(token),
                    due: due_of(token, at.now),
                    reason,
                }),
                Reply::Accepted | Reply::Command(_) => None,
            };
        }
        Some(Event::Answered {
            token,
            reply,
            is_separate: false,
        })
    }
}

impl Context<'_, Http> {
    /// The attempt of an answer, if it still waits for one.
    fn open_attempt(&self, token: Token) -> Option<SlotId> {
        self.messages.slots.open_attempt(self.link, token)
    }

    /// Keeps silence if the platform asks for it.
    fn obey(&mut self, response: &LentResponse<'_>) {
        let is_asked = matches!(response.status, 429 | 503);
        if !is_asked || !self.class.client.settings.obeys_retry_after {
            return;
        }
        let Some(value) = response.field("retry-after") else {
            return;
        };
        let date = response.field("date");
        let Some(silence) = silence(value, date, self.class.directory.wall_ms(self.now)) else {
            return self
                .refusals
                .note_silence("Retry-After", || unreadable(value));
        };
        let load = self.class.streams.iter().map(|stream| {
            let spec = stream.schedule.spec();
            spec.warm_up + spec.measure
        });
        if load.max().is_some_and(|load| silence > load) {
            self.refusals
                .note_silence(ShedCause::RetryAfter.name(), || beyond(silence));
        }
        self.state.silent_until = self.state.silent_until.max(self.now + silence);
    }

    /// Reads an answer as the dialect has it, or as the scenario says.
    fn read<'a>(&mut self, token: Token, response: &LentResponse<'a>) -> Reply<'a> {
        let class = self.class;
        let place = self.messages.fleets.place(stream_of(token));
        if let Some(call) = &class.streams[usize::from(place.stream_index)].http {
            return match refusal(call, response) {
                None => Reply::Accepted,
                Some(reason) => {
                    let hint = class.dialect.requests(Protocol::Http).hint;
                    let hint = match matches!(reason, Reason::Http(200..=299)) {
                        true => Some(UNLISTED),
                        // The words of the API say more, if there are any.
                        false => hint(Status(response.status)).filter(|_| response.body.is_empty()),
                    };
                    self.rejected(reason, response, hint)
                }
            };
        }
        let requests = class.dialect.requests(Protocol::Http);
        let open = self.open_attempt(token);
        let stream = &class.streams[usize::from(place.stream_index)];
        let is_read_by_path = stream.is_query() || stream.is_read_by_path;
        let asked = match open.filter(|_| is_read_by_path) {
            Some(id) => {
                // Of a command it is known by its query where the reply goes.
                self.messages.render_body(id);
                Segments::of(self.messages.scratch.uplink.topic())
            }
            None => Segments::of(""),
        };
        let status = Status(response.status);
        let mut fields = response.fields().flat_map(fields_of).flatten();
        let path = &mut self.messages.scratch.reply_path;
        match (requests.answered)(status, &mut fields, response.body, asked, path) {
            Answered::Accepted => Reply::Accepted,
            Answered::Command(copy) => Reply::Command(copy),
            Answered::Rejected(status) => {
                let reason = Reason::Http(response.status);
                self.rejected(reason, response, (requests.hint)(status))
            }
        }
    }

    /// Notes a refusal, the first of its kind, with what is known of it.
    fn rejected<'a>(
        &mut self,
        reason: Reason,
        response: &LentResponse<'_>,
        hint: Option<&'static str>,
    ) -> Reply<'a> {
        if reason.is_redirect() {
            let location = response.field("location");
            self.refusals.note_rejected(reason, || redirected(location));
        } else {
            let text = hint.map_or(response.body, str::as_bytes);
            self.refusals.note(reason, text);
        }
        Reply::Rejected(reason)
    }
}

/// A redirect in words, with its target: without user, query and fragment, which may be secrets.
fn redirected(location: Option<&[u8]>) -> String {
    let Some(location) = location else {
        return "redirects are not followed, and this one has no Location".to_owned();
    };
    let text = String::from_utf8_lossy(&location[..location.len().min(LOCATION_MAX)]);
    let end = text.find(['?', '#']).unwrap_or(text.len());
    let text = &text[..end];
    let (scheme, rest) = match text.find("//") {
        Some(at) if at == 0 || text[..at].ends_with(':') => text.split_at(at + 2),
        Some(_) | None => ("", text),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match scheme.is_empty() {
        true => authority,
        false => authority.rsplit('@').next().unwrap_or_default(),
    };
    let target = format!("{scheme}{host}{path}");
    let target = target.escape_debug();
    format!("redirects are not followed; send to where it leads, {target}")
}

/// The reason why an answer does not accept a message; none if it does.
fn refusal(call: &HttpCall, response: &LentResponse<'_>) -> Option<Reason> {
    if !call.accepts(response.status) {
        return Some(Reason::Http(response.status));
    }
    let id = match &call.id {
        None => return None,
        Some(AnswerId::Header(name)) => response.field(name),
        Some(AnswerId::Pointer(pointer)) => id_at(response.body, pointer),
    };
    let has_id = id.is_some_and(is_id);
    (!has_id).then_some(Reason::HttpNoId(response.status))
}

/// True for a text of a bounded length without control characters.
fn is_id(id: &[u8]) -> bool {
    let text = std::str::from_utf8(id).ok().filter(|_| id.len() <= ID_MAX);
    text.is_some_and(|id| !id.is_empty() && !id.contains(char::is_control))
}

/// The silence that a refusal asks for; none if it cannot be read. A date counts from that of the server's own
/// clock, or from ours in milliseconds where the answer has none.
fn silence(value: &[u8], date: Option<&[u8]>, wall_ms: u64) -> Option<Micros> {
    let most = u64::from(RETRY_AFTER_MAX_S) * 1_000;
    let ms = match seconds(value) {
        Some(seconds) => u64::from(seconds) * 1_000,
        None => {
            let from_ms = date
                .and_then(read_date)
                .map_or(wall_ms, |date| date * 1_000);
            (read_date(value)? * 1_000).saturating_sub(from_ms)
        }
    };
    Some(Micros::from_millis(ms.min(most)))
}

/// Words for a `Retry-After` that cannot be read.
#[cold]
fn unreadable(value: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&value[..value.len().min(RETRY_AFTER_SHOWN)]);
    let shown = shown.escape_debug();
    format!("`{shown}` is neither a number of seconds nor a date, and is ignored")
}

/// Words for a silence that is longer than the load lasts.
#[cold]
fn beyond(silence: Micros) -> String {
    let seconds = figure::count(silence.get() / 1_000_000);
    format!(
        "Retry-After asks for {seconds} s of silence, longer than warm-up and measuring; `obey-retry-after: false` \
         sends all the same"
    )
}

/// The seconds of `Retry-After`; none for a date.
fn seconds(value: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(value).ok()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u32::MAX))
}

/// Headers that dialects read, by their names in lower case: a server may write them in other letters.
const KNOWN: [&str; 6] = [
    "content-type",
    "hono-cmd-req-id",
    "hono-cmd-target-device",
    "hono-command",
    "location",
    "retry-after",
];

/// Fields of a header that dialects read: the header itself, and its meaning for any protocol.
fn fields_of<'a>((name, value): (&'a [u8], &'a [u8])) -> [Option<Field<'a>>; 2] {
    let mut known = KNOWN.iter();
    let known = known.find(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    let (Some(name), Ok(text)) = (known, std::str::from_utf8(value)) else {
        return [None; 2];
    };
    let meaning = match *name {
        "content-type" => Some(Field::ContentType(text)),
        "retry-after" => seconds(value).map(Field::MaxAge),
        _ => None,
    };
    [Some(Field::Header(name, text)), meaning]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seconds_of_silence_are_a_number() {
        let read = [
            "0",
            "120",
            "99999999999",
            "",
            "-1",
            "1.5",
            "Fri, 31 Dec 1999 23:59:59 GMT",
        ];
        let read = read.map(|value| seconds(value.as_bytes()));
        assert_eq!(
            read,
            [Some(0), Some(120), Some(u32::MAX), None, None, None, None]
        );
    }

    /// RFC 9110 section 10.2.3.
    #[test]
    fn a_date_ends_the_silence_by_the_servers_clock_or_by_ours() {
        let until = b"Sun, 06 Nov 1994 08:49:41 GMT";
        let servers = b"Sun, 06 Nov 1994 08:49:37 GMT".as_slice();
        let ours = 784_111_779_500;
        let ms = |value: &[u8], date| silence(value, date, ours).map(|it| it.get() / 1_000);
        assert_eq!(ms(until, Some(servers)), Some(4_000));
        assert_eq!(ms(until, None), Some(1_500));
        assert_eq!(ms(until, Some(b"noon")), Some(1_500));
        assert_eq!(ms(servers, None), Some(0), "it is over");
        assert_eq!(ms(b"7", Some(servers)), Some(7_000));
        assert_eq!(ms(b"99999999999", None), Some(86_400_000));
        assert_eq!(ms(b"soon", Some(servers)), None);
        assert_eq!(
            unreadable(b"so\non"),
            "`so\\non` is neither a number of seconds nor a date, and is ignored"
        );
    }

    #[test]
    fn a_redirect_is_shown_without_what_may_be_secret() {
        for (location, target) in [
            ("https://h.example/v2/d-1", "https://h.example/v2/d-1"),
            ("https://me:hunter2@h:8443/?key=hunter2", "https://h:8443/"),
            ("//me@h#hunter2", "//h"),
            ("/login?key=hunter2", "/login"),
            ("../a@b", "../a@b"),
            ("\u{7f}", "\\u{7f}"),
        ] {
            let words = redirected(Some(location.as_bytes()));
            let target = format!("redirects are not followed; send to where it leads, {target}");
            assert_eq!(words, target);
        }
        let long = format!("http://h/{}", "a".repeat(10_000));
        assert!(redirected(Some(long.as_bytes())).len() < 200);
        assert!(redirected(Some(b"\xff")).ends_with('\u{fffd}'));
        assert!(redirected(None).ends_with("has no Location"));
    }

    #[test]
    fn an_id_is_a_text_of_bounded_length() {
        assert!(is_id(b"41") && is_id("\u{e4}-1".as_bytes()) && is_id(&[b'x'; ID_MAX]));
        for none in [&b""[..], b"a\x07", b"\xff", &[b'x'; ID_MAX + 1]] {
            assert!(!is_id(none), "{none:?}");
        }
    }
}
