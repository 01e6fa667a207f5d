//! One side of a comparison: a server, and how clients come in.

use crate::bench::child;
use crate::bench::postgres::Programs;
use std::process::Command;
use std::time::Duration;

#[derive(Clone)]
pub struct Contender {
    name: &'static str,
    host: String,
    port: u16,
    database: &'static str,
    user: &'static str,
    password: Option<&'static str>,
    sslmode: &'static str,
    /// The first processes of its servers.
    pids: Vec<u32>,
}

impl Contender {
    /// Clients are `root`, over TCP, without TLS.
    pub fn new(name: &'static str, port: u16, database: &'static str, pid: u32) -> Contender {
        let (host, sslmode) = ("127.0.0.1".to_string(), "disable");
        Contender { name, host, port, database, user: "root", password: None, sslmode, pids: vec![pid] }
    }
    /// These are all of its servers.
    pub fn with_servers(self, pids: Vec<u32>) -> Contender {
        Contender { pids, ..self }
    }
    pub fn tls(&self, sslmode: &'static str) -> Contender {
        Contender { sslmode, ..self.clone() }
    }
    pub fn role(&self, user: &'static str) -> Contender {
        Contender { user, ..self.clone() }
    }
    pub fn password(&self, password: &'static str) -> Contender {
        Contender { password: Some(password), ..self.clone() }
    }

    /// A client's command, with everything it needs to come in.
    pub fn command(&self, programs: &Programs, program: &str, arguments: &[&str]) -> Command {
        let mut command = programs.command(program);
        command.env("PGHOST", &self.host).env("PGPORT", self.port.to_string()).env("PGDATABASE", self.database);
        command.env("PGUSER", self.user).env("PGSSLMODE", self.sslmode).env_remove("PGSSLROOTCERT");
        match self.password {
            Some(password) => command.env("PGPASSWORD", password),
            None => command.env_remove("PGPASSWORD"),
        };
        command.args(arguments);
        command
    }

    /// The CPU time that its servers have used so far.
    pub fn cpu(&self) -> Duration {
        self.pids.iter().map(|pid| child::cpu_time(*pid)).sum()
    }

    /// Where it is, over TCP.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub fn described(&self) -> String {
        format!("{} ({}; {})", self.name, self.sslmode, self.user)
    }
}
