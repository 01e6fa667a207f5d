//! The names of what can be wrong.
//!
//! The classes are Adya's («Weak Consistency», 1999), as refined for list-append histories by Elle
//! (Kingsbury and Alvaro, 2020), and each cycle class has a variant whose cycle needs real-time
//! edges: such a history is serializable, but not strictly.

use std::fmt;

/// A class of anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A cycle of writes overwriting writes only (dirty write).
    G0,
    /// A committed transaction read a value of an aborted one (aborted read).
    G1a,
    /// A committed transaction read a value that its writer overwrote before committing
    /// (intermediate read).
    G1b,
    /// A cycle of writes and reads, each on the other's side (circular information flow).
    G1c,
    /// A cycle with exactly one anti-dependency (read skew).
    GSingle,
    /// A cycle with several anti-dependencies, all over rows that were read (write skew).
    G2Item,
    /// A cycle with several anti-dependencies, one at least over a row that a predicate did not
    /// find (phantom).
    G2,
    /// The same with real-time edges.
    G0RealTime,
    /// The same with real-time edges.
    G1cRealTime,
    /// The same with real-time edges: a stale read, most often.
    GSingleRealTime,
    /// The same with real-time edges.
    G2ItemRealTime,
    /// The same with real-time edges.
    G2RealTime,
    /// A transaction contradicts itself: it does not see its own writes, or a second read differs
    /// from the first.
    Internal,
    /// Two reads of one key cannot both be prefixes of one history of it: the key has forked.
    IncompatibleOrder,
    /// Two committed transactions read one version of a key and both wrote the next one.
    LostUpdate,
    /// An acknowledged write is missing from a read that began after the acknowledgement.
    LostWrite,
    /// A value is there twice: a write was applied twice.
    Duplicate,
    /// A value that nobody wrote.
    Garbage,
    /// No order of the operations on a register explains what was read.
    NotLinearizable,
    /// The search for an order was given up; the history is too wide to judge.
    Undecided,
    /// A snapshot in which money was made or lost.
    WrongSum,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 21] = [
        Kind::G0,
        Kind::G1a,
        Kind::G1b,
        Kind::G1c,
        Kind::GSingle,
        Kind::G2Item,
        Kind::G2,
        Kind::G0RealTime,
        Kind::G1cRealTime,
        Kind::GSingleRealTime,
        Kind::G2ItemRealTime,
        Kind::G2RealTime,
        Kind::Internal,
        Kind::IncompatibleOrder,
        Kind::LostUpdate,
        Kind::LostWrite,
        Kind::Duplicate,
        Kind::Garbage,
        Kind::NotLinearizable,
        Kind::Undecided,
        Kind::WrongSum,
    ];

    /// The class with real-time edges that belongs to a class of cycles.
    pub(crate) fn with_real_time(self) -> Kind {
        match self {
            Kind::G0 => Kind::G0RealTime,
            Kind::G1c => Kind::G1cRealTime,
            Kind::GSingle => Kind::GSingleRealTime,
            Kind::G2Item => Kind::G2ItemRealTime,
            Kind::G2 => Kind::G2RealTime,
            other => panic!("{other:?} is not a class of cycles"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Kind::G0 => "G0",
            Kind::G1a => "G1a",
            Kind::G1b => "G1b",
            Kind::G1c => "G1c",
            Kind::GSingle => "G-single",
            Kind::G2Item => "G2-item",
            Kind::G2 => "G2",
            Kind::G0RealTime => "G0-realtime",
            Kind::G1cRealTime => "G1c-realtime",
            Kind::GSingleRealTime => "G-single-realtime",
            Kind::G2ItemRealTime => "G2-item-realtime",
            Kind::G2RealTime => "G2-realtime",
            Kind::Internal => "internal",
            Kind::IncompatibleOrder => "incompatible-order",
            Kind::LostUpdate => "lost-update",
            Kind::LostWrite => "lost-write",
            Kind::Duplicate => "duplicate",
            Kind::Garbage => "garbage",
            Kind::NotLinearizable => "not-linearizable",
            Kind::Undecided => "undecided",
            Kind::WrongSum => "wrong-sum",
        };
        f.write_str(name)
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    pub kind: Kind,
    /// Indices of the records that show it.
    pub records: Vec<usize>,
    /// What they show, in words.
    pub description: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.description)
    }
}
