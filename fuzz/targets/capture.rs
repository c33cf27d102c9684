#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| everywire_fuzz_cases::capture(data));
