//! The observer of a run for the user: keeps its records, shows its state, and exports its figures.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use muster_cluster::Observer;
use muster_conduct::{Delivery, Incidents, ProcessSample, Refused, Standing, Steer};
use muster_measure::{Record, WindowDelta};
use muster_metrics::Exporter;
use muster_model::Micros;
use muster_provision::Registrar;
use muster_result::{Fixed, Live, Note, UsageNote, View, encoded, event_of, event_of_hook};

use crate::args::RunArgs;
use crate::folder::Folder;
use crate::meanwhile::Meanwhile;
use crate::screen::Screen;
use crate::steering::{Steered, Steering};

/// Keeps the records of a run and shows how it stands.
pub(crate) struct Watcher {
    folder: Folder,
    screen: Option<Screen>,
    shows_lines: bool,
    exporter: Option<Exporter>,
    view: View,
    last: Option<Live>,
    has_timeline: bool,
    /// Registers those that the platform refuses; none where the scenario does not want it.
    pub(crate) registrar: Option<Arc<Registrar>>,
    /// Decides on the load; none where it is planned.
    pub(crate) steering: Option<Steering>,
    /// Samples of the target and hooks; none before and after the load.
    pub(crate) meanwhile: Option<Meanwhile>,
}

impl Watcher {
    /// A watcher that writes to the folder. Without `--quiet` it shows the state of the run, with `--every`
    /// in short lines.
    pub(crate) fn new(
        folder: Folder,
        fixed: Fixed,
        exporter: Option<Exporter>,
        args: &RunArgs,
    ) -> Self {
        let screen = (!args.quiet).then(|| Screen::open(args.every)).flatten();
        Self {
            folder,
            shows_lines: args.every.is_some() || !std::io::stdout().is_terminal(),
            screen,
            exporter,
            view: View::new(fixed),
            last: None,
            has_timeline: false,
            registrar: None,
            steering: None,
            meanwhile: None,
        }
    }

    /// Ends sampling, hooks and steering, whose decisions are returned: the target may end from now on. Hooks after the
    /// load may reset it, so that all that is read or removed there comes before.
    pub(crate) fn end_meanwhile(&mut self, interrupted: &AtomicBool) -> Option<Steered> {
        let last = self
            .meanwhile
            .take()
            .map(|meanwhile| meanwhile.end(interrupted));
        last.into_iter().flatten().for_each(|note| self.note(&note));
        self.steering.take().map(Steering::end)
    }

    fn note(&mut self, note: &Note) {
        let event = match note {
            Note::Usage(usage) => {
                self.view.monitored(usage);
                if let UsageNote::Event(event) = usage {
                    Some(event.clone())
                } else {
                    None
                }
            }
            Note::Hook(hook) => event_of_hook(hook),
            Note::Timeline(_)
            | Note::Event(_)
            | Note::Refusal(_)
            | Note::PushesRefused(_)
            | Note::Counters(_)
            | Note::Counted(_)
            | Note::Hold(_)
            | Note::Search(_)
            | Note::Judged(_) => None,
        };
        if let (Some(event), Some(exporter)) = (event, &mut self.exporter) {
            exporter.annotate(&event);
        }
        self.folder.record(&Record::Event(encoded(note)));
    }

    /// The folder of the result.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Gives the terminal back, the folder, and the exporter; where lines are shown, also how the run stood.
    pub(crate) fn end(self) -> (Folder, Option<Exporter>, Option<Live>) {
        if let Some(screen) = self.screen {
            screen.end();
        }
        let mut last = self.last.filter(|_| self.shows_lines);
        if let Some(live) = &mut last {
            // The last windows have come since.
            let down = live.links.wanted.saturating_sub(live.links.up);
            live.links.failures = self.view.failing(down);
        }
        (self.folder, self.exporter, last)
    }
}

impl Observer for Watcher {
    fn windows(&mut self, delta: &WindowDelta) -> bool {
        self.view.add(delta);
        if let Some(steering) = &mut self.steering {
            steering.windows(delta);
        }
        if let Some(exporter) = &mut self.exporter {
            exporter.add(delta);
        }
        self.folder
            .record(&Record::Windows(Box::new(delta.clone())))
    }

    fn refused(&mut self, refused: &[Refused]) {
        if let Some(registrar) = &self.registrar {
            registrar.refused(refused);
        }
    }

    fn process_sample(&mut self, agent: usize, sample: &ProcessSample) {
        self.folder
            .record(&Record::Health(encoded(&(agent, sample))));
        self.view.process_sample(agent, sample);
        if let Some(steering) = &mut self.steering {
            steering.process_sample(agent, sample);
        }
    }

    fn steer(&mut self, standing: &Standing, delivery: &Delivery) -> Option<Steer> {
        let folder = &mut self.folder;
        let mut record = |note: &Note| {
            folder.record(&Record::Event(encoded(note)));
        };
        let steering = self.steering.as_mut()?;
        let steer = steering.steer(standing, delivery, &mut record);
        if let Some(Steer::Hold(hold)) = steer {
            record(&Note::Hold(hold));
        }
        steer
    }

    fn incident(&mut self, incident: &Incidents) {
        if let Some(exporter) = &mut self.exporter {
            exporter.annotate(&event_of(incident));
        }
    }

    fn standing(&mut self, standing: &Standing) {
        if !self.has_timeline && standing.timeline.origin < Micros::MAX {
            self.has_timeline = true;
            self.folder
                .record(&Record::Event(encoded(&Note::Timeline(standing.timeline))));
        }
        let notes = self
            .meanwhile
            .as_mut()
            .map(|meanwhile| meanwhile.turn(standing));
        notes
            .into_iter()
            .flatten()
            .for_each(|note| self.note(&note));
        let exporter = self.exporter.as_mut();
        let exporter = exporter.filter(|exporter| exporter.is_due(standing.now));
        if self.screen.is_none() && exporter.is_none() {
            return;
        }
        let live = self.view.live(standing);
        if let Some(exporter) = exporter {
            exporter.show(&live);
        }
        if let Some(screen) = &self.screen {
            self.last = Some(live.clone());
            screen.show(live);
        }
    }
}
