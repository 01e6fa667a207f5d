//! Sets of characters as sorted ranges.

/// Beyond every character that a pattern can name: `\U7ffffffe` is the last.
pub const LAST: u32 = 0x7fff_fffe;

/// Sorted ranges, both ends included, that neither overlap nor touch once `tidy` has run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CharSet(Vec<(u32, u32)>);

impl CharSet {
    pub fn one(c: u32) -> CharSet {
        CharSet(vec![(c, c)])
    }
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }
    pub fn add(&mut self, from: u32, to: u32) {
        self.0.push((from, to));
    }
    pub fn add_all(&mut self, other: &CharSet) {
        self.0.extend_from_slice(&other.0);
    }

    /// Sorts and joins; every other function expects that it ran after the last `add`.
    pub fn tidy(&mut self) {
        self.0.sort_unstable();
        let mut out: Vec<(u32, u32)> = Vec::with_capacity(self.0.len());
        for &(from, to) in &self.0 {
            match out.last_mut() {
                Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
                _ => out.push((from, to)),
            }
        }
        self.0 = out;
    }

    pub fn negated(&self) -> CharSet {
        let (mut out, mut next) = (Vec::with_capacity(self.0.len() + 1), 0);
        for &(from, to) in &self.0 {
            if from > next {
                out.push((next, from - 1));
            }
            next = to + 1;
        }
        if next <= LAST {
            out.push((next, LAST));
        }
        CharSet(out)
    }

    pub fn without(&self, c: u32) -> CharSet {
        let mut rest = self.negated();
        rest.add(c, c);
        rest.tidy();
        rest.negated()
    }

    #[cfg(test)]
    pub fn contains(&self, c: u32) -> bool {
        let i = self.0.partition_point(|&(_, to)| to < c);
        self.0.get(i).is_some_and(|&(from, _)| from <= c)
    }

    /// The only member, if there is one.
    pub fn single(&self) -> Option<u32> {
        match self.0[..] {
            [(from, to)] if from == to => Some(from),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_negated() {
        let mut s = CharSet::default();
        for (from, to) in [(5, 7), (1, 2), (3, 3), (6, 9), (20, LAST)] {
            s.add(from, to);
        }
        s.tidy();
        assert_eq!(s.ranges(), [(1, 3), (5, 9), (20, LAST)]);
        assert_eq!(s.negated().ranges(), [(0, 0), (4, 4), (10, 19)]);
        assert_eq!(s.negated().negated(), s);
        assert_eq!(s.without(2).ranges(), [(1, 1), (3, 3), (5, 9), (20, LAST)]);
        assert!(s.contains(7) && !s.contains(4));
        assert_eq!((CharSet::one(3).single(), s.single()), (Some(3), None));
    }
}
