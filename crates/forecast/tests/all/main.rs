//! Forecasters that fail in every way there is, and what users see of it.

mod bad;
mod guarded;
mod properties;
mod worker;
