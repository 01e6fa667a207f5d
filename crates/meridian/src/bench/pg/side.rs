//! The two sides of a bench: PostgreSQL, and a node of this program.

use crate::bench::child::{self, Server};
use crate::bench::postgres::{Postgres, Programs};
use crate::client::PgClient;
use meridian_server::node::base::{Error, Result};
use meridian_workload::client::Client;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tokio::time::Instant;

const START_PATIENCE: Duration = Duration::from_secs(60);
/// Everybody's name, on both sides.
pub const USER: &str = "root";

/// One of the two.
pub struct Side {
    pub name: &'static str,
    pub port: u16,
    /// The database that is there from the start.
    pub database: &'static str,
    /// The first process of the server.
    pub pid: u32,
}

impl Side {
    pub async fn connect(&self, database: &str) -> Result<PgClient> {
        PgClient::connect(&format!("127.0.0.1:{}", self.port), USER, database).await
    }
    /// An empty database of this name.
    pub async fn create_database(&self, name: &str) -> Result<()> {
        let mut client = self.connect(self.database).await?;
        client.execute(&format!("DROP DATABASE IF EXISTS {name}")).await?;
        client.execute(&format!("CREATE DATABASE {name}")).await.map(drop)
    }
    /// The CPU time that its server has used so far.
    pub fn cpu(&self) -> Duration {
        child::cpu_time(self.pid)
    }
}

/// Both, running. They end when this is dropped.
pub struct Sides {
    pub both: [Side; 2],
    pub programs: Programs,
    scratch: tempfile::TempDir,
    _servers: (Postgres, Server),
}

impl Sides {
    pub async fn start(programs: Programs) -> Result<Sides> {
        let scratch = tempfile::Builder::new().prefix("meridian-bench-").tempdir();
        let scratch = scratch.map_err(|e| Error::fatal(format!("no temporary directory: {e}")))?;
        let postgres = Postgres::start(&programs, scratch.path()).await?;
        let (node, node_port) = start_node(scratch.path()).await?;
        let both = [
            Side { name: "PostgreSQL", port: postgres.port, database: "postgres", pid: postgres.pid() },
            Side { name: "Meridian", port: node_port, database: "defaultdb", pid: node.pid() },
        ];
        Ok(Sides { both, programs, scratch, _servers: (postgres, node) })
    }
    /// Runs a program to its end, and returns what it printed.
    pub async fn run(&self, command: Command, limit: Duration) -> Result<String> {
        child::run(command, self.scratch.path(), limit).await
    }
    /// Both, the one whose turn is first in this round in front.
    pub fn in_turn(&self, round: u32) -> [(usize, &Side); 2] {
        let mut turns = [(0, &self.both[0]), (1, &self.both[1])];
        if round % 2 == 1 {
            turns.reverse();
        }
        turns
    }
}

/// Where a program is: in the PATH, or in one of some other places.
pub fn find_program(name: &str, others: impl IntoIterator<Item = PathBuf>, hint: &str) -> Result<PathBuf> {
    let mut places: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    places.extend(others);
    let found = places.into_iter().map(|place| place.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| Error::fatal(format!("{name} is not installed")).hint(hint))
}

/// A node as a process of its own, and its port for clients.
async fn start_node(scratch: &Path) -> Result<(Server, u16)> {
    let program = std::env::current_exe().map_err(|e| Error::fatal(format!("cannot find this program: {e}")))?;
    let mut command = Command::new(program);
    command.arg("start").arg("--data-dir").arg(scratch.join("node"));
    command.args(["--insecure", "--listen", "127.0.0.1:0", "--sql-listen", "127.0.0.1:0"]);
    let log = scratch.join("node.log");
    let mut server = Server::start("the node", command, &log)?;
    let deadline = Instant::now() + START_PATIENCE;
    loop {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let url = text.lines().find_map(|l| l.strip_prefix("clients")).map(str::trim);
        if let Some(url) = url {
            return Ok((server, crate::shell::target::Target::parse(url)?.port));
        }
        server.check(&log)?;
        if Instant::now() > deadline {
            return Err(Error::fatal("the node does not serve").detail(child::tail(&log)));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_is_an_error_that_says_how_to_get_it() {
        let error = find_program("no-such-program", [], "Install it.").expect_err("there is none");
        assert_eq!(error.message(), "no-such-program is not installed");
        assert_eq!(error.get_hint(), Some("Install it."));
    }
}
