//! The figures of the running second, from the live view.

use muster_model::Micros;
use muster_result::{Live, LiveUse, Quantiles};

use crate::snapshot::{Point, Value};
use crate::table;

/// The values that the live view has. What is not known is absent.
pub(crate) fn points(live: &Live) -> Vec<Point> {
    let (rates, health) = (&live.rates, &live.health);
    let numbers = [
        (&table::OFFERED, rates.offered),
        (&table::ISSUED, rates.issued),
        (&table::COMPLETED, rates.completed),
        (&table::ARRIVING, rates.arrived),
        (&table::BACKLOG, live.backlog_s),
        (&table::DELIVERY_BACKLOG, live.delivery_backlog_s),
        (&table::SHARD_CPU, health.shard_cpu),
        (&table::CONSUMER_CPU, health.consumer_cpu),
        (&table::CPU_WAIT, health.cpu_wait),
        (&table::RUN_ELAPSED, Some(live.clock.elapsed.as_secs_f64())),
    ];
    let counts = [
        (&table::LINKS_WANTED, Some(live.links.wanted)),
        (&table::LINKS_UP, Some(live.links.up)),
        (&table::NOT_ARRIVED, live.messages.not_arrived),
        (&table::RSS, health.rss_bytes),
        (&table::FAULTS, Some(health.faults.len() as u64)),
        (&table::STRAINS, Some(health.warnings.len() as u64)),
        (
            &table::RUN_FAILING_SLOS,
            live.slos.as_ref().map(|slos| slos.len() as u64),
        ),
    ];
    let numbers = numbers.into_iter();
    let numbers = numbers.filter_map(|(metric, value)| Some(Point::number(metric, &[], value?)));
    let counts = counts.into_iter();
    let counts = counts.filter_map(|(metric, value)| Some(Point::count(metric, &[], value?)));
    let quantiles = [
        (&table::RECENT_RESPONSE, of(&live.response)),
        (&table::RECENT_END_TO_END, of(&live.end_to_end)),
        (&table::OWN_LATENESS, known([(0.99, health.lateness_p99)])),
    ];
    let quantiles = quantiles
        .into_iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(metric, values)| Point::new(metric, &[], Value::Quantiles(values)));
    let phase = Point::count(&table::RUN_PHASE, &[live.clock.phase_name()], 1);
    numbers
        .chain(counts)
        .chain(quantiles)
        .chain([phase])
        .chain(live.usage.iter().map(used))
        .collect()
}

fn used(of: &LiveUse) -> Point {
    let resource = &of.resource;
    let labels = [&*resource.entry, &resource.name, resource.unit.name()];
    Point::number(&table::TARGET_USE, &labels, of.value)
}

fn of(quantiles: &Quantiles) -> Vec<(f64, f64)> {
    known([(0.5, quantiles.p50), (0.99, quantiles.p99)])
}

fn known<const N: usize>(values: [(f64, Option<Micros>); N]) -> Vec<(f64, f64)> {
    let values = values.into_iter();
    values
        .filter_map(|(quantile, value)| Some((quantile, value?.as_secs_f64())))
        .collect()
}
