//! Extensions of the two hellos (RFC 5246 section 7.4.1.4).

use super::Fault;
use super::wire::{Cursor, codes, put_u16, put_vec8, put_vec16};

/// server_name (RFC 6066 section 3).
const SERVER_NAME: u16 = 0;
/// supported_groups (RFC 8422 section 5.1.1).
const GROUPS: u16 = 10;
/// ec_point_formats (RFC 8422 section 5.1.2).
const POINT_FORMATS: u16 = 11;
/// signature_algorithms (RFC 5246 section 7.4.1.4.1).
const SIGNATURES: u16 = 13;
/// extended_master_secret (RFC 7627 section 5.1).
const EXTENDED_MASTER_SECRET: u16 = 23;
/// session_ticket (RFC 5077 section 3.2).
const TICKET: u16 = 35;
/// connection_id (RFC 9146 section 3).
const CONNECTION_ID: u16 = 54;
/// renegotiation_info (RFC 5746 section 3.2).
const RENEGOTIATION: u16 = 0xff01;

/// Scheme of our P-256 signatures: ecdsa_secp256r1_sha256.
pub(super) const ECDSA_P256_SHA256: u16 = 0x0403;
/// Schemes accepted from a peer: ECDSA with SHA-256 and SHA-384; RSA with either, since authorities
/// have such keys above leaves of P-256.
pub(super) const SIGNATURE_SCHEMES: [u16; 4] = [ECDSA_P256_SHA256, 0x0503, 0x0401, 0x0501];
/// Most extensions that are looked at.
const EXTENSIONS_MAX: usize = 64;

/// The extensions of either hello that mean something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Extensions<'a> {
    pub(super) server_name: Option<&'a str>,
    /// Codes of groups.
    pub(super) groups: Option<&'a [u8]>,
    pub(super) point_formats: bool,
    /// Codes of signature schemes.
    pub(super) signatures: Option<&'a [u8]>,
    pub(super) extended_master_secret: bool,
    /// A ticket, or that one is wanted or will come.
    pub(super) ticket: Option<&'a [u8]>,
    /// The connection id that the sender wants to see in what it receives.
    pub(super) connection_id: Option<&'a [u8]>,
    pub(super) renegotiation: bool,
    pub(super) has_other: bool,
}

impl<'a> Extensions<'a> {
    /// Reads what is left of a hello: no extensions at all, or a list of them.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
        let mut this = Self::default();
        if cursor.is_empty() {
            return Ok(this);
        }
        let mut list = Cursor::new(cursor.vec16()?);
        let mut seen = [0; EXTENSIONS_MAX];
        let mut count = 0;
        while !list.is_empty() {
            let kind = list.u16()?;
            let body = list.vec16()?;
            // The same one twice is not allowed (RFC 5246 section 7.4.1.4).
            if seen[..count].contains(&kind) {
                return Err(Fault::Malformed);
            }
            *seen.get_mut(count).ok_or(Fault::TooLong)? = kind;
            count += 1;
            this.add(kind, body)?;
        }
        Ok(this)
    }

    fn add(&mut self, kind: u16, body: &'a [u8]) -> Result<(), Fault> {
        let mut cursor = Cursor::new(body);
        match kind {
            SERVER_NAME => {
                self.server_name = server_name(cursor)?;
                return Ok(());
            }
            GROUPS => self.groups = Some(list_of_codes(cursor.vec16()?)?),
            POINT_FORMATS => {
                // Uncompressed points must be among them (RFC 8422 section 5.1.2).
                if !cursor.vec8()?.contains(&0) {
                    return Err(Fault::Illegal);
                }
                self.point_formats = true;
            }
            SIGNATURES => self.signatures = Some(list_of_codes(cursor.vec16()?)?),
            EXTENDED_MASTER_SECRET => self.extended_master_secret = true,
            TICKET => {
                self.ticket = Some(body);
                return Ok(());
            }
            CONNECTION_ID => self.connection_id = Some(cursor.vec8()?),
            RENEGOTIATION => {
                // There is no earlier handshake that it could name (RFC 5746 section 3.4).
                if !cursor.vec8()?.is_empty() {
                    return Err(Fault::NothingInCommon);
                }
                self.renegotiation = true;
            }
            _ => {
                self.has_other = true;
                return Ok(());
            }
        }
        cursor.end()
    }

    /// Appends a ClientHello's or ServerHello's, those that are there.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let at = out.len();
        put_vec16(out, |out| self.put_list(out));
        if out.len() == at + 2 {
            // A hello without extensions has not even their length.
            out.truncate(at);
        }
    }

    fn put_list(&self, out: &mut Vec<u8>) {
        if let Some(name) = self.server_name {
            put(out, SERVER_NAME, |out| {
                put_vec16(out, |out| {
                    // host_name.
                    out.push(0);
                    put_vec16(out, |out| out.extend_from_slice(name.as_bytes()));
                });
            });
        }
        for (kind, list) in [(GROUPS, self.groups), (SIGNATURES, self.signatures)] {
            if let Some(list) = list {
                put(out, kind, |out| {
                    put_vec16(out, |out| out.extend_from_slice(list));
                });
            }
        }
        if self.point_formats {
            put(out, POINT_FORMATS, |out| put_vec8(out, &[0]));
        }
        if self.extended_master_secret {
            put(out, EXTENDED_MASTER_SECRET, |_| {});
        }
        if let Some(ticket) = self.ticket {
            put(out, TICKET, |out| out.extend_from_slice(ticket));
        }
        if let Some(id) = self.connection_id {
            put(out, CONNECTION_ID, |out| put_vec8(out, id));
        }
        if self.renegotiation {
            put(out, RENEGOTIATION, |out| put_vec8(out, &[]));
        }
    }
}

fn put(out: &mut Vec<u8>, kind: u16, body: impl FnOnce(&mut Vec<u8>)) {
    put_u16(out, kind);
    put_vec16(out, body);
}

fn list_of_codes(list: &[u8]) -> Result<&[u8], Fault> {
    if list.is_empty() {
        return Err(Fault::Malformed);
    }
    codes(list).map(|_| list)
}

/// The host's name of a client's list; a server answers with an empty body.
fn server_name(mut cursor: Cursor<'_>) -> Result<Option<&str>, Fault> {
    if cursor.is_empty() {
        return Ok(None);
    }
    let mut list = Cursor::new(cursor.vec16()?);
    cursor.end()?;
    let kind = list.u8()?;
    let name = list.vec16()?;
    if kind != 0 {
        return Ok(None);
    }
    std::str::from_utf8(name)
        .map(Some)
        .map_err(|_| Fault::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_read_as_they_were_written() {
        let extensions = Extensions {
            server_name: Some("broker.example"),
            groups: Some(&[0, 23]),
            point_formats: true,
            signatures: Some(&[4, 3]),
            extended_master_secret: true,
            ticket: Some(b"ticket"),
            connection_id: Some(b"id"),
            renegotiation: true,
            has_other: false,
        };
        let mut out = Vec::new();
        extensions.put(&mut out);
        assert_eq!(Extensions::read(&mut Cursor::new(&out)), Ok(extensions));
    }

    #[test]
    fn no_extensions_are_no_bytes() {
        let mut out = Vec::new();
        Extensions::default().put(&mut out);
        assert!(out.is_empty());
        let read = Extensions::read(&mut Cursor::new(&out));
        assert_eq!(read, Ok(Extensions::default()));
    }

    #[test]
    fn rfc_5246_section_7_4_1_4_the_same_extension_twice_is_malformed() {
        let twice = [0, 8, 0, 23, 0, 0, 0, 23, 0, 0];
        let read = Extensions::read(&mut Cursor::new(&twice));
        assert_eq!(read, Err(Fault::Malformed));
    }

    #[test]
    fn rfc_5746_section_3_4_a_renegotiation_is_refused() {
        let renegotiated = [0, 6, 0xff, 1, 0, 2, 1, 9];
        let read = Extensions::read(&mut Cursor::new(&renegotiated));
        assert_eq!(read, Err(Fault::NothingInCommon));
    }
}
