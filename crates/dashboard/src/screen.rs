//! The screen of a running load test, drawn from a [`Live`] value and the last few minutes.

use std::collections::VecDeque;

use muster_conduct::Phase;
use muster_model::Micros;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::symbols::bar;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Gauge, Padding, Paragraph, Wrap};

use crate::figure::{at_least, bytes, count, duration, latency, per_second, percent, seconds};
use muster_result::Live;

/// Samples kept for the traces: at one a second more than the widest terminal shows.
const TRAIL: usize = 300;

/// Codes or causes that are listed.
const ERRORS: usize = 5;

/// Height of a plain terminal; what does not fit a lower one is cut at the bottom.
const HEIGHT: u16 = 24;

/// The figures on the screen, each with its trace.
#[derive(Debug, Clone, Default)]
pub struct Screen {
    trail: VecDeque<Sample>,
    last: Option<u32>,
}

/// One second of the trail.
#[derive(Debug, Clone, Copy)]
struct Sample {
    rates: [Option<f64>; 4],
    p99: [Option<Micros>; 2],
}

impl Screen {
    /// Adds to the traces, once a second however often it is called.
    pub fn note(&mut self, live: &Live) {
        let second = live.clock.elapsed.second();
        if self.last.is_some_and(|last| last >= second) {
            return;
        }
        self.last = Some(second);
        if self.trail.len() == TRAIL {
            self.trail.pop_front();
        }
        let rates = &live.rates;
        self.trail.push_back(Sample {
            rates: [rates.offered, rates.issued, rates.completed, rates.arrived],
            p99: [live.response.p99, live.end_to_end.p99],
        });
    }

    /// Draws the whole screen.
    pub fn draw(&self, live: &Live, frame: &mut Frame<'_>) {
        let area = frame.area();
        let area = Rect {
            height: area.height.min(HEIGHT),
            ..area
        };
        let [head, phase, links, traffic, below] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(1),
            Constraint::Length(2),
            Constraint::Length(9),
            Constraint::Min(0),
        ])
        .areas(area);
        let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]);
        let [rates, latencies] = halves.areas(traffic);
        let [messages, generator] = halves.areas(below);
        heading(live, head, frame);
        phase_gauge(live, phase, frame);
        links_gauge(live, links, frame);
        self.rates(live, rates, frame);
        self.latencies(live, latencies, frame);
        messages_panel(live, messages, frame);
        generator_panel(live, generator, frame);
    }

    fn rates(&self, live: &Live, area: Rect, frame: &mut Frame<'_>) {
        let rates = &live.rates;
        let figures = [
            ("offered", rates.offered),
            ("issued", rates.issued),
            ("answered", rates.completed),
            ("arrived", rates.arrived),
        ];
        let width = trace_width(area, 20);
        let most = self
            .trail
            .iter()
            .flat_map(|sample| sample.rates)
            .flatten()
            .fold(1.0, f64::max);
        let lines = figures.into_iter().enumerate().map(|(at, (name, figure))| {
            let values = self
                .trail
                .iter()
                .map(|sample| sample.rates[at].map(|rate| rate / most));
            Line::from(vec![
                label(format!("{name:<10}")),
                strong(format!("{:>9} ", per_second(figure))),
                Span::styled(trace(values, width), Style::new().fg(Color::Cyan)),
            ])
        });
        let backlog = Line::from(vec![
            label("backlog   "),
            warned(
                format!("{:>9}", seconds(live.backlog_s)),
                is_over(live.backlog_s),
            ),
            label(" to answer"),
        ]);
        let delivery = Line::from(vec![
            label("          "),
            warned(
                format!("{:>9}", seconds(live.delivery_backlog_s)),
                is_over(live.delivery_backlog_s),
            ),
            label(" to arrive"),
        ]);
        let lines: Vec<Line<'_>> = lines.chain([Line::default(), backlog, delivery]).collect();
        frame.render_widget(
            Paragraph::new(lines).block(panel("messages a second")),
            area,
        );
    }

    fn latencies(&self, live: &Live, area: Rect, frame: &mut Frame<'_>) {
        let width = trace_width(area, 1);
        let legs = [("response", live.response), ("end-to-end", live.end_to_end)];
        let head = format!("{:<11}{:>11}{:>11}", "", "p50", "p99");
        let mut lines = vec![Line::from(label(head))];
        for (at, (name, figures)) in legs.into_iter().enumerate() {
            let of_trail = || self.trail.iter().map(move |sample| sample.p99[at]);
            let most = of_trail()
                .flatten()
                .fold(1, |most, p99| most.max(p99.get()));
            let values = of_trail().map(|p99| p99.map(|p99| p99.get() as f64 / most as f64));
            lines.push(Line::from(vec![
                label(format!("{name:<11}")),
                strong(format!(
                    "{:>11}{:>11}",
                    at_least(figures.p50, figures.is_p50_at_least),
                    at_least(figures.p99, figures.is_p99_at_least)
                )),
                label(match figures.p99_over_s {
                    over @ 2.. if figures.p99.is_some() => format!(" over {over} s"),
                    _ => String::new(),
                }),
            ]));
            let color = Style::new().fg(Color::Magenta);
            lines.push(Line::from(Span::styled(trace(values, width), color)));
            lines.push(Line::default());
        }
        frame.render_widget(
            Paragraph::new(lines).block(panel("latency, trace of p99")),
            area,
        );
    }
}

fn heading(live: &Live, area: Rect, frame: &mut Frame<'_>) {
    let [left, right] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(34)]).areas(area);
    let name = Span::styled(
        format!(" {} ", live.name),
        Style::new().add_modifier(Modifier::BOLD),
    );
    frame.render_widget(Line::from(vec![name, label(live.target.clone())]), left);
    let left_over = match live.clock.run_left() {
        Some(left) => format!(", {} left at most ", duration(left)),
        None => " ".to_owned(),
    };
    let clock = Line::from(vec![strong(duration(live.clock.elapsed)), label(left_over)]);
    frame.render_widget(Paragraph::new(clock).alignment(Alignment::Right), right);
}

fn phase_gauge(live: &Live, area: Rect, frame: &mut Frame<'_>) {
    let length = live
        .clock
        .phase_until
        .map(|until| (until - live.clock.phase_from).as_secs_f64());
    let done = (live.clock.elapsed - live.clock.phase_from).as_secs_f64();
    let ratio = length
        .filter(|length| *length > 0.0)
        .map_or(0.0, |length| done / length);
    let left = live
        .clock
        .phase_left()
        .map(|left| format!(", {} left", duration(left)));
    let text = format!("{}{}", live.clock.phase_name(), left.unwrap_or_default());
    let color = match live.clock.phase {
        Phase::Measure => Color::Green,
        Phase::Connect | Phase::WarmUp | Phase::Settle | Phase::Finish => Color::Blue,
    };
    gauge(area, frame, ratio, text, color);
}

fn links_gauge(live: &Live, area: Rect, frame: &mut Frame<'_>) {
    let wanted = live.links.wanted.max(1);
    let ratio = live.links.up as f64 / wanted as f64;
    let text = format!(
        "{} of {} links up",
        count(live.links.up),
        count(live.links.wanted)
    );
    let is_short = live.clock.phase != Phase::Connect && live.links.up < live.links.wanted;
    let color = if is_short { Color::Yellow } else { Color::Blue };
    let row = Rect {
        height: area.height.min(1),
        ..area
    };
    gauge(row, frame, ratio, text, color);
}

fn gauge(area: Rect, frame: &mut Frame<'_>, ratio: f64, text: String, color: Color) {
    let gauge = Gauge::default()
        .gauge_style(Style::new().fg(color).bg(Color::Black))
        .ratio(ratio.clamp(0.0, 1.0))
        .label(Span::styled(
            text,
            Style::new().fg(Color::White).add_modifier(Modifier::BOLD),
        ))
        .use_unicode(true);
    let area = area.inner(ratatui::layout::Margin {
        horizontal: 1,
        vertical: 0,
    });
    frame.render_widget(gauge, area);
}

fn messages_panel(live: &Live, area: Rect, frame: &mut Frame<'_>) {
    let arrived = live.messages.arrived.map_or_else(|| "-".to_owned(), count);
    let figure = |name: &str, value: String, is_bad: bool| {
        Line::from(vec![
            label(format!("{name:<12}")),
            warned(format!("{value:>13}"), is_bad),
        ])
    };
    let mut lines = vec![
        figure("sent", count(live.messages.sent), false),
        figure("accepted", count(live.messages.accepted), false),
        figure("arrived", arrived, false),
        missing(live),
        figure("shed", count(live.messages.shed), live.messages.shed > 0),
    ];
    let is_connecting = live.clock.phase == Phase::Connect && !live.links.failures.is_empty();
    if is_connecting {
        let causes = live.links.failures.iter().take(ERRORS);
        let words =
            causes.map(|(cause, n)| Line::from(warned(format!("{} {cause}", count(*n)), true)));
        lines.extend(words);
    } else {
        let errors = live.errors.iter().take(ERRORS);
        lines.extend(errors.map(|(code, number)| figure(code, count(*number), true)));
    }
    frame.render_widget(Paragraph::new(lines).block(panel("messages so far")), area);
}

/// Renders the lost messages if they are known, else those that have not arrived.
fn missing(live: &Live) -> Line<'static> {
    let (name, figure, is_bad) = match live.messages.lost {
        Some(lost) => ("lost", Some(lost), lost > 0),
        None => ("not arrived", live.messages.not_arrived, false),
    };
    let figure = figure.map_or_else(|| "-".to_owned(), count);
    Line::from(vec![
        label(format!("{name:<12}")),
        warned(format!("{figure:>13}"), is_bad),
    ])
}

fn generator_panel(live: &Live, area: Rect, frame: &mut Frame<'_>) {
    let health = &live.health;
    let figure = |name: &str, value: String| {
        Line::from(vec![
            label(format!("{name:<14}")),
            strong(format!("{value:>9}")),
        ])
    };
    let mut lines = vec![
        figure("shard cpu", percent(health.shard_cpu)),
        figure("consumer cpu", percent(health.consumer_cpu)),
        figure("waits for cpu", percent(health.cpu_wait)),
        figure("lateness p99", latency(health.lateness_p99)),
        figure("memory", bytes(health.rss_bytes)),
    ];
    let is_known = health.shard_cpu.is_some();
    if is_known && health.faults.is_empty() && health.warnings.is_empty() {
        let good = Style::new().fg(Color::Green);
        lines.push(Line::from(Span::styled("healthy", good)));
    }
    let bad = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
    let faults = health.faults.iter();
    lines.extend(faults.map(|fault| Line::from(Span::styled(format!("! {fault}"), bad))));
    let warnings = health.warnings.iter();
    lines.extend(warnings.map(|warning| Line::from(format!("now: {warning}").yellow())));
    let lines = Paragraph::new(lines).wrap(Wrap { trim: false });
    frame.render_widget(lines.block(panel("generator")), area);
}

fn panel(title: &str) -> Block<'_> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(Style::new().fg(Color::DarkGray))
        .title(Span::styled(
            format!(" {title} "),
            Style::new().add_modifier(Modifier::BOLD),
        ))
        .padding(Padding::horizontal(1))
}

fn label(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), Style::new().fg(Color::Gray))
}

fn strong(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), Style::new().add_modifier(Modifier::BOLD))
}

/// Bold, and yellow where it is a reason to look.
fn warned(text: impl Into<String>, is_bad: bool) -> Span<'static> {
    let span = strong(text);
    if is_bad { span.yellow() } else { span }
}

/// A backlog of a quarter of a second is where stability begins to count (docs/semantics.md#stability).
fn is_over(backlog_s: Option<f64>) -> bool {
    backlog_s.is_some_and(|backlog| backlog > 0.25)
}

fn trace_width(area: Rect, beside: u16) -> usize {
    // Two columns of border, two of padding.
    usize::from(area.width.saturating_sub(4 + beside))
}

/// The last values, 0 to 1, as bars of eighths, the newest at the right; unknown ones are blank.
fn trace(values: impl DoubleEndedIterator<Item = Option<f64>>, width: usize) -> String {
    const LEVELS: [&str; 9] = [
        " ",
        bar::ONE_EIGHTH,
        bar::ONE_QUARTER,
        bar::THREE_EIGHTHS,
        bar::HALF,
        bar::FIVE_EIGHTHS,
        bar::THREE_QUARTERS,
        bar::SEVEN_EIGHTHS,
        bar::FULL,
    ];
    let newest: Vec<Option<f64>> = values.rev().take(width).collect();
    let bars = newest.iter().rev().map(|value| match value {
        None => " ",
        Some(value) => LEVELS[(value * 8.0).round().clamp(0.0, 8.0) as usize],
    });
    let blank = " ".repeat(width - newest.len());
    blank + &bars.collect::<String>()
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::sample::sample;

    fn drawn(screen: &Screen, live: &Live, (width, height): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(live, frame)).unwrap();
        terminal.backend().to_string().chars().map(plain).collect()
    }

    /// The project's files are ASCII: bars of eighths as digits, lines as strokes.
    fn plain(symbol: char) -> char {
        match symbol {
            '\u{2588}' => '#',
            '\u{2581}'..='\u{2587}' => char::from(b'0' + (symbol as u32 - 0x2580) as u8),
            '\u{2589}'..='\u{258f}' => '#',
            '\u{2500}' => '-',
            '\u{2502}' => '|',
            '\u{256d}'..='\u{2570}' => '+',
            symbol => symbol,
        }
    }

    /// Half a minute in which the rates climb and the latency has one peak.
    fn traced(live: &Live) -> Screen {
        let mut screen = Screen::default();
        for second in 18..=47u64 {
            let share = (second - 17) as f64 / 30.0;
            let mut then = live.clone();
            then.clock.elapsed = Micros::from_secs(second);
            then.rates.issued = then.rates.issued.map(|rate| rate * share);
            then.rates.completed = then.rates.completed.map(|rate| rate * share);
            then.response.p99 = Some(Micros(if second == 30 { 90_000 } else { 20_000 }));
            screen.note(&then);
        }
        screen
    }

    #[test]
    fn a_measured_run_fits_a_plain_terminal() {
        let live = sample();
        insta::assert_snapshot!(drawn(&traced(&live), &live, (80, 24)));
    }

    #[test]
    fn a_run_that_connects_shows_what_it_does_not_know_as_a_dash() {
        let mut live = Live {
            name: "first".to_owned(),
            target: "mqtt://127.0.0.1:1883".to_owned(),
            ..Live::default()
        };
        (live.links.wanted, live.links.up) = (100, 40);
        insta::assert_snapshot!(drawn(&Screen::default(), &live, (80, 24)));
    }

    #[test]
    fn no_size_of_the_terminal_is_too_small_or_too_large() {
        let live = sample();
        for size in [(1, 1), (10, 3), (40, 12), (200, 60)] {
            drawn(&traced(&live), &live, size);
        }
    }

    #[test]
    fn the_trail_takes_one_sample_a_second_and_is_bounded() {
        let (mut screen, mut live) = (Screen::default(), sample());
        for quarter in 0..4_000u64 {
            live.clock.elapsed = Micros::from_millis(quarter * 250);
            screen.note(&live);
        }
        assert_eq!(screen.trail.len(), TRAIL);
    }

    #[test]
    fn a_trace_ends_with_the_newest_value() {
        let values = [Some(0.0), None, Some(0.5), Some(1.0)];
        assert_eq!(
            trace(values.into_iter(), 6),
            format!("   {}{}{}", " ", bar::HALF, bar::FULL)
        );
        assert_eq!(trace(values.into_iter(), 1), bar::FULL);
        assert_eq!(trace(values.into_iter(), 0), "");
    }
}
