#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| transport::udp::check_any_conversation(data));
