//! A run that only connects: links and consumers come up over the engine of every run, and leave.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use muster_agent::{Agent, Assignment, News};
use muster_conduct::{
    Diagnostic, FactWriter, Order, Progress, RefusalCause, RefusalKind, Slice, Trial, directory,
};
use muster_model::{
    BackendId, Cause, ConnectFailure, ConsumerId, Fact, LinkEvent, LinkFact, LinkId, Micros, RunId,
};
use muster_net::Clock;
use muster_plan::{BackendKind, Credential, FleetPlan, Plan, Scheme, Security};

use super::Found;
use crate::outcome;
use crate::target::DeviceAddress;

/// The wait for news before the clock is looked at again.
const WAIT: Duration = Duration::from_millis(10);
/// Links in a row without an answer after which no more are tried.
const SILENT_MAX: usize = 256;

/// The longest wait for a consumer that reports nothing.
const CONSUMER_MAX: Micros = Micros::from_secs(60);

/// The least time for which a server over TLS may still refuse a link of a session that begins without a word of the
/// peer: over TLS 1.3 our handshake ends first.
const REFUSAL_MIN: Micros = Micros::from_millis(500);

/// The end of a link's first try.
type Answer = Result<Micros, ConnectFailure>;

/// Takes note of the answers to links, in the order in which they come.
#[derive(Debug, Clone, Default)]
struct Listener(Arc<Mutex<Answers>>);

/// The answers to links.
#[derive(Debug, Default)]
struct Answers {
    /// In the order in which they came. A link that came up may be refused after that.
    answers: Vec<(LinkId, Answer)>,
    /// Instant up to which a server may refuse the links that came up.
    refusal_until: Micros,
}

impl Answers {
    fn connected(&mut self, link: &LinkFact, took: Micros) {
        self.answers.push((link.link, Ok(took)));
        // A refusal takes one round trip, and the handshake took more.
        let until = link.at + took.max(REFUSAL_MIN);
        self.refusal_until = self.refusal_until.max(until);
    }

    fn failed(&mut self, link: LinkId, failure: ConnectFailure) {
        self.answers.push((link, Err(failure)));
    }
}

impl Listener {
    fn state(&self) -> MutexGuard<'_, Answers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the last links had no answer, which means that nobody is there.
    fn is_nobody_there(&self) -> bool {
        let is_silence = |answer: &&(LinkId, Answer)| {
            answer
                .1
                .is_err_and(|failure| kind(failure, Scheme::Mqtt).0 == outcome::SILENT)
        };
        let state = self.state();
        let last = state.answers.iter().rev().take_while(is_silence);
        last.take(SILENT_MAX).count() == SILENT_MAX
    }
}

impl FactWriter for Listener {
    fn note(&mut self, fact: &Fact) {
        let Fact::Link(fact) = fact else { return };
        if let LinkEvent::Connected { took } = fact.event {
            self.state().connected(fact, took);
        } else if let LinkEvent::Disconnected(Cause::Tls(failure)) = fact.event {
            self.state().failed(fact.link, ConnectFailure::Tls(failure));
        } else if let LinkEvent::Failed(failure) = fact.event
            && failure != ConnectFailure::RunEnded
        {
            self.state().failed(fact.link, failure);
        }
    }
}

/// The links and consumers of a plan that only connects, and where they do so.
pub(super) struct Connecting<'a> {
    pub(super) plan: &'a Plan,
    pub(super) targets: &'a [DeviceAddress],
}

impl<'a> Connecting<'a> {
    /// Connects a share of the links.
    pub(super) fn links(&self, slice: Slice) -> Result<Links<'a>> {
        let listener = Listener::default();
        let is_alone = self.targets.len() == 1;
        let mut fleets = self.plan.fleets.iter();
        let may_refuse = fleets
            .any(|fleet| fleet.client.http().is_some() && self.plan.scheme_of(fleet).is_tls());
        let diagnostics =
            self.carry_out(Some(slice), None, &listener, |progress, diagnostics| {
                // An error of the network is that of the only address.
                let is_nobody = || {
                    let mut diagnostics = diagnostics.iter();
                    is_alone && diagnostics.any(|it| matches!(it, Diagnostic::Unreachable(_)))
                };
                let is_each_answered = progress.links_untried == 0
                    && (progress.links_up == 0
                        || !may_refuse
                        || progress.at >= listener.state().refusal_until);
                is_each_answered || listener.is_nobody_there() || is_nobody()
            })?;
        let answers = std::mem::take(&mut listener.state().answers);
        Ok(Links::new(self.plan, answers, diagnostics))
    }

    /// Connects and subscribes the first consumer of a backend; that of a webhook listens.
    pub(super) fn consumer(&self, id: BackendId, at: SocketAddr) -> Result<Found> {
        let consumer = ((id, ConsumerId(0)), at);
        let backend = self.plan.backends[id.index()].kind();
        let mut is_up = false;
        let why = |diagnostics: &[Diagnostic]| {
            diagnostics.iter().find_map(|it| {
                if let Diagnostic::ConsumerRefused(refusal) = it {
                    return Some(refused(&refusal.cause, backend));
                }
                let Diagnostic::ConsumerAway(absence) = it else {
                    return None;
                };
                Some(Found::new(outcome::SILENT, "silent", &absence.why))
            })
        };
        let listener = Listener::default();
        let diagnostics =
            self.carry_out(None, Some(consumer), &listener, |progress, diagnostics| {
                is_up = progress.consumers_up > 0;
                is_up || why(diagnostics).is_some() || progress.at > CONSUMER_MAX
            })?;
        if is_up {
            let text = if backend.listens {
                "free to listen on; whether the platform pushes is not known before a run"
            } else if backend.only_commands {
                "logged in"
            } else {
                "connected and subscribed"
            };
            return Ok(Found::new(outcome::PASS, "ok", text));
        }
        let silent = || {
            let text = format!("no answer within {CONSUMER_MAX}");
            Found::new(outcome::SILENT, "silent", text)
        };
        Ok(why(&diagnostics).unwrap_or_else(silent))
    }

    /// Runs until all is decided; answers with what was not as it should be.
    fn carry_out(
        &self,
        slice: Option<Slice>,
        consumer: Option<((BackendId, ConsumerId), SocketAddr)>,
        listener: &Listener,
        mut is_decided: impl FnMut(&Progress, &[Diagnostic]) -> bool,
    ) -> Result<Vec<Diagnostic>> {
        let clock = Clock::start();
        let assignment = Assignment {
            name: String::new(),
            plan: self.plan.clone(),
            run: RunId(clock.t0_ns() as u32),
            slice,
            t0_ns: clock.t0_ns(),
            wall_ms_at_t0: clock.wall_ms_at_t0(),
            shards: 1,
            targets: self.targets.to_vec(),
            consumers: consumer.into_iter().collect(),
            gateways: Vec::new(),
            trial: Trial {
                slots: 1,
                buffers: 1_024,
                lost_copy: None,
            },
        };
        let writer = || Some(Box::new(listener.clone()) as Box<dyn FactWriter>);
        let mut agent = Agent::start_with(assignment, &writer).context("connect")?;
        agent.order(Order::Connect);
        let (since, mut is_over, mut diagnostics) = (clock.now(), false, Vec::new());
        loop {
            match agent.next(WAIT) {
                Some(News::Dispatch(dispatch)) => {
                    diagnostics.extend(dispatch.diagnostics);
                    let is_news = dispatch.progress.at > since && !is_over;
                    if is_news && is_decided(&dispatch.progress, &diagnostics) {
                        agent.order(Order::Finish);
                        is_over = true;
                    }
                }
                Some(News::Ended(_)) => return Ok(diagnostics),
                Some(News::Lost(why)) => bail!("connect: {why}"),
                Some(News::Sample(_)) | None => {}
            }
        }
    }
}

/// The links that were tried, with their answers.
pub(super) struct Links<'a> {
    plan: &'a Plan,
    answers: BTreeMap<LinkId, Answer>,
    diagnostics: Vec<Diagnostic>,
    /// All that is known of a failure, from the first link that had it.
    details: BTreeMap<String, String>,
}

impl<'a> Links<'a> {
    fn new(plan: &'a Plan, answers: Vec<(LinkId, Answer)>, diagnostics: Vec<Diagnostic>) -> Self {
        let mut links = Self {
            plan,
            answers: BTreeMap::new(),
            diagnostics,
            details: BTreeMap::new(),
        };
        for (link, answer) in answers {
            let first = links.answers.entry(link).or_insert(answer);
            if first.is_ok() {
                *first = answer;
            }
        }
        for fleet in &plan.fleets {
            let name_of = names(plan, fleet);
            for link in (fleet.first_link.0..fleet.first_link.0 + fleet.links).map(LinkId) {
                if let Some(Err(failure)) = links.answers.get(&link)
                    && let Some(detail) = links.own_detail(&name_of(link))
                {
                    links.details.entry(failure.to_string()).or_insert(detail);
                }
            }
        }
        links
    }

    /// The answer to a link, in words; none if it was not tried to its end.
    pub(super) fn of(&self, fleet: &FleetPlan, link: LinkId, name: &str) -> Option<Found> {
        let failure = match self.answers.get(&link)? {
            Ok(took) => {
                let text = format!("connected within {took}{}", untried(fleet));
                return Some(Found::new(outcome::PASS, "ok", text));
            }
            Err(failure) => *failure,
        };
        let (code, mark) = kind(failure, self.plan.scheme_of(fleet));
        Some(Found::new(code, mark, self.text(failure, fleet, name)))
    }

    /// Further things that the engine noticed.
    pub(super) fn notes(&self) -> impl Iterator<Item = &str> {
        self.diagnostics.iter().filter_map(|it| {
            let (Diagnostic::Unreachable(text)
            | Diagnostic::LowerQos(text)
            | Diagnostic::Limit(text)
            | Diagnostic::Failed(text)) = it
            else {
                return None;
            };
            Some(text.as_str())
        })
    }

    fn text(&self, failure: ConnectFailure, fleet: &FleetPlan, name: &str) -> String {
        let security = Security::of_devices(self.plan.scheme_of(fleet));
        let detail = self.own_detail(name);
        let detail = detail.or_else(|| self.details.get(&failure.to_string()).cloned());
        match (failure, detail) {
            (ConnectFailure::Rejected(reason), _) => {
                let see = match reason.is_of_credentials() {
                    true => format!("; see `credential` of fleet `{}`", fleet.name),
                    false => String::new(),
                };
                let said = self.reason_string(failure);
                format!("CONNACK {}{said}{see}", reason.in_words())
            }
            (ConnectFailure::SubscribeRejected(reason), _) => {
                format!("SUBSCRIBE refused with {}", reason.in_words())
            }
            (ConnectFailure::Malformed, detail) => {
                let what = detail.unwrap_or_else(|| "it answered in another protocol".to_owned());
                what + &security.hint_on_nonsense()
            }
            (ConnectFailure::SubscribeUnanswered, Some(detail)) => format!("{detail} ({failure})"),
            (_, Some(detail)) => detail,
            (ConnectFailure::TimedOut, None) => {
                format!("no answer within {}", fleet.connect.timeout)
            }
            (ConnectFailure::Refused, None) => {
                "the connection was refused; does anybody listen there?".to_owned()
            }
            (ConnectFailure::Closed, None) => {
                let hint = security.hint_on_silence();
                let awaited = match fleet.client.protocol().asks {
                    true => "it was of use",
                    false => "CONNACK came",
                };
                format!("the connection was closed before {awaited}{hint}")
            }
            (_, None) => failure.in_words(),
        }
    }

    /// Details of the failure of a device or a link by its name.
    fn own_detail(&self, name: &str) -> Option<String> {
        let names = [format!("device `{name}`"), format!("link `{name}`")];
        self.diagnostics.iter().find_map(|it| {
            let (Diagnostic::Handshake(text) | Diagnostic::LinkRefused(text)) = it else {
                return None;
            };
            let rest = names.iter().find_map(|name| text.strip_prefix(name))?;
            let rest = rest.trim_start_matches([':', ' ']);
            let alone = rest.split_once("; others like it");
            Some(alone.map_or(rest, |(alone, _)| alone).to_owned())
        })
    }

    fn reason_string(&self, failure: ConnectFailure) -> String {
        let by_cause = failure.to_string();
        let said = self.diagnostics.iter().find_map(|it| {
            let Diagnostic::ReasonString { cause, text } = it else {
                return None;
            };
            (*cause == by_cause).then(|| format!(", \"{text}\""))
        });
        said.unwrap_or_default()
    }
}

/// The line of a consumer that does not come up.
fn refused(cause: &RefusalCause, backend: BackendKind) -> Found {
    let (code, mark) = match cause.kind {
        RefusalKind::Refused | RefusalKind::Commands => (outcome::USAGE, "refused"),
        RefusalKind::OtherProtocol => (outcome::USAGE, backend.spec().absent),
        RefusalKind::Unreachable | RefusalKind::NotReady => (outcome::SILENT, "silent"),
    };
    Found::new(code, mark, cause.to_string())
}

/// The exit code for a link that failed so, and the mark of its line.
fn kind(failure: ConnectFailure, scheme: Scheme) -> (u8, &'static str) {
    use ConnectFailure::{GeneratorLimit, Malformed, Tls, Unsendable, UpgradeRefused};
    if failure.is_refusal() {
        (outcome::USAGE, "refused")
    } else if failure == Malformed {
        (outcome::USAGE, scheme.protocol().spec().absent)
    } else if matches!(failure, Unsendable | GeneratorLimit) {
        (outcome::INVALID, "short")
    } else if scheme.is_dtls() || matches!(failure, Tls(_) | UpgradeRefused(_)) {
        (outcome::SILENT, "no link")
    } else {
        (outcome::SILENT, "silent")
    }
}

/// The part of a fleet's settings that no connection tries, as the end of a sentence. Over HTTP credentials go with
/// each request, and a check sends none by itself: it could be a message of a device.
pub(super) fn untried(fleet: &FleetPlan) -> &'static str {
    if fleet.client.http().is_none() {
        return "";
    }
    match &fleet.credential {
        Credential::Password { .. } | Credential::Token { .. } => {
            "; credentials go with each request over HTTP, and only --loop sends one"
        }
        Credential::Certificate { .. } => {
            "; a server may refuse a certificate with the first request, and only --loop sends one"
        }
        Credential::None | Credential::Psk { .. } => "; only --loop sends a request",
    }
}

/// The names of a fleet's links.
pub(super) fn names(plan: &Plan, fleet: &FleetPlan) -> impl Fn(LinkId) -> String {
    let directory = directory(plan, fleet, 0);
    move |link| {
        let mut name = String::new();
        fleet.render_link_name(link, &directory, &mut name);
        name
    }
}
