//! Drawings of boxes, lines and words.

use std::fmt::Write;

/// A drawing, whose lengths are pixels.
pub(crate) struct Svg(String);

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" \
             markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#444\"/></marker></defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        ))
    }

    pub(crate) fn text(&mut self, x: f64, y: f64, text: &str) {
        let _ = writeln!(self.0, "<text x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(text));
    }

    /// A box in the colour of a number, with words for whoever points at it.
    pub(crate) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colour: usize, words: &str) {
        let fill = COLOURS[colour % COLOURS.len()];
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{:.2}\" height=\"{height:.2}\" fill=\"{fill}\" stroke=\"#333\" \
             stroke-width=\"0.3\"><title>{}</title></rect>",
            width.max(0.5),
            escaped(words)
        );
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), has_head: bool) {
        let marker = if has_head { " marker-end=\"url(#head)\"" } else { "" };
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.0,
            "<line x1=\"{x1:.2}\" y1=\"{y1:.2}\" x2=\"{x2:.2}\" y2=\"{y2:.2}\" stroke=\"#444\" stroke-width=\"0.8\"{marker}/>"
        );
    }

    pub(crate) fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// A time in the unit that suits it.
pub(crate) fn time(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Told apart by the colour-blind, too.
const COLOURS: [&str; 8] = ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00", "#bbbbbb"];
