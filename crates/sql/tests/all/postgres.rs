//! The PostgreSQL that is compared with: at `MERIDIAN_POSTGRES` (`host:port` or `socket
//! directory:port`), as the user `postgres`, trusted.

use std::sync::{Mutex, MutexGuard, PoisonError};

static ALONE: Mutex<()> = Mutex::new(());

/// The server, for one test at a time: each empties the schema `public` and makes roles, which the
/// other tests of this program would meet.
pub struct Postgres {
    config: String,
    _alone: MutexGuard<'static, ()>,
}

impl Postgres {
    /// Waits until no other test has the server.
    pub fn alone() -> Postgres {
        let address = std::env::var("MERIDIAN_POSTGRES").expect("MERIDIAN_POSTGRES=host:port names a server to compare with");
        let (host, port) = address.split_once(':').expect("MERIDIAN_POSTGRES=host:port");
        let config = format!("host={host} port={port} user=postgres dbname=postgres");
        // What a test that failed has left is emptied as what one that passed has.
        Postgres { config, _alone: ALONE.lock().unwrap_or_else(PoisonError::into_inner) }
    }
    pub fn config(&self) -> &str {
        &self.config
    }
}
