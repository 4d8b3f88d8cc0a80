//! Names and counts of the published scale test of Eclipse Hono, second by second.
//!
//! Its figures are differences from one second to the next, by the formulas of [`PublishedSecond`].

use muster_measure::PublishedSecond;

use super::line::Line;
use crate::snapshot::{ClassCounts, Snapshot};

/// The name under which the published test counts what got no answer.
const NO_ANSWER: &str = "0";

/// The counts of the second before.
#[derive(Debug, Default)]
pub(super) struct Published {
    before: Vec<ClassCounts>,
}

impl Published {
    /// The lines of the seconds since the last snapshot.
    pub(super) fn lines(&mut self, snapshot: &Snapshot, host: &str) -> Vec<Line> {
        let at = snapshot.wall_ms;
        let mut lines = Vec::new();
        for class in &snapshot.classes {
            let is_same =
                |it: &&ClassCounts| it.protocol == class.protocol && it.class == class.class;
            let before = self
                .before
                .iter()
                .find(is_same)
                .cloned()
                .unwrap_or_default();
            let new = |measurement: String| {
                let mut line = Line::new(measurement, at);
                line.tag("type", class.class);
                line.tag("host", host);
                line
            };
            let sent = class.sent.saturating_sub(before.sent);
            let mut publish = new(format!("{}-publish", class.protocol));
            publish.whole("sent".to_owned(), sent);
            if class.protocol != "mqtt" {
                answers(&mut publish, class, &before);
                let mut errors = new(format!("{}-errors", class.protocol));
                if causes(&mut errors, class, &before) {
                    lines.push(errors);
                }
            }
            lines.push(publish);
            let mut consumer = Line::new("consumer".to_owned(), at);
            consumer.tag("type", class.class);
            let arrived = class.arrived.saturating_sub(before.arrived);
            consumer.whole("messageCount".to_owned(), arrived);
            add(&mut lines, consumer);
        }
        if snapshot
            .classes
            .iter()
            .any(|class| class.protocol == "mqtt")
        {
            let mut device = Line::new("mqtt-device".to_owned(), at);
            device.tag("host", host);
            device.whole("connected".to_owned(), snapshot.links_up);
            lines.push(device);
        }
        self.before.clone_from(&snapshot.classes);
        lines.extend(snapshot.annotations.iter().map(|of| {
            let mut event = Line::new("events".to_owned(), of.wall_ms);
            event.tag("source", "runner");
            event.text("title", &of.kind);
            event.text("description", &of.text);
            event.text("tags", &of.kind);
            event
        }));
        lines
    }
}

/// Adds a line; of two classes by different protocols the consumer counts both.
fn add(lines: &mut Vec<Line>, line: Line) {
    match lines
        .iter_mut()
        .find(|known| known.series() == line.series())
    {
        Some(known) => known.sum(&line),
        None => lines.push(line),
    }
}

fn answers(publish: &mut Line, now: &ClassCounts, before: &ClassCounts) {
    let second = PublishedSecond {
        sent: now.sent.saturating_sub(before.sent),
        success: now.success.saturating_sub(before.success),
        failure: failures(now).saturating_sub(failures(before)),
        took_us: now.took_us.saturating_sub(before.took_us),
    };
    publish.whole("success".to_owned(), second.success);
    publish.whole("failure".to_owned(), second.failure);
    publish.whole("backlog".to_owned(), now.open);
    publish.whole("durations".to_owned(), second.took_ms());
    publish.number("failureRatio".to_owned(), second.failure_ratio());
    if let Some(mean) = second.mean_ms() {
        publish.number("avgDuration".to_owned(), mean);
    }
}

fn failures(class: &ClassCounts) -> u64 {
    let refused: u64 = class.refused.iter().map(|(_, count)| count).sum();
    refused + class.unanswered
}

/// Adds the failures by code; false if there were none.
fn causes(errors: &mut Line, now: &ClassCounts, before: &ClassCounts) -> bool {
    let mut any = false;
    let mut add = |code: &str, now: u64, before: u64| {
        if now > before {
            errors.whole(code.to_owned(), now - before);
            any = true;
        }
    };
    for (code, count) in &now.refused {
        let known = before.refused.iter().find(|(known, _)| known == code);
        // A code of ours names its protocol, as in `http-503`; theirs is the number alone.
        let status = code.rsplit('-').next().unwrap_or(code);
        add(status, *count, known.map_or(0, |(_, count)| *count));
    }
    add(NO_ANSWER, now.unanswered, before.unanswered);
    any
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Annotation;

    fn snapshot(wall_ms: u64, classes: Vec<ClassCounts>) -> Snapshot {
        Snapshot {
            wall_ms,
            classes,
            ..Snapshot::default()
        }
    }

    fn class(sent: u64, success: u64, refused: u64, unanswered: u64) -> ClassCounts {
        ClassCounts {
            protocol: "http".to_owned(),
            class: "telemetry",
            sent,
            success,
            refused: vec![("http-503".to_owned(), refused)],
            unanswered,
            open: 4,
            took_us: success * 2_500,
            arrived: success,
        }
    }

    fn text(lines: &[Line]) -> Vec<String> {
        let mut text = String::new();
        lines.iter().for_each(|line| line.write(&mut text));
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn each_second_has_the_counts_of_that_second() {
        let mut published = Published::default();
        let first = published.lines(&snapshot(1_000, vec![class(200, 190, 0, 0)]), "pod-1");
        assert_eq!(
            text(&first),
            [
                "http-publish,type=telemetry,host=pod-1 sent=200i,success=190i,failure=0i,backlog=4i,durations=475i,\
                 failureRatio=0,avgDuration=2.5 1000",
                "consumer,type=telemetry messageCount=190i 1000",
            ]
        );
        let second = published.lines(&snapshot(2_000, vec![class(400, 387, 2, 1)]), "pod-1");
        assert_eq!(
            text(&second),
            [
                "http-errors,type=telemetry,host=pod-1 503=2i,0=1i 2000",
                "http-publish,type=telemetry,host=pod-1 sent=200i,success=197i,failure=3i,backlog=4i,durations=492i,\
                 failureRatio=0.02,avgDuration=2.46 2000",
                "consumer,type=telemetry messageCount=197i 2000",
            ]
        );
    }

    #[test]
    fn a_second_without_messages_has_no_mean() {
        let mut published = Published::default();
        let lines = published.lines(&snapshot(1_000, vec![class(0, 0, 0, 0)]), "pod-1");
        assert!(
            text(&lines)[0].ends_with("durations=0i,failureRatio=0 1000"),
            "{lines:?}"
        );
    }

    #[test]
    fn mqtt_has_sent_messages_and_connected_devices_alone() {
        let mqtt = ClassCounts {
            protocol: "mqtt".to_owned(),
            ..class(10, 10, 0, 0)
        };
        let both = snapshot(1_000, vec![class(5, 5, 0, 0), mqtt]);
        let both = Snapshot {
            links_up: 7,
            ..both
        };
        let lines = text(&Published::default().lines(&both, "pod-1"));
        assert!(lines.contains(&"mqtt-publish,type=telemetry,host=pod-1 sent=10i 1000".to_owned()));
        assert!(lines.contains(&"mqtt-device,host=pod-1 connected=7i 1000".to_owned()));
        assert!(
            lines.contains(&"consumer,type=telemetry messageCount=15i 1000".to_owned()),
            "{lines:?}"
        );
    }

    #[test]
    fn an_event_has_title_description_and_tags() {
        let annotations = vec![Annotation {
            wall_ms: 500,
            until_ms: None,
            kind: "phase".to_owned(),
            text: "measure".to_owned(),
        }];
        let remarked = Snapshot {
            annotations,
            ..Snapshot::default()
        };
        assert_eq!(
            text(&Published::default().lines(&remarked, "pod-1")),
            ["events,source=runner title=\"phase\",description=\"measure\",tags=\"phase\" 500"]
        );
    }
}
