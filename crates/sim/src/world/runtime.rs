//! The simulated machine as a [`Runtime`].

use super::disk::SimDisk;
use super::host::Host;
use super::net;
use meridian_base::SteadyClock;
use meridian_base::runtime::{BoxFuture, Disk, Listener, Runtime, Stream};
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
    fn listen<'a>(&'a self, addr: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let listener: Box<dyn Listener> = Box::new(net::listen(&self.host, addr).await?);
            Ok(listener)
        })
    }
    fn connect<'a>(&'a self, addr: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream: Box<dyn Stream> = Box::new(net::connect(&self.host, addr).await?);
            Ok(stream)
        })
    }
    fn disk(&self) -> &dyn Disk {
        &self.disk
    }
    fn spawn_io(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        tokio::spawn(future);
    }
}
