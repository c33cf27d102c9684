#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| everywire_fuzz_cases::broker_calls(data));
