//! `meridian sql`: the shell on its own.

use crate::shell::Shell;
use crate::shell::target::{Target, URL_DEFAULT};
use crate::url::local_url;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use meridian_base as base;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(ClapArgs)]
pub struct Args {
    /// postgresql://user@host:port/database. Default: that of the node of this machine whose
    /// --data-dir is given, or stands in this directory.
    url: Option<String>,
    /// The data directory of a node of this machine.
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    data_dir: Option<PathBuf>,
    /// Run these statements and leave. Several in one -c are one transaction. Can be repeated.
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    commands: Vec<String>,
    /// Run a file and leave.
    #[arg(short = 'f', long = "file", conflicts_with = "commands")]
    file: Option<String>,
}

/// What `meridian debug` tells. Everything there is a statement that any client may send.
#[derive(Subcommand)]
pub enum Debug {
    /// The transactions over several regions that are prepared and not decided, and whose votes
    /// they wait for.
    Txn {
        /// postgresql://user@host:port/database
        #[arg(default_value = URL_DEFAULT)]
        url: String,
    },
    /// Last resort after clocks were ahead and were set right while the cluster was down: moves the
    /// nodes' clocks ahead to what was promised, from where they go at half speed until the wall
    /// clocks have caught up. Start all nodes first.
    AcceptClock {
        #[command(flatten)]
        asked: crate::status::Asked,
    },
    /// Ends a transaction in doubt: a last resort, for when a participant's nodes are lost for
    /// good. Refused while the protocol can end it; where somebody knows the outcome, that is the
    /// outcome. Else the lost participant may have done the opposite, and half of the transaction
    /// stays applied for ever.
    EndTransaction {
        /// As `meridian debug txn` shows it.
        id: String,
        /// What becomes of it.
        #[arg(long = "as", value_enum)]
        outcome: Outcome,
        /// Ends it although that may leave it half applied.
        #[arg(long)]
        i_know_it_may_be_half_applied: bool,
        /// postgresql://user@host:port/database
        #[arg(default_value = URL_DEFAULT)]
        url: String,
    },
}

/// See [`Debug::EndTransaction`].
#[derive(Clone, Copy, ValueEnum)]
pub enum Outcome {
    Commit,
    Abort,
}

pub async fn debug(command: Debug) -> base::Result<ExitCode> {
    let (url, statement) = match command {
        Debug::AcceptClock { asked } => return crate::status::accept_clock(&asked).await,
        Debug::Txn { url } => (url, "SHOW TRANSACTIONS".to_string()),
        Debug::EndTransaction { id, outcome, i_know_it_may_be_half_applied, url } => {
            let outcome = match outcome {
                Outcome::Commit => "COMMIT",
                Outcome::Abort => "ABORT",
            };
            let unsafely = if i_know_it_may_be_half_applied { " UNSAFE" } else { "" };
            (url, format!("RESOLVE TRANSACTION '{}' AS {outcome}{unsafely}", id.replace('\'', "''")))
        }
    };
    run(Args { url: Some(url), data_dir: None, commands: vec![statement], file: None }).await
}

impl Args {
    fn url(&self) -> base::Result<String> {
        if let Some(url) = &self.url {
            return Ok(url.clone());
        }
        let found = Path::new("meridian-data");
        match &self.data_dir {
            Some(dir) => local_url(dir, "defaultdb"),
            None if found.join("node.sock").exists() => local_url(found, "defaultdb"),
            None => Ok(URL_DEFAULT.to_string()),
        }
    }
}

pub async fn run(args: Args) -> base::Result<ExitCode> {
    let shell = match Shell::connect(Target::parse(&args.url()?)?, Vec::new()).await {
        Ok(shell) => shell,
        Err(e) => {
            eprintln!("meridian: {}{}", e.message(), e.get_hint().map(|h| format!("\n  hint: {h}")).unwrap_or_default());
            return Ok(ExitCode::from(crate::shell::Ended::Disconnected.exit_status()));
        }
    };
    let ended = match &args.file {
        _ if !args.commands.is_empty() => shell.run_texts(&args.commands).await,
        Some(file) => shell.run_file(file).await,
        None => shell.run_stdin().await,
    };
    Ok(ExitCode::from(ended.exit_status()))
}
