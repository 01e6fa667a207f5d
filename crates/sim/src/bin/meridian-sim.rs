//! The simulator as a program of its own; `meridian sim` is the same.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    ExitCode::from(meridian_sim::main(&args, &[]))
}
