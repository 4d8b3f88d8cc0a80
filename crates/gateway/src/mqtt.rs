//! The end of MQTT: bytes between the sockets of links and the broker.

pub(crate) mod acknowledging;
mod objecting;
mod publishing;
pub(crate) mod request;

use muster_net::{Key, ListenerId};
use muster_platform::Protocol;
use muster_protocol::mqtt::{Input, ServerEvent, ServerLimits};
use muster_transport::Servers;

use self::publishing::Received;
use crate::broker::links::Link;
use crate::config::GatewayConfig;
use crate::end::{End, Factory, Work};
use crate::listen_addresses::ListenAt;
use crate::start_error::StartError;
use crate::thread::Ctx;
use crate::uplink::{Answer, Asker, Request, Timer};

/// The end of MQTT in one thread, for devices and the application; the broker has its links.
#[derive(Debug)]
struct Mqtt {
    limits: ServerLimits,
    layers: Servers,
}

/// Reads the certificates that the ends of all threads share.
///
/// # Errors
/// [`StartError`] if a certificate or key cannot be used.
pub(crate) fn prepare(config: &GatewayConfig) -> Result<Factory, StartError> {
    let layers = Servers::new(&config.layers())?;
    Ok(Box::new(move |config| {
        Box::new(Mqtt {
            limits: ServerLimits {
                receive_maximum: config.receive_maximum.max(1),
                maximum_packet_size: config.max_packet(),
                ..ServerLimits::default()
            },
            layers: layers.clone(),
        })
    }))
}

const fn asker(request: Request) -> Asker {
    let protocol = Protocol::Mqtt;
    Asker { protocol, request }
}

impl End for Mqtt {
    fn listen(&mut self, ctx: &mut Ctx<'_>, at: &mut ListenAt<'_>) -> Result<(), StartError> {
        ctx.listen(("mqtt", Protocol::Mqtt), at)?;
        Ok(())
    }

    fn accepted(&mut self, work: &mut Work<'_>, key: Key, _at: ListenerId) {
        let link = Link::new(key, &self.limits, self.layers.layer());
        work.router.broker().links().add(&mut work.ctx, link);
    }

    fn received(&mut self, work: &mut Work<'_>, key: Key, bytes: &mut [u8]) -> usize {
        let used = read(work, key, bytes);
        let links = work.router.broker().links();
        links.send(&mut work.ctx, key);
        links.throttle(&mut work.ctx, key);
        used
    }

    fn flushed(&mut self, work: &mut Work<'_>, key: Key) {
        let (ctx, broker) = (&mut work.ctx, work.router.broker());
        if broker.links().flushed(ctx, key) {
            broker.drain(ctx, key);
            broker.links().throttle(ctx, key);
        }
    }

    fn closed(&mut self, work: &mut Work<'_>, key: Key) {
        work.router.broker().end(&mut work.ctx, key, true);
    }

    fn due(&mut self, work: &mut Work<'_>, timer: Timer) {
        match timer {
            Timer::Link(key) => work.router.broker().check(&mut work.ctx, key),
            Timer::Lifetime(key) => work.router.broker().end(&mut work.ctx, key, true),
            Timer::Batch(key) => acknowledging::write_batch(work, key),
            Timer::Peer(_) | Timer::Query(_) => {}
        }
    }

    fn respond(&mut self, work: &mut Work<'_>, request: Request, answer: Answer) {
        match request {
            Request::Publish(publish) => publishing::respond(work, publish, answer),
            Request::Refusable(refusable) => {
                publishing::respond_to_device(work, &refusable, answer);
            }
            Request::Application(asked) => acknowledging::respond(work, asked, answer),
            Request::Coap(_) | Request::Http(_) => {}
        }
    }

    fn close_share(&mut self, work: &mut Work<'_>, seed: u64, share: f64) {
        work.router.broker().close_share(&mut work.ctx, seed, share);
    }

    fn turn(&mut self, work: &mut Work<'_>, is_last: bool) {
        if is_last {
            return;
        }
        let (ctx, broker) = (&mut work.ctx, work.router.broker());
        for exhausted in broker.links().flush(ctx) {
            broker.end(ctx, exhausted, true);
        }
    }
}

/// Takes bytes through a link's layer to its session: the number that is used up.
fn read(work: &mut Work<'_>, key: Key, bytes: &mut [u8]) -> usize {
    let ctx = &mut work.ctx;
    let Some(link) = work.router.broker().links().get(key) else {
        return bytes.len();
    };
    let fed = link.wire.receive(ctx, bytes);
    let mut input = Input::new(&bytes[..fed.plain]);
    pump(work, key, &mut input);
    let taken = input.consumed();
    let (ctx, broker) = (&mut work.ctx, work.router.broker());
    let Some(link) = broker.links().get(key) else {
        return bytes.len();
    };
    let used = link.wire.keep(bytes, &fed, taken);
    // A link that is not read yet has more to say than its last word.
    if link.wire.has_ended && !ctx.is_paused(key) {
        broker.end(ctx, key, true);
    }
    used
}

/// Takes packets as long as the link may be read.
fn pump(work: &mut Work<'_>, key: Key, input: &mut Input<'_>) {
    while !work.ctx.is_paused(key)
        && let Some(link) = work.router.broker().links().get(key)
        && let Some(event) = link.server.poll(work.ctx.now(), input, &mut link.wire.out)
    {
        let ServerEvent::Publish(incoming) = event else {
            work.router.broker().handle(&mut work.ctx, key, &event);
            continue;
        };
        if let Some(received) = Received::new(work, key, &incoming) {
            received.take(work);
        }
    }
}
