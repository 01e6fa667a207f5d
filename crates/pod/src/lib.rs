//! Shared memory of a pod.

mod bugs;
mod circle;
mod clock;
mod error;
mod feed;
mod hosts;
mod layout;
mod lease;
pub mod memory;
mod ring;
mod rings;
pub mod segment;
mod slots;
#[cfg(test)]
mod testing;

pub use bugs::{PlantedBug, PlantedBugs};
pub use circle::NoRoom;
pub use clock::Draw;
pub use error::{Damaged, OpenError};
pub use feed::{FeedReader, FeedRecord, FeedWriter, Item, Reference};
pub use hosts::{HostState, Phase};
pub use layout::{HOSTS_MAX, Layout, SLOTS, Sizes};
pub use lease::HostLease;
pub use ring::{Entry, Logged, Place, RingWriter, body_max, bytes_of_entry};
pub use rings::Rings;
pub use segment::{Purpose, Segment};
pub use slots::{Hold, Holder, Slot};
