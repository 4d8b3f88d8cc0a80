//! Processes of this machine.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpStream, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use muster_model::Micros;
use muster_plan::{Endpoint, InstancePorts, Scheme, Variable};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::journal::Journal;
use crate::listener::{TCP, UDP, listening_groups, processes};
use crate::program::{Program, end_now, filled, last_words, of_exit, signal_group, start};
use crate::{Actuator, ActuatorError, Site, Wait};

/// Longest try to connect to an instance that is to be ready; they are on this machine.
const CONNECT_MAX: Duration = Duration::from_millis(200);
/// Longest wait for instances of an earlier growth to be gone after they were killed.
const GONE_MAX: Micros = Micros::from_secs(10);
/// The variable in the environment of an instance that holds the folder of its growth.
const MARK: &str = "MUSTER_INSTANCE_OF";

/// Starts and ends instances of a command.
#[derive(Debug)]
pub(crate) struct ProcessActuator {
    command: Vec<String>,
    ports: InstancePorts,
    site: Site,
    journal: Journal,
    instances: Vec<Instance>,
    environment: Vec<Variable>,
    /// True if the instances have another environment.
    is_outdated: bool,
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

impl Recorded {
    fn of(pid: u32) -> Option<Self> {
        let started = started(pid)?;
        Some(Self { pid, started })
    }

    fn runs(&self) -> bool {
        started(self.pid) == Some(self.started)
    }
}

/// The content of the record.
#[derive(Debug, Serialize, Deserialize)]
struct Left {
    instances: Vec<Recorded>,
    /// True if one more may have been started.
    is_starting: bool,
    /// The value of [`MARK`] in its environment.
    mark: String,
}

impl Left {
    /// Ends all of them, and waits until they are gone: their ports are free then.
    fn end(self) -> Result<(), ActuatorError> {
        let mut all = self.instances;
        if self.is_starting {
            all.extend(marked(&self.mark));
        }
        all.retain(Recorded::runs);
        for recorded in &all {
            signal_group(recorded.pid, Signal::KILL);
        }
        let anyway = AtomicBool::new(false);
        Wait::new(GONE_MAX, &anyway).until(|| {
            all.retain(Recorded::runs);
            Ok(all.is_empty().then_some(()))
        })?;
        match all.first() {
            Some(Recorded { pid, .. }) => Err(ActuatorError::Left { pid: *pid }),
            None => Ok(()),
        }
    }
}

impl ProcessActuator {
    /// An actuator without instances. Those that an earlier one left are ended.
    pub(crate) fn open(
        command: Vec<String>,
        ports: InstancePorts,
        site: Site,
    ) -> Result<Self, ActuatorError> {
        let (journal, left) = Journal::open::<Left>(&site)?;
        if let Some(left) = left {
            left.end()?;
            journal.close()?;
        }
        Ok(Self {
            command,
            ports,
            site,
            journal,
            instances: Vec::new(),
            environment: Vec::new(),
            is_outdated: false,
        })
    }

    fn endpoint(&self, index: usize) -> Option<Endpoint> {
        // The scenario was checked for as many ports as there can be instances.
        let after = |first: u16| first.checked_add(index as u16);
        let devices = || self.site.devices.clone();
        Some(match self.ports {
            InstancePorts::Shared => devices()?,
            InstancePorts::Each => {
                let devices = devices()?;
                let port = after(devices.port)?;
                Endpoint { port, ..devices }
            }
            InstancePorts::From(first) => Endpoint {
                // Any scheme whose links are streams of bytes.
                scheme: Scheme::Mqtt,
                host: Ipv4Addr::LOCALHOST.to_string(),
                port: after(first)?,
                path: String::new(),
            },
        })
    }

    fn add(&mut self) -> Result<(), ActuatorError> {
        let index = self.instances.len();
        let is_own = self.ports != InstancePorts::Shared || index == 0;
        if is_own && let Some(at) = self.endpoint(index).filter(listens) {
            let at = at.authority();
            return Err(ActuatorError::Taken { index, at });
        }
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
        self.record(true)?;
        let mark = self.mark();
        let mark = Variable {
            name: MARK.to_owned(),
            value: mark,
        };
        let program = Program {
            words: &words,
            environment: &[&self.environment[..], &[mark]].concat(),
        };
        let started = start(&program, &output, &output);
        let started = started.map(|child| self.instances.push(Instance { child, output }));
        self.record(false)?;
        started
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
        self.record(false)?;
        ended.map(|_| ())
    }

    /// Writes down what a kill of this program would leave.
    fn record(&self, is_starting: bool) -> Result<(), ActuatorError> {
        let instances = self.instances.iter();
        let left = Left {
            instances: instances
                .filter_map(|instance| Recorded::of(instance.child.id()))
                .collect(),
            is_starting,
            mark: self.mark(),
        };
        match left.instances.is_empty() && !is_starting {
            true => self.journal.close(),
            false => self.journal.write(left),
        }
    }

    fn mark(&self) -> String {
        let folder = &self.site.folder;
        let whole = fs::canonicalize(folder);
        whole
            .as_ref()
            .unwrap_or(folder)
            .to_string_lossy()
            .into_owned()
    }

    /// Number of the instances that listen. An own port answers; on a shared one, a process of the instance's group
    /// holds a socket, for any other instance answers there too.
    fn listening(&self) -> usize {
        let of_each = (0..self.instances.len()).map(|index| self.endpoint(index));
        let Some(endpoints) = of_each.collect::<Option<Vec<Endpoint>>>() else {
            return self.instances.len();
        };
        match (self.ports, endpoints.first()) {
            (InstancePorts::Each | InstancePorts::From(_), _) => {
                endpoints.iter().filter(|at| listens(at)).count()
            }
            (InstancePorts::Shared, None) => 0,
            (InstancePorts::Shared, Some(at)) => {
                let table = match at.scheme.protocol().is_in_datagrams {
                    true => &UDP,
                    false => &TCP,
                };
                let leaders = self.instances.iter().map(|instance| instance.child.id());
                listening_groups(&leaders.collect(), at.port, table).len()
            }
        }
    }

    /// Number of the instances that are ready. One that has ended is an error.
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
        Ok(self.listening() as u32)
    }
}

impl Actuator for ProcessActuator {
    fn set(&mut self, count: u32, wait: &Wait<'_>) -> Result<(), ActuatorError> {
        let kept = match self.is_outdated {
            true => 0,
            false => count as usize,
        };
        self.end_beyond(kept, wait)?;
        self.is_outdated = false;
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

    fn set_environment(&mut self, variables: &[Variable]) {
        self.is_outdated |= self.environment != variables;
        self.environment = variables.to_vec();
    }

    fn addresses(&self, count: u32) -> Option<Vec<Endpoint>> {
        match self.ports {
            InstancePorts::Shared | InstancePorts::From(_) => None,
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
        let _ = self.record(false);
    }
}

/// Returns true if somebody listens at an address. A datagram port is taken if it is in use.
fn listens(at: &Endpoint) -> bool {
    let Ok(mut addresses) = at.socket_authority().to_socket_addrs() else {
        return false;
    };
    let is_in_datagrams = at.scheme.protocol().is_in_datagrams;
    addresses.any(|address| match is_in_datagrams {
        true => UdpSocket::bind(address).is_err_and(|error| error.kind() == ErrorKind::AddrInUse),
        false => TcpStream::connect_timeout(&address, CONNECT_MAX).is_ok(),
    })
}

/// The processes of this user that have a mark in their environment.
fn marked(mark: &str) -> Vec<Recorded> {
    let wanted = format!("{MARK}={mark}");
    let is_marked = |pid: &u32| {
        let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = variables.split(|byte| *byte == 0);
        variables.any(|variable| variable == wanted.as_bytes())
    };
    let pids = processes().filter(is_marked);
    pids.filter_map(Recorded::of).collect()
}

/// The start of a process in ticks since the machine's (proc(5), field 22); none if there is no such process,
/// or it has ended and its parent has not asked for its exit.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold blanks and parentheses.
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!["Z", "X"].contains(&state)).then_some(started)
}
