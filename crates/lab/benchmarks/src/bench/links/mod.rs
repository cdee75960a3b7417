//! `weir bench links`: programs of detectors that push their fragments, beside the bare machine.
//!
//! | source | is measured | reference |
//! |---|---|---|
//! | `shm` | a program in C, over shared memory | [`ring`]: a ring of slots |
//! | `tcp` | the same over TCP, with fragments of several lengths | [`reference`]: plain writes and reads of 64 kB |
//! | `send-many` | a program in Python that hands over many fragments at a time | [`ring`] |
//! | `generator` | one that hands over each for itself | [`ring`] |
//! | `slices` | event building of slices of time, of many free-running sources, with few and many chunks in each | the same with triggers |
//!
//! The programs are built with an installed Weir, as those of users are. They write each payload anew; so do the bare sources. A
//! read-out system takes the fragments with its whole driver: intake, component, event manager, triggers, clears ([`readout`]).

mod kit;
mod readout;
mod slices;
mod stand_ins;

use serde::Serialize;

use super::BenchError;
use super::paired::{Comparison, Figures, RatioOf, Unit, median};
use super::points::{Point, Points};
use super::reference::{self, Measurement, ReferenceError};
use super::ring::{self, Ring};
use crate::bench::arguments::{BenchArgs, BenchSource};
use kit::{Kit, Language};
pub(super) use slices::{FreeArguments, free_main};

/// All kinds of sources, or the one that was asked for; the first stands for all.
#[derive(Serialize)]
pub(crate) struct Found(Points<Parameters, More>);

/// What is measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Parameters {
    source: BenchSource,
    sources: u32,
    fragment_bytes: u32,
    /// Chunks that a slice is long, and those that it has besides since slices overlap.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks_per_slice: Option<[u32; 2]>,
    seconds: f64,
    pairs: usize,
}

/// What is told of one kind of source besides; medians over the pairs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct More {
    /// Processor time per fragment of the program; null where the kernel does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_cpu_us: Option<f64>,
    /// The same of the read-out system.
    #[serde(skip_serializing_if = "Option::is_none")]
    readout_cpu_us: Option<f64>,
    /// Of the last pair: what became of the chunks.
    #[serde(flatten)]
    books: Option<slices::Books>,
}

/// Measures each kind in alternation with its reference.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let kinds = args.source.map_or_else(|| BenchSource::ALL.to_vec(), |source| vec![source]);
    let needs_kit = kinds.iter().any(|kind| *kind != BenchSource::Slices);
    let kit = needs_kit.then(|| Kit::make(args.prefix.as_deref(), &args.python)).transpose()?;
    let points = kinds.iter().flat_map(|kind| match (kind, &kit) {
        (BenchSource::Slices, _) | (_, None) => slices::CHUNKS.map(|chunks| sliced(args, chunks)).into(),
        (BenchSource::Tcp, Some(kit)) => TCP_BYTES.map(|bytes| pushed(args, *kind, kit, bytes)).into(),
        (kind, Some(kit)) => vec![pushed(args, *kind, kit, FRAGMENT_BYTES)],
    });
    let points = points.collect::<Result<Vec<_>, _>>()?;
    Ok(Found(Points::new(points, |of: &Parameters| of.source == kinds[0] && of.fragment_bytes == FRAGMENT_BYTES)))
}

/// One source.
fn pushed(
    args: &BenchArgs,
    source: BenchSource,
    kit: &Kit,
    fragment_bytes: u32,
) -> Result<Point<Parameters, More>, BenchError> {
    let parameters = Parameters {
        source,
        sources: 1,
        fragment_bytes,
        chunks_per_slice: None,
        seconds: args.seconds / 3.0,
        pairs: PAIRS,
    };
    let language = match source {
        BenchSource::SendMany => Language::PythonInGroups,
        BenchSource::Generator => Language::PythonOneByOne,
        _ => Language::C,
    };
    let (mut runs, mut parts) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let carrier = if source == BenchSource::Tcp { readout::Carrier::Tcp } else { readout::Carrier::Shared };
        let ours = readout::run(carrier, fragment_bytes, parameters.seconds, |at, key| {
            kit.command(language, at, key, fragment_bytes)
        })?;
        let figures = parameters.figures(ours.fragments, ours.seconds, ours.source_cpu_s + ours.readout_cpu_s);
        runs.push((figures, bare(&parameters)?));
        parts.push([ours.source_cpu_s, ours.readout_cpu_s].map(|seconds| seconds / ours.fragments as f64 * 1e6));
    }
    let part = |place: usize| Some(median(parts.iter().map(|parts| parts[place])));
    let more = More { source_cpu_us: part(0), readout_cpu_us: part(1), books: None };
    Ok(Point { comparison: Comparison::of("links", parameters, RatioOf::EventsPerS, &runs), more })
}

/// The same bytes without anything around them. Sockets keep the buffers of the kernel: with the short ones of a link this one is slower.
fn bare(parameters: &Parameters) -> Result<Figures, BenchError> {
    let &Parameters { fragment_bytes, seconds, .. } = parameters;
    let measured = if parameters.source == BenchSource::Tcp {
        let batch = (BATCH_BYTES / fragment_bytes).max(1);
        let bare = reference::Parameters {
            sources: 1,
            fragment_bytes,
            seconds,
            batch,
            events_held: SLOTS,
            written: true,
            summed: false,
        };
        reference::run(&bare, reference::spawn_source)
    } else {
        ring::run(&Ring { sources: 1, fragment_bytes, written: true, summed: false, slots: SLOTS, seconds })
    };
    let Measurement { events, seconds, cpu_seconds, bad } = measured?;
    if bad > 0 {
        return Err(BenchError::Reference(ReferenceError::Bad { bad }));
    }
    Ok(parameters.figures(events, seconds, cpu_seconds))
}

/// Many sources, without a trigger and with one.
fn sliced(args: &BenchArgs, chunks: u32) -> Result<Point<Parameters, More>, BenchError> {
    let parameters = Parameters {
        source: BenchSource::Slices,
        sources: slices::SOURCES,
        fragment_bytes: slices::PIECE_BYTES,
        chunks_per_slice: Some([chunks, slices::OVERLAP]),
        seconds: (args.seconds / 3.0).max(slices::SECONDS_MIN),
        pairs: PAIRS,
    };
    let mut books = slices::Books::default();
    let (mut ours, mut triggered) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let whole = slices::run(slices::Building::Triggers, parameters.seconds)?;
        let every_ns = whole.every_ns();
        let sliced = slices::run(slices::Building::Slices { chunks, every_ns }, parameters.seconds)?;
        books = sliced.books;
        ours.push(parameters.figures(sliced.pieces, sliced.seconds, sliced.cpu_s));
        triggered.push(parameters.figures(whole.pieces, whole.seconds, whole.cpu_s));
    }
    let runs: Vec<_> = ours.into_iter().zip(triggered).collect();
    let more = More { books: Some(books), ..More::default() };
    Ok(Point { comparison: Comparison::of("links", parameters, RatioOf::EventsPerS, &runs), more })
}

impl Parameters {
    fn figures(&self, fragments: u64, seconds: f64, cpu_s: f64) -> Figures {
        let figures = Figures::of(fragments as f64, Some(self.fragment_bytes.into()), seconds, cpu_s);
        Figures { unit: Unit::Fragment, ..figures }
    }
}

impl Found {
    /// A few lines for each kind of source.
    pub(crate) fn to_text(&self) -> String {
        let texts = self.0.iter().map(|Point { comparison, more }| {
            let source = comparison.parameters().source;
            let names = if source == BenchSource::Slices { ["slices", "triggered"] } else { ["weir", "bare"] };
            let mut text = format!(
                "{}, {} B: {}",
                source.name(),
                comparison.parameters().fragment_bytes,
                comparison.to_text_as(names)
            );
            if let (Some(of_source), Some(readout)) = (more.source_cpu_us, more.readout_cpu_us) {
                text +=
                    &format!("\nof the CPU {of_source:.3} µs in the source, {readout:.3} µs in the read-out system");
            }
            if let Some([chunks, overlap]) = comparison.parameters().chunks_per_slice {
                text += &format!("\n{chunks} chunks of each source in a slice, and {overlap} of the next one");
            }
            if let Some(books) = more.books {
                text += &format!("\n{books}");
            }
            text
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }
}

/// What the aims of sources are for.
const FRAGMENT_BYTES: u32 = 1000;
/// Of programs over TCP: that one, a short one, and a long one.
const TCP_BYTES: [u32; 3] = [FRAGMENT_BYTES, 100, 10_000];
const PAIRS: usize = 5;
/// As many as stay in the caches.
const SLOTS: u32 = 64;
/// What a source writes with one system call.
const BATCH_BYTES: u32 = 64 << 10;
