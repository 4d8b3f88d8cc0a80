//! SASL before AMQP (section 5.3): which mechanisms the peer offers, and what it says of ours.
//!
//! The library has no name for the mechanisms of a peer that does not offer ours, and takes EXTERNAL only over
//! TLS that it has opened itself.

use muster_conduct::Remedy;
use muster_plan::{AmqpLogin, Secret};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::refusal::LOGIN_KEYS;
use crate::loss::{Loss, of_stream};

/// The header that asks for SASL.
const HEADER: [u8; 8] = *b"AMQP\x03\x01\x00\x00";
/// Bytes of the largest frame of SASL: more than any list of mechanisms.
const FRAME_MAX: usize = 1 << 16;
/// Bytes of a frame before its body: size, offset of the body, type, and two that are ignored.
const FRAME_HEADER: usize = 8;

const MECHANISMS: u64 = 0x40;
const INIT: u8 = 0x41;
const OUTCOME: u64 = 0x44;

/// Credentials of a consumer.
#[derive(Debug, Clone)]
pub(super) struct Login {
    pub(super) mechanism: AmqpLogin,
    pub(super) user: Option<Secret>,
    pub(super) password: Option<Secret<Vec<u8>>>,
}

impl Login {
    /// The initial response of its mechanism.
    fn response(&self) -> Vec<u8> {
        match (self.mechanism, &self.user, &self.password) {
            (AmqpLogin::Plain, Some(user), Some(password)) => {
                let user = user.expose().as_bytes();
                [&[0], user, &[0], password.expose()].concat()
            }
            _ => Vec::new(),
        }
    }
}

/// Logs in on a new stream; the next bytes are those of AMQP.
pub(super) async fn log_in<S>(stream: &mut S, login: &Login, host: &str) -> Result<(), Loss>
where
    S: AsyncRead + AsyncWrite + Unpin + ?Sized,
{
    write(stream, &HEADER).await?;
    let mut header = HEADER;
    let read = stream.read_exact(&mut header).await;
    read.map_err(|error| of_stream(&error, "the header of SASL").mute())?;
    check_header(header)?;
    let body = frame(stream, "the mechanisms of SASL").await?;
    let offered = mechanisms(&body).ok_or_else(|| malformed("the mechanisms of SASL"))?;
    let ours = login.mechanism.mechanism();
    if !offered.iter().any(|offered| offered == ours) {
        let what = format!(
            "it offers SASL by {}, and not by {ours}",
            offered.join(", ")
        );
        return Err(Loss::refused(what, Remedy::see(LOGIN_KEYS)).finally());
    }
    write(stream, &init(ours, &login.response(), host)).await?;
    let body = frame(stream, "the outcome of SASL").await?;
    match outcome(&body).ok_or_else(|| malformed("the outcome of SASL"))? {
        0 => Ok(()),
        1 => {
            let what = format!("the login by {ours} was refused (SASL code 1, auth)");
            Err(Loss::refused(what, Remedy::see(LOGIN_KEYS)).finally())
        }
        code => {
            let what = format!("the peer could not log anybody in (SASL code {code})");
            Err(Loss::refused(
                what,
                Remedy::act("look into the log of the broker"),
            ))
        }
    }
}

fn check_header(header: [u8; 8]) -> Result<(), Loss> {
    if header == HEADER {
        return Ok(());
    }
    if header.starts_with(b"AMQP\x00\x00\x09\x01") {
        let what = "it speaks AMQP 0-9-1 there";
        return Err(Loss::other_protocol(what).with("; enable AMQP 1.0 at the broker"));
    }
    if header.starts_with(b"AMQP") {
        let what = format!("the peer answered without SASL (protocol id {})", header[4]);
        let remedy = Remedy::act("allow SASL at the broker, if only by ANONYMOUS");
        return Err(Loss::refused(what, remedy).finally());
    }
    let what = format!(
        "it answered in bytes of another protocol (`{}`)",
        header.escape_ascii()
    );
    Err(Loss::other_protocol(what))
}

async fn write<S>(stream: &mut S, bytes: &[u8]) -> Result<(), Loss>
where
    S: AsyncWrite + Unpin + ?Sized,
{
    let written = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    written.await.map_err(|error| of_stream(&error, "SASL"))
}

/// Reads the body of one frame.
async fn frame<S>(stream: &mut S, awaited: &str) -> Result<Vec<u8>, Loss>
where
    S: AsyncRead + Unpin + ?Sized,
{
    let lost = |error: std::io::Error| of_stream(&error, awaited);
    let size = stream.read_u32().await.map_err(lost)? as usize;
    if !(FRAME_HEADER..=FRAME_MAX).contains(&size) {
        return Err(malformed(awaited));
    }
    let mut rest = vec![0; size - 4];
    stream.read_exact(&mut rest).await.map_err(lost)?;
    let offset = usize::from(rest[0]) * 4;
    let is_sasl = rest[1] == 1 && (FRAME_HEADER..=size).contains(&offset);
    match is_sasl {
        true => Ok(rest.split_off(offset - 4)),
        false => Err(malformed(awaited)),
    }
}

fn malformed(awaited: &str) -> Loss {
    Loss::other_protocol(format!("it sent something else than {awaited}"))
}

/// The frame that chooses a mechanism.
fn init(mechanism: &str, response: &[u8], host: &str) -> Vec<u8> {
    let mut fields = Vec::new();
    for (small, large, value) in [
        (0xa3, 0xb3, mechanism.as_bytes()),
        (0xa0, 0xb0, response),
        (0xa1, 0xb1, host.as_bytes()),
    ] {
        match u8::try_from(value.len()) {
            Ok(length) => fields.extend([small, length]),
            Err(_) => {
                fields.push(large);
                fields.extend((value.len() as u32).to_be_bytes());
            }
        }
        fields.extend_from_slice(value);
    }
    let mut frame = vec![0; 4];
    frame.extend([2, 1, 0, 0, 0x00, 0x53, INIT, 0xd0]);
    frame.extend((fields.len() as u32 + 4).to_be_bytes());
    frame.extend(3_u32.to_be_bytes());
    frame.extend(fields);
    let size = frame.len() as u32;
    frame[..4].copy_from_slice(&size.to_be_bytes());
    frame
}

/// Reads the names that the peer offers.
fn mechanisms(body: &[u8]) -> Option<Vec<String>> {
    let fields = fields(body, MECHANISMS)?;
    let (code, rest) = fields.split_first()?;
    let one = |symbol: &[u8]| String::from_utf8_lossy(symbol).into_owned();
    match code {
        0xa3 | 0xb3 => symbol(*code, rest).map(|(symbol, _)| vec![one(symbol)]),
        0xe0 => array(rest.get(2..)?, usize::from(*rest.get(1)?)),
        0xf0 => array(rest.get(8..)?, u32_at(rest, 4)? as usize),
        _ => None,
    }
}

fn array(elements: &[u8], count: usize) -> Option<Vec<String>> {
    let (code, mut rest) = elements.split_first()?;
    let mut names = Vec::new();
    for _ in 0..count {
        let (name, after) = symbol(*code, rest)?;
        names.push(String::from_utf8_lossy(name).into_owned());
        rest = after;
    }
    Some(names)
}

/// A symbol of that code, and what follows it.
fn symbol(code: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match code {
        0xa3 => (usize::from(*bytes.first()?), bytes.get(1..)?),
        0xb3 => (u32_at(bytes, 0)? as usize, bytes.get(4..)?),
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// Reads the code of an outcome.
fn outcome(body: &[u8]) -> Option<u8> {
    match fields(body, OUTCOME)? {
        [0x50, code, ..] => Some(*code),
        _ => None,
    }
}

/// The fields of a described list.
fn fields(body: &[u8], wanted: u64) -> Option<&[u8]> {
    let (descriptor, list) = match body {
        [0x00, 0x53, code, rest @ ..] => (u64::from(*code), rest),
        [0x00, 0x80, rest @ ..] => {
            let (code, rest) = rest.split_first_chunk()?;
            (u64::from_be_bytes(*code), rest)
        }
        _ => return None,
    };
    match (descriptor == wanted, list) {
        (true, [0xc0, _, _, fields @ ..]) => Some(fields),
        (true, [0xd0, rest @ ..]) => rest.get(8..),
        _ => None,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mechanisms_of_a_peer_are_read_in_every_form() {
        let several = b"\x00\x53\x40\xc0\x17\x01\xe0\x14\x02\xa3\x05PLAIN\x09ANONYMOUS";
        let offered = Some(vec!["PLAIN".to_owned(), "ANONYMOUS".to_owned()]);
        assert_eq!(mechanisms(several), offered);
        let one = b"\x00\x80\0\0\0\0\0\0\0\x40\xd0\0\0\0\x0b\0\0\0\x01\xa3\x05PLAIN";
        assert_eq!(mechanisms(one), Some(vec!["PLAIN".to_owned()]));
        let large = b"\x00\x53\x40\xc0\x00\x01\xf0\0\0\0\x12\0\0\0\x01\xb3\0\0\0\x05PLAIN";
        assert_eq!(mechanisms(large), Some(vec!["PLAIN".to_owned()]));
        for end in 0..several.len() {
            let _ = mechanisms(&several[..end]);
        }
    }

    #[test]
    fn an_outcome_is_a_code() {
        assert_eq!(outcome(b"\x00\x53\x44\xc0\x03\x01\x50\x01"), Some(1));
        assert_eq!(outcome(b"\x00\x53\x44\x45"), None);
        assert_eq!(outcome(b"\x00\x53\x42\xc0\x03\x01\x50\x01"), None);
    }

    #[test]
    fn plain_sends_user_and_password_behind_zeros() {
        let login = Login {
            mechanism: AmqpLogin::Plain,
            user: Some(Secret::new("u".to_owned())),
            password: Some(Secret::new(b"pw".to_vec())),
        };
        assert_eq!(login.response(), b"\0u\0pw");
        let golden = b"\0\0\0\x24\x02\x01\0\0\0\x53\x41\xd0\0\0\0\x14\0\0\0\x03\xa3\x05PLAIN\xa0\x05\0u\0pw\xa1\x00";
        assert_eq!(init("PLAIN", &login.response(), ""), golden);
    }
}
