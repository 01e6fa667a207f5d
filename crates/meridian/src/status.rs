//! `meridian node status`: the cluster as one of its nodes sees it.

use clap::Subcommand;
use meridian_server::MachineRuntime;
use meridian_server::node::{base, status_of};
use std::process::ExitCode;

#[derive(Subcommand)]
pub enum Command {
    /// A line per node: where it is, whether it answers, how far it is, which groups it leads.
    Status {
        /// A node to ask, as it --listen.
        #[arg(long, default_value = "127.0.0.1:26357")]
        node: String,
    },
}

pub async fn run(command: Command) -> base::Result<ExitCode> {
    let Command::Status { node } = command;
    // Asking needs a runtime, and a runtime a directory; an empty one for the moment.
    let scratch = tempfile::tempdir().map_err(|e| base::Error::fatal(format!("no temporary directory: {e}")))?;
    let runtime = MachineRuntime::open(scratch.path()).map_err(|e| base::Error::fatal(e.to_string()))?;
    let nodes = status_of(runtime, &node).await?;
    let mut lines = vec![["node", "region", "zone", "nodes", "clients", "live", "round trip", "leads"].map(String::from)];
    for n in &nodes {
        let leads: Vec<String> = n.leads.iter().map(ToString::to_string).collect();
        lines.push([
            n.node.id.to_string(),
            n.node.region.clone(),
            n.node.zone.clone(),
            n.node.addr.clone(),
            n.node.sql_addr.clone(),
            if n.is_live { "yes".into() } else { "no".into() },
            format!("{:.1} ms", n.round_trip_micros as f64 / 1000.0),
            leads.join(" "),
        ]);
    }
    let widths: Vec<usize> = (0..8).map(|c| lines.iter().map(|l| l[c].len()).max().unwrap_or(0)).collect();
    for line in lines {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, w)| format!("{cell:w$}")).collect();
        println!("{}", cells.join("  ").trim_end());
    }
    Ok(if nodes.iter().all(|n| n.is_live) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
