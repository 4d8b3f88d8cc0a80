//! The observer of a run for the user: keeps its records, and shows its state.

use std::io::IsTerminal;

use muster_cluster::Observer;
use muster_conduct::{ProcessSample, Standing};
use muster_measure::{Record, WindowDelta};
use muster_model::Micros;
use muster_result::{Fixed, Live, Note, View, encoded};

use crate::args::RunArgs;
use crate::folder::Folder;
use crate::screen::Screen;

/// Keeps the records of a run and shows how it stands.
pub(crate) struct Watcher {
    folder: Folder,
    screen: Option<Screen>,
    shows_lines: bool,
    view: View,
    last: Option<Live>,
    has_timeline: bool,
}

impl Watcher {
    /// A watcher that writes to the folder. Without `--quiet` it shows the state of the run, with `--every`
    /// in short lines.
    pub(crate) fn new(folder: Folder, fixed: Fixed, args: &RunArgs) -> Self {
        let screen = (!args.quiet).then(|| Screen::open(args.every)).flatten();
        Self {
            folder,
            shows_lines: args.every.is_some() || !std::io::stdout().is_terminal(),
            screen,
            view: View::new(fixed),
            last: None,
            has_timeline: false,
        }
    }

    /// Gives the terminal back, and the folder; where lines are shown, also how the run stood.
    pub(crate) fn end(self) -> (Folder, Option<Live>) {
        if let Some(screen) = self.screen {
            screen.end();
        }
        let mut last = self.last.filter(|_| self.shows_lines);
        if let Some(live) = &mut last {
            // The last windows have come since.
            let down = live.links.wanted.saturating_sub(live.links.up);
            live.links.failures = self.view.failing(down);
        }
        (self.folder, last)
    }
}

impl Observer for Watcher {
    fn windows(&mut self, delta: &WindowDelta) -> bool {
        self.view.add(delta);
        self.folder
            .record(&Record::Windows(Box::new(delta.clone())))
    }

    fn process_sample(&mut self, agent: usize, sample: &ProcessSample) {
        self.folder
            .record(&Record::Health(encoded(&(agent, sample))));
        self.view.process_sample(agent, sample);
    }

    fn standing(&mut self, standing: &Standing) {
        if !self.has_timeline && standing.timeline.origin < Micros::MAX {
            self.has_timeline = true;
            self.folder
                .record(&Record::Event(encoded(&Note::Timeline(standing.timeline))));
        }
        if let Some(screen) = &self.screen {
            let live = self.view.live(standing);
            self.last = Some(live.clone());
            screen.show(live);
        }
    }
}
