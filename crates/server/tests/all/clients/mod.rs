//! The server against clients: raw bytes, a driver, and PostgreSQL's own tools, over an environment
//! in memory.

mod driver;
pub mod login;
mod memory;
mod raw;
mod tools;

use memory::Memory;
use meridian_base::runtime::Listener;
use meridian_server::SessionThreads;
use meridian_server::machine::MachineRuntime;
use meridian_server::pgwire::{PgServer, ServerOptions};
use std::sync::Arc;

/// A server on a port of its own.
pub struct Running {
    pub node: Memory,
    pub port: u16,
    _data: tempfile::TempDir,
}

pub fn new_server(options: ServerOptions) -> (PgServer, Memory) {
    let node = Memory::new();
    (PgServer::new(Arc::new(node.clone()), node.shared(), options), node)
}

pub async fn start() -> Running {
    start_with(ServerOptions::default()).await
}

pub async fn start_with(options: ServerOptions) -> Running {
    let (server, node) = new_server(options);
    let data = tempfile::tempdir().expect("a temporary directory");
    let machine = MachineRuntime::open(data.path()).expect("a data directory");
    let listener = machine.listen_for_clients("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().unwrap().rsplit(':').next().unwrap().parse().unwrap();
    let accepting = server.clone();
    tokio::spawn(async move { accepting.serve(listener, SessionThreads::start().expect("threads")).await });
    Running { node, port, _data: data }
}
