//! A map that forgets what was not used for longest.

use std::collections::BTreeMap;

/// At most so many values by row; one more takes the place of the one that was put first.
pub struct Recent<V> {
    max: usize,
    /// When it was put, and what.
    values: BTreeMap<Vec<u8>, (u64, V)>,
    /// The keys in the order in which they were put.
    order: BTreeMap<u64, Vec<u8>>,
    puts: u64,
}

impl<V> Recent<V> {
    /// An empty one for at most `max` values, from 1 on.
    pub fn new(max: usize) -> Self {
        Self { max: max.max(1), values: BTreeMap::new(), order: BTreeMap::new(), puts: 0 }
    }

    /// The value of a row.
    pub fn get(&self, row: &[u8]) -> Option<&V> {
        self.values.get(row).map(|(_, value)| value)
    }

    /// The value of a row, to be changed. The row keeps its place in the order.
    pub fn get_mut(&mut self, row: &[u8]) -> Option<&mut V> {
        self.values.get_mut(row).map(|(_, value)| value)
    }

    /// Removes a row's value.
    pub fn take(&mut self, row: &[u8]) -> Option<V> {
        let (put, value) = self.values.remove(row)?;
        self.order.remove(&put);
        Some(value)
    }

    /// Sets a row's value, and forgets the row that was put before all others if there are too
    /// many.
    pub fn put(&mut self, row: Vec<u8>, value: V) {
        self.puts += 1;
        self.order.insert(self.puts, row.clone());
        if let Some((before, _)) = self.values.insert(row, (self.puts, value)) {
            self.order.remove(&before);
        }
        if self.values.len() > self.max
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.values.remove(&oldest);
        }
        assert_eq!(self.values.len(), self.order.len(), "each value has its place in the order");
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_that_was_put_first_is_forgotten() {
        let mut recent = Recent::new(2);
        recent.put(b"a".to_vec(), 1);
        recent.put(b"b".to_vec(), 2);
        recent.put(b"a".to_vec(), 3);
        recent.put(b"c".to_vec(), 4);
        assert_eq!((recent.get(b"a"), recent.get(b"b"), recent.get(b"c")), (Some(&3), None, Some(&4)));
        assert_eq!(recent.take(b"a"), Some(3));
        assert_eq!(recent.take(b"a"), None);
        recent.put(b"d".to_vec(), 5);
        assert_eq!((recent.get(b"c"), recent.get(b"d"), recent.len()), (Some(&4), Some(&5), 2));
        *recent.get_mut(b"c").expect("it is there") = 6;
        assert_eq!(recent.get(b"c"), Some(&6));
    }
}
