//! The `weir` program; see the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    weir::run_command(std::env::args_os()).into()
}
