//! `meridian token`: what new nodes join with.

use crate::status::Asked;
use clap::Subcommand;
use meridian_base::Result;
use meridian_node::create_token;
use meridian_pki::join::TOKEN_LIFE_SECS;
use std::process::ExitCode;

#[derive(Subcommand)]
pub enum Command {
    /// Prints a token that lets one new node in. It is a secret: bring it to the new node as a file
    /// that nobody else can read.
    Create {
        #[command(flatten)]
        asked: Asked,
        /// For how many seconds it is good.
        #[arg(long, value_name = "SECONDS", default_value_t = TOKEN_LIFE_SECS)]
        life: u64,
    },
}

pub async fn run(command: Command) -> Result<ExitCode> {
    let Command::Create { asked, life } = command;
    let (_scratch, way) = asked.way()?;
    say!("{}", create_token(&way, life).await?);
    Ok(ExitCode::SUCCESS)
}
