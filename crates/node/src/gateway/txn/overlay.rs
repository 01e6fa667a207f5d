//! What this gateway knows to be newer than the replicas it reads at: what its own sessions
//! committed at other regions' groups, and what a NO vote or a failed certification told about the
//! rows it failed on.
//!
//! Each entry says up to when it is known to be the newest, and a read that takes the value from
//! here has that as its `until`. Certification decides as always; an entry that is lost costs an
//! abort at most.

use crate::local::lock::RwLock;
use bytes::Bytes;
use meridian_base::{GroupId, Key, KeyRange, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Included};
use std::time::Duration;
use tokio::time::Instant;

/// Longer than any replica that is worth reading is behind.
const LIFETIME: Duration = Duration::from_secs(10);
const ENTRIES_MAX: usize = 16_384;

/// A version that a replica may not have yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Newer {
    pub value: Option<Bytes>,
    pub version: Timestamp,
    /// Nothing changed it from `version` up to here.
    pub until: Timestamp,
}

/// See the module's essay.
#[derive(Default)]
pub(crate) struct Overlay(RwLock<State>);

#[derive(Default)]
struct State {
    entries: BTreeMap<(GroupId, Key), Newer>,
    /// In the order of learning.
    learnt: VecDeque<(Instant, GroupId, Key, Timestamp)>,
}

impl Overlay {
    pub fn learn(&self, group: GroupId, key: Key, newer: Newer) {
        let mut state = self.0.write();
        let now = Instant::now();
        while state.learnt.front().is_some_and(|(at, ..)| now - *at > LIFETIME) || state.learnt.len() >= ENTRIES_MAX {
            let Some((_, group, key, at)) = state.learnt.pop_front() else { break };
            let place = (group, key);
            // A later version of the key has its own place in the order.
            if state.entries.get(&place).is_some_and(|e| e.until == at) {
                state.entries.remove(&place);
            }
        }
        let known = state.entries.get(&(group, key.clone())).map(|e| e.until);
        if known.is_none_or(|until| until < newer.until) {
            state.learnt.push_back((now, group, key.clone(), newer.until));
            state.entries.insert((group, key), newer);
        }
    }

    /// What is known of a key, if that is known for longer than `until`.
    pub fn get(&self, group: GroupId, key: &Key, until: Timestamp) -> Option<Newer> {
        let state = self.0.read();
        if state.entries.is_empty() {
            return None;
        }
        state.entries.get(&(group, key.clone())).filter(|e| e.until > until).cloned()
    }

    /// The same inside a range, in the order of keys.
    pub fn range(&self, group: GroupId, range: &KeyRange, until: Timestamp) -> Vec<(Key, Newer)> {
        let state = self.0.read();
        if state.entries.is_empty() || range.is_empty() {
            return Vec::new();
        }
        let bounds = (Included((group, range.start.clone())), Excluded((group, range.end.clone())));
        state.entries.range(bounds).filter(|(_, e)| e.until > until).map(|((_, key), e)| (key.clone(), e.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newer(at: u64) -> Newer {
        Newer { value: Some(Bytes::from_static(b"v")), version: Timestamp(at), until: Timestamp(at) }
    }
    fn key(b: u8) -> Key {
        Key::new(&[b])
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_is_newer_is_given_and_only_for_a_while() {
        let (overlay, group) = (Overlay::default(), GroupId(7));
        overlay.learn(group, key(1), newer(10));
        overlay.learn(group, key(1), newer(8));
        overlay.learn(group, key(3), newer(12));
        overlay.learn(GroupId(8), key(2), newer(50));
        assert_eq!(overlay.get(group, &key(1), Timestamp(9)), Some(newer(10)));
        assert_eq!(overlay.get(group, &key(1), Timestamp(10)), None);
        let all = KeyRange::new(key(0), key(9));
        assert_eq!(overlay.range(group, &all, Timestamp(10)), [(key(3), newer(12))]);
        tokio::time::advance(LIFETIME * 2).await;
        overlay.learn(group, key(5), newer(99));
        assert_eq!(overlay.range(group, &all, Timestamp(0)), [(key(5), newer(99))]);
    }
}
