//! The simulated machine as a [`Runtime`].

use super::disk::SimDisk;
use super::host::Host;
use super::net::{self, SimListener, SimStream};
use meridian_base::SteadyClock;
use meridian_base::runtime::Runtime;
use std::io;
use std::sync::Arc;

/// What a process on a simulated machine gets.
#[derive(Clone)]
pub struct SimRuntime {
    host: Arc<Host>,
    disk: SimDisk,
    steady: Arc<SteadyClock>,
}

impl SimRuntime {
    /// The runtime of a machine's process.
    pub fn new(host: Arc<Host>) -> SimRuntime {
        let steady = Arc::new(SteadyClock::new(host.clock_micros(), host.world.micros()));
        SimRuntime { disk: SimDisk(host.clone()), steady, host }
    }
    /// The machine.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }
}

impl Runtime for SimRuntime {
    type Stream = SimStream;
    type Listener = SimListener;
    type Disk = SimDisk;

    fn wall_micros(&self) -> u64 {
        self.host.clock_micros()
    }
    fn monotonic_micros(&self) -> u64 {
        self.host.world.micros()
    }
    fn steady_clock(&self) -> &SteadyClock {
        &self.steady
    }
    fn random(&self) -> u64 {
        self.host.random()
    }
    async fn listen(&self, addr: &str) -> io::Result<SimListener> {
        net::listen(&self.host, addr).await
    }
    async fn connect(&self, addr: &str) -> io::Result<SimStream> {
        net::connect(&self.host, addr).await
    }
    fn disk(&self) -> &SimDisk {
        &self.disk
    }
    fn spawn_io<F>(&self, _name: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        tokio::spawn(future);
    }
}
