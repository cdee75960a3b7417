//! The figure of a study: turn-on curves and the rate after each level, as SVG.

use plotters::chart::{ChartBuilder, LabelAreaPosition, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::coord::combinators::IntoLogRange;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Text};
use plotters::prelude::SVGBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{BLACK, Color, FontDesc, IntoFont, RGBColor, TextStyle, WHITE};

use super::binomial::Estimate;
use super::report::{Efficiencies, Report, SampleReport};
use partition::human::si;

/// Draws the figure.
pub(super) fn draw(report: &Report) -> Result<String, String> {
    let panels: Vec<Panel<'_>> = report.samples.iter().flat_map(panels).collect();
    let rows = u32::try_from(panels.len().div_ceil(PANELS_ACROSS)).map_err(|error| error.to_string())?;
    let samples = u32::try_from(report.samples.len()).map_err(|error| error.to_string())?;
    let size = (WIDTH, rows * PANEL_HEIGHT + RATES_FRAME_HEIGHT + samples * SAMPLE_HEIGHT);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw_all(&root, &panels, rows, &report.samples).map_err(|error| error.to_string())?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// One turn-on curve plot.
struct Panel<'a> {
    sample: &'a SampleReport,
    efficiencies: &'a Efficiencies,
}

fn panels(sample: &SampleReport) -> impl Iterator<Item = Panel<'_>> {
    sample.efficiencies.iter().map(move |efficiencies| Panel { sample, efficiencies })
}

fn draw_all(root: &Area<'_>, panels: &[Panel<'_>], rows: u32, samples: &[SampleReport]) -> Drawn {
    root.fill(&WHITE)?;
    let (turn_on, rates) = root.split_vertically(rows * PANEL_HEIGHT);
    if rows > 0 {
        for (area, panel) in turn_on.split_evenly((rows as usize, PANELS_ACROSS)).iter().zip(panels) {
            draw_turn_on(area, panel)?;
        }
    }
    draw_rates(root, &rates, samples)?;
    root.present()
}

fn draw_turn_on(area: &Area<'_>, panel: &Panel<'_>) -> Drawn {
    let Panel { sample, efficiencies } = panel;
    let edges = &efficiencies.pt_bin_edges_gev;
    let (first, last) = (edges[0], edges[edges.len() - 1]);
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{}: {}s", sample.sample, efficiencies.lepton), font(16))
        .margin(10)
        .set_label_area_size(LabelAreaPosition::Left, 48)
        .set_label_area_size(LabelAreaPosition::Bottom, 40)
        .build_cartesian_2d(first..last, 0.0..1.05)?;
    chart
        .configure_mesh()
        .bold_line_style(BLACK.mix(0.15))
        .max_light_lines(0)
        .x_desc("true pT [GeV]")
        .y_desc("efficiency")
        .x_label_formatter(&|pt| format!("{pt:.0}"))
        .y_label_formatter(&|efficiency| format!("{efficiency:.1}"))
        .label_style(font(13))
        .axis_desc_style(font(14))
        .draw()?;
    for (index, curve) in efficiencies.curves.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let points: Vec<(f64, f64, [f64; 2])> = edges
            .windows(2)
            .zip(&curve.bins)
            .filter_map(|(edge, part)| Some((f64::midpoint(edge[0], edge[1]), part.value()?, part.interval()?)))
            // Side by side, so that error bars do not hide each other.
            .map(|(x, value, interval)| (x + 0.35 * (index as f64 - 1.0), value, interval))
            .collect();
        let line = points.iter().map(|(x, value, _)| (*x, *value)).collect::<Vec<_>>();
        chart
            .draw_series([PathElement::new(line, colour.mix(0.5).stroke_width(1))])?
            // The width of labels is an estimate, a little too small.
            .label(format!("{}\u{a0}\u{a0}", curve.name))
            .legend(move |(x, y)| Circle::new((x + 10, y), 4, colour.filled()));
        let bar = |(x, _, [low, high]): &(f64, f64, [f64; 2])| {
            PathElement::new(vec![(*x, *low), (*x, *high)], colour.stroke_width(1))
        };
        chart.draw_series(points.iter().map(bar))?;
        chart.draw_series(points.iter().map(|(x, value, _)| Circle::new((*x, *value), 3, colour.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .label_font(font(13))
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.2))
        .margin(8)
        .draw()
}

/// A flight of stairs for each sample: from level to level downwards, to the left as the rate falls.
fn draw_rates(root: &Area<'_>, area: &Area<'_>, samples: &[SampleReport]) -> Drawn {
    let rates = || samples.iter().flat_map(|sample| &sample.levels).map(|level| level.rate_hz);
    let high = rates().map(|rate| rate.value + rate.error).fold(1.0, f64::max);
    let low = rates().map(|rate| rate.value).filter(|rate| *rate > 0.0).fold(high, f64::min);
    let (low, high) = (10_f64.powf((low / 2.0).log10().floor()), 10_f64.powf((high * 1.2).log10().ceil()));
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .margin_top(TITLE_HEIGHT)
        .margin_right(30)
        .set_label_area_size(LabelAreaPosition::Left, NAMES_WIDTH)
        .set_label_area_size(LabelAreaPosition::Bottom, 44)
        .build_cartesian_2d((low..high).log_scale(), samples.len() as f64..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .bold_line_style(BLACK.mix(0.15))
        .light_line_style(BLACK.mix(0.05))
        .x_desc("rate")
        .x_label_formatter(&|rate| si(*rate, "Hz"))
        .label_style(font(13))
        .axis_desc_style(font(14))
        .draw()?;
    for (row, sample) in (0..).map(f64::from).zip(samples) {
        let steps = sample.levels.iter().map(|level| level.rate_hz);
        let steps: Vec<_> = [0.25, 0.5, 0.75].into_iter().map(|part| row + part).zip(steps).collect();
        let steps: Vec<_> = steps.into_iter().filter(|(_, rate)| rate.value > 0.0).collect();
        let corners = steps.windows(2).flat_map(|pair| [(pair[0].1.value, pair[0].0), (pair[0].1.value, pair[1].0)]);
        let corners = corners.chain(steps.last().map(|(y, rate)| (rate.value, *y))).collect::<Vec<_>>();
        chart.draw_series([PathElement::new(corners, BLACK.mix(0.4).stroke_width(1))])?;
        let (_, y) = chart.backend_coord(&(low, row + 0.5));
        let right = TextStyle::from(font(13)).pos(Pos::new(HPos::Right, VPos::Center));
        root.draw(&Text::new(sample.sample.clone(), (NAMES_WIDTH.cast_signed(), y), right))?;
    }
    for (level, colour) in COLOURS.into_iter().enumerate() {
        let at = |(row, sample): (usize, &SampleReport)| {
            (row as f64 + 0.25 * (level as f64 + 1.0), sample.levels[level].rate_hz)
        };
        let points: Vec<_> = samples.iter().enumerate().map(at).filter(|(_, rate)| rate.value > 0.0).collect();
        let bar = |(y, rate): &(f64, Estimate)| {
            let ends = [rate.value - rate.error, rate.value + rate.error].map(|end| (end.clamp(low, high), *y));
            PathElement::new(ends.to_vec(), colour.stroke_width(2))
        };
        chart.draw_series(points.iter().map(bar))?;
        chart.draw_series(points.iter().map(|(y, rate)| Circle::new((rate.value, *y), 3, colour.filled())))?;
    }
    let (_, top) = area.get_base_pixel();
    draw_title_of_rates(root, top)
}

/// Title and legend in one line, where no point can be.
fn draw_title_of_rates(root: &Area<'_>, top: i32) -> Drawn {
    let y = top + TITLE_HEIGHT.cast_signed() / 2;
    let left = |size| TextStyle::from(font(size)).pos(Pos::new(HPos::Left, VPos::Center));
    let title = "rate after each level at 10³⁴ cm⁻² s⁻¹, each process alone";
    root.draw(&Text::new(title, (NAMES_WIDTH.cast_signed() + 10, y), left(16)))?;
    for ((name, x), colour) in [("level 1", 660), ("level 2", 745), ("event filter", 830)].into_iter().zip(COLOURS) {
        root.draw(&Circle::new((x, y), 4, colour.filled()))?;
        root.draw(&Text::new(name, (x + 10, y), left(13)))?;
    }
    Ok(())
}

fn font(size: i32) -> FontDesc<'static> {
    ("sans-serif", size).into_font()
}

const PANELS_ACROSS: usize = 2;
const WIDTH: u32 = 960;
const PANEL_HEIGHT: u32 = 300;
const RATES_FRAME_HEIGHT: u32 = 110;
const SAMPLE_HEIGHT: u32 = 44;
const TITLE_HEIGHT: u32 = 44;
const NAMES_WIDTH: u32 = 170;

/// Told apart by the colour-blind, too, on white and on black.
const COLOURS: [RGBColor; 3] = [RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(60, 120, 216)];
