//! The gateway's misbehaviours.

use muster_model::behaviour::{
    Amount, Batch, Behaviour, Capacity, CloseLinks, Delayed, Full, Leak, Reject, Sawtooth, Service,
    ServiceTime, Stall,
};
use muster_model::{Micros, Rate};

use muster_platform::Dialect;

use crate::units;
use crate::view::View;

const OF_DELIVERY: [&str; 6] = [
    "lose-after-accept",
    "duplicate",
    "reorder",
    "deliver-late",
    "corrupt",
    "reject-but-deliver",
];
const OF_ACKNOWLEDGEMENT: [&str; 3] = ["answer-garbled", "answer-unknown", "answer-batch"];
/// And with several of them in one message, where what has a northbound has no such messages.
const OF_BATCHES: [&str; 1] = ["answer-batch"];

const OF_COMMANDS: [&str; 4] = [
    "lose-commands",
    "duplicate-commands",
    "delay-commands",
    "command-rate",
];

/// The gateway changes what it holds ten times a second.
const SAWTOOTH_LEAST: Micros = Micros::from_secs(1);

/// Refuses misbehaviour towards commands where no backend of the platform issues any.
pub(super) fn has_commands(platform: &View<'_>, behaviour: &View<'_>) -> Option<()> {
    let mut strays = OF_COMMANDS
        .into_iter()
        .filter(|key| behaviour.get(key).is_some());
    let backends = platform.list("backend");
    let has_any = backends
        .iter()
        .any(|backend| backend.get("commands").is_some());
    let Some(stray) = strays.next().filter(|_| !has_any) else {
        return Some(());
    };
    let what = format!("`{stray}` has no meaning: no backend issues commands");
    let help = "add `commands: { rate: 50/s }` to `platform.backend`, or remove it";
    behaviour.get(stray)?.refuse(what, help)
}

/// Reads `platform.behaviour`; `is_acknowledged` says that the application acknowledges messages of
/// some stream.
pub(super) fn behaviour(
    view: &View<'_>,
    dialect: Dialect,
    is_acknowledged: bool,
) -> Option<Behaviour> {
    suits(view, dialect, is_acknowledged)?;
    let count = |key| view.whole(key).unwrap_or(0);
    let delayed = |key| {
        view.get(key)
            .and_then(|view| delayed(&view))
            .unwrap_or_default()
    };
    if view.get("capacity").is_none() {
        for key in ["queue", "full"] {
            if let Some(stray) = view.get(key) {
                let what = format!("`{key}` has no meaning without `capacity`");
                stray.wrong(what, "add `capacity: 5000/s`, or remove it");
            }
        }
    }
    Some(Behaviour {
        service_time: view
            .get("service-time")
            .and_then(|view| service_time(&view)),
        capacity: view.get("capacity").and_then(|_| capacity(view)),
        lose_after_accept: count("lose-after-accept"),
        drop: count("drop"),
        ignore: count("ignore"),
        answer_late: delayed("answer-late"),
        answer_twice: count("answer-twice"),
        answer_garbled: count("answer-garbled"),
        answer_unknown: count("answer-unknown"),
        answer_batch: view.get("answer-batch").and_then(|view| batch(&view)),
        duplicate: count("duplicate"),
        reorder: count("reorder"),
        deliver_late: delayed("deliver-late"),
        corrupt: count("corrupt"),
        reject: view.get("reject").and_then(|view| reject(&view, dialect)),
        reject_but_deliver: perhaps_delayed(view, "reject-but-deliver").unwrap_or_default(),
        lose_stored: count("lose-stored"),
        stall_store: view.get("stall-store").and_then(|view| stall(&view)),
        device_limit: view.whole("device-limit"),
        message_limit: delayed("message-limit"),
        rest_rate: view.get("rest-rate").and_then(|_| rate(view, "rest-rate")),
        lose_commands: count("lose-commands"),
        duplicate_commands: count("duplicate-commands"),
        delay_commands: delayed("delay-commands"),
        command_rate: view
            .get("command-rate")
            .and_then(|_| rate(view, "command-rate")),
        connect_rate: view
            .get("connect-rate")
            .and_then(|_| rate(view, "connect-rate")),
        session_queue: view.whole("session-queue"),
        stall: view.get("stall").and_then(|view| stall(&view)),
        close_links: view.get("close-links").and_then(|view| close_links(&view)),
        no_gateways: view.truth("no-gateways").unwrap_or(false),
        leak: view.get("leak").and_then(|view| leak(&view)),
        sawtooth: view.get("sawtooth").and_then(|view| sawtooth(&view)),
    })
}

/// Checks that the dialect has what each misbehaviour is about.
fn suits(view: &View<'_>, dialect: Dialect, is_acknowledged: bool) -> Option<()> {
    let (mut strays, why): (Vec<&str>, _) = match (dialect.has_northbound, is_acknowledged) {
        (false, _) => (OF_DELIVERY.to_vec(), "no message is delivered anywhere"),
        (true, false) => (
            OF_ACKNOWLEDGEMENT.to_vec(),
            "no application acknowledges messages",
        ),
        (true, true) => (
            [OF_DELIVERY.as_slice(), &OF_BATCHES].concat(),
            "what is asked is answered one by one, and delivered nowhere",
        ),
    };
    strays.retain(|key| view.get(key).is_some());
    for key in &strays {
        let what = format!("`{key}` has no meaning with {dialect}: {why}");
        view.get(key)?.wrong(what, "remove it");
    }
    strays.is_empty().then_some(())
}

fn service_time(view: &View<'_>) -> Option<ServiceTime> {
    if let Some(drift) = view.get("drift") {
        if let Some(stray) = view.get("exponential") {
            return stray.refuse("`exponential` is a second service time", "keep one of them");
        }
        return Some(ServiceTime::Drift {
            from: drift.time("from")?,
            to: drift.time("to")?,
            over: drift.time("over")?,
        });
    }
    match view.time("exponential") {
        None if view.text().is_empty() => view.refuse(
            "the service time is not said",
            "such as 2ms, { exponential: 2ms } or { drift: { from: 2ms, to: 3ms, over: 60s } }",
        ),
        Some(mean) => Some(ServiceTime::Exponential(mean)),
        None => view
            .accept(units::time(view.text()))
            .map(ServiceTime::Fixed),
    }
}

fn capacity(behaviour: &View<'_>) -> Option<Capacity> {
    let view = behaviour.get("capacity")?;
    let rate = match view.get("rate") {
        Some(_) => view.rate("rate")?,
        None => view.accept(units::rate(view.text()))?,
    };
    if rate.get() <= 0.0 {
        return view.refuse(
            "a server of rate 0 never answers",
            "a rate above 0/s, or `stall`",
        );
    }
    Some(Capacity {
        rate,
        service: match view.text_of("service") {
            "exponential" => Service::Exponential,
            _ => Service::Fixed,
        },
        queue: behaviour.whole("queue").unwrap_or(Capacity::DEFAULT_QUEUE),
        full: match behaviour.text_of("full") {
            "reject" => Full::Reject,
            "block" => Full::Block,
            _ => Full::Drop,
        },
    })
}

/// A rate at which the gateway works: it never ends without one.
fn rate(behaviour: &View<'_>, key: &str) -> Option<Rate> {
    let rate = behaviour.rate(key)?;
    if rate.get() <= 0.0 {
        let what = format!("`{key}` of 0 does nothing ever");
        return behaviour.refuse_at(key, what, "a rate above 0/s");
    }
    Some(rate)
}

fn stall(view: &View<'_>) -> Option<Stall> {
    Some(Stall {
        at: view.time("at")?,
        lasts: view.time("for")?,
    })
}

fn batch(view: &View<'_>) -> Option<Batch> {
    Some(Batch {
        most: view.whole("most")?,
        within: view.time("within")?,
    })
}

fn close_links(view: &View<'_>) -> Option<CloseLinks> {
    Some(CloseLinks {
        at: view.time("at")?,
        share: view.share("share")?.as_fraction(),
    })
}

fn leak(view: &View<'_>) -> Option<Leak> {
    Some(Leak {
        bytes: view.rate("bytes")?,
        at_most: view.read("at-most", units::quantity)? as u64,
    })
}

fn sawtooth(view: &View<'_>) -> Option<Sawtooth> {
    let every = view.time("every")?;
    if every < SAWTOOTH_LEAST {
        let what = format!("`every` is {every}, which the gateway cannot keep up with");
        return view.refuse_at("every", what, "at least 1s");
    }
    let bytes = view.read("bytes", units::quantity)? as u64;
    Some(Sawtooth { bytes, every })
}

fn delayed(view: &View<'_>) -> Option<Delayed> {
    Some(Delayed {
        count: view.whole("count")?,
        by: view.time("by")?,
    })
}

fn perhaps_delayed(behaviour: &View<'_>, key: &str) -> Option<Delayed> {
    let view = behaviour.get(key)?;
    if view.text().is_empty() {
        return delayed(&view);
    }
    behaviour.whole(key).map(Delayed::at_once)
}

fn reject(view: &View<'_>, dialect: Dialect) -> Option<Reject> {
    let amount = match (view.share("share"), view.whole("count")) {
        (Some(share), None) => Amount::Share(share.as_fraction()),
        (None, Some(count)) => Amount::Count(count),
        (Some(_), Some(_)) => {
            return view.refuse("`share` and `count` both say how many", "keep one of them");
        }
        (None, None) => {
            return view.refuse(
                "how many are rejected is not said",
                "add `count: 10` or `share: 1%`",
            );
        }
    };
    let code = match view.get("code") {
        Some(_) => view.read("code", units::code)?,
        None => dialect.server.refusal,
    };
    if !(dialect.server.is_refusal)(code) {
        let what = format!("{code} is no code of a refusal with {dialect}");
        let help = format!("such as {}", dialect.server.refusal);
        return view.refuse_at("code", what, &help);
    }
    Some(Reject { code, amount })
}
