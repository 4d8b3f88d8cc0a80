//! The live view, on a separate thread: a terminal that stands still, or a pipe that nobody
//! reads, holds up no run.

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use muster_dashboard::{Brief, Dashboard, Plain, Request};
use muster_model::Micros;
use muster_result::Live;

use crate::outcome;

/// The interval at which keys are read while there is nothing to draw.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The longest wait of the end of a run for a screen that is being drawn.
const END_MAX: Duration = Duration::from_secs(2);

/// The place of the latest view, in which a newer view takes the
/// place of one that was not drawn yet.
#[derive(Debug, Default)]
struct Place {
    next: Mutex<Next>,
    is_new: Condvar,
}

#[derive(Debug, Default)]
struct Next {
    live: Option<Live>,
    is_over: bool,
}

/// A screen that is drawn elsewhere.
#[derive(Debug)]
pub(crate) struct Screen {
    place: Arc<Place>,
    /// Is closed when the thread has ended.
    ended: Receiver<()>,
}

impl Screen {
    /// A short line at the interval that the user names; without one a live screen on a terminal, and elsewhere
    /// a line every five seconds. None if the system gives no thread for it.
    pub(crate) fn open(every: Option<Micros>) -> Option<Self> {
        if let Some(every) = every {
            return Self::start(move || brief_lines(every));
        }
        if !std::io::stdout().is_terminal() {
            return Self::start(lines);
        }
        Self::start(|| match Dashboard::open() {
            Ok(dashboard) => on_terminal(dashboard),
            Err(_) => lines(),
        })
    }

    /// Shows how a run stands, as soon as what came before is drawn. Never waits.
    pub(crate) fn show(&self, live: Live) {
        self.place.lock().live = Some(live);
        self.place.is_new.notify_one();
    }

    /// Ends the screen and gives the terminal back, unless that stands still.
    pub(crate) fn end(self) {
        self.place.lock().is_over = true;
        self.place.is_new.notify_one();
        let _ = self.ended.recv_timeout(END_MAX);
    }

    /// Starts a thread that draws with what `make` returns: with each new view, and without a view from time
    /// to time.
    fn start(make: impl FnOnce() -> Draw + Send + 'static) -> Option<Self> {
        let place = Arc::new(Place::default());
        let (end, ended) = sync_channel::<()>(0);
        let theirs = Arc::clone(&place);
        let draw = move || {
            let _end = end;
            theirs.serve(make());
        };
        let thread = thread::Builder::new().name("screen".to_owned());
        thread.spawn(draw).ok()?;
        Some(Self { place, ended })
    }
}

type Draw = Box<dyn FnMut(Option<&Live>)>;

impl Place {
    fn lock(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws until the end is asked for, the last view too.
    fn serve(&self, mut draw: Draw) {
        loop {
            let waiting = self
                .is_new
                .wait_timeout_while(self.lock(), LOOK_EVERY, |next| {
                    next.live.is_none() && !next.is_over
                });
            let (mut next, _) = waiting.unwrap_or_else(PoisonError::into_inner);
            let (live, is_over) = (next.live.take(), next.is_over);
            drop(next);
            draw(live.as_ref());
            if is_over {
                return;
            }
        }
    }
}

fn brief_lines(every: Micros) -> Draw {
    let mut brief = Brief::new(every);
    Box::new(move |live| {
        if let Some(line) = live.and_then(|live| brief.line(live)) {
            outcome::say(&line);
        }
    })
}

fn lines() -> Draw {
    let mut plain = Plain::default();
    Box::new(move |live| {
        if let Some(line) = live.and_then(|live| plain.line(live)) {
            outcome::say(&line);
        }
    })
}

/// In raw mode Ctrl-C is a key: it is passed on as the signal that it stands for. The second one
/// ends the program at once, so the terminal is given back first.
fn on_terminal(dashboard: Dashboard) -> Draw {
    let mut dashboard = Some(dashboard);
    let mut is_interrupted = false;
    Box::new(move |live| {
        let Some(open) = &mut dashboard else { return };
        if let Some(live) = live {
            // A terminal that cannot be drawn on is no reason to end the run.
            let _ = open.show(live);
        }
        if let Ok(Some(Request::Interrupt)) = open.request() {
            if std::mem::replace(&mut is_interrupted, true) {
                dashboard = None;
            }
            let _ = signal_hook::low_level::raise(signal_hook::consts::SIGINT);
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// A view in which so many messages were sent.
    fn view(sent: u64) -> Live {
        let mut live = Live::default();
        live.messages.sent = sent;
        live
    }

    #[test]
    fn a_screen_that_stands_still_holds_nobody_up_and_then_shows_the_latest() {
        let (drawn, shown) = channel();
        let (release, stands_still) = sync_channel::<()>(0);
        let screen = Screen::start(move || {
            Box::new(move |live| {
                if let Some(live) = live {
                    let _ = drawn.send(live.messages.sent);
                    let _ = stands_still.recv();
                }
            })
        });
        let screen = screen.expect("a thread");
        screen.show(view(1));
        assert_eq!(shown.recv(), Ok(1));
        // It stands still in its first view, and whoever shows more does not wait for it.
        (2..=9).for_each(|sent| screen.show(view(sent)));
        drop(release);
        screen.end();
        assert_eq!(shown.iter().collect::<Vec<_>>(), [9]);
    }
}
