//! What a host does with what is durable: it applies the feed in the order of the log (P4), and
//! gets back what everybody has passed.

use crate::committing::decode;
use crate::host::Host;
use crate::rows::Rows;
use meridian_base::record::{Committed, Payload, Record};
use meridian_pod::memory::Memory;
use meridian_pod::{Damaged, Entry, FeedRecord, Item, NoRoom, Slot};

impl<M: Memory + Clone + Send + Sync + 'static, R: Rows> Host<M, R> {
    /// Under the host's lock: applies the next record; then says that it has.
    pub(crate) fn follow(&mut self) -> Result<(), Damaged> {
        if std::mem::take(&mut self.is_applied) {
            self.feed.passed(&self.segment);
        } else if let Some((record, end)) = self.feed.next(&self.segment)? {
            self.apply(&record, end)?;
            self.is_applied = true;
        }
        Ok(())
    }

    fn apply(&mut self, record: &FeedRecord, end: u64) -> Result<(), Damaged> {
        let (mut records, mut batch) = (Vec::new(), Vec::new());
        for item in &record.items {
            let reference = match item {
                Item::Control(control) => {
                    let payload = Payload::decode(control.clone()).map_err(|error| Damaged(format!("the feed: {error}")))?;
                    records.extend(payload.records);
                    continue;
                }
                Item::Entry(reference) => reference,
            };
            let is_mine = reference.place.host == self.config.host;
            let is_here = |slot: &Slot| self.owners[usize::from(slot.0)] == self.config.host;
            let holds_some = self.config.holds_all || reference.slots.iter().any(is_here);
            if is_mine {
                self.ring.fed(reference.place, end);
            } else if !holds_some && !self.leads() {
                // Ids are asked where they were certified, or else at L.
                self.state.passed(reference.at);
                continue;
            }
            let mut txn = Committed { id: reference.id, at: reference.at, writes: Vec::new() };
            let own = self.txns.get_mut(&reference.id).filter(|_| is_mine);
            if let Some(own) = own {
                own.is_durable = true;
                txn.writes.clone_from(&own.writes);
            } else if holds_some {
                let entry = self.segment.entry(reference.place)?;
                let logged = entry.logged().ok_or_else(|| Damaged("the feed refers to a promise".into()))?;
                txn = decode(logged.body.clone())?;
            }
            if !self.config.holds_all {
                txn.writes.retain(|write| self.is_own(&write.key));
            }
            self.rows.apply(&txn);
            // The state and the engine ask for the id.
            batch.push(Committed { writes: Vec::new(), ..txn });
        }
        // Between hosts they are in no order.
        records.push(Record::Batch(batch));
        let payload = Payload { closed: record.closed, watermark: record.watermark, records };
        self.state.apply(record.log, &payload);
        let mut woken = Vec::new();
        self.engine.applied(&self.state, &payload, &mut woken);
        self.woken.extend(woken);
        if cfg!(debug_assertions) && self.config.rules.are_all_kept() {
            self.engine.invariant_engine(&self.state);
        }
        Ok(())
    }

    pub(crate) fn tidy(&mut self) -> Result<(), Damaged> {
        self.tidying = (self.tidying + 1) % 5;
        match self.tidying {
            0 => self.epochs.announce(&self.segment),
            1 => self.segment.advance_epoch()?,
            2 => {
                self.allocator.reclaim(&self.segment)?;
            }
            3 => self.ring.reclaim(&self.segment)?,
            _ => self.look_for_outs(),
        }
        Ok(())
    }

    /// Under the host's lock.
    pub(crate) fn promise(&mut self) -> Result<(), Damaged> {
        let at = self.segment.last_drawn();
        if at <= self.ring.last() {
            return Ok(());
        }
        match self.ring.push(&self.segment, &Entry::Promise(at)) {
            Ok(_) => Ok(()),
            Err(NoRoom::Now | NoRoom::Ever) => self.ring.reclaim(&self.segment),
        }
    }
}
