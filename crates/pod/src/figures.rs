//! What the hosts of a pod have at this moment, for operators. Each number is a load of its own, so
//! they need not be of one moment.

use crate::error::Damaged;
use crate::hosts::{HostState, Phase};
use crate::layout::host;
use crate::memory::Memory;
use crate::segment::Segment;
use crate::slots::{Hold, Slot};

/// One host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostFigures {
    pub host: u8,
    pub state: HostState,
    /// Slots that it serves.
    pub slots: u16,
    /// Of these, slots that another host asks for.
    pub asked_for: u16,
    /// Bytes in its ring that the log does not have yet.
    pub ring_bytes: u64,
}

impl<M: Memory> Segment<M> {
    /// Those of every host whose line is taken.
    ///
    /// # Errors
    ///
    /// If a word is none that a host writes.
    pub fn figures(&self) -> Result<Vec<HostFigures>, Damaged> {
        let mut hosts = Vec::new();
        for host in 0..self.hosts() {
            let state = self.host(host)?;
            if state.phase == Phase::Free {
                continue;
            }
            let line = self.layout().host(host);
            let (taken, tail) = (self.memory().load(line + host::RING_TAKEN), self.memory().load(line + host::RING_TAIL));
            hosts.push(HostFigures { host, state, slots: 0, asked_for: 0, ring_bytes: tail.saturating_sub(taken) });
        }
        for slot in Slot::all() {
            let holder = self.holder(slot)?;
            let of = hosts.iter_mut().find(|figures| holder.hold == Hold::Owned && figures.host == holder.host);
            if let Some(figures) = of {
                figures.slots += 1;
                figures.asked_for += u16::from(holder.wanted.is_some());
            }
        }
        Ok(hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::Entry;
    use crate::testing::heap;
    use crate::{RingWriter, Rules};
    use meridian_base::{NodeId, Timestamp};

    #[test]
    #[cfg_attr(miri, ignore = "1,024 slots, looked at twice, take too long")]
    fn slots_and_what_the_log_lacks_are_counted_by_host() {
        let segment = heap();
        assert_eq!(segment.figures().unwrap(), []);
        assert!(segment.join_as(1, NodeId(7)).unwrap());
        for slot in [3, 4].map(Slot) {
            let free = segment.holder(slot).unwrap();
            assert!(segment.change_holder(slot, free, Hold::Owned, 1));
        }
        let held = segment.holder(Slot(4)).unwrap();
        assert!(segment.want_slot(Slot(4), held, 0));
        let mut ring = RingWriter::new(&segment, 1, Rules::ALL);
        ring.push(&segment, &Entry::Promise(Timestamp(5))).unwrap();
        let [figures] = segment.figures().unwrap()[..] else { panic!("one host") };
        assert_eq!((figures.host, figures.state.node, figures.slots, figures.asked_for), (1, NodeId(7), 2, 1));
        assert!(figures.ring_bytes > 0);
    }
}
