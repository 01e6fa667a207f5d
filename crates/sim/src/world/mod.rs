//! What a simulated node may touch: clock, randomness, disk and network, all from one seed.
//!
//! * [`trace`]: everything that happens, as one hash; two runs of a seed must agree on it.
//! * [`coverage`]: how often each fault and rare path happened.
//! * [`host`]: one machine: its clock's error, its disk, and whether its process is alive.
//! * [`disk`]: files that forget what was not synced.
//! * [`net`]: streams that can be reset.
//! * [`runtime`]: the whole as a [`meridian_base::runtime::Runtime`].

pub mod coverage;
pub mod disk;
pub mod host;
pub mod net;
pub mod runtime;
pub mod trace;

pub use coverage::Coverage;
pub use host::Host;
pub use runtime::SimRuntime;
pub use trace::Trace;

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Simulated time 0, in microseconds since 1970: 2026-01-01.
pub const EPOCH_MICROS: u64 = 1_767_225_600_000_000;

/// One run's world, shared by its hosts.
#[derive(Default)]
pub struct World {
    pub coverage: Coverage,
    pub trace: Trace,
    pub net: net::Streams,
    hosts: Mutex<BTreeMap<String, Arc<Host>>>,
    /// The last time given out by [`World::unique_micros`].
    last_unique: AtomicU64,
}

impl World {
    /// An empty world; `print_trace` prints every event as it happens.
    pub fn new(print_trace: bool) -> Arc<World> {
        Arc::new(World { trace: Trace::new(print_trace), ..World::default() })
    }
    /// Adds a machine.
    pub fn add_host(self: &Arc<World>, name: &str, seed: u64) -> Arc<Host> {
        let host = Host::new(self.clone(), name, seed);
        self.hosts.lock().insert(name.to_string(), host.clone());
        host
    }
    /// A machine by its name.
    pub fn host(&self, name: &str) -> Option<Arc<Host>> {
        self.hosts.lock().get(name).cloned()
    }
    /// True time, which no node can see.
    pub fn micros(&self) -> u64 {
        // Outside of any host (in destructors while a host is taken down) time is that of the last
        // event.
        match turmoil::sim_elapsed() {
            Some(elapsed) => elapsed.as_micros() as u64,
            None => self.last_unique.load(Ordering::Relaxed),
        }
    }
    /// True time, never the same twice, in the order in which things really happened: for
    /// histories.
    pub fn unique_micros(&self) -> u64 {
        let now = self.micros();
        let next = |last: u64| Some(now.max(last + 1));
        let last = self.last_unique.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).expect("always some");
        now.max(last + 1)
    }
}

impl meridian_workload::Timer for World {
    fn now_micros(&self) -> u64 {
        self.unique_micros()
    }
}
