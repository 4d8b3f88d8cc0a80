//! The agents of a run: which of them work, and the progress that each reported last.

use muster_conduct::Progress;
use muster_model::{Listening, Micros};

/// State of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentState {
    Working,
    Over,
    Lost,
}

/// State and progress of each agent.
#[derive(Debug)]
pub(crate) struct AgentStates(Vec<(AgentState, Progress)>);

impl AgentStates {
    pub(crate) fn new(agents: usize) -> Self {
        Self(vec![(AgentState::Working, Progress::default()); agents])
    }

    pub(crate) fn report(&mut self, agent: usize, progress: Progress) {
        self.0[agent].1 = progress;
    }

    pub(crate) fn set(&mut self, agent: usize, state: AgentState) {
        self.0[agent].0 = state;
    }

    pub(crate) fn are_all(&self, wanted: AgentState) -> bool {
        self.0.iter().all(|(state, _)| *state == wanted)
    }

    pub(crate) fn are_done(&self) -> bool {
        self.0
            .iter()
            .all(|(state, _)| *state != AgentState::Working)
    }

    /// The progress of all. A lost agent delays nothing: its open messages do not count.
    pub(crate) fn progress(&self, now: Micros) -> Progress {
        Progress::united(self.0.iter().map(|(state, progress)| match state {
            AgentState::Lost => Progress {
                at: now,
                open: 0,
                behind: 0,
                links_untried: 0,
                links_up: 0,
                listening: Listening::NOBODY,
                ..*progress
            },
            AgentState::Working | AgentState::Over => *progress,
        }))
    }
}
