//! The `weir` program; see the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Messages and handles come and go by the million.
#[global_allocator]
static ALLOCATOR: heap::Heap = heap::Heap;

fn main() -> ExitCode {
    weir::run_command(std::env::args_os()).into()
}
