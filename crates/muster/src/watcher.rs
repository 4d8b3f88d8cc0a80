//! Who watches a run for the user: keeps its records, and shows how it stands.

use std::io::IsTerminal;

use muster_agent::Pulse;
use muster_cluster::{Observer, Standing};
use muster_dashboard::{Dashboard, Live, Plain, Request};
use muster_measure::{Record, WindowDelta};
use muster_model::Micros;

use crate::archive::{Note, encoded};
use crate::folder::Folder;
use crate::live::{Fixed, View};
use crate::outcome;

/// Keeps the records of a run and shows how it stands.
pub(crate) struct Watcher {
    folder: Folder,
    screen: Screen,
    view: View,
    last: Option<Live>,
    has_timeline: bool,
    is_interrupted: bool,
}

enum Screen {
    Quiet,
    Plain(Plain),
    Terminal(Box<Dashboard>),
}

impl Watcher {
    /// A watcher that writes to the folder and, unless told to be quiet, shows a live screen on a
    /// terminal, and elsewhere a line every five seconds.
    pub(crate) fn new(folder: Folder, fixed: Fixed, is_quiet: bool) -> Self {
        let plain = || Screen::Plain(Plain::default());
        let screen = if is_quiet {
            Screen::Quiet
        } else if std::io::stdout().is_terminal() {
            Dashboard::open().map_or_else(
                |_| plain(),
                |dashboard| Screen::Terminal(Box::new(dashboard)),
            )
        } else {
            plain()
        };
        let view = View::new(fixed);
        Self {
            folder,
            screen,
            view,
            last: None,
            has_timeline: false,
            is_interrupted: false,
        }
    }

    /// Gives the terminal back, and the folder; where lines are shown, also how the run stood.
    pub(crate) fn end(self) -> (Folder, Option<Live>) {
        (self.folder, self.last)
    }

    /// In raw mode Ctrl-C is a key: it is passed on as the signal that it stands for. The second
    /// one ends the program at once, so the terminal is given back first.
    fn interrupt(&mut self) {
        if std::mem::replace(&mut self.is_interrupted, true) {
            self.screen = Screen::Quiet;
        }
        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGINT);
    }
}

impl Observer for Watcher {
    fn windows(&mut self, delta: &WindowDelta) -> bool {
        self.view.add(delta);
        self.folder
            .record(&Record::Windows(Box::new(delta.clone())))
    }

    fn pulse(&mut self, agent: usize, pulse: &Pulse) {
        self.folder
            .record(&Record::Health(encoded(&(agent, pulse))));
        self.view.pulse(agent, pulse);
    }

    fn standing(&mut self, standing: &Standing) {
        if !self.has_timeline && standing.timeline.origin < Micros::MAX {
            self.has_timeline = true;
            self.folder
                .record(&Record::Event(encoded(&Note::Timeline(standing.timeline))));
        }
        match &mut self.screen {
            Screen::Quiet => {}
            Screen::Plain(plain) => {
                let live = self.view.live(standing);
                if let Some(line) = plain.line(&live) {
                    outcome::say(&line);
                }
                self.last = Some(live);
            }
            Screen::Terminal(dashboard) => {
                // A terminal that cannot be drawn on is no reason to end the run.
                let _ = dashboard.show(&self.view.live(standing));
                if let Ok(Some(Request::Interrupt)) = dashboard.request() {
                    self.interrupt();
                }
            }
        }
    }
}
