//! The shards of one loop: one for each protocol that the plan's fleets speak.
//!
//! It routes the events of sockets and timers to the driver they belong to, passes orders on to all
//! drivers, and sends their records to the conductor as one dispatch.

use muster_conduct::{DISPATCH_EVERY, Diagnostic, Dispatch, FactWriter, Order};
use muster_device::{Session, SharedSockets};
use muster_model::Micros;
use muster_net::{Closed, Handler, Io, Key, ListenerId, Loop, LoopConfig, Mailbox, WaitsOf};

use crate::classes::{ShardError, ShardSpec};
use crate::driver::{DatagramLines, DatagramSockets, Driver, Lines, Sockets, StreamSockets};
use crate::link_driver::LinkDriver;
use crate::tags::{DRIVERS_MAX, place_of};

/// Makes the driver at a place of a loop, on the thread of the loop.
pub type MakeDriver =
    Box<dyn FnOnce(&ShardSpec, usize) -> Result<Box<dyn LinkDriver>, ShardError> + Send>;

/// Returns the maker of the driver of the fleets that speak `P` over streams of bytes. `lines` makes what
/// lies between their sockets and sessions; `writer` receives every fact.
pub fn stream_driver<P: Session + 'static, L: Lines + 'static>(
    lines: impl FnOnce(&ShardSpec) -> L + Send + 'static,
    writer: Option<Box<dyn FactWriter>>,
) -> MakeDriver {
    driver::<P, L, StreamSockets>(lines, writer)
}

/// Returns the maker of the driver of the fleets that speak `P` in datagrams.
pub fn datagram_driver<P: SharedSockets + 'static, L: DatagramLines + 'static>(
    lines: impl FnOnce(&ShardSpec) -> L + Send + 'static,
    writer: Option<Box<dyn FactWriter>>,
) -> MakeDriver {
    driver::<P, L, DatagramSockets<P::Key>>(lines, writer)
}

fn driver<P: Session + 'static, L: Lines + 'static, C: Sockets<P, L> + 'static>(
    lines: impl FnOnce(&ShardSpec) -> L + Send + 'static,
    writer: Option<Box<dyn FactWriter>>,
) -> MakeDriver {
    Box::new(move |spec, place| {
        let driver = Driver::<P, L, C>::new(spec, place, lines(spec), writer)?;
        Ok(Box::new(driver))
    })
}

/// The shards of a loop.
#[derive(Debug)]
pub struct Shards<D: ?Sized = dyn LinkDriver> {
    pub(crate) drivers: Vec<Box<D>>,
    mailbox: Mailbox<Order, Box<Dispatch>>,
    next_dispatch: Micros,
    /// Diagnostics of the next dispatch that are no driver's.
    diagnostics: Vec<Diagnostic>,
    is_over: bool,
}

/// Makes the shards of a thread on their event loop, to be run there. Orders are read when the loop's
/// waker is called.
///
/// # Errors
/// [`ShardError`] if the plan cannot be placed or the loop cannot start.
pub fn shard_loop(
    spec: &ShardSpec,
    drivers: Vec<MakeDriver>,
    mailbox: Mailbox<Order, Box<Dispatch>>,
) -> Result<Loop<Shards>, ShardError> {
    let made = drivers.into_iter().enumerate();
    let made = made.map(|(place, make)| make(spec, place));
    loop_of(spec, made.collect::<Result<_, _>>()?, mailbox)
}

/// The loop of drivers that are made.
pub(crate) fn loop_of<D: LinkDriver + ?Sized>(
    spec: &ShardSpec,
    drivers: Vec<Box<D>>,
    mailbox: Mailbox<Order, Box<Dispatch>>,
) -> Result<Loop<Shards<D>>, ShardError> {
    assert!(drivers.len() <= DRIVERS_MAX, "one driver a protocol");
    let shards = Shards {
        drivers,
        mailbox,
        next_dispatch: Micros::ZERO,
        diagnostics: Vec::new(),
        is_over: false,
    };
    let config = LoopConfig {
        buffers_max: spec.trial.buffers,
        ..LoopConfig::default()
    };
    let config = config.with_packets_of(spec.plan.receive_limit());
    let mut event_loop = Loop::new(spec.clock, &config, shards)?;
    event_loop.parts().1.watch_cpu_wait(WaitsOf {
        gateways: spec.gateways.clone(),
        library: None,
    });
    Ok(event_loop)
}

impl<D: LinkDriver + ?Sized> Handler for Shards<D> {
    fn turn_begins(&mut self, io: &mut Io) {
        self.drivers.iter_mut().for_each(|it| it.turn_begins(io));
    }

    #[inline]
    fn opened(&mut self, io: &mut Io, key: Key) {
        self.driver(io.tag(key)).opened(io, key);
    }

    fn accepted(&mut self, io: &mut Io, key: Key, _listener: ListenerId) {
        // A shard opens no listener.
        io.close(key);
    }

    #[inline]
    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        self.driver(io.tag(key)).received(io, key, bytes)
    }

    #[inline]
    fn flushed(&mut self, io: &mut Io, key: Key) {
        self.driver(io.tag(key)).flushed(io, key);
    }

    #[inline]
    fn closed(&mut self, io: &mut Io, key: Key, why: Closed) {
        self.driver(io.tag(key)).closed(io, key, why);
    }

    #[inline]
    fn timer(&mut self, io: &mut Io, token: u64) {
        self.driver(token as u32).timer(io, token);
    }

    fn woken(&mut self, io: &mut Io) {
        while let Some(order) = self.mailbox.next_order() {
            self.obey(io, order);
        }
    }

    fn turn(&mut self, io: &mut Io) -> Option<Micros> {
        if self.is_over {
            return None;
        }
        let turns = self.drivers.iter_mut().filter_map(|it| it.turn(io));
        let next = turns.min();
        let now = io.now();
        if now >= self.next_dispatch {
            self.dispatch(io, now);
        }
        Some(next.map_or(self.next_dispatch, |next| next.min(self.next_dispatch)))
    }
}

impl<D: LinkDriver + ?Sized> Shards<D> {
    /// The driver that a tag belongs to.
    #[inline]
    fn driver(&mut self, tag: u32) -> &mut D {
        &mut self.drivers[place_of(tag)]
    }

    pub(crate) fn obey(&mut self, io: &mut Io, order: Order) {
        for driver in &mut self.drivers {
            driver.obey(io, order);
        }
        if let Order::Finish = order {
            let now = io.fresh_now();
            self.dispatch(io, now);
            let last = self.united(|driver| driver.hand_over(io));
            let _ = self.mailbox.post(last);
            self.is_over = true;
            io.stop();
        }
    }

    fn dispatch(&mut self, io: &mut Io, now: Micros) {
        self.next_dispatch = now + DISPATCH_EVERY;
        let mut dispatch = self.united(|driver| driver.dispatch(io, now));
        dispatch.diagnostics.append(&mut self.diagnostics);
        if !self.mailbox.post(dispatch) {
            self.diagnostics.push(Diagnostic::unheard());
        }
    }

    /// Unites the reports of all drivers.
    fn united(&mut self, report: impl FnMut(&mut Box<D>) -> Box<Dispatch>) -> Box<Dispatch> {
        let all = self.drivers.iter_mut().map(report);
        let united = all.reduce(|mut sum, other| {
            sum.merge(*other);
            sum
        });
        united.unwrap_or_default()
    }
}
