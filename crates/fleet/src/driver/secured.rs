//! DTLS on UDP.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use muster_conduct::directory;
use muster_device::{Route, Session as DeviceSession, Then, connection_id, route};
use muster_model::{LinkId, Micros};
use muster_net::{ConnectError, Io, Key, Written};
use muster_plan::{Credential, FleetPlan, Plan, Scheme};
use muster_platform::Directory;
use muster_protocol::dtls::{
    Certificates, Context, Counts, Crypto, Datagrams, Dtls, Event, Fault, Incoming, Opening, Psk,
    Session, Settings, Timing,
};
use muster_protocol::layer::{Ended, LayerError};
use rustc_hash::FxHashMap;
use zeroize::Zeroizing;

use super::datagrams::send_each;
use super::lines::{Above, DatagramLines, Lines, Read, Who};
use super::wire::remedy;

/// A handshake is given up by its link (`connect.timeout`), and not by itself before that.
const NEVER: Micros = Micros::from_secs(24 * 3_600);

/// Certificates that links without a shared key check and show.
pub struct LinkCertificates {
    /// By whom servers are judged.
    common: Box<dyn Certificates + Send>,
    /// The same for links that show a certificate, by the link's number, in its order.
    own: Vec<(u32, Box<dyn Certificates + Send>)>,
}

/// Hides what it knows of keys.
impl fmt::Debug for LinkCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkCertificates")
            .field("own", &self.own.len())
            .finish_non_exhaustive()
    }
}

impl LinkCertificates {
    /// `common` judges servers for links that show no certificate; `own` are those that do, by their
    /// numbers in the run.
    pub fn new(
        common: Box<dyn Certificates + Send>,
        mut own: Vec<(u32, Box<dyn Certificates + Send>)>,
    ) -> Self {
        own.sort_by_key(|(link, _)| *link);
        Self { common, own }
    }

    /// Certificates that a link checks and shows.
    pub fn of(&self, link: u32) -> &dyn Certificates {
        match self.own.binary_search_by_key(&link, |(link, _)| *link) {
            Ok(at) => &*self.own[at].1,
            Err(_) => &*self.common,
        }
    }
}

/// DTLS on UDP. It holds what all sessions share, and who each link is.
pub struct Secured<C: Crypto> {
    crypto: C,
    settings: Settings,
    certificates: LinkCertificates,
    /// Sessions that links can resume, each its own and no other's. A session is taken out for a
    /// try, so that one that fails is followed by a handshake in full.
    sessions: FxHashMap<u32, Box<Session>>,
    /// Names of servers: link n asks for the one at n modulo their number.
    server_names: Vec<String>,
    plan: Arc<Plan>,
    /// By fleet.
    rosters: Vec<Directory>,
    /// Handshakes and alerts on their way out.
    out: Datagrams,
    name: String,
    identity: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
}

/// Hides what it knows of keys.
impl<C: Crypto> fmt::Debug for Secured<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secured")
            .field("server_names", &self.server_names)
            .finish_non_exhaustive()
    }
}

impl<C: Crypto> Secured<C> {
    /// The links of a plan, by these algorithms and with these certificates.
    pub fn new(plan: Arc<Plan>, crypto: C, certificates: LinkCertificates) -> Self {
        let named = plan.platform.tls.server_name.as_ref();
        let endpoints = plan.platform.endpoints.iter();
        let endpoints = endpoints.filter(|endpoint| endpoint.scheme.is_dtls());
        let server_names = endpoints.map(|endpoint| match named {
            Some(name) => name.clone(),
            None => endpoint.host_name().to_owned(),
        });
        let settings = Settings {
            timing: Timing {
                give_up: NEVER,
                ..Timing::default()
            },
            resumption: plan.platform.tls.resumes(Scheme::Coaps),
            ..Settings::default()
        };
        Self {
            crypto,
            settings,
            certificates,
            sessions: FxHashMap::default(),
            server_names: server_names.collect(),
            rosters: plan
                .fleets
                .iter()
                .map(|it| directory(&plan, it, 0))
                .collect(),
            plan,
            out: Datagrams::new(),
            name: String::new(),
            identity: Vec::new(),
            key: Zeroizing::default(),
        }
    }

    /// Puts what a link shares with the server into the buffers; whether it shares anything.
    fn introduce(&mut self, link: u32) -> bool {
        let has_link = |fleet: &&FleetPlan| link - fleet.first_link.0 < fleet.links;
        let after = |fleet: &&FleetPlan| fleet.first_link.0 <= link;
        let mut fleets = self.plan.fleets.iter().zip(&self.rosters);
        let found = fleets.find(|(fleet, _)| after(fleet) && has_link(fleet));
        let Some((fleet, directory)) = found else {
            return false;
        };
        let Credential::Psk { identity, secret } = &fleet.credential else {
            return false;
        };
        let device = fleet.first_device_of(LinkId(link));
        fleet.render_link_name(LinkId(link), directory, &mut self.name);
        directory.render_octets(identity, device, &self.name, &mut self.identity);
        directory.render_octets(secret.expose(), device, &self.name, &mut self.key);
        true
    }
}

/// One link's end.
#[derive(Debug)]
pub struct SecuredLine<D> {
    dtls: D,
    /// The link's number in the run.
    link: u32,
    /// True if it knows the server by a key that they share, and not by a certificate.
    has_key: bool,
}

impl<C: Crypto> Default for SecuredLine<Dtls<C>> {
    fn default() -> Self {
        Self {
            dtls: Dtls::default(),
            link: 0,
            has_key: false,
        }
    }
}

/// Context that a session may use: all but its own state.
macro_rules! context {
    ($lines:expr, $link:expr, $has_key:expr) => {
        &mut Context {
            crypto: &mut $lines.crypto,
            settings: &$lines.settings,
            certificates: (!$has_key).then(|| $lines.certificates.of($link)),
            keys: None,
            sessions: None,
        }
    };
}

impl<C: Crypto> Lines for Secured<C> {
    type Line = SecuredLine<Dtls<C>>;

    fn connect(io: &mut Io, to: SocketAddr, source: Option<IpAddr>) -> Result<Key, ConnectError> {
        io.connect_udp(to, source)
    }

    fn open(
        &mut self,
        who: Who,
        now: Micros,
        _out: &mut Vec<u8>,
    ) -> Result<SecuredLine<Dtls<C>>, LayerError> {
        let has_key = self.introduce(who.link);
        let server_name = &self.server_names[who.link as usize % self.server_names.len()];
        let id = who.slot.map(|slot| connection_id(slot.index));
        let psk = Psk {
            identity: &self.identity,
            key: &self.key,
        };
        let opening = Opening {
            psk: has_key.then_some(psk),
            server_name: (!has_key).then_some(server_name),
            connection_id: id.as_ref().map(<[u8; 4]>::as_slice),
            needs_connection_id: id.is_some(),
            session: self.sessions.remove(&who.link).map(|session| *session),
        };
        let context = context!(self, who.link, has_key);
        let dtls = Dtls::client(now, &opening, context, &mut self.out);
        Ok(SecuredLine {
            dtls,
            link: who.link,
            has_key,
        })
    }

    #[inline]
    fn is_open(line: &SecuredLine<Dtls<C>>) -> bool {
        line.dtls.is_open()
    }

    #[inline]
    fn read<P: DeviceSession>(
        &mut self,
        line: &mut SecuredLine<Dtls<C>>,
        bytes: &mut [u8],
        above: &mut Above<'_, P>,
    ) -> Read {
        let used = bytes.len();
        let mut read = Read {
            used,
            then: Then::Stay,
            end: None,
        };
        let mut incoming = Incoming::new(bytes);
        while read.then == Then::Stay {
            let context = context!(self, line.link, line.has_key);
            let event = line
                .dtls
                .poll(above.now, context, &mut incoming, &mut self.out);
            let Some(event) = event else { break };
            match event {
                Event::Connected(_) => {
                    let session = line.dtls.take_session();
                    let sessions = &mut self.sessions;
                    session.map(|session| sessions.insert(line.link, Box::new(session)));
                    above.secured();
                    above.greet();
                }
                Event::Data(plain) => {
                    let from = above.out.len();
                    read.then = above.receive(plain).1;
                    Self::wrap(line, above.out, from);
                }
                Event::Closed => read.end = Some(Ended::Closed(None)),
                Event::Failed(fault) => read.end = Some(Ended::Failed(LayerError::Dtls(fault))),
            }
        }
        read
    }

    /// Seals what was appended; what cannot be sealed is dropped, and is as lost as on the way.
    #[inline]
    fn wrap(line: &mut SecuredLine<Dtls<C>>, out: &mut Vec<u8>, from: usize) {
        if out.len() > from {
            let _ = line.dtls.wrap(out, from);
        }
    }

    fn close(&mut self, line: &mut SecuredLine<Dtls<C>>, _out: &mut Vec<u8>) {
        line.dtls.close(&mut self.out);
    }

    #[inline]
    fn deadline(line: &SecuredLine<Dtls<C>>) -> Option<Micros> {
        line.dtls.deadline()
    }

    fn expire(&mut self, line: &mut SecuredLine<Dtls<C>>, now: Micros) -> Option<Ended> {
        let context = context!(self, line.link, line.has_key);
        match line.dtls.expire(now, context, &mut self.out)? {
            Event::Failed(fault) => Some(Ended::Failed(LayerError::Dtls(fault))),
            Event::Closed => Some(Ended::Closed(None)),
            Event::Connected(_) | Event::Data(_) => None,
        }
    }

    fn silence() -> Option<LayerError> {
        Some(LayerError::Dtls(Fault::TimedOut))
    }

    fn remedy(&self, error: LayerError) -> String {
        match error {
            LayerError::Dtls(fault) => remedy(fault, &self.plan.platform),
            LayerError::Tls(_) | LayerError::WebSocket(_) => String::new(),
        }
    }

    fn proof(&mut self, line: &SecuredLine<Dtls<C>>) -> Option<String> {
        if line.has_key {
            let is_known = self.introduce(line.link);
            return is_known
                .then(|| format!("identity `{}`", String::from_utf8_lossy(&self.identity)));
        }
        let certificates = self.certificates.of(line.link);
        let subject = certificates.identity(certificates.chain().first()?)?;
        Some(match String::from_utf8_lossy(&subject) {
            none if none.is_empty() => "certificate without a subject".to_owned(),
            subject => format!("certificate of `{subject}`"),
        })
    }

    fn counts(line: &SecuredLine<Dtls<C>>) -> Counts {
        line.dtls.counts()
    }
}

impl<C: Crypto> DatagramLines for Secured<C> {
    #[inline]
    fn route(datagram: &[u8]) -> Option<Route> {
        Some(route(datagram))
    }

    #[inline]
    fn flush(&mut self, io: &mut Io, key: Key, gathers: bool) -> Written {
        if self.out.is_empty() {
            return Written::Whole;
        }
        let sent = send_each(io, key, gathers, self.out.iter());
        self.out.clear();
        sent
    }
}
