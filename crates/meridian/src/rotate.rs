//! `meridian cert rotate-ca`: another authority takes the place of the cluster's, while it serves.

use crate::status::Asked;
use clap::Subcommand;
use meridian_base::{Error, NodeId, Result};
use meridian_node::rotate_at;
use meridian_node::wire::{RotationStatus, RotationStep};
use meridian_pki::rotation::{Phase, Report, StoredRotation};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::Instant;

/// How often a command that waits looks again.
const POLL: Duration = Duration::from_millis(500);

#[derive(Subcommand)]
pub enum Command {
    /// Tells how far it is, and how far each node is.
    Status {
        #[command(flatten)]
        asked: Asked,
    },
    /// Makes the new authority at the node with ca.key, and waits until every node trusts both.
    Begin {
        #[command(flatten)]
        waiting: Waiting,
    },
    /// Has the new one sign, and waits until every node shows a certificate of it. Clients that
    /// verify the cluster need the new ca.crt before.
    Sign {
        #[command(flatten)]
        waiting: Waiting,
        /// Does not wait for nodes that are not ready: when the old key was stolen.
        #[arg(long)]
        force: bool,
    },
    /// Trusts the old one no more. Clients with certificates need new ones before.
    Finish {
        #[command(flatten)]
        waiting: Waiting,
        /// Does not wait for nodes that are not ready: when the old key was stolen.
        #[arg(long)]
        force: bool,
    },
    /// Takes the new one back, as long as it does not sign.
    Cancel {
        #[command(flatten)]
        waiting: Waiting,
    },
}

#[derive(clap::Args)]
pub struct Waiting {
    #[command(flatten)]
    asked: Asked,
    /// How long to wait, in seconds. The command may be given again: what was done stays.
    #[arg(long, default_value_t = 300)]
    timeout: u64,
}

pub async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Status { asked } => show(&asked).await,
        Command::Begin { waiting } => go(&waiting, RotationStep::Begin, false).await,
        Command::Sign { waiting, force } => go(&waiting, RotationStep::Sign, force).await,
        Command::Finish { waiting, force } => go(&waiting, RotationStep::Finish, force).await,
        Command::Cancel { waiting } => go(&waiting, RotationStep::Cancel, false).await,
    }
}

/// Asks for a step until it is done everywhere.
async fn go(waiting: &Waiting, step: RotationStep, is_forced: bool) -> Result<ExitCode> {
    let end = Instant::now() + Duration::from_secs(waiting.timeout);
    let mut said = None;
    loop {
        let (_scratch, way) = waiting.asked.way()?;
        let waits = match rotate_at(&way, step, is_forced).await {
            Ok(status) if status.stored.as_ref().is_some_and(|stored| is_at(step, stored)) => {
                let behind = status.behind();
                if behind.is_empty() || is_forced {
                    let silent = status.reports.iter().filter(|(_, report)| report.is_none());
                    silent.for_each(|(node, _)| say!("node {node} was not ready: {RESCUE}"));
                    say!("{}", then(step));
                    return Ok(ExitCode::SUCCESS);
                }
                format!("waits for {}", names(&behind))
            }
            Ok(_) => "waits for the catalog".to_string(),
            Err(e) if is_passing(&e) => e.message().to_string(),
            Err(e) => return Err(e),
        };
        if said.as_ref() != Some(&waits) {
            say!("{waits}");
            said = Some(waits);
        }
        if Instant::now() > end {
            eprintln!("meridian: gave up after {} s", waiting.timeout);
            eprintln!("  hint: Give the command again when these nodes run, or decommission them.");
            return Ok(ExitCode::FAILURE);
        }
        tokio::time::sleep(POLL).await;
    }
}

const RESCUE: &str = "if it is refused by the others, stop it, make its certificate anew by `meridian cert create-node` in the \
                      directory of the node that signs, and start it with that one";

/// What goes by itself.
fn is_passing(e: &Error) -> bool {
    e.sqlstate() == "55006" || e.is_unavailable()
}

fn is_at(step: RotationStep, stored: &StoredRotation) -> bool {
    match (step, stored.phase) {
        (RotationStep::Begin, phase) => matches!(phase, Phase::Introduced { .. }),
        (RotationStep::Sign, phase) => matches!(phase, Phase::Signing { .. }),
        (RotationStep::Finish, Phase::Settled { authority }) => authority == stored.new_authority(),
        (RotationStep::Cancel, Phase::Settled { authority }) => authority == stored.endorsed.old(),
        _ => false,
    }
}

/// What comes next.
fn then(step: RotationStep) -> &'static str {
    match step {
        RotationStep::Begin => {
            "Every node trusts both authorities. Give the clients that verify the cluster the new ca.crt, which is in \
             every node's directory of certificates; then: meridian cert rotate-ca sign"
        }
        RotationStep::Sign => {
            "The new authority signs. Make new certificates for clients that have some (meridian cert create-client); \
             then: meridian cert rotate-ca finish"
        }
        RotationStep::Finish => "The old authority is trusted no more.",
        RotationStep::Cancel => "The new authority is trusted no more.",
        RotationStep::Look => "",
    }
}

fn names(nodes: &[NodeId]) -> String {
    let names: Vec<String> = nodes.iter().map(|n| format!("node {n}")).collect();
    names.join(", ")
}

async fn show(asked: &Asked) -> Result<ExitCode> {
    let (_scratch, way) = asked.way()?;
    let RotationStatus { stored, reports } = rotate_at(&way, RotationStep::Look, false).await?;
    let Some(stored) = stored else {
        say!("there has been no rotation");
        return Ok(ExitCode::SUCCESS);
    };
    say!("{}", sentence(&stored));
    for (node, report) in &reports {
        say!("node {node}: {}", report.as_ref().map_or("does not answer".to_string(), |report| how(report, &stored)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Where a rotation is.
pub fn sentence(stored: &StoredRotation) -> String {
    let (old, new) = (stored.endorsed.old(), stored.new_authority());
    match stored.phase {
        Phase::Introduced { .. } => {
            format!("authority {old} is being replaced by {new}, which node {} has: nodes are to trust both", stored.signer)
        }
        Phase::Signing { .. } => {
            format!("authority {old} is being replaced by {new}, which signs at node {}: both are trusted", stored.signer)
        }
        Phase::Settled { authority } if authority == new => format!("authority {new} has replaced {old}"),
        Phase::Settled { authority } => format!("authority {authority} signs; {new} was taken back"),
    }
}

fn how(report: &Report, stored: &StoredRotation) -> String {
    let (old, new) = (stored.endorsed.old(), stored.new_authority());
    let trusts = match (report.trusts.contains(&old), report.trusts.contains(&new)) {
        (true, true) => "both",
        (true, false) => "the old one",
        (false, true) => "the new one",
        (false, false) => "neither",
    };
    let shows = match report.shows {
        shows if shows == old => "the old one".to_string(),
        shows if shows == new => "the new one".to_string(),
        other => other.to_string(),
    };
    format!("trusts {trusts}, shows a certificate of {shows}")
}
