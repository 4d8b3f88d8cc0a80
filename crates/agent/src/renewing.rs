//! Names of the devices' addresses, looked up again while the run goes on.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use muster_fleet::RenewedTargets;
use muster_plan::{Endpoint, Plan};
use muster_platform::Protocol;

/// The thread that looks names up; it ends with this value.
#[derive(Debug)]
pub(crate) struct Renewing {
    _stop: Sender<()>,
    targets: Arc<RenewedTargets>,
}

impl Renewing {
    /// Starts the thread, if the plan asks for it; `first` are the addresses of the start.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub(crate) fn start(
        plan: &Arc<Plan>,
        first: &[(Protocol, SocketAddr)],
    ) -> io::Result<Option<Self>> {
        let Some(every) = plan.platform.renews_addresses else {
            return Ok(None);
        };
        let every = Duration::from_micros(every.get());
        let (stop, stopped) = channel::<()>();
        let targets = Arc::new(RenewedTargets::default());
        let (plan, to) = (Arc::clone(plan), Arc::clone(&targets));
        let mut current = first.to_vec();
        let renew = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                if let Ok(found) = look_up(&plan, &current, resolve) {
                    current.clone_from(&found);
                    to.set(found);
                }
            }
        };
        std::thread::Builder::new()
            .name("names".to_owned())
            .spawn(renew)?;
        Ok(Some(Self {
            _stop: stop,
            targets,
        }))
    }

    /// The addresses as they were looked up last.
    pub(crate) fn targets(&self) -> Arc<RenewedTargets> {
        Arc::clone(&self.targets)
    }
}

fn resolve(endpoint: &Endpoint) -> io::Result<Vec<SocketAddr>> {
    let found = (endpoint.host.as_str(), endpoint.port).to_socket_addrs()?;
    Ok(found.collect())
}

/// The addresses of all names: of each all of one family, or one, which is that of before if the name still has it.
/// If a name is not found, nothing changes: the links keep what they have.
fn look_up(
    plan: &Plan,
    before: &[(Protocol, SocketAddr)],
    resolve: impl Fn(&Endpoint) -> io::Result<Vec<SocketAddr>>,
) -> io::Result<Vec<(Protocol, SocketAddr)>> {
    let mut targets = Vec::new();
    for endpoint in &plan.platform.endpoints {
        let mut found = resolve(endpoint)?;
        // Servers give them in another order each time.
        found.sort_unstable();
        let protocol = endpoint.scheme.protocol();
        let mut kept = before.iter().filter(|(of, _)| *of == protocol);
        let kept = kept.find(|(_, address)| found.contains(address));
        let first = kept.map(|(_, address)| *address);
        let first = first.or(found.first().copied());
        let first = first.ok_or(io::ErrorKind::NotFound)?;
        match plan.platform.uses_all_addresses {
            true => found.retain(|address| address.is_ipv4() == first.is_ipv4()),
            false => found = vec![first],
        }
        targets.extend(found.into_iter().map(|address| (protocol, address)));
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    #[test]
    fn all_addresses_of_one_family_are_taken_or_one_that_stays() {
        let text = "name: t\nplatform: { kind: mqtt, devices: [ 'mqtt://broker.example:1883' ] }\nfleet: [ { streams: [] } ]\n";
        let source = Source {
            name: "t.yaml",
            text,
        };
        let plan = parse(source, &Overrides::default(), &NoFiles);
        let mut plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
        let at = |last, port| SocketAddr::from(([10, 0, 0, last], port));
        let of_six: SocketAddr = "[2001:db8::1]:1883".parse().expect("an address");
        let resolve =
            |endpoint: &Endpoint| Ok(vec![at(2, endpoint.port), of_six, at(1, endpoint.port)]);
        let found = |plan: &Plan, before| {
            let before = [(Protocol::Mqtt, before)];
            let found = look_up(plan, &before, resolve).expect("it is found");
            let found = found.into_iter().map(|(_, address)| address);
            found.collect::<Vec<_>>()
        };
        assert_eq!(found(&plan, at(9, 1883)), [at(1, 1883)]);
        assert_eq!(found(&plan, at(2, 1883)), [at(2, 1883)]);
        plan.platform.uses_all_addresses = true;
        assert_eq!(found(&plan, at(2, 1883)), [at(1, 1883), at(2, 1883)]);
        assert_eq!(found(&plan, of_six), [of_six]);
        let nobody = look_up(&plan, &[], |_| Ok(Vec::new()));
        assert!(nobody.is_err(), "nothing changes");
    }
}
