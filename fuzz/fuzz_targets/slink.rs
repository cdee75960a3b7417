#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| link::wire::check_any_words(data));
