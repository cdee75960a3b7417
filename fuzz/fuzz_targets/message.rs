#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dataflow::wire::check_any_frame(data));
