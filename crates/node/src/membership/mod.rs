//! The node as a member of its cluster: who it is, who else is there, and which groups have
//! replicas here.

pub(crate) mod address_book;
pub(crate) mod ask;
pub(crate) mod clocks;
pub(crate) mod departure;
pub(crate) mod departures;
pub(crate) mod directory;
pub(crate) mod doubt;
pub(crate) mod founding;
pub(crate) mod freshness;
pub(crate) mod holdings;
pub(crate) mod identity;
pub(crate) mod lost;
pub(crate) mod offsets;
pub(crate) mod peers;
pub(crate) mod pings;
pub(crate) mod placement;
pub(crate) mod pledges;
pub(crate) mod promises;
pub(crate) mod ranges;
pub(crate) mod reach;
pub(crate) mod registering;
pub mod shared;
pub(crate) mod space;
pub(crate) mod starting;
pub(crate) mod status;
