//! Devices that speak CoAP, whatever platform they speak to.

use muster_plan::{ClientPlan, CoapSettings, Scheme, SocketUse, StreamKind, StreamPlan};
use muster_protocol::coap::{ClientSettings, Transmission};

use crate::feasibility::{largest, peak};
use crate::view::View;

/// Message ids of a pair of endpoints (RFC 7252 section 3).
const MESSAGE_IDS: f64 = 65_536.0;

/// Reads the devices' settings of CoAP, but for their sockets.
pub(super) fn client(fleet: &View<'_>) -> Option<CoapSettings> {
    let view = fleet.get("client")?.get("coap")?;
    Some(CoapSettings::new(
        transmission(&view)?,
        view.whole("nstart")?,
        fleet.truth("obey-retry-after")?,
    ))
}

fn transmission(view: &View<'_>) -> Option<Transmission> {
    let transmission = Transmission {
        ack_timeout: view.time("ack-timeout")?,
        ack_random_factor: view.factor("ack-random-factor")?,
        max_retransmit: view.whole("max-retransmit")?,
        exchange_lifetime: view.time("exchange-lifetime")?,
        non_lifetime: view.time("non-lifetime")?,
    };
    let wait = transmission.max_transmit_wait();
    if transmission.exchange_lifetime < wait {
        let what = format!(
            "an exchange is over after {}, and its last copy waits until {wait}",
            transmission.exchange_lifetime
        );
        let help = "a longer `exchange-lifetime`, or fewer or shorter waits";
        return view.refuse_at("exchange-lifetime", what, help);
    }
    Some(transmission)
}

/// Deals the links of a fleet that speaks CoAP to sockets, such that message ids last: each may be used once within
/// `EXCHANGE_LIFETIME` (RFC 7252 section 4.4).
///
/// Over DTLS each link has its own ids. Sockets are counted in the same way there, so that a server sees
/// the same number of addresses.
pub(super) fn deal(
    fleet: &View<'_>,
    client: ClientPlan,
    streams: &[StreamPlan],
    (scheme, links): (Scheme, u32),
) -> Option<ClientPlan> {
    let ClientPlan::Coap(settings) = client else {
        return Some(client);
    };
    let lifetime_s = settings.client.transmission.exchange_lifetime.as_secs_f64();
    let ids_s: f64 = streams.iter().map(ids_a_second).sum();
    let ids = ids_s * lifetime_s / f64::from(links);
    let is_shared = fleet.text_of("sockets") == "shared";
    let each = links_of_a_socket(ids);
    if ids > MESSAGE_IDS || is_shared && each == 0 {
        let what = format!(
            "{ids_s:.0} messages a second from {links} sockets use more than the 65536 message ids \
             that each has in {lifetime_s:.0} s"
        );
        let help = "more devices, a lower rate, or a shorter `client.coap.exchange-lifetime`";
        return fleet.refuse_at("streams", what, help);
    }
    if !is_shared {
        return Some(ClientPlan::Coap(settings));
    }
    let links = links.div_ceil(links.div_ceil(each));
    Some(ClientPlan::Coap(settings.sharing(match scheme.is_dtls() {
        true => SocketUse::SharedPort { links },
        false => SocketUse::SharedEndpoint { links },
    })))
}

/// Number of links that may share a socket if each uses `ids` message ids within their lifetime.
///
/// One block of ids is always in use ([`muster_protocol::coap`] counts them in blocks of 256). The number
/// due within a lifetime varies: with random arrivals by its square root, and four of these are left free.
fn links_of_a_socket(ids: f64) -> u32 {
    const BLOCK: f64 = 256.0;
    let usable = MESSAGE_IDS - BLOCK - 4.0 * MESSAGE_IDS.sqrt();
    // No more links than exchanges that may be open at once, however seldom they send.
    let links = if ids > 0.0 { usable / ids } else { usable };
    links.min(usable) as u32
}

/// Message ids that a stream uses in a second, one for each block of a body.
fn ids_a_second(stream: &StreamPlan) -> f64 {
    let block = ClientSettings::default().block_size.bytes() as u32;
    let blocks = largest(&stream.payload).div_ceil(block).max(1);
    // The command that comes for a query may be replied to.
    let replies = u32::from(matches!(stream.kind, StreamKind::CommandQuery { .. }));
    peak(&stream.schedule) * f64::from(blocks + replies)
}
