//! The target of a run: its addresses, and whether it is on this machine.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use muster_conduct::Part;
use muster_gateway::{
    ChildGateway, GatewayAccount, GatewayConfig, ManagementConfig, TENANT_USER, User,
};
use muster_monitor::TargetMonitor;
use muster_monitor::procfs::device_towards;
use muster_plan::{
    AmqpLogin, ApiCredential, BackendPlan, Endpoint, Northbound, Plan, PlatformKind, ProvisionMode,
    Scheme, Secret, WebAddress,
};
use muster_platform::{Protocol, Rest};
use muster_scenario::Needs;

mod answering;
mod embedded;

use answering::first_to_answer;
pub(crate) use answering::{addresses_of, check_sources, device_addresses, literal_addresses};
use embedded::{MANAGEMENT, listening, met_at, own_tls, pushed_to};
use muster_report::Event;
use muster_result::NotedTarget;

/// An address that devices connect to, and their protocol.
pub(crate) type DeviceAddress = (Protocol, SocketAddr);

/// The addresses of devices and consumers.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    /// The devices' addresses; the links of a protocol are spread over its own.
    pub(crate) devices: Vec<DeviceAddress>,
    /// Each backend's addresses.
    pub(crate) backends: Vec<Vec<SocketAddr>>,
    /// Addresses of webhooks among them, where nobody but this program listens.
    pub(crate) own: Vec<SocketAddr>,
}

impl Addresses {
    /// Addresses of devices, where those of consumers are not known.
    pub(crate) fn with_devices(devices: Vec<DeviceAddress>) -> Self {
        Self {
            devices,
            backends: Vec::new(),
            own: Vec::new(),
        }
    }

    /// The addresses of devices, and of consumers where these are not ours.
    pub(crate) fn all(&self) -> impl Iterator<Item = SocketAddr> {
        let backends = self.backends.iter().flatten();
        let backends = backends.filter(|address| !self.own.contains(address));
        let devices = self.devices.iter().map(|(_, address)| address);
        devices.chain(backends).copied()
    }

    /// Cores for the device shards: half of all if the target is on this machine.
    pub(crate) fn cores_for_shards(&self, cores: u32) -> u32 {
        match self.is_co_located() {
            true => cores.div_ceil(2),
            false => cores,
        }
    }

    /// True if any of them is on this machine: whoever serves devices or consumers there is
    /// another process, which takes its CPU from the same machine.
    pub(crate) fn is_co_located(&self) -> bool {
        self.all().any(is_local)
    }
}

/// The addresses of a plan's devices and consumers that a part of the run has: the names of the
/// other side need not be known on its host.
pub(crate) fn resolve(plan: &Plan, part: Part) -> Result<Addresses> {
    let devices = match part.links {
        Some(_) => device_addresses(plan)?,
        None => Vec::new(),
    };
    let within = patience(plan);
    let backends = plan.backends.iter();
    let backends = backends.filter(|_| part.consumers.is_some());
    let backends = backends.map(|backend| Ok(vec![consumer_address(backend, within)?]));
    let backends: Vec<Vec<SocketAddr>> = backends.collect::<Result<_>>()?;
    let webhooks = plan.backends.iter().zip(&backends);
    let webhooks = webhooks.filter(|(backend, _)| backend.kind().listens);
    Ok(Addresses {
        devices,
        own: webhooks.flat_map(|(_, at)| at.clone()).collect(),
        backends,
    })
}

/// The longest search for an address that answers: a handshake's time-out. Nobody listens yet
/// where the run starts its own gateway.
pub(crate) fn patience(plan: &Plan) -> Duration {
    match plan.platform.kind {
        PlatformKind::Gateway { .. } => Duration::ZERO,
        PlatformKind::Deployed { .. } => {
            let timeouts = plan.fleets.iter().map(|fleet| fleet.connect.timeout.get());
            Duration::from_micros(timeouts.max().unwrap_or(0))
        }
    }
}

/// The address of an endpoint. Where its name has several, the first that takes a connection, in
/// the resolver's order and of either family, as usual clients have it; the first of all if none
/// does, so that the run reports the reason.
pub(crate) fn address(endpoint: &Endpoint, within: Duration) -> Result<SocketAddr> {
    let found = found(endpoint)?;
    match found[..] {
        [only] => Ok(only),
        _ => Ok(first_to_answer(&found, within).unwrap_or(found[0])),
    }
}

/// The address of a backend's consumers. Nobody answers where a webhook is to listen.
pub(crate) fn consumer_address(backend: &BackendPlan, within: Duration) -> Result<SocketAddr> {
    match backend.kind().listens {
        true => Ok(found(&backend.endpoint)?[0]),
        false => address(&backend.endpoint, within),
    }
}

fn found(endpoint: &Endpoint) -> Result<Vec<SocketAddr>> {
    let found = addresses((endpoint.host.as_str(), endpoint.port));
    found.map_err(|why| anyhow!("look up `{}` of {endpoint}: {why}", endpoint.host))
}

/// All addresses of a name, in the resolver's order: one at the least.
pub(crate) fn addresses(name: impl ToSocketAddrs) -> Result<Vec<SocketAddr>> {
    let found = name.to_socket_addrs();
    let found: Vec<SocketAddr> = found.map_err(|error| anyhow!(bare(&error)))?.collect();
    if found.is_empty() {
        bail!("it has no address");
    }
    Ok(found)
}

/// The words of the resolver without its own "failed to ...".
fn bare(error: &io::Error) -> String {
    let text = error.to_string();
    let bare = text.strip_prefix("failed to lookup address information: ");
    bare.unwrap_or(&text).to_owned()
}

/// True if packets to an address stay on this machine: the source address the kernel would use is
/// the address itself, or the address is that of a container here.
pub(crate) fn is_local(address: SocketAddr) -> bool {
    if address.ip().is_loopback() || is_container(address.ip()) {
        return true;
    }
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let source = UdpSocket::bind(any)
        .and_then(|socket| socket.connect(address).and_then(|()| socket.local_addr()));
    source.is_ok_and(|source| source.ip() == address.ip())
}

/// True if an address is reached through a bridge of this machine, as containers on it are. Those of
/// IPv6 are not found.
fn is_container(address: IpAddr) -> bool {
    let IpAddr::V4(address) = address else {
        return false;
    };
    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    let device = device_towards(&routes, address);
    device.is_some_and(|device| is_inner_bridge(Path::new("/sys/class/net"), device))
}

/// True if a network device is a bridge that no network card is part of: behind one with a card lie
/// other machines too.
fn is_inner_bridge(devices: &Path, device: &str) -> bool {
    let Ok(ports) = fs::read_dir(devices.join(device).join("brif")) else {
        return false;
    };
    let is_card = |port: fs::DirEntry| devices.join(port.file_name()).join("device").exists();
    !ports.flatten().any(is_card)
}

/// The target of a run, and the embedded gateway if it is one.
pub(crate) struct Target {
    pub(crate) addresses: Addresses,
    endpoints: String,
    gateways: Vec<GatewayProcess>,
    started: Instant,
}

/// The use and the account of the target when the run is over.
#[derive(Default)]
pub(crate) struct Stopped {
    pub(crate) used: NotedTarget,
    pub(crate) events: Vec<Event>,
    /// The gateway's own account, as JSON text.
    pub(crate) account: Option<String>,
}

impl Target {
    /// The process ids of the embedded gateway, whose CPU wait counts as our own.
    pub(crate) fn gateways(&self) -> Vec<u32> {
        let gateways = self.gateways.iter();
        gateways.map(|process| process.gateway.id()).collect()
    }

    /// Finds the target of a plan, or starts the embedded gateway in child processes and notes their
    /// addresses and northbound user in the plan.
    pub(crate) fn start(
        plan: &mut Plan,
        addresses: Addresses,
        needs: &Needs,
        descriptors: u64,
    ) -> Result<Self> {
        let started = now();
        let PlatformKind::Gateway {
            dialect,
            behaviour,
            max_payload,
        } = plan.platform.kind.clone()
        else {
            let endpoints = Endpoint::each_once(plan.platform.endpoints.iter());
            let gateways = Vec::new();
            return Ok(Self {
                addresses,
                endpoints: endpoints.join(", "),
                gateways,
                started,
            });
        };
        let processes = gateway_processes(plan, needs, descriptors)?;
        let management = management(plan, processes)?;
        let northbound = northbound(plan)?;
        let own = own_tls(plan, &addresses.devices)?;
        let scheme = plan.platform.scheme_of(Protocol::Mqtt);
        let config = GatewayConfig {
            threads: gateway_threads(processes),
            dialect,
            websocket: scheme.is_some_and(Scheme::is_websocket),
            tls: own.clone().filter(|_| scheme.is_some_and(Scheme::is_tls)),
            behaviour: *behaviour,
            max_payload,
            seed: plan.seed,
            expected_uplinks: needs.messages,
            expected_commands: needs.commands,
            northbound: Some(northbound.clone()),
            management: management.clone(),
            webhook: pushed_to(plan, &addresses),
            ..listening(plan, &addresses, own)
        };
        let parts = (0..processes).map(|index| config.part(index, processes));
        let gateways = parts.map(|part| GatewayProcess::start(&part));
        let gateways = gateways.collect::<Result<Vec<_>>>()?;
        introduce(plan, &gateways, &northbound, management);
        let addresses = met_at(plan, &gateways, &addresses);
        let name = |(protocol, addr): &DeviceAddress| {
            let scheme = plan.platform.scheme_of(*protocol);
            format!("{}://{addr}", scheme.map_or("", Scheme::name))
        };
        let names: Vec<String> = addresses.devices.iter().map(name).collect();
        let endpoints = format!("embedded gateway, {}", names.join(", "));
        Ok(Self {
            addresses,
            endpoints,
            gateways,
            started,
        })
    }

    /// Its name.
    pub(crate) fn name(&self) -> String {
        self.endpoints.clone()
    }

    /// Takes leave of it: an embedded gateway is stopped and gives its account.
    pub(crate) fn stop(&mut self) -> Stopped {
        let elapsed_s = self.started.elapsed().as_secs_f64();
        let mut stopped = Stopped::default();
        let mut account: Option<GatewayAccount> = None;
        for (index, mut process) in self.gateways.drain(..).enumerate() {
            let name = format!("gateway {index}");
            let sample = process.monitor.sample().unwrap_or_default();
            let used = &mut stopped.used;
            used.cpu_s.insert(name.clone(), sample.cpu_s);
            used.memory_bytes
                .insert(name.clone(), sample.peak_rss_bytes);
            match process.gateway.stop() {
                Ok(its) => account
                    .get_or_insert_with(GatewayAccount::default)
                    .merge(&its),
                Err(error) => stopped.events.push(Event::new(
                    elapsed_s,
                    "gateway-lost",
                    format!("{name} gave no account: {error}"),
                )),
            }
        }
        let text = |account| serde_json::to_string_pretty(&account);
        stopped.account = account.and_then(|account| text(account).ok());
        stopped
    }
}

/// A gateway process: this program again.
struct GatewayProcess {
    gateway: ChildGateway,
    monitor: TargetMonitor,
}

impl GatewayProcess {
    fn start(config: &GatewayConfig) -> Result<Self> {
        let program = std::env::current_exe().context("find this program for the gateway")?;
        let mut command = Command::new(program);
        command.args(["gateway", "--embedded"]);
        let gateway = ChildGateway::start(command, config).context("start the embedded gateway")?;
        let monitor = TargetMonitor::open(gateway.id()).context("watch the embedded gateway")?;
        Ok(Self { gateway, monitor })
    }
}

/// The number of processes that the embedded gateway needs; downlinks cannot cross from one to another.
fn gateway_processes(plan: &Plan, needs: &Needs, descriptors: u64) -> Result<u32> {
    let processes = needs.gateway_processes(descriptors);
    let processes = u32::try_from(processes).unwrap_or(u32::MAX).max(1);
    if processes > 1 && plan.has_downlink() {
        bail!(
            "{} links need {processes} processes of the embedded gateway, and commands and \
             subscriptions of devices need all of them in one: fewer devices, or a higher `ulimit \
             -n`",
            needs.links
        );
    }
    Ok(processes)
}

/// Notes the addresses and users of the embedded gateway in the plan.
fn introduce(
    plan: &mut Plan,
    gateways: &[GatewayProcess],
    northbound: &User,
    management: Option<ManagementConfig>,
) {
    let first = gateways.first().map(|process| process.gateway.addresses());
    let api = first.and_then(|at| at.get(MANAGEMENT));
    let stores = matches!(
        plan.platform.kind,
        PlatformKind::Gateway { dialect, .. } if dialect.server.rest == Some(Rest::Stored)
    );
    let token = management.and_then(|it| it.token);
    if let (Some(provision), Some(api)) = (&mut plan.provision, api) {
        provision.credential = token.clone().map(Secret::new).map(|token| match stores {
            true => ApiCredential::Basic {
                user: Secret::new(TENANT_USER.to_owned()),
                password: token,
            },
            false => ApiCredential::Bearer(token),
        });
        provision.api = Some(WebAddress {
            is_tls: false,
            host: api.ip().to_string(),
            port: Some(api.port()),
            path: String::new(),
        });
    }
    for backend in plan.backends.iter_mut().filter(|it| !it.kind().listens) {
        if backend.kind().only_commands {
            backend.user = Some(Secret::new(TENANT_USER.to_owned()));
            backend.password = token.clone().map(|it| Secret::new(it.into_bytes()));
            continue;
        }
        backend.user = Some(Secret::new(northbound.name.clone()));
        backend.password = Some(Secret::new(northbound.password.clone()));
        if let Northbound::Amqp(amqp) = &mut backend.northbound {
            amqp.login = AmqpLogin::Plain;
        }
    }
}

/// The embedded gateway's management API, if the run creates its devices there. The gateway then admits
/// no others.
fn management(plan: &mut Plan, processes: u32) -> Result<Option<ManagementConfig>> {
    let provision = plan.provision.as_mut();
    let Some(provision) = provision.filter(|it| it.mode == ProvisionMode::Auto) else {
        return Ok(None);
    };
    if processes > 1 {
        bail!(
            "provision the embedded gateway: this number of devices needs {processes} processes of it, and \
             devices are created in one; configure fewer devices, or `provision: {{ mode: none }}`"
        );
    }
    let usual = ManagementConfig::default();
    if provision.gateway.is_empty() {
        provision.gateway.clone_from(&usual.gateway);
    }
    Ok(Some(ManagementConfig {
        token: Some(one_time()?),
        gateway: provision.gateway.clone(),
        only_provisioned: true,
        ..usual
    }))
}

/// The generator's shards take half of the cores, the gateway the rest.
fn gateway_threads(processes: u32) -> u16 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = (cores / 2 / processes as usize).max(1);
    u16::try_from(threads).unwrap_or(u16::MAX)
}

/// The consumers' own user, so that what befalls device links does not befall them.
fn northbound(plan: &Plan) -> Result<User> {
    let mut backends = plan.backends.iter();
    let first = backends.find(|backend| !backend.kind().listens && !backend.kind().only_commands);
    let named = first.and_then(|backend| {
        let (user, password) = (backend.user.as_ref()?, backend.password.as_ref()?);
        Some(User {
            name: user.expose().clone(),
            password: password.expose().clone(),
        })
    });
    if let Some(user) = named {
        return Ok(user);
    }
    Ok(User {
        name: "northbound".to_owned(),
        password: one_time()?.into_bytes(),
    })
}

/// A secret of this run and its own gateway.
fn one_time() -> Result<String> {
    let mut bytes = [0; 16];
    if aws_lc_rs::rand::fill(&mut bytes).is_err() {
        bail!("draw a one-time password: the system gives no random numbers");
    }
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "only how long the gateway has been running, or a search for an address"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_one_time_password_is_long_and_no_other() {
        let drawn = [one_time(), one_time()].map(|drawn| drawn.expect("random numbers"));
        assert_ne!(drawn[0], drawn[1]);
        assert!(drawn.iter().all(|password| password.len() == 32));
    }

    #[test]
    fn behind_a_bridge_without_a_card_lies_this_machine() {
        let devices = tempfile::tempdir().expect("a folder");
        for port in [
            "docker0/brif/veth1",
            "br0/brif/veth2",
            "br0/brif/eth0",
            "eth0/device",
        ] {
            fs::create_dir_all(devices.path().join(port)).expect("a device");
        }
        let is_inner = |device| is_inner_bridge(devices.path(), device);
        assert!(is_inner("docker0"));
        assert!(!is_inner("br0"), "it has a network card");
        assert!(!is_inner("eth0"), "it is no bridge");
    }

    #[test]
    fn a_backend_on_this_machine_makes_a_result_co_located_too() {
        let here = SocketAddr::from(([127, 0, 0, 1], 1883));
        // Kept for documentation (RFC 5737): no machine has it.
        let there = SocketAddr::from(([192, 0, 2, 1], 1883));
        let is_co_located = |devices: SocketAddr, backend: SocketAddr| {
            let devices = vec![(Protocol::Mqtt, devices)];
            let backends = vec![vec![backend]];
            let own = vec![([127, 0, 0, 1], 8_088).into()];
            let addresses = Addresses {
                devices,
                backends,
                own,
            };
            addresses.is_co_located()
        };
        assert!(is_co_located(there, here));
        assert!(is_co_located(here, there));
        assert!(!is_co_located(there, there));
        let webhook = SocketAddr::from(([127, 0, 0, 1], 8_088));
        assert!(!is_co_located(there, webhook), "it is this program itself");
    }
}
