//! Keys, ranges, and the order-preserving encoding of column values.
//!
//! A key is a byte string; byte order is the order of the index. Keys up to 32 bytes live inline,
//! because the conflict index holds hundreds of thousands of them and a boxed key costs a cache
//! miss per comparison.
//!
//! Encoding, per column: a marker (`NULL` sorts after every value, as in PostgreSQL's ascending
//! indexes), then the value so that bytes compare as values do. A descending column is the same
//! bytes inverted.

use bytes::Bytes;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

const INLINE: usize = 32;

/// A key: bytes, ordered as bytes.
#[derive(Clone)]
pub struct Key(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE] },
    Spilled(Bytes),
}

impl Key {
    /// The smallest key.
    pub const MIN: Key = Key(Repr::Inline { len: 0, bytes: [0; INLINE] });

    /// Copies the bytes; inline if they fit.
    pub fn new(bytes: &[u8]) -> Key {
        if bytes.len() <= INLINE {
            let mut inline = [0; INLINE];
            inline[..bytes.len()].copy_from_slice(bytes);
            Key(Repr::Inline { len: bytes.len() as u8, bytes: inline })
        } else {
            Key(Repr::Spilled(Bytes::copy_from_slice(bytes)))
        }
    }
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..*len as usize],
            Repr::Spilled(b) => b,
        }
    }
    /// The smallest key greater than this one.
    pub fn successor(&self) -> Key {
        let mut bytes = Vec::with_capacity(self.as_bytes().len() + 1);
        bytes.extend_from_slice(self.as_bytes());
        bytes.push(0);
        Key::new(&bytes)
    }
    /// The smallest key greater than every key that starts with this one; `None` if there is none
    /// (all bytes 0xFF).
    pub fn prefix_end(&self) -> Option<Key> {
        let bytes = self.as_bytes();
        let keep = bytes.iter().rposition(|b| *b != 0xFF)?;
        let mut end = bytes[..=keep].to_vec();
        end[keep] += 1;
        Some(Key::new(&end))
    }
}

impl From<&[u8]> for Key {
    fn from(b: &[u8]) -> Key {
        Key::new(b)
    }
}
impl From<Vec<u8>> for Key {
    fn from(b: Vec<u8>) -> Key {
        Key::new(&b)
    }
}
impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}
impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}
impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Key) -> Ordering {
        let (Repr::Inline { len: m, bytes: a }, Repr::Inline { len: n, bytes: b }) = (&self.0, &other.0) else {
            return self.as_bytes().cmp(other.as_bytes());
        };
        // Both are padded with zeros, so words decide, and after them the length.
        let word = |bytes: &[u8; INLINE], at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        for at in (0..INLINE).step_by(8) {
            let (a, b) = (word(a, at), word(b, at));
            if a != b {
                return a.cmp(&b);
            }
        }
        m.cmp(n)
    }
}
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state)
    }
}
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("/")?;
        for b in self.as_bytes() {
            write!(f, "{b:02x}")?;
        }
        Ok(())
    }
}
impl Serialize for Key {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_bytes(self.as_bytes())
    }
}
impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Key, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Key;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_bytes<E: serde::de::Error>(self, v: &[u8]) -> Result<Key, E> {
                if v.len() > crate::limits::KEY_BYTES_MAX {
                    return Err(E::custom("key too long"));
                }
                Ok(Key::new(v))
            }
        }
        d.deserialize_bytes(V).map_err(D::Error::custom)
    }
}

/// Keys from `start` (included) to `end` (excluded).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRange {
    pub start: Key,
    pub end: Key,
}

impl KeyRange {
    pub fn new(start: Key, end: Key) -> KeyRange {
        KeyRange { start, end }
    }
    /// Every key that starts with `prefix`. Prefixes begin with an index id, so they are never all
    /// 0xFF.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        let start = Key::new(prefix);
        let end = start.prefix_end().expect("a prefix with a successor");
        KeyRange { start, end }
    }
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_bytes() <= key && key < self.end.as_bytes()
    }
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        self.start < other.end && other.start < self.end
    }
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}
impl fmt::Debug for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{:?}, {:?})", self.start, self.end)
    }
}

/// What a read or a reservation is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    Key(Key),
    Range(KeyRange),
}

impl Target {
    pub fn contains(&self, key: &[u8]) -> bool {
        match self {
            Target::Key(k) => k.as_bytes() == key,
            Target::Range(r) => r.contains(key),
        }
    }
    /// The key, or the start of the range: where an error message points.
    pub fn start(&self) -> &Key {
        match self {
            Target::Key(k) => k,
            Target::Range(r) => &r.start,
        }
    }
}

/// Writes order-preserving encodings. See the module's essay for the format.
pub mod encode {
    const VALUE: u8 = 0x01;
    const NULL: u8 = 0xFE;

    /// Starts a key with its index's id.
    pub fn index(out: &mut Vec<u8>, index_id: u32) {
        out.extend_from_slice(&index_id.to_be_bytes());
    }
    /// A `NULL`: sorts after every value.
    pub fn null(out: &mut Vec<u8>) {
        out.push(NULL);
    }
    pub fn i64(out: &mut Vec<u8>, v: i64) {
        out.push(VALUE);
        out.extend_from_slice(&((v as u64) ^ (1 << 63)).to_be_bytes());
    }
    pub fn bool(out: &mut Vec<u8>, v: bool) {
        out.extend_from_slice(&[VALUE, v as u8]);
    }
    /// PostgreSQL's order of floats: NaN is the largest, −0 equals 0.
    pub fn f64(out: &mut Vec<u8>, v: f64) {
        let v = if v == 0.0 {
            0.0
        } else if v.is_nan() {
            f64::from_bits(0x7FF8_0000_0000_0000)
        } else {
            v
        };
        let bits = v.to_bits();
        let ordered = if bits >> 63 == 1 { !bits } else { bits | (1 << 63) };
        out.push(VALUE);
        out.extend_from_slice(&ordered.to_be_bytes());
    }
    /// Any bytes: 0x00 is written 0x00 0xFF and the end 0x00 0x01, so that a prefix sorts before
    /// what it starts.
    pub fn bytes(out: &mut Vec<u8>, v: &[u8]) {
        out.push(VALUE);
        for b in v {
            out.push(*b);
            if *b == 0 {
                out.push(0xFF);
            }
        }
        out.extend_from_slice(&[0x00, 0x01]);
    }
    /// Bytes of a fixed length that the decoder knows, such as a UUID.
    pub fn fixed(out: &mut Vec<u8>, v: &[u8]) {
        out.push(VALUE);
        out.extend_from_slice(v);
    }
    /// Inverts what was written from `from` on: a descending column.
    pub fn invert(out: &mut [u8], from: usize) {
        for b in &mut out[from..] {
            *b = !*b;
        }
    }
}

/// Reads what [`encode`] wrote. Every function returns `None` on malformed input; nothing panics.
pub mod decode {
    fn take<'a>(input: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
        let (head, tail) = input.split_at_checked(n)?;
        *input = tail;
        Some(head)
    }
    fn flip(b: u8, descending: bool) -> u8 {
        if descending { !b } else { b }
    }

    /// The index id that a key starts with.
    pub fn index(input: &mut &[u8]) -> Option<u32> {
        Some(u32::from_be_bytes(take(input, 4)?.try_into().ok()?))
    }
    /// The marker: `Some(true)` for `NULL`, `Some(false)` for a value.
    pub fn is_null(input: &mut &[u8], descending: bool) -> Option<bool> {
        match flip(take(input, 1)?[0], descending) {
            0x01 => Some(false),
            0xFE => Some(true),
            _ => None,
        }
    }
    /// The 8 bytes after a marker, un-inverted.
    fn word(input: &mut &[u8], descending: bool) -> Option<u64> {
        let w = u64::from_be_bytes(take(input, 8)?.try_into().ok()?);
        Some(if descending { !w } else { w })
    }
    pub fn i64(input: &mut &[u8], descending: bool) -> Option<i64> {
        Some((word(input, descending)? ^ (1 << 63)) as i64)
    }
    pub fn bool(input: &mut &[u8], descending: bool) -> Option<bool> {
        match flip(take(input, 1)?[0], descending) {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
    pub fn f64(input: &mut &[u8], descending: bool) -> Option<f64> {
        let ordered = word(input, descending)?;
        Some(f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered }))
    }
    pub fn bytes(input: &mut &[u8], descending: bool) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        loop {
            let b = flip(take(input, 1)?[0], descending);
            if b != 0 {
                out.push(b);
                continue;
            }
            match flip(take(input, 1)?[0], descending) {
                0xFF => out.push(0),
                0x01 => return Some(out),
                _ => return None,
            }
        }
    }
    pub fn fixed(input: &mut &[u8], n: usize, descending: bool) -> Option<Vec<u8>> {
        Some(take(input, n)?.iter().map(|b| flip(*b, descending)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn enc(f: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut v = Vec::new();
        f(&mut v);
        v
    }

    /// Of few different bytes, as many as fit inline or a few more, so that many begin alike and
    /// end with zeros.
    fn alike() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(0..2u8, 0..4),
            prop::collection::vec(prop_oneof![9 => Just(0u8), 1 => any::<u8>()], 28..36)
        ]
    }

    proptest! {
        #[test]
        fn integers_keep_their_order(a: i64, b: i64) {
            let (x, y) = (enc(|o| encode::i64(o, a)), enc(|o| encode::i64(o, b)));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            let mut s = &x[..];
            prop_assert_eq!(decode::is_null(&mut s, false), Some(false));
            prop_assert_eq!(decode::i64(&mut s, false), Some(a));
        }
        #[test]
        fn floats_keep_their_order(a: f64, b: f64) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            let (x, y) = (enc(|o| encode::f64(o, a)), enc(|o| encode::f64(o, b)));
            prop_assert_eq!(x.cmp(&y), a.partial_cmp(&b).unwrap());
        }
        #[test]
        fn keys_have_the_order_of_their_bytes(a in alike(), b in alike()) {
            prop_assert_eq!(Key::new(&a).cmp(&Key::new(&b)), a.cmp(&b));
            prop_assert_eq!(Key::new(&a) == Key::new(&b), a == b);
        }
        #[test]
        fn byte_strings_keep_their_order_with_what_follows(a: Vec<u8>, b: Vec<u8>, i: i64, j: i64) {
            let x = enc(|o| { encode::bytes(o, &a); encode::i64(o, i) });
            let y = enc(|o| { encode::bytes(o, &b); encode::i64(o, j) });
            prop_assert_eq!(x.cmp(&y), (&a, i).cmp(&(&b, j)));
        }
        #[test]
        fn descending_reverses_the_order_and_reads_back(a: Vec<u8>, b: Vec<u8>) {
            let one = |v: &[u8]| { let mut o = Vec::new(); encode::bytes(&mut o, v); encode::invert(&mut o, 0); o };
            let (x, y) = (one(&a), one(&b));
            prop_assert_eq!(x.cmp(&y), b.cmp(&a));
            let mut s = &x[..];
            prop_assert_eq!(decode::is_null(&mut s, true), Some(false));
            prop_assert_eq!(decode::bytes(&mut s, true), Some(a));
        }
        #[test]
        fn no_input_panics_a_decoder(input: Vec<u8>, desc: bool) {
            let _ = decode::bytes(&mut &input[..], desc);
            let _ = decode::i64(&mut &input[..], desc);
            let _ = decode::f64(&mut &input[..], desc);
            let _ = decode::bool(&mut &input[..], desc);
            let _ = decode::is_null(&mut &input[..], desc);
            let _ = decode::fixed(&mut &input[..], 16, desc);
        }
        #[test]
        fn keys_compare_as_bytes_inline_or_spilled(a: Vec<u8>, b: Vec<u8>) {
            prop_assert_eq!(Key::new(&a).cmp(&Key::new(&b)), a.cmp(&b));
            prop_assert!(Key::new(&a) < Key::new(&a).successor());
        }
    }

    #[test]
    fn null_sorts_after_every_value_and_a_prefix_ends_after_all_it_starts() {
        assert!(enc(encode::null) > enc(|o| encode::i64(o, i64::MAX)));
        let r = KeyRange::prefix(&[1, 0xFF]);
        assert!(r.contains(&[1, 0xFF, 0xFF, 0xFF]) && !r.contains(&[2]) && !r.contains(&[1, 0xFE]));
    }
}
