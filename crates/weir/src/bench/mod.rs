//! `weir bench`: system benchmarks, each beside the bare machine.

mod reference;

use crate::cli::{BenchArgs, Exit};

/// Runs a benchmark.
pub(crate) fn bench(_args: &BenchArgs) -> Exit {
    Exit::Wrong
}
