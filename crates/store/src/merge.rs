//! Merging ordered sources of entries, as an LSM tree has them: several tables, each of which may
//! have older or newer entries of a key than the others.

use crate::backend::Visit;
use std::cmp::Reverse;
use std::ops::Bound;

/// What a source has of a key.
pub(crate) struct Entry<B> {
    pub key: B,
    pub value: B,
    /// The larger one of two entries of a key hides the other.
    pub number: u64,
    /// The key was removed.
    pub is_removed: bool,
}

/// A source that has entries left, and the next one.
struct Head<B, I> {
    entry: Option<Entry<B>>,
    rest: I,
}

impl<B: AsRef<[u8]>, I> Head<B, I> {
    /// In the order of keys; of one key, the newest entry first.
    fn place(&self) -> Option<(&[u8], Reverse<u64>)> {
        self.entry.as_ref().map(|entry| (entry.key.as_ref(), Reverse(entry.number)))
    }
}

/// Visits the newest entry of each key in order, unless it says that the key was removed. Entries
/// numbered `below` or more do not count, nor do those behind `end`. Each source is in the order of
/// its keys, and has the newest entry of a key first.
pub(crate) fn merge<B, I, E>(sources: Vec<I>, below: u64, end: Bound<&[u8]>, visit: Visit<'_>) -> Result<(), E>
where
    B: AsRef<[u8]>,
    I: Iterator<Item = Result<Entry<B>, E>>,
{
    let next = |rest: &mut I| rest.find(|entry| !entry.as_ref().is_ok_and(|entry| entry.number >= below)).transpose();
    let mut heads = Vec::with_capacity(sources.len());
    for mut rest in sources {
        heads.push(Head { entry: next(&mut rest)?, rest });
    }
    let is_within = |key: &[u8]| match end {
        Bound::Included(end) => key <= end,
        Bound::Excluded(end) => key < end,
        Bound::Unbounded => true,
    };
    // The last key that was met.
    let mut last: Option<B> = None;
    loop {
        heads.retain(|head| head.entry.is_some());
        let Some(first) = (0..heads.len()).min_by_key(|at| heads[*at].place()) else { return Ok(()) };
        heads.swap(0, first);
        let Some((head, others)) = heads.split_first_mut() else { return Ok(()) };
        let limit = others.iter().filter_map(|other| other.place()).map(|(key, _)| key).min();
        // As long as the others begin behind it, only this source is looked at.
        while let Some(entry) = head.entry.take() {
            if !is_within(entry.key.as_ref()) {
                return Ok(());
            }
            head.entry = next(&mut head.rest)?;
            let is_hidden = last.as_ref().is_some_and(|last| last.as_ref() == entry.key.as_ref());
            if !is_hidden && !entry.is_removed && visit(entry.key.as_ref(), entry.value.as_ref()).is_break() {
                return Ok(());
            }
            last = Some(entry.key);
            if head.place().zip(limit).is_some_and(|((key, _), limit)| key >= limit) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::convert::Infallible;
    use std::ops::ControlFlow;

    type Content = Vec<BTreeMap<(u8, Reverse<u64>), (u8, bool)>>;

    fn merged(content: &Content, below: u64, end: u8, most: usize) -> Vec<(u8, u8)> {
        let source = |entries: &BTreeMap<(u8, Reverse<u64>), (u8, bool)>| {
            let entry = |((key, number), (value, is_removed)): (&(u8, Reverse<u64>), &(u8, bool))| {
                Ok::<_, Infallible>(Entry { key: vec![*key], value: vec![*value], number: number.0, is_removed: *is_removed })
            };
            entries.iter().map(entry).collect::<Vec<_>>().into_iter()
        };
        let mut seen = Vec::new();
        merge(content.iter().map(source).collect(), below, Bound::Excluded(&[end]), &mut |key, value| {
            seen.push((key[0], value[0]));
            if seen.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .unwrap();
        seen
    }

    proptest! {
        #[test]
        fn of_each_key_the_newest_entry_is_seen(
            entries in prop::collection::vec((0_usize..4, 0_u8..12, any::<u8>(), prop::bool::weighted(0.2)), 0..60),
            below in 0_u64..70,
            end in 0_u8..13,
            most in 1_usize..20,
        ) {
            let (mut content, mut expected) = (vec![BTreeMap::new(); 4], BTreeMap::new());
            for (number, (source, key, value, is_removed)) in entries.into_iter().enumerate() {
                let number = number as u64;
                content[source].insert((key, Reverse(number)), (value, is_removed));
                if number < below && key < end {
                    expected.insert(key, (value, is_removed));
                }
            }
            let expected: Vec<(u8, u8)> = expected.into_iter().filter(|(_, e)| !e.1).map(|(k, e)| (k, e.0)).take(most).collect();
            prop_assert_eq!(merged(&content, below, end, most), expected);
        }
    }

    #[test]
    fn an_error_of_a_source_ends_it() {
        let entry = |key: u8| Ok(Entry { key: [key], value: [0], number: 0, is_removed: false });
        let sources = vec![vec![entry(1), Err("lost")].into_iter(), vec![entry(2)].into_iter()];
        let mut seen = 0;
        let end = merge(sources, 1, Bound::Unbounded, &mut |_, _| {
            seen += 1;
            ControlFlow::Continue(())
        });
        assert!(end == Err("lost") && seen <= 1);
    }
}
