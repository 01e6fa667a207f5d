//! Where a generator's decisions come from: a seed, or a list of decisions that was written down. A
//! shorter list, or one of smaller numbers, makes a simpler query, so that a query is shrunk
//! without knowing what it is made of.

/// A source of decisions, and the record of them.
pub struct Choices {
    state: u64,
    /// Replayed instead of drawn; where it ends, every decision is the simplest one.
    given: Option<Vec<u32>>,
    made: Vec<u32>,
}

impl Choices {
    pub fn of_seed(seed: u64) -> Choices {
        Choices { state: seed ^ 0x6d65_7269_6469_616e, given: None, made: Vec::new() }
    }
    pub fn of_list(list: Vec<u32>) -> Choices {
        Choices { state: 0, given: Some(list), made: Vec::new() }
    }
    pub fn into_made(self) -> Vec<u32> {
        self.made
    }
    /// A number below `n`; 0 should be the simplest.
    pub fn below(&mut self, n: usize) -> usize {
        let at = self.made.len();
        let drawn = match &self.given {
            Some(list) => list.get(at).copied().unwrap_or(0),
            None => self.next(),
        };
        let chosen = drawn as usize % n.max(1);
        self.made.push(chosen as u32);
        chosen
    }
    /// Whether something that happens `n` times of a hundred does.
    pub fn percent(&mut self, n: usize) -> bool {
        self.below(100) >= 100 - n
    }
    pub fn of<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }
    /// Steele, Lea and Flood's splitmix64.
    fn next(&mut self) -> u32 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 32) as u32
    }
}
