//! A node of this program as a process of its own.

use crate::bench::child::{self, Server};
use crate::client::PgClient;
use crate::shell::target::Target;
use meridian_base::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tokio::time::Instant;

const START_PATIENCE: Duration = Duration::from_secs(60);

/// A running node. Ends when dropped.
pub struct NodeProcess {
    server: Server,
    /// Where clients connect.
    pub port: u16,
    pub data: PathBuf,
}

impl NodeProcess {
    /// Starts one on the directory `name` of `scratch`, on ports that the system picks, with
    /// further arguments of `start`.
    pub async fn start(scratch: &Path, name: &str, arguments: &[&str]) -> Result<NodeProcess> {
        let data = scratch.join(name);
        let mut command = this_program()?;
        command.arg("start").arg("--data-dir").arg(&data);
        command.args(["--listen", "127.0.0.1:0", "--sql-listen", "127.0.0.1:0"]).args(arguments);
        let log = scratch.join(format!("{name}.log"));
        let mut server = Server::start("the node", command, &log)?;
        let deadline = Instant::now() + START_PATIENCE;
        loop {
            if let Some(url) = said(&log, "clients") {
                return Ok(NodeProcess { server, port: Target::parse(&url)?.port, data });
            }
            server.check(&log)?;
            if Instant::now() > deadline {
                return Err(Error::fatal("the node does not serve").detail(child::tail(&log)));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Where other nodes connect.
    pub fn address(&self) -> Result<String> {
        said(&self.data.with_extension("log"), "nodes").ok_or_else(|| Error::internal("the node does not say its address"))
    }

    /// Connects as `root`, by the socket in its directory.
    pub async fn as_root(&self, database: &str) -> Result<PgClient> {
        PgClient::connect(&format!("{}:{}", self.data.display(), self.port), "root", database).await
    }
}

/// What a started node says of itself under a title.
fn said(log: &Path, title: &str) -> Option<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().find_map(|l| l.strip_prefix(title)).map(|said| said.trim().to_string())
}

/// This program, to run another command of it.
pub fn this_program() -> Result<Command> {
    std::env::current_exe().map(Command::new).map_err(|e| Error::fatal(format!("cannot find this program: {e}")))
}
