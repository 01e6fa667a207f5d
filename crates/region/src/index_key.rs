//! Keys as the conflict index compares them: up to 32 bytes as four big-endian words, so that a
//! comparison is a few integer comparisons and no call. A descent through the index makes dozens of
//! them, on keys that share their first bytes.

use meridian_base::Key;
use std::cmp::Ordering;
use std::hash::{BuildHasher, Hash, Hasher};

const WORDS: usize = 4;
const INLINE: usize = WORDS * 8;

/// Ordered exactly as [`Key`] is.
#[derive(Clone, Debug)]
pub(crate) enum IndexKey {
    /// Padded with zeros; the length tells a key from the one with a zero appended.
    Inline {
        words: [u64; WORDS],
        len: u8,
    },
    Spilled(Key),
}

impl IndexKey {
    pub(crate) fn new(key: &Key) -> IndexKey {
        let bytes = key.as_bytes();
        if bytes.len() > INLINE {
            return IndexKey::Spilled(key.clone());
        }
        let mut padded = [0; INLINE];
        padded[..bytes.len()].copy_from_slice(bytes);
        let word = |i: usize| u64::from_be_bytes(padded[i * 8..][..8].try_into().expect("eight bytes"));
        IndexKey::Inline { words: std::array::from_fn(word), len: bytes.len() as u8 }
    }

    pub(crate) fn to_key(&self) -> Key {
        match self {
            IndexKey::Inline { words, len } => Key::new(&unpack(words)[..*len as usize]),
            IndexKey::Spilled(key) => key.clone(),
        }
    }
}

fn unpack(words: &[u64; WORDS]) -> [u8; INLINE] {
    let mut bytes = [0; INLINE];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

impl Ord for IndexKey {
    #[inline]
    fn cmp(&self, other: &IndexKey) -> Ordering {
        match (self, other) {
            (IndexKey::Inline { words: a, len: m }, IndexKey::Inline { words: b, len: n }) => {
                for (a, b) in a.iter().zip(b) {
                    if a != b {
                        return a.cmp(b);
                    }
                }
                m.cmp(n)
            }
            (IndexKey::Spilled(a), IndexKey::Spilled(b)) => a.cmp(b),
            (IndexKey::Inline { words, len }, IndexKey::Spilled(b)) => unpack(words)[..*len as usize].cmp(b.as_bytes()),
            (IndexKey::Spilled(a), IndexKey::Inline { words, len }) => a.as_bytes().cmp(&unpack(words)[..*len as usize]),
        }
    }
}
impl PartialOrd for IndexKey {
    fn partial_cmp(&self, other: &IndexKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for IndexKey {
    #[inline]
    fn eq(&self, other: &IndexKey) -> bool {
        match (self, other) {
            (IndexKey::Inline { words: a, len: m }, IndexKey::Inline { words: b, len: n }) => a == b && m == n,
            (IndexKey::Spilled(a), IndexKey::Spilled(b)) => a == b,
            _ => false,
        }
    }
}
impl Eq for IndexKey {}

impl Hash for IndexKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            IndexKey::Inline { words, len } => {
                words[..usize::from(*len).div_ceil(8)].iter().for_each(|word| state.write_u64(*word));
                state.write_u64(u64::from(*len));
            }
            IndexKey::Spilled(key) => state.write(key.as_bytes()),
        }
    }
}

/// Makes [`KeyHash`]es.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHashes;

impl BuildHasher for KeyHashes {
    type Hasher = KeyHash;
    fn build_hasher(&self) -> KeyHash {
        KeyHash(0x243F_6A88_85A3_08D3)
    }
}

/// A hash of a few words: each is mixed in by a multiplication whose halves are folded together.
/// The same in every run, since a run of the simulator must repeat.
pub(crate) struct KeyHash(u64);

impl Hasher for KeyHash {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
        self.write_u64(bytes.len() as u64);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        // Few values and long runs, so that keys share prefixes and differ in trailing zeros.
        prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => Just(1u8), 1 => Just(255u8)], 0..40)
    }

    proptest! {
        #[test]
        fn it_is_ordered_as_bytes_are(a in bytes(), b in bytes()) {
            let (x, y) = (Key::new(&a), Key::new(&b));
            prop_assert_eq!(IndexKey::new(&x).cmp(&IndexKey::new(&y)), a.cmp(&b));
            prop_assert_eq!(IndexKey::new(&x).to_key(), x);
        }
    }
}
