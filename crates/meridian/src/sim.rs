//! `meridian sim`: the simulator's own command line.

use clap::Args as ClapArgs;
use std::process::ExitCode;

#[derive(ClapArgs)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

/// Runs outside any runtime: the simulator brings its own.
pub fn run(args: &Args) -> ExitCode {
    ExitCode::from(meridian_sim::main(&args.arguments, &["sim".to_string()]))
}
