//! The gateway's misbehaviours.

use muster_model::behaviour::{
    Amount, Behaviour, Capacity, CloseLinks, Delayed, Full, Reject, Service, ServiceTime, Stall,
};

use crate::units;
use crate::view::View;

/// Reads `platform.behaviour`.
pub(super) fn behaviour(view: &View<'_>) -> Option<Behaviour> {
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
        duplicate: count("duplicate"),
        reorder: count("reorder"),
        deliver_late: delayed("deliver-late"),
        corrupt: count("corrupt"),
        reject: view.get("reject").and_then(|view| reject(&view)),
        reject_but_deliver: count("reject-but-deliver"),
        stall: view.get("stall").and_then(|view| {
            Some(Stall {
                at: view.time("at")?,
                lasts: view.time("for")?,
            })
        }),
        close_links: view.get("close-links").and_then(|view| {
            Some(CloseLinks {
                at: view.time("at")?,
                share: view.share("share")?.as_fraction(),
            })
        }),
    })
}

fn service_time(view: &View<'_>) -> Option<ServiceTime> {
    match view.time("exponential") {
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
        view.wrong(
            "a server of rate 0 never answers",
            "a rate above 0/s, or `stall`",
        );
        return None;
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

fn delayed(view: &View<'_>) -> Option<Delayed> {
    Some(Delayed {
        count: view.whole("count")?,
        by: view.time("by")?,
    })
}

fn reject(view: &View<'_>) -> Option<Reject> {
    let amount = match (view.share("share"), view.whole("count")) {
        (Some(share), None) => Amount::Share(share.as_fraction()),
        (None, Some(count)) => Amount::Count(count),
        (Some(_), Some(_)) => {
            view.wrong("`share` and `count` both say how many", "keep one of them");
            return None;
        }
        (None, None) => {
            view.wrong(
                "how many are rejected is not said",
                "add `count: 10` or `share: 1%`",
            );
            return None;
        }
    };
    Some(Reject {
        code: view
            .read("code", units::code)
            .unwrap_or(Reject::DEFAULT_CODE),
        amount,
    })
}
