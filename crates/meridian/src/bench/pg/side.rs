//! The two sides of a bench: PostgreSQL, and a node of this program.

use crate::bench::child;
use crate::bench::node_process::NodeProcess;
use crate::bench::postgres::{Postgres, Programs};
use crate::client::PgClient;
use meridian_base::{Error, Result};
use meridian_workload::client::Client;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

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
    _servers: (Postgres, NodeProcess),
}

impl Sides {
    pub async fn start(programs: Programs) -> Result<Sides> {
        let scratch = tempfile::Builder::new().prefix("meridian-bench-").tempdir();
        let scratch = scratch.map_err(|e| Error::fatal(format!("no temporary directory: {e}")))?;
        let postgres = Postgres::start(&programs, scratch.path()).await?;
        let node = NodeProcess::start(scratch.path(), "node", &["--insecure"]).await?;
        let both = [
            Side { name: "PostgreSQL", port: postgres.port, database: "postgres", pid: postgres.pid() },
            Side { name: "Meridian", port: node.port, database: "defaultdb", pid: node.pid() },
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
