//! A snapshot being received.

use crate::consensus::machine::SnapshotData;
use crate::consensus::{SnapshotMeta, Vote, members, option_to_position};
use crate::machine::{SnapshotHeader, SnapshotSink, StateMachine};
use bytes::Bytes;
use meridian_base::{Error, Result};
use openraft::storage::Snapshot;
use parking_lot::Mutex;

/// At most one snapshot is received at a time; a new transmission replaces an unfinished one.
#[derive(Default)]
pub(crate) struct Incoming(Mutex<Option<Receiving>>);

struct Receiving {
    id: u64,
    vote: Vote,
    meta: SnapshotMeta,
    /// The next chunk's number.
    next: u32,
    sink: Box<dyn SnapshotSink>,
}

/// A complete snapshot, to be installed.
pub(crate) type Received = (Vote, Snapshot<crate::consensus::CommittedLeaderId, u32, openraft::EmptyNode, SnapshotData>);

impl Incoming {
    /// Starts to receive transmission `id`. A repetition changes nothing.
    pub(crate) fn begin(&self, machine: &dyn StateMachine, id: u64, vote: Vote, meta: SnapshotMeta) -> Result<()> {
        let mut slot = self.0.lock();
        if slot.as_ref().is_some_and(|r| r.id == id && r.next == 0) {
            return Ok(());
        }
        let membership = members::encode_kept(&meta.last_membership);
        let position = option_to_position(meta.last_log_id.as_ref());
        // The old one goes first: it may hold files the new one needs.
        *slot = None;
        let sink = machine.import(SnapshotHeader { position, membership })?;
        *slot = Some(Receiving { id, vote, meta, next: 0, sink });
        Ok(())
    }

    /// Takes the next chunk; one that was taken already is ignored.
    pub(crate) fn chunk(&self, id: u64, number: u32, data: Bytes) -> Result<()> {
        let mut slot = self.0.lock();
        let receiving = slot.as_mut().filter(|r| r.id == id).ok_or_else(replaced)?;
        if number < receiving.next {
            return Ok(());
        }
        if number > receiving.next {
            return Err(Error::unavailable(format!("snapshot chunk {number} arrived before chunk {}", receiving.next)));
        }
        if let Err(e) = receiving.sink.write(data) {
            *slot = None;
            return Err(e);
        }
        receiving.next += 1;
        Ok(())
    }

    /// Hands the complete snapshot over.
    pub(crate) fn end(&self, id: u64, chunks: u32) -> Result<Received> {
        let mut slot = self.0.lock();
        let complete = slot.as_ref().is_some_and(|r| r.id == id && r.next == chunks);
        let receiving = if complete { slot.take() } else { None };
        let r = receiving.ok_or_else(replaced)?;
        Ok((r.vote, Snapshot { meta: r.meta, snapshot: SnapshotData::Sink(r.sink) }))
    }
}

fn replaced() -> Error {
    Error::unavailable("this snapshot transmission is not in progress here")
}
