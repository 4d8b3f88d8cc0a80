//! Processes of this machine.

use std::fs;
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use muster_plan::{Endpoint, InstancePorts};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::journal::Journal;
use crate::program::{end_now, filled, last_words, of_exit, signal_group, start};
use crate::{Actuator, ActuatorError, Site, Wait};

/// Longest try to connect to an instance that is to be ready; they are on this machine.
const CONNECT_MAX: Duration = Duration::from_millis(200);

/// Starts and ends instances of a command.
#[derive(Debug)]
pub struct ProcessActuator {
    command: Vec<String>,
    ports: InstancePorts,
    site: Site,
    journal: Journal,
    instances: Vec<Instance>,
}

#[derive(Debug)]
struct Instance {
    child: Child,
    output: PathBuf,
}

/// A process as the record knows it: a process id alone may be another's by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Recorded {
    pid: u32,
    /// Its start in ticks since the machine's.
    started: u64,
}

impl ProcessActuator {
    /// An actuator without instances. Those that an earlier one left are ended.
    ///
    /// # Errors
    /// If the record in the folder is unreadable.
    pub fn open(
        command: Vec<String>,
        ports: InstancePorts,
        site: Site,
    ) -> Result<Self, ActuatorError> {
        let (journal, left) = Journal::open::<Vec<Recorded>>(&site)?;
        for recorded in left.unwrap_or_default() {
            if started(recorded.pid) == Some(recorded.started) {
                signal_group(recorded.pid, Signal::KILL);
            }
        }
        journal.close()?;
        Ok(Self {
            command,
            ports,
            site,
            journal,
            instances: Vec::new(),
        })
    }

    fn endpoint(&self, index: usize) -> Option<Endpoint> {
        let devices = self.site.devices.clone()?;
        let port = match self.ports {
            InstancePorts::Shared => devices.port,
            // The scenario was checked for as many ports as there can be instances.
            InstancePorts::Each => devices.port.checked_add(index as u16)?,
        };
        Some(Endpoint { port, ..devices })
    }

    fn add(&mut self) -> Result<(), ActuatorError> {
        let index = self.instances.len();
        let port = self.endpoint(index).map_or(0, |endpoint| endpoint.port);
        let (port, number) = (port.to_string(), index.to_string());
        let program = self.site.program.display().to_string();
        let variables = [
            ("port", &port[..]),
            ("index", &number),
            ("muster", &program),
        ];
        let words = filled(&self.command, &variables);
        let output = self.site.folder.join(format!("instance-{index}.log"));
        let child = start(&words, &output)?;
        self.instances.push(Instance { child, output });
        self.record()
    }

    fn end_beyond(&mut self, count: usize, wait: &Wait<'_>) -> Result<(), ActuatorError> {
        let mut ending = self.instances.split_off(count.min(self.instances.len()));
        for instance in &ending {
            signal_group(instance.child.id(), Signal::TERM);
        }
        let gone = |instance: &mut Instance| !matches!(instance.child.try_wait(), Ok(None));
        let ended = wait.until(|| Ok(ending.iter_mut().all(gone).then_some(())));
        ending
            .iter_mut()
            .for_each(|instance| end_now(&mut instance.child));
        self.record()?;
        ended.map(|_| ())
    }

    fn record(&self) -> Result<(), ActuatorError> {
        let recorded = self.instances.iter().filter_map(|instance| {
            let pid = instance.child.id();
            Some(Recorded {
                pid,
                started: started(pid)?,
            })
        });
        let recorded: Vec<Recorded> = recorded.collect();
        match recorded.is_empty() {
            true => self.journal.close(),
            false => self.journal.write(&recorded),
        }
    }

    /// Number of the instances that listen. One that has ended is an error.
    fn ready(&mut self) -> Result<u32, ActuatorError> {
        for (index, instance) in self.instances.iter_mut().enumerate() {
            if let Ok(Some(status)) = instance.child.try_wait() {
                return Err(ActuatorError::Ended {
                    index,
                    status: of_exit(status),
                    said: last_words(&instance.output),
                });
            }
        }
        let all = 0..self.instances.len();
        let listening = all.filter(|index| self.endpoint(*index).is_none_or(|at| listens(&at)));
        Ok(listening.count() as u32)
    }
}

impl Actuator for ProcessActuator {
    fn set(&mut self, count: u32, wait: &Wait<'_>) -> Result<(), ActuatorError> {
        self.end_beyond(count as usize, wait)?;
        while self.instances.len() < count as usize {
            self.add()?;
        }
        let reached = wait.until(|| Ok((self.ready()? == count).then_some(())))?;
        match reached {
            Some(()) => Ok(()),
            None => Err(ActuatorError::DidNotFollow {
                wanted: count,
                there: format!("{} are", self.ready()?),
                after: wait.length(),
                why: String::new(),
            }),
        }
    }

    fn actual(&mut self, _wait: &Wait<'_>) -> Result<u32, ActuatorError> {
        self.ready()
    }

    fn restore(&mut self, wait: &Wait<'_>) -> Result<(), ActuatorError> {
        self.end_beyond(0, wait)
    }

    fn addresses(&self, count: u32) -> Option<Vec<Endpoint>> {
        match self.ports {
            InstancePorts::Shared => None,
            InstancePorts::Each => (0..count as usize)
                .map(|index| self.endpoint(index))
                .collect(),
        }
    }
}

impl Drop for ProcessActuator {
    fn drop(&mut self) {
        self.instances
            .iter_mut()
            .for_each(|instance| end_now(&mut instance.child));
        self.instances.clear();
        let _ = self.record();
    }
}

/// Returns true if somebody listens at an address. A datagram port that can be bound is free.
fn listens(at: &Endpoint) -> bool {
    let Ok(mut addresses) = at.socket_authority().to_socket_addrs() else {
        return false;
    };
    let is_in_datagrams = at.scheme.protocol().is_in_datagrams;
    addresses.any(|address| match is_in_datagrams {
        true => UdpSocket::bind(address).is_err(),
        false => TcpStream::connect_timeout(&address, CONNECT_MAX).is_ok(),
    })
}

/// The start of a process in ticks since the machine's (proc(5), field 22); none if there is no such process.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold blanks and parentheses.
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(19)?.parse().ok()
}
