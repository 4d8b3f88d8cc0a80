//! The published policy under virtual time: its times, its log, and its figures.

#[path = "published_test/scenario1.rs"]
mod scenario1;

use muster_measure::PublishedSecond;
use muster_model::Micros;
use muster_scale::{
    Event, Level, Limit, LogLine, Published, PublishedSpec, Reading, Second, Seconds,
};

use scenario1::scenario1;

/// Messages a second of one unit.
const UNIT: f64 = 2_000.0;
/// Messages a second that one instance carries.
const EACH: f64 = 5_000.0;

/// The published run with fewer units and instances.
const SPEC: PublishedSpec = scenario1(Level {
    units: 10,
    instances: 5,
});

/// A test that ended.
#[derive(Debug)]
struct Ended {
    limit: Limit,
    lines: Vec<LogLine>,
    /// Every event.
    events: Vec<Event>,
    took: Micros,
}

impl Ended {
    /// The most units of load that were acceptable with a number of instances.
    fn most(&self, instances: u32) -> Option<u32> {
        let of = self.lines.iter().filter(|line| line.is_stable);
        let of = of.filter(|line| line.level.instances == instances);
        of.map(|line| line.level.units).max()
    }
}

/// Runs the test against a target that carries `capacity` messages of a level in a second, and rejects the rest.
fn run(spec: PublishedSpec, capacity: impl Fn(Level, u64) -> f64) -> Ended {
    go_on(Published::new(spec), spec, capacity)
}

/// Runs the test from where it stands.
fn go_on(mut test: Published, spec: PublishedSpec, capacity: impl Fn(Level, u64) -> f64) -> Ended {
    let begun = 1_532_500_000;
    let mut seconds = Seconds::new(spec.window, spec.offset);
    let (mut lines, mut events) = (Vec::new(), Vec::new());
    test.applied(Micros::from_secs(begun));
    for at in begun..begun + 1_000_000 {
        let now = Micros::from_secs(at);
        let reading = match now < test.next_check() {
            true => Reading::default(),
            false => seconds.reading(now),
        };
        while let Some(event) = test.step(now, &reading) {
            events.push(event);
            match event {
                Event::Log(line) => lines.push(line),
                Event::Set(_) => test.applied(now),
                Event::StableStart => {}
                Event::End(limit) => {
                    let took = now - Micros::from_secs(begun);
                    assert!(took <= spec.longest(spec.least), "{took}");
                    return Ended {
                        limit,
                        lines,
                        events,
                        took,
                    };
                }
            }
        }
        let level = test.level();
        let sent = UNIT * f64::from(level.units);
        let success = sent.min(capacity(level, at));
        seconds.add(Second {
            at,
            requests: PublishedSecond {
                sent: sent as u64,
                success: success as u64,
                failure: (sent - success) as u64,
                took_us: (sent * 5_000.0) as u64,
            },
            answered: sent as u64,
            received: success as u64,
        });
    }
    panic!("the test does not end: {lines:?}");
}

#[test]
fn a_linear_target_carries_each_unit_until_the_units_end() {
    let ended = run(SPEC, |level, _| EACH * f64::from(level.instances));
    assert_eq!(ended.limit, Limit::Units);
    let most: Vec<_> = (1..=4).map(|instances| ended.most(instances)).collect();
    // 5,000 carry two units, and 15,000 seven.
    assert_eq!(most, [Some(2), Some(5), Some(7), Some(10)]);
    let last = ended.lines.last().expect("a last line");
    assert!(!last.is_stable && last.level.units == 10);
    // A level takes 4 min of wait and 5 min of improvement; an instance more 15 min of wait besides.
    let minutes = ended.took.as_secs_f64() / 60.0;
    assert!(
        (7.0 + 9.0 * 9.0 + 3.0 * 19.0..150.0).contains(&minutes),
        "{minutes}"
    );
}

#[test]
fn failures_below_half_a_percent_a_second_are_never_seen() {
    let ended = run(SPEC, |level, _| UNIT * f64::from(level.units) * 0.9952);
    assert_eq!(ended.limit, Limit::Units);
    let stable = ended.lines.iter().filter(|line| line.is_stable);
    for line in stable {
        assert_eq!(line.published.failure_ratio, Some(0.0));
        let summed = line.summed.failure_ratio.expect("messages were sent");
        assert!((0.004..0.006).contains(&summed), "{summed}");
    }
}

#[test]
fn the_logged_rate_is_of_an_earlier_level_unless_a_reading_improves() {
    let ended = run(SPEC, |level, _| EACH * f64::from(level.instances));
    let stable: Vec<_> = ended.lines.iter().filter(|line| line.is_stable).collect();
    // Nothing fails, so that no reading is better than the first one.
    let second = stable[0];
    assert_eq!(second.level.units, 2);
    assert_eq!(second.published.received_per_s, UNIT);
    assert_eq!(second.summed.received_per_s, 2.0 * UNIT);
}

#[test]
fn a_line_has_the_form_of_the_published_log() {
    let ended = run(SPEC, |level, _| EACH * f64::from(level.instances));
    let line = ended.lines[1];
    assert_eq!(
        line.text("2018-07-25T10:15:30Z"),
        "2018-07-25T10:15:30Z;2000;0.0000;5;2;1"
    );
}

#[test]
fn a_test_that_was_interrupted_goes_on_at_its_level() {
    let level = Level {
        units: 3,
        instances: 2,
    };
    let line = LogLine {
        at: Micros::ZERO,
        level,
        published: Reading::default().published,
        summed: Reading::default().summed,
        is_stable: true,
    };
    let mut test = Published::resumed(SPEC, [Event::Log(line), Event::Set(level)]);
    let mut seconds = Seconds::new(SPEC.window, SPEC.offset);
    test.applied(Micros::ZERO);
    assert_eq!(test.constant_until(), Micros::from_secs(240));
    for at in 0..240 {
        assert_eq!(
            test.step(
                Micros::from_secs(at),
                &seconds.reading(Micros::from_secs(at))
            ),
            None
        );
        let requests = PublishedSecond {
            sent: 10,
            success: 10,
            ..PublishedSecond::default()
        };
        seconds.add(Second {
            at,
            requests,
            answered: 10,
            received: 10,
        });
    }
    let now = Micros::from_secs(240);
    assert_eq!(
        test.step(now, &seconds.reading(now)),
        Some(Event::StableStart)
    );
}

#[test]
fn a_test_that_goes_on_after_any_event_doubles_and_loses_no_level() {
    let carried = |ended: &[LogLine]| {
        let stable = ended.iter().filter(|line| line.is_stable);
        stable.map(|line| line.level).collect::<Vec<_>>()
    };
    let few_units = PublishedSpec {
        most: Level {
            units: 6,
            ..SPEC.most
        },
        ..SPEC
    };
    let few_instances = PublishedSpec {
        most: Level {
            instances: 2,
            ..SPEC.most
        },
        ..SPEC
    };
    for (spec, limit) in [(few_units, Limit::Units), (few_instances, Limit::Instances)] {
        let linear = |level: Level, _| EACH * f64::from(level.instances);
        let whole = run(spec, linear);
        assert_eq!(whole.limit, limit);
        for cut in 0..=whole.events.len() {
            let events = &whole.events[..cut];
            let mut lines: Vec<LogLine> = events.iter().filter_map(line_of).collect();
            let test = Published::resumed(spec, events.iter().copied());
            let end = match test.end() {
                Some(limit) => limit,
                None => {
                    let rest = go_on(test, spec, linear);
                    lines.extend(rest.lines);
                    rest.limit
                }
            };
            assert_eq!(end, limit, "after {events:?}");
            assert_eq!(carried(&lines), carried(&whole.lines), "after {events:?}");
        }
    }
}

fn line_of(event: &Event) -> Option<LogLine> {
    match event {
        Event::Log(line) => Some(*line),
        Event::StableStart | Event::Set(_) | Event::End(_) => None,
    }
}
