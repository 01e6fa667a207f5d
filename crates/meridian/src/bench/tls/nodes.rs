//! Three nodes of one region with TLS between them, by three without.

use super::contender::Contender;
use super::{Bench, SETUP_LIMIT};
use crate::bench::child;
use crate::bench::node_process::{NodeProcess, this_program};
use meridian_base::{Error, Result};
use meridian_workload::client::Client;
use std::time::Duration;

const ZONES: [&str; 3] = ["a", "b", "c"];
/// New members have their replicas by then.
const SETTLED: Duration = Duration::from_secs(10);

pub async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let (secure, insecure) = (cluster(bench, true).await?, cluster(bench, false).await?);
    // Clients of both come in without TLS: what differs is between nodes.
    secure[0].as_root("postgres").await?.execute("ALTER SYSTEM SET hba_rules = 'host all all 127.0.0.1/32 trust'").await?;
    tokio::time::sleep(SETTLED).await;
    let sides = [(&secure, "three nodes with TLS"), (&insecure, "three nodes without")];
    let [with, without] = sides.map(|(nodes, name)| {
        let pids = nodes.iter().map(NodeProcess::pid).collect();
        Contender::new(name, nodes[0].port, "defaultdb", nodes[0].pid()).with_servers(pids)
    });
    for side in [&with, &without] {
        let scale = bench.args.scale.to_string();
        let command = side.command(&bench.programs, "pgbench", &["-i", "-q", "-s", &scale]);
        child::run(command, bench.scratch.path(), SETUP_LIMIT).await?;
    }
    let ratio = bench.compare("nodes", &with, &without, &["-b", "simple-update", "-M", "prepared"]).await?.throughput();
    bench.verdict(ratio.median >= 0.9, "with TLS between nodes, by without", ratio, "≥ 0.90 x");
    Ok(())
}

/// A node in each of three zones.
async fn cluster(bench: &Bench<'_>, is_secure: bool) -> Result<Vec<NodeProcess>> {
    let scratch = bench.scratch.path();
    let mut nodes: Vec<NodeProcess> = Vec::new();
    for zone in ZONES {
        let name = format!("{}-{zone}", if is_secure { "secure" } else { "insecure" });
        let locality = format!("region=one,zone={zone}");
        let mut arguments = vec!["--locality".to_string(), locality];
        if !is_secure {
            arguments.push("--insecure".into());
        }
        if let Some(first) = nodes.first() {
            arguments.extend(["--join".into(), first.address()?]);
            if is_secure {
                let mut create = this_program()?;
                create.args(["token", "create", "--data-dir"]).arg(&first.data);
                let token = child::run(create, scratch, SETUP_LIMIT).await?;
                let file = scratch.join(format!("{name}.token"));
                write_secret(&file, &token).map_err(|e| Error::fatal(format!("cannot write {}: {e}", file.display())))?;
                arguments.extend(["--join-token-file".into(), file.display().to_string()]);
            }
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        nodes.push(NodeProcess::start(scratch, &name, &arguments).await?);
    }
    Ok(nodes)
}

fn write_secret(path: &std::path::Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}
