//! Meridian's ordered store of committed versions. See the essay in [`group`].

mod group;
mod memory;
mod options;
mod snapshot;
mod version;

pub use group::{GroupStore, Store};
pub use memory::MemoryDisk;
pub use options::{Backend, Options};
pub use snapshot::{Export, Import};
pub use version::{Found, ScanLimits, ScanPage, Version};
