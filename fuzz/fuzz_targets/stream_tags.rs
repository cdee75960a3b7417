#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| eformat::fuzzing::stream_tags(data));
