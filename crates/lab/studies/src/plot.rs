//! Figures of curves, as SVG: the panels of a study side by side.

use plotters::chart::{ChartBuilder, ChartContext, LabelAreaPosition, SeriesLabelPosition};
use plotters::coord::combinators::{IntoLogRange, LogCoord};
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::coord::{Shift, cartesian::Cartesian2d};
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement};
use plotters::prelude::SVGBackend;
use plotters::style::{BLACK, Color, FontDesc, IntoFont, RGBColor, WHITE};

/// A panel.
pub(super) struct Plot {
    pub(super) title: &'static str,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) curves: Vec<Curve>,
    /// Where the names of curves stand.
    pub(super) names: SeriesLabelPosition,
}

/// An axis.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    pub(super) label: &'static str,
    pub(super) scale: Scale,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) number: fn(f64) -> String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    Linear,
    Logarithmic,
    /// Linear, with a long name at each whole number.
    Lanes,
}

/// Points, and what they look like.
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) look: Look,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Joined by lines.
    Line,
    /// The same, each with a mark.
    Marked,
    /// Joined by bars, two and two; the axis names them.
    Bars,
    /// Joined by a thin line in the colour of the curve before it, which names it, too.
    Beside,
}

/// Draws panels, two in a row.
pub(super) fn draw(plots: &[Plot]) -> Result<String, String> {
    let rows = plots.len().div_ceil(ACROSS);
    let height = u32::try_from(rows).map_err(|error| error.to_string())? * PANEL_HEIGHT;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE).map_err(|error| error.to_string())?;
        for (area, plot) in root.split_evenly((rows, ACROSS)).iter().zip(plots) {
            draw_panel(area, plot).map_err(|error| error.to_string())?;
        }
        root.present().map_err(|error| error.to_string())?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// The library has a type for each pair of scales.
fn draw_panel(area: &Area<'_>, plot: &Plot) -> Drawn {
    let (x, y) = (plot.x.low..plot.x.high, plot.y.low..plot.y.high);
    match (plot.x.scale, plot.y.scale) {
        (Scale::Logarithmic, Scale::Logarithmic) => {
            draw_on::<LogCoord<f64>, LogCoord<f64>, _, _>(area, plot, x.log_scale(), y.log_scale())
        }
        (Scale::Logarithmic, _) => draw_on::<LogCoord<f64>, RangedCoordf64, _, _>(area, plot, x.log_scale(), y),
        (_, Scale::Logarithmic) => draw_on::<RangedCoordf64, LogCoord<f64>, _, _>(area, plot, x, y.log_scale()),
        (_, _) => draw_on::<RangedCoordf64, RangedCoordf64, _, _>(area, plot, x, y),
    }
}

fn draw_on<X, Y, IntoX, IntoY>(area: &Area<'_>, plot: &Plot, x: IntoX, y: IntoY) -> Drawn
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    IntoX: AsRangedCoord<CoordDescType = X, Value = f64>,
    IntoY: AsRangedCoord<CoordDescType = Y, Value = f64>,
{
    let is_of_lanes = plot.y.scale == Scale::Lanes;
    let mut chart = ChartBuilder::on(area)
        .caption(plot.title, font(16))
        .margin(10)
        .margin_right(20)
        .set_label_area_size(LabelAreaPosition::Left, if is_of_lanes { 120 } else { 62 })
        .set_label_area_size(LabelAreaPosition::Bottom, 40)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .bold_line_style(BLACK.mix(0.15))
        .max_light_lines(0)
        .x_labels(if is_of_lanes { 5 } else { 10 })
        .x_desc(plot.x.label)
        .y_desc(plot.y.label)
        .x_label_formatter(&|x| (plot.x.number)(*x))
        .y_label_formatter(&|y| (plot.y.number)(*y))
        .label_style(font(13))
        .axis_desc_style(font(14))
        .draw()?;
    let mut colours = COLOURS.iter().cycle();
    let mut colour = &COLOURS[0];
    for curve in &plot.curves {
        if curve.look != Look::Beside {
            colour = colours.next().expect("a cycle has no end");
        }
        draw_curve(&mut chart, plot, curve, *colour)?;
    }
    if is_of_lanes {
        return Ok(());
    }
    chart
        .configure_series_labels()
        .position(plot.names.clone())
        .label_font(font(13))
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.2))
        .margin(8)
        .draw()
}

fn draw_curve<X, Y>(
    chart: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>,
    plot: &Plot,
    curve: &Curve,
    colour: RGBColor,
) -> Drawn
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let seen = |(x, y): &(f64, f64)| (plot.x.low..=plot.x.high).contains(x) && (plot.y.low..=plot.y.high).contains(y);
    let points: Vec<(f64, f64)> = curve.points.iter().copied().filter(seen).collect();
    match curve.look {
        Look::Bars => {
            let bars = points.chunks_exact(2).map(|ends| PathElement::new(ends.to_vec(), colour.stroke_width(9)));
            return chart.draw_series(bars).map(drop);
        }
        Look::Beside => return chart.draw_series([PathElement::new(points, colour.stroke_width(1))]).map(drop),
        Look::Line | Look::Marked => {}
    }
    chart
        .draw_series([PathElement::new(points.clone(), colour.stroke_width(2))])?
        // The width of labels is an estimate, a little too small.
        .label(format!("{}\u{a0}\u{a0}", curve.name))
        .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2)));
    if curve.look == Look::Marked {
        chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, colour.filled())))?;
    }
    Ok(())
}

fn font(size: i32) -> FontDesc<'static> {
    ("sans-serif", size).into_font()
}

const ACROSS: usize = 2;
const WIDTH: u32 = 1040;
const PANEL_HEIGHT: u32 = 360;

/// Told apart by the colour-blind, too, on white and on black.
const COLOURS: [RGBColor; 6] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(60, 120, 216),
    RGBColor(204, 121, 167),
    RGBColor(150, 130, 40),
    RGBColor(120, 120, 120),
];
