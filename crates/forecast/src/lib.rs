//! How many tokens of an escrow column a region will need in the next epoch
//! (`docs/design/forecasters.md`; Samya, §4.2 and §5.1.1).
//!
//! An *epoch* is how far a forecast looks ahead, five minutes for instance. The *demand* of an
//! epoch is the number of tokens that statements of one region asked for in it. A region that
//! expects more than it has free asks for tokens before a statement is short of them.
//!
//! A forecast moves tokens and decides nothing else: bounds hold whatever it says, and a statement
//! that is short still asks the other regions. So a wrong forecast costs time, and the layers are
//! about that:
//!
//! | layer | what it does |
//! | --- | --- |
//! | [`Forecaster`] | learns from past demand and says the next epoch's; chosen by its [`Kind`] |
//! | [`Guarded`] | one row: asks its forecaster once an epoch, and takes the random walk where that panics, answers nonsense, is too slow, or was worse over the last day |
//! | [`Worker`] | many rows: computes where no statement waits, bounded in time and memory |
//!
//! The random walk, «as in the last epoch», needs no training, cannot fail, and is the baseline of
//! the paper's Table 4.
//!
//! Nothing here reads a clock, a random number or a file. Callers give the clock; a simulation
//! calls [`Worker::run_next`] itself and starts no thread.

mod autoregression;
mod forecaster;
mod guarded;
mod kind;
#[cfg(feature = "lstm")]
mod lstm;
mod recent;
mod scale;
mod worker;

pub use autoregression::Autoregression;
pub use forecaster::{DEMAND_MAX, Forecaster, HISTORY_MAX, RandomWalk, Season};
pub use guarded::{Fallback, Forecast, Guarded, Judgement, PATIENCE};
pub use kind::{Kind, KindError};
#[cfg(feature = "lstm")]
pub use lstm::Lstm;
pub use worker::{Clock, Job, Limits, Running, Worker};
