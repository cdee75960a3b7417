#![no_main]

#[path = "../../crates/core/dataflow/tests/all/any_frame.rs"]
mod any_frame;

libfuzzer_sys::fuzz_target!(|data: &[u8]| any_frame::check_any_frame(data));
