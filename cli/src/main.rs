//! The `everywire` program. All of it is in the library of this crate, which is compiled while those that it uses are still made into machine code; a
//! program waits for all of them to their end.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    everywire_cli::main()
}
