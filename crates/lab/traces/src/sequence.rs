//! Sequence diagrams: who does what when, and what is sent [DAQ1999 Fig. 4].

use std::collections::BTreeMap;

use stamps::spans::Span;

use crate::error::{TracesError, write};
use crate::merged::{Arrow, Merged};
use crate::svg::{Svg, time};
use crate::{Done, SequenceArgs};

pub(crate) fn sequence(args: &SequenceArgs) -> Done {
    let merged = Merged::read(&args.files)?;
    let window = Window::asked(&merged, args)?;
    let diagram = Diagram::new(&merged, &window);
    if diagram.lanes.is_empty() {
        return Err(TracesError::NothingSeen("any section in these times".into()));
    }
    let (svg, left_out) = diagram.draw(&window);
    write(&args.output, &svg)?;
    let about = window.event.map_or_else(String::new, |event| format!(" of event {event}"));
    let left_out =
        if left_out > 0 { format!("; {left_out} sections more have no room: ask for less") } else { String::new() };
    Ok(format!(
        "{}{}{about} in {}{left_out}\n",
        merged.remarks(),
        time(window.to_ns - window.from_ns),
        args.output.display()
    ))
}

/// What is drawn: a stretch of time, of one event or of all.
struct Window {
    from_ns: u64,
    to_ns: u64,
    event: Option<u64>,
}

impl Window {
    fn asked(merged: &Merged, args: &SequenceArgs) -> Result<Self, TracesError> {
        let length = args.length.map(|us| us.saturating_mul(1000));
        if let Some(from) = args.from {
            let from_ns = merged.begin_ns.saturating_add(from.saturating_mul(1000));
            return Ok(Self { from_ns, to_ns: from_ns.saturating_add(length.unwrap_or(LENGTH_NS)), event: None });
        }
        let mut ways: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (_, span) in merged.spans() {
            for event in &span.events {
                let way = ways.entry(*event).or_insert((span.from_ns, span.to_ns));
                *way = (way.0.min(span.from_ns), way.1.max(span.to_ns));
            }
        }
        let middle = || ways.keys().nth(ways.len() / 2).copied();
        let event = args.event.or_else(middle).ok_or_else(|| TracesError::NothingSeen("any event".into()))?;
        let (from_ns, to_ns) = *ways.get(&event).ok_or(TracesError::UnknownEvent(event))?;
        let to_ns = length.map_or(to_ns, |length| from_ns.saturating_add(length));
        Ok(Self { from_ns, to_ns: to_ns.max(from_ns + 1), event: Some(event) })
    }

    /// Whether something of these times about these events is drawn.
    fn shows(&self, from_ns: u64, to_ns: u64, events: &[u64]) -> bool {
        self.event.is_none_or(|event| events.contains(&event)) && from_ns <= self.to_ns && to_ns >= self.from_ns
    }

    fn x(&self, ns: u64) -> f64 {
        let ns = ns.clamp(self.from_ns, self.to_ns);
        LEFT + (ns - self.from_ns) as f64 / (self.to_ns - self.from_ns) as f64 * ACROSS
    }
}

/// Each application is a lane; what is about none is in the lane of its thread.
struct Diagram<'a> {
    merged: &'a Merged,
    lanes: Vec<String>,
    boxes: Vec<(usize, &'a Span)>,
    arrows: Vec<(usize, usize, Arrow)>,
}

impl<'a> Diagram<'a> {
    fn new(merged: &'a Merged, window: &Window) -> Self {
        let mut diagram = Self { merged, lanes: Vec::new(), boxes: Vec::new(), arrows: Vec::new() };
        let is_shown = |span: &Span| window.shows(span.from_ns, span.to_ns, &span.events);
        let spans: Vec<_> = merged.spans().filter(|(_, span)| is_shown(span)).collect();
        let is_shown = |arrow: &Arrow| {
            let is_within = |ns: u64| window.shows(ns, ns, arrow.sent.event.as_slice());
            is_within(arrow.sent.at_ns) || is_within(arrow.handled_ns)
        };
        let arrows: Vec<_> = merged.arrows().into_iter().filter(is_shown).collect();
        let of_spans = spans.iter().map(|(thread, span)| (span.from_ns, span.place, *thread));
        let of_arrows = arrows.iter().map(|arrow| (arrow.sent.at_ns, arrow.sent.place, arrow.from_thread));
        let mut seen: Vec<_> = of_spans.chain(of_arrows).collect();
        // Whoever begins stands on top.
        seen.sort_unstable();
        seen.into_iter().for_each(|(_, place, thread)| _ = diagram.lane(place, thread));
        for (thread, span) in spans {
            let lane = diagram.lane(span.place, thread);
            diagram.boxes.push((lane, span));
        }
        diagram.boxes.sort_by_key(|(_, span)| (span.from_ns, span.depth));
        for arrow in arrows {
            let from = diagram.lane(arrow.sent.place, arrow.from_thread);
            let to = diagram.lane(arrow.sent.peer, arrow.to_thread);
            diagram.arrows.push((from, to, arrow));
        }
        diagram
    }

    fn lane(&mut self, place: stamps::Place, thread: usize) -> usize {
        let of_thread = || {
            let timeline = &self.merged.threads[thread];
            format!("{}: {}", timeline.process, timeline.thread)
        };
        let name = self.merged.place(place).unwrap_or_else(of_thread);
        self.lanes.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.lanes.push(name);
            self.lanes.len() - 1
        })
    }

    /// The drawing, and how many sections have no room in it.
    fn draw(&self, window: &Window) -> (String, usize) {
        let height = TOP + self.lanes.len() as f64 * LANE + 40.0;
        let mut svg = Svg::new(LEFT + ACROSS + 70.0, height);
        let title = window.event.map_or_else(|| "all events".into(), |event| format!("event {event}"));
        svg.text(LEFT, 20.0, &format!("{title}: {}", time(window.to_ns - window.from_ns)));
        for (index, lane) in self.lanes.iter().enumerate() {
            let y = TOP + (index as f64 + 0.5) * LANE;
            svg.line((LEFT, y), (LEFT + ACROSS, y), false);
            svg.text(8.0, y + 4.0, lane);
        }
        for (lane, span) in self.boxes.iter().take(BOXES_MAX) {
            self.draw_box(&mut svg, window, *lane, span);
        }
        for (from, to, arrow) in self.arrows.iter().take(BOXES_MAX) {
            draw_arrow(&mut svg, window, (*from, *to), arrow);
        }
        for part in 0..=10 {
            let at = (window.to_ns - window.from_ns) * part / 10;
            let x = window.x(window.from_ns + at);
            svg.line((x, height - 36.0), (x, height - 30.0), false);
            svg.text(x - 14.0, height - 14.0, &time(at));
        }
        (svg.finish(), self.boxes.len().saturating_sub(BOXES_MAX))
    }

    fn draw_box(&self, svg: &mut Svg, window: &Window, lane: usize, span: &Span) {
        let (from, to) = (window.x(span.from_ns), window.x(span.to_ns));
        let inset = 4.0 + 3.0 * span.depth.min(4) as f64;
        let y = TOP + lane as f64 * LANE + inset;
        let name = self.merged.name(span.section);
        let about = format!("{name}: {}, events {:?}", time(span.to_ns - span.from_ns), span.events);
        svg.rect((from, y), (to - from, LANE - 2.0 * inset), usize::from(span.section.0), &about);
        if to - from > 7.0 * name.len() as f64 || window.event.is_some() && self.boxes.len() < NAMED_MAX {
            svg.text(from + 2.0, y - 1.0, name);
        }
    }
}

/// Of an arrow that reaches beyond the window, the part within.
fn draw_arrow(svg: &mut Svg, window: &Window, (from, to): (usize, usize), arrow: &Arrow) {
    let (begin, end) = (arrow.sent.at_ns, arrow.handled_ns);
    let point = |ns: u64, at_once: f64| {
        let ns = ns.clamp(window.from_ns, window.to_ns);
        let part = if end > begin { (ns - begin) as f64 / (end - begin) as f64 } else { at_once };
        (window.x(ns), TOP + (from as f64 + part * (to as f64 - from as f64) + 0.5) * LANE)
    };
    svg.line(point(begin, 0.0), point(end, 1.0), end <= window.to_ns);
}

const LENGTH_NS: u64 = 200_000;
const LEFT: f64 = 150.0;
const ACROSS: f64 = 1100.0;
const TOP: f64 = 36.0;
const LANE: f64 = 46.0;
const BOXES_MAX: usize = 5000;
/// Where there are more, names hide each other.
const NAMED_MAX: usize = 40;
