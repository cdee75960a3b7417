//! Draws what is known of a partition.

use core::slice;
use core::time::Duration;

use partition::human::{elapsed, grouped, percent, si};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, Wrap};

use service::SourceRates;

use super::model::{Application, LastRun, Lines, Model, Rates, Run, Wait};

/// How to draw.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// Otherwise only bold and reversed letters.
    pub(super) has_colours: bool,
}

impl View {
    pub(super) fn draw(self, frame: &mut Frame<'_>, model: &Model) {
        let troubles = model.status.run.iter().map(|run| run.troubles.len() as u16).sum::<u16>().min(TROUBLES_MAX);
        // The table has what it needs, as long as some messages stay.
        let table = Constraint::Length(u16::try_from(model.rows()).unwrap_or(u16::MAX).saturating_add(1));
        let rates = Constraint::Length(if frame.area().height < LOW { 0 } else { RATES_HEIGHT });
        let [head, sentence, run, chart, applications, messages, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(2 + troubles),
            Constraint::Length(2),
            rates,
            table,
            Constraint::Min(4),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        self.head(frame, head, model);
        self.sentence(frame, sentence, model, troubles);
        frame.render_widget(self.figures(model), run);
        self.rates(frame, chart, model);
        self.table(frame, applications, model);
        self.messages(frame, messages, model);
        frame.render_widget(self.foot(model), foot);
    }

    fn head(self, frame: &mut Frame<'_>, area: Rect, model: &Model) {
        let status = &model.status;
        let [left, right] = Layout::horizontal([Constraint::Min(0), Constraint::Length(30)]).areas(area);
        let state =
            Span::styled(format!(" {} ", status.state), self.of_state(&status.state).add_modifier(Modifier::REVERSED));
        let name = Span::styled(format!("{} ", status.partition), Modifier::BOLD);
        frame.render_widget(Line::from(vec![name, state]), left);
        let holder = status.operator.as_ref().map_or("nobody".into(), |operator| operator.name.clone());
        frame.render_widget(Line::from(format!("{holder} commands")).right_aligned(), right);
    }

    /// Where the time goes or what is wrong; what is wrong besides.
    fn sentence(self, frame: &mut Frame<'_>, area: Rect, model: &Model, troubles: u16) {
        let (words, style) = match &model.silence {
            Some(why) => (format!("nothing is heard: {why}"), self.bad()),
            None => (model.status.sentence.clone(), self.of_state(&model.status.state)),
        };
        let mut text = Text::from(Line::styled(words, style.add_modifier(Modifier::BOLD)));
        let all = model.status.run.iter().flat_map(|run| &run.troubles).take(troubles.into());
        text.extend(all.map(|trouble| Line::styled(format!("! {trouble}"), self.bad())));
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), area);
    }

    fn figures(self, model: &Model) -> Paragraph<'static> {
        let status = &model.status;
        let entries = match (&status.run, &status.last) {
            (Some(run), _) => of_run(run, status.follow),
            (None, Some(last)) => of_last(last),
            (None, None) => vec![("run", "none yet".to_owned())],
        };
        let spans = entries.into_iter().flat_map(|(key, value)| {
            [Span::styled(format!("{key} "), self.soft()), Span::styled(value, Modifier::BOLD), Span::raw("   ")]
        });
        Paragraph::new(Line::from_iter(spans)).wrap(Wrap { trim: true })
    }

    fn rates(self, frame: &mut Frame<'_>, area: Rect, model: &Model) {
        type Rate = fn(&Rates) -> f64;
        let kinds: [(&str, Rate, Color); 3] = [
            ("level 1", |rates| rates.level1_hz, Color::Cyan),
            ("built", |rates| rates.built_hz, Color::Blue),
            ("recorded", |rates| rates.recorded_hz, Color::Green),
        ];
        let columns = Layout::horizontal([Constraint::Fill(1); 3]).spacing(1).split(area);
        for ((name, rate, colour), area) in kinds.into_iter().zip(columns.iter()) {
            let shown = model.trend.len().saturating_sub(area.width.into());
            let seconds: Vec<u64> = model.trend.iter().skip(shown).map(|rates| rate(rates).round() as u64).collect();
            let most = seconds.iter().copied().max().unwrap_or_default();
            let title = format!("{name}, at most {}", si(most as f64, "Hz"));
            let style = if self.has_colours { Style::new().fg(colour) } else { Style::new() };
            let chart = Sparkline::default().block(Block::new().title(Span::styled(title, self.soft())));
            frame.render_widget(chart.data(&seconds).max(most.max(1)).style(style), *area);
        }
    }

    fn table(self, frame: &mut Frame<'_>, area: Rect, model: &Model) {
        if model.lines == Lines::Sources {
            return self.sources(frame, area, model);
        }
        let row = |name: String, rate: f64, unit: &str, in_hand: Option<u64>, applications: &[Application]| {
            let silent = applications.iter().find_map(|one| Some((one, one.silent_s?)));
            let wait = longest(applications.iter().flat_map(|one| &one.waits));
            let is_blocked = wait.is_some_and(|wait| wait.share > BLOCKED);
            let words = match (silent, wait.filter(|wait| wait.share >= SHOWN)) {
                (Some((one, silent_s)), _) => Some(format!("{} is silent for {silent_s:.0} s", one.name)),
                (None, wait) => wait.map(|wait| format!("{:>5}  {}", percent(wait.share), wait.words)),
            };
            let row = Row::new([
                Cell::from(name),
                Cell::from(Text::from(si(rate, "Hz")).right_aligned()),
                Cell::from(unit.to_owned()),
                Cell::from(Text::from(in_hand.map(grouped).unwrap_or_default()).right_aligned()),
                Cell::from(words.unwrap_or_default()),
            ]);
            match (silent, is_blocked) {
                (Some(_), _) => row.style(self.bad()),
                (None, true) => row.style(self.warn()),
                (None, false) => row,
            }
        };
        let rows: Vec<Row<'_>> = if model.lines == Lines::Applications {
            let of = |(stage, one): (&super::model::Stage, &super::model::Application)| {
                row(one.name.clone(), one.rate_hz, &stage.unit, one.in_hand, slice::from_ref(one))
            };
            model.applications().skip(model.scrolled).map(of).collect()
        } else {
            let of = |stage: &super::model::Stage| {
                let count = stage.applications.len();
                let name = if count > 1 { format!("{} × {count}", stage.name) } else { stage.name.clone() };
                row(name, stage.rate_hz, &stage.unit, stage.in_hand, &stage.applications)
            };
            model.stages.iter().skip(model.scrolled).map(of).collect()
        };
        let widths = [22, 9, 12, 9].map(Constraint::Length).into_iter().chain([Constraint::Min(10)]);
        let kind = if model.lines == Lines::Applications { "application" } else { "stage" };
        let header = Row::new([
            Cell::from(kind),
            Cell::from(Text::from("rate").right_aligned()),
            Cell::from("of"),
            Cell::from(Text::from("in hand").right_aligned()),
            Cell::from("who waits for whom"),
        ]);
        frame.render_widget(Table::new(rows, widths).header(header.style(self.soft())), area);
    }

    /// What comes of each source, and what is wrong with it.
    fn sources(self, frame: &mut Frame<'_>, area: Rect, model: &Model) {
        let number = |text: String| Cell::from(Text::from(text).right_aligned());
        let row = |shown: &SourceRates| {
            let source = &shown.source;
            let row = Row::new([
                Cell::from(source.link.name.clone()),
                Cell::from(source.link.state.clone()),
                number(si(shown.fragments_hz, "Hz")),
                number(si(shown.bytes_per_s, "B/s")),
                number(source.last_number.map(grouped).unwrap_or_default()),
                Cell::from(shown.remarks()),
            ]);
            match source.link.state.as_str() {
                "lost" => row.style(self.bad()),
                "awaited" | "down" | "xoff" => row.style(self.warn()),
                _ => row,
            }
        };
        let header = Row::new([
            Cell::from("source"),
            Cell::from("state"),
            number("rate".to_owned()),
            number("bytes".to_owned()),
            number("last number".to_owned()),
            Cell::from("remarks"),
        ]);
        let widths = [16, 10, 9, 9, 13].map(Constraint::Length).into_iter().chain([Constraint::Min(10)]);
        let rows = model.sources.iter().skip(model.scrolled).map(row);
        frame.render_widget(Table::new(rows, widths).header(header.style(self.soft())), area);
    }

    fn messages(self, frame: &mut Frame<'_>, area: Rect, model: &Model) {
        let block = Block::new().title(Span::styled("said last", self.soft()));
        let lines = block.inner(area).height.into();
        let skipped = model.messages.len().saturating_sub(lines);
        let text = model.messages.iter().skip(skipped).map(|message| {
            let style = match message.severity.as_str() {
                "error" => self.bad(),
                "warning" => self.warn(),
                _ => Style::new(),
            };
            let again = if message.repeats == 0 { String::new() } else { format!(" ({} times)", message.repeats + 1) };
            let causes: String = message.causes.iter().map(|cause| format!(", because: {cause}")).collect();
            Line::from(vec![
                Span::styled(format!("{} ", of_day(message.at_ms)), self.soft()),
                Span::styled(message.text.clone(), style),
                Span::styled(again, self.soft()),
                Span::styled(causes, self.soft()),
            ])
        });
        frame.render_widget(Paragraph::new(Text::from_iter(text)).block(block), area);
    }

    fn foot(self, model: &Model) -> Line<'static> {
        if let Some(verb) = &model.asked {
            return Line::styled(
                format!("{verb}? y: yes, any other key: no"),
                self.warn().add_modifier(Modifier::BOLD),
            );
        }
        if let Some(why) = &model.refusal {
            return Line::styled(why.clone(), self.bad());
        }
        let or_stages = |lines, other| if model.lines == lines { "stages" } else { other };
        let applications = ('a', or_stages(Lines::Applications, "applications"));
        let sources = Some(('o', or_stages(Lines::Sources, "sources"))).filter(|_| !model.sources.is_empty());
        let keys = model.orders().chain([('t', "take command"), applications]).chain(sources).chain([('q', "quit")]);
        let spans = keys.flat_map(|(key, what)| {
            [Span::styled(key.to_string(), Modifier::REVERSED), Span::raw(format!(" {what}   "))]
        });
        Line::from_iter(spans)
    }

    fn of_state(self, state: &str) -> Style {
        self.coloured(match state {
            "running" => Color::Green,
            "fault" => Color::Red,
            "booting" | "paused" | "draining" => Color::Yellow,
            _ => return Style::new(),
        })
    }

    fn bad(self) -> Style {
        self.coloured(Color::Red)
    }

    fn warn(self) -> Style {
        self.coloured(Color::Yellow)
    }

    fn soft(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn coloured(self, colour: Color) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }
}

fn of_run(run: &Run, follow: u32) -> Vec<(&'static str, String)> {
    let rates = &run.rates;
    let mut entries = vec![
        ("run", run.number.map_or("…".into(), |number| number.to_string())),
        ("for", elapsed(Duration::try_from_secs_f64(run.elapsed_s).unwrap_or_default())),
        ("level 1", si(rates.level1_hz, "Hz")),
        ("dead time", rates.dead_time.map_or("–".into(), percent)),
        ("built", si(rates.built_hz, "Hz")),
        ("recorded", si(rates.recorded_hz, "Hz")),
        ("to disk", si(rates.bytes_per_s, "B/s")),
        ("events", grouped(run.recorded)),
    ];
    if follow > 0 {
        entries.push(("runs that follow", follow.to_string()));
    }
    entries
}

fn of_last(last: &LastRun) -> Vec<(&'static str, String)> {
    let number = last.number.map_or("none".into(), |number| number.to_string());
    vec![("last run", number), ("ended", last.state.clone()), ("events", grouped(last.recorded))]
}

fn longest<'a>(waits: impl Iterator<Item = &'a Wait>) -> Option<&'a Wait> {
    waits.max_by(|a, b| a.share.total_cmp(&b.share))
}

/// The time of day here.
fn of_day(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(chrono::DateTime::from_timestamp_millis);
    at.map_or_else(String::new, |at| at.with_timezone(&chrono::Local).format("%H:%M:%S").to_string())
}

/// Below so many lines the rates of the past give way.
const LOW: u16 = 22;
const RATES_HEIGHT: u16 = 4;
const TROUBLES_MAX: u16 = 4;
/// From this share of the time on a wait is marked, and from this one on shown; as on the page.
const BLOCKED: f64 = 0.1;
const SHOWN: f64 = 0.01;

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::model::{Message, News, Operator, Sample, Stage, Status};
    use super::*;

    fn drawn(model: &Model, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| View { has_colours: true }.draw(frame, model)).unwrap();
        let buffer = terminal.backend().buffer();
        let lines = buffer.content().chunks(width.into());
        let text =
            |line: &[ratatui::buffer::Cell]| line.iter().map(|cell| cell.symbol().to_owned()).collect::<String>();
        lines.map(|line| text(line).trim_end().to_owned() + "\n").collect()
    }

    fn running() -> Model {
        let rates = Rates {
            level1_hz: 12_340.0,
            built_hz: 1_230.0,
            recorded_hz: 123.0,
            bytes_per_s: 4e6,
            dead_time: Some(0.021),
        };
        let run = Run { number: Some(7), elapsed_s: 83.4, recorded: 10_250, rates, troubles: Vec::new() };
        let waits = vec![Wait { words: "sfi-2 for efd-1: no request from the event filter".into(), share: 0.42 }];
        let application = |name: &str, waits: Vec<Wait>| Application {
            name: name.into(),
            rate_hz: 615.0,
            in_hand: Some(4),
            waits,
            silent_s: None,
        };
        let applications = vec![application("sfi-1", Vec::new()), application("sfi-2", waits)];
        let stages = vec![
            Stage { name: "level 1".into(), unit: "events".into(), rate_hz: 12_340.0, ..Stage::default() },
            Stage { name: "SFI".into(), unit: "events".into(), rate_hz: 1_230.0, in_hand: Some(8), applications },
        ];
        let status = Status {
            partition: "quickstart".into(),
            state: "running".into(),
            verbs: ["pause", "stop"].map(str::to_owned).to_vec(),
            operator: Some(Operator { name: "anna".into() }),
            run: Some(run),
            follow: 2,
            last: None,
            sentence: "sfi-2 waits for efd-1 (42 % of the time); start more tasks (ef.tasks)".into(),
        };
        let mut model = Model::default();
        model.take(News::Status(status));
        model.take(News::Dataflow(stages, Vec::new()));
        let samples = (0..200).map(|second| Sample { rates: Rates { level1_hz: f64::from(second) * 60.0, ..rates } });
        model.take(News::Trend(samples.collect()));
        model.take(News::Message(Message {
            number: 1,
            severity: "warning".into(),
            text: "run 7 begins".into(),
            causes: vec!["anna wants it".into()],
            at_ms: 0,
            repeats: 0,
        }));
        model
    }

    #[test]
    fn a_run_stands_on_a_small_terminal() {
        let mut model = running();
        let text = drawn(&model, 80, 24);
        let head = "quickstart  running";
        assert!(text.starts_with(head) && text.lines().next().unwrap().ends_with("anna commands"), "{text}");
        for part in [
            "sfi-2 waits for efd-1 (42 % of the time); start more tasks (ef.tasks)",
            "run 7   for 1 min 23 s   level 1 12.3 kHz   dead time 2.10 %",
            "runs that follow 2",
            "level 1, at most 11.9 kHz",
            "SFI × 2                 1.23 kHz events               8  42 %  sfi-2 for efd-1:",
            "run 7 begins, because: anna wants it",
            "p pause   x stop   t take command   a applications   q quit",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        model.on_key('a');
        let text = drawn(&model, 80, 24);
        assert!(text.contains("sfi-1                     615 Hz events               4\n"), "{text}");
        model.stages[1].applications[1].silent_s = Some(12.3);
        assert!(drawn(&model, 80, 24).contains("sfi-2 is silent for 12 s"), "{}", drawn(&model, 80, 24));
        model.on_key('o');
        let source = serde_json::json!({
            "application": "ros-1", "name": "tlu", "id": 1, "state": "xoff", "fragments": 30, "bytes": 3000, "sent": 0, "kept": 20,
            "missing": 0, "never_triggered": 0, "late": 3, "doubled": 0, "unplaced": 0, "damaged": 0, "lost": 0, "in_buffers": 8,
            "last_number": 1234, "last_time_ns": null, "status": "armed", "fragments_hz": 1500.0, "bytes_per_s": 60e3,
        });
        let sources = vec![serde_json::from_value(source).unwrap()];
        model.take(News::Dataflow(model.stages.clone(), sources));
        let text = drawn(&model, 80, 24);
        assert!(text.contains("tlu              xoff        1.50 kHz   60 kB/s         1 234 3 late, armed"), "{text}");
        assert!(text.contains("a applications   o stages   q quit"), "{text}");
        model.on_key('x');
        assert!(drawn(&model, 80, 24).contains("stop? y: yes, any other key: no"));
    }

    #[test]
    fn what_is_wrong_stands_first() {
        let mut model = running();
        let troubles: Vec<String> = (0..9).map(|sfo| format!("sfo-{sfo}: the disk is full")).collect();
        model.status.run.as_mut().unwrap().troubles = troubles;
        let text = drawn(&model, 80, 24);
        assert!(text.contains("! sfo-3: the disk is full") && !text.contains("sfo-4"), "{text}");
        model.take(News::Silence("run control has ended".into()));
        assert!(drawn(&model, 80, 24).contains("nothing is heard: run control has ended"));
    }

    #[test]
    fn any_size_can_be_drawn() {
        let model = running();
        for (width, height) in [(1, 1), (10, 3), (40, 12), (300, 100)] {
            drawn(&model, width, height);
        }
        drawn(&Model::default(), 80, 24);
    }
}
