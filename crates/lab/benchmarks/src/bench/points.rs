//! Comparisons at several points, for benchmarks that print a table.

use serde::Serialize;

use super::paired::Comparison;

/// What a benchmark has found at all its points, each as if it were a benchmark of its own.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Points<P, M = Nothing> {
    /// One of the points once more, as the one that the benchmark is named for.
    #[serde(flatten)]
    main: Comparison<P>,
    points: Vec<Point<P, M>>,
}

/// One of them.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Point<P, M = Nothing> {
    #[serde(flatten)]
    pub(crate) comparison: Comparison<P>,
    /// What this benchmark tells besides.
    #[serde(flatten)]
    pub(crate) more: M,
}

/// No more than any benchmark tells.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Nothing {}

impl<P: Clone, M> Points<P, M> {
    /// All points, of which the first that is chosen stands for all.
    pub(crate) fn new(points: Vec<Point<P, M>>, is_main: impl Fn(&P) -> bool) -> Self {
        let main = points.iter().find(|point| is_main(point.comparison.parameters()));
        Self { main: main.expect("one of the points stands for all").comparison.clone(), points }
    }

    /// In the order in which they were measured.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Point<P, M>> {
        self.points.iter()
    }
}

impl<P> Point<P> {
    /// A comparison that says all.
    pub(crate) fn plain(comparison: Comparison<P>) -> Self {
        Self { comparison, more: Nothing {} }
    }
}
