//! Keys and values of `usertable`, both of which say what they are.
//!
//! A key names the region whose clients wrote it first and its number there. A value names its row,
//! its field, and the write that made it, so that the check can tell a value that somebody wrote
//! from one that nobody did; letters that follow from the rest fill it up.

use std::fmt;

/// Fields of a row, and letters of each, as in YCSB.
pub(super) const FIELDS: usize = 10;
const FIELD_LENGTH: usize = 100;

/// A field's column.
pub(super) fn field_name(field: usize) -> String {
    format!("field{field}")
}

/// A row's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// Of the first regions, this one.
    pub region: usize,
    pub number: u64,
}

impl Key {
    /// What keys of a region begin with.
    pub fn prefix(region: usize) -> String {
        format!("user{region:02}")
    }
    pub fn parse(text: &str) -> Option<Key> {
        let digits = text.strip_prefix("user")?;
        let (region, number) = digits.split_at_checked(2)?;
        let key = Key { region: region.parse().ok()?, number: number.parse().ok()? };
        (key.to_string() == text).then_some(key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:010}", Key::prefix(self.region), self.number)
    }
}

/// One write of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Write {
    /// The load is run 0; every run that finds rows is one more than theirs.
    pub run: u64,
    pub client: u32,
    /// From 1 on.
    pub number: u64,
}

impl Write {
    /// What rows begin with.
    pub const LOAD: Write = Write { run: 0, client: 0, number: 0 };

    /// The value that this write gives a field.
    pub fn value(self, key: Key, field: usize) -> String {
        let Write { run, client, number } = self;
        let mut text = format!("{key}.{field}.{run}.{client}.{number}.");
        let mut state =
            text.bytes().fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
        while text.len() < FIELD_LENGTH {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push(char::from(b'a' + ((state >> 33) % 26) as u8));
        }
        text
    }
    /// The write that gave this field this value; `None` if no write gives it.
    pub fn of(value: &str, key: Key, field: usize) -> Option<Write> {
        let mut numbers = value.splitn(6, '.').skip(2);
        let mut next = || numbers.next()?.parse::<u64>().ok();
        let write = Write { run: next()?, client: u32::try_from(next()?).ok()?, number: next()? };
        (write.value(key, field) == value).then_some(write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_back() {
        let key = Key { region: 3, number: 4_711 };
        assert_eq!(key.to_string(), "user030000004711");
        assert_eq!(Key::parse(&key.to_string()), Some(key));
        for wrong in ["", "user", "user0", "user03", "user034711", "user03000000471x", "üser030000004711", "user0é"] {
            assert_eq!(Key::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_value_tells_its_write_and_fits_no_other_place() {
        let key = Key { region: 0, number: 1 };
        let write = Write { run: 2, client: 5, number: 77 };
        let value = write.value(key, 4);
        assert_eq!(value.len(), FIELD_LENGTH);
        assert_eq!(Write::of(&value, key, 4), Some(write));
        assert_eq!(Write::of(&value, key, 5), None);
        assert_eq!(Write::of(&value, Key { region: 0, number: 2 }, 4), None);
        assert_eq!(Write::of(&value[..99], key, 4), None);
        assert_eq!(Write::of(&value.replace(".77.", ".78."), key, 4), None);
        assert_eq!(Write::of("", key, 4), None);
    }
}
