//! The agents of a run, wherever they are.

use std::process::Command;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use muster_agent::{Agent, AgentError, Assignment, FactsLog, FrameError, News};
use muster_conduct::Order;

use crate::worker::Worker;

/// News that may wait for the conductor. What comes beyond waits in the workers, which hold a
/// minute of it before their devices feel it.
const NEWS_MAX: usize = 64;

/// All agents of a run on this machine.
#[derive(Debug)]
pub enum Agents {
    /// This process.
    Here(Box<Agent>),
    /// Worker processes.
    Workers(Workers),
}

/// Worker processes and their news.
#[derive(Debug)]
pub struct Workers {
    workers: Vec<Worker>,
    news: Receiver<(usize, News)>,
}

/// Error of starting the agents.
#[derive(Debug, thiserror::Error)]
pub enum AgentsError {
    /// This process.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A worker.
    #[error("start a worker process: {0}")]
    Worker(#[from] FrameError),
}

impl Agents {
    /// One agent in this process.
    ///
    /// # Errors
    /// [`AgentsError::Agent`].
    pub fn here(assignment: Assignment, facts: Option<&FactsLog>) -> Result<Self, AgentsError> {
        Ok(Self::Here(Box::new(Agent::start(assignment, facts)?)))
    }

    /// One worker process an assignment, each started by what `program` gives.
    ///
    /// # Errors
    /// [`AgentsError::Worker`].
    pub fn workers(
        program: &dyn Fn() -> Command,
        assignments: &[Assignment],
    ) -> Result<Self, AgentsError> {
        let (outbox, news) = sync_channel(NEWS_MAX);
        let workers = assignments
            .iter()
            .enumerate()
            .map(|(index, assignment)| Worker::start(program(), assignment, index, outbox.clone()));
        let workers = workers.collect::<Result<_, _>>()?;
        Ok(Self::Workers(Workers { workers, news }))
    }

    /// Returns the number of agents.
    pub fn agents(&self) -> usize {
        match self {
            Self::Here(_) => 1,
            Self::Workers(workers) => workers.workers.len(),
        }
    }

    /// Passes an order on to every agent.
    pub fn order(&mut self, order: Order) {
        match self {
            Self::Here(agent) => agent.order(order),
            Self::Workers(workers) => {
                for worker in &mut workers.workers {
                    worker.order(order);
                }
            }
        }
    }

    /// The next piece of news and the agent it is from; none if nothing comes within `wait`.
    pub fn next(&mut self, wait: Duration) -> Option<(usize, News)> {
        match self {
            Self::Here(agent) => agent.next(wait).map(|news| (0, news)),
            Self::Workers(workers) => workers.news.recv_timeout(wait).ok(),
        }
    }
}
