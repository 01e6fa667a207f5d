//! Envelopes: encoded values that can grow.
//!
//! A value is encoded by `postcard`, which writes the fields of a structure one after the other and
//! the number of an enum's variant before its fields. An *envelope* is such a value that stands
//! alone: a message, a row of the catalog, the body of a record. Its bytes end where the value
//! ends, and that allows two changes without a new format:
//!
//! * A **field** is added at the end of the outermost structure, with `#[serde(default)]`. A reader
//!   that does not know the field leaves its bytes alone. A reader that knows it and finds the end
//!   of the bytes takes the default.
//! * A **kind** is added as the last variant of an enum. A reader that does not know it refuses the
//!   value and names the number.
//!
//! The outermost structure is found through newtypes, through the variants of an enum, and at the
//! last place of a tuple: `Request::Commit(CommitRequest { .. })` grows at the end of
//! `CommitRequest`. Structures inside of lists and of other structures cannot grow, unless each
//! element of the list is an envelope of its own ([`each`]): what is new about them goes into a
//! field of the outermost one, or into a kind of its own. That holds for a structure in all of its
//! uses, so one that is the outermost here and inside of something there cannot grow either.
//!
//! Which of the new fields and kinds may be written is the cluster version's matter
//! ([`crate::version`]).

use serde::de::{self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, SeqAccess, VariantAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The bytes of a value. Values of this project always encode: none of them has a sequence of
/// unknown length, or a map key that is no value.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    append(Vec::new(), value)
}

/// Those bytes behind others.
pub fn append<T: Serialize + ?Sized>(head: Vec<u8>, value: &T) -> Vec<u8> {
    postcard::to_extend(value, head).expect("the value encodes")
}

/// Reads what [`encode`] wrote, by this version or by another one (see the module). Other bytes are
/// an error and never a panic.
pub fn decode<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, Malformed> {
    let mut rest = bytes;
    T::deserialize(Outermost { rest: &mut rest })
}

/// Lists whose elements can grow, since each of them is an envelope: `#[serde(with =
/// "envelope::each")]`.
pub mod each {
    use serde::de::{DeserializeOwned, Deserializer, Error as _};
    use serde::{Deserialize, Serialize, Serializer};

    pub fn serialize<T: Serialize, S: Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(super::encode))
    }

    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
        let list = Vec::<Vec<u8>>::deserialize(from)?;
        list.iter().map(|bytes| super::decode(bytes).map_err(D::Error::custom)).collect()
    }
}

/// Why bytes cannot be read as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

impl de::Error for Malformed {
    fn custom<T: fmt::Display>(why: T) -> Malformed {
        Malformed(why.to_string())
    }
}

impl From<postcard::Error> for Malformed {
    fn from(e: postcard::Error) -> Malformed {
        Malformed(e.to_string())
    }
}

/// Reads the outermost structure, and each of its fields by postcard, from what is left of the
/// bytes.
struct Outermost<'b, 'de> {
    rest: &'b mut &'de [u8],
}

impl<'b, 'de> Outermost<'b, 'de> {
    /// What does not grow.
    fn plain<T>(&mut self, read: impl FnOnce(&mut Plain<'de>) -> postcard::Result<T>) -> Result<T, Malformed> {
        let mut plain = postcard::Deserializer::from_bytes(self.rest);
        let value = read(&mut plain)?;
        *self.rest = plain.finalize()?;
        Ok(value)
    }
    fn fields<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_seq(Fields { outermost: self, left: count })
    }
    fn elements<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_seq(Elements { outermost: self, left: count })
    }
}

type Plain<'de> = postcard::Deserializer<'de, postcard::de_flavors::Slice<'de>>;

/// What has no fields of its own is read as it always was.
macro_rules! plainly {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Malformed> {
            self.plain(|plain| plain.$method(visitor))
        }
    )*};
}

impl<'de> Deserializer<'de> for Outermost<'_, 'de> {
    type Error = Malformed;

    plainly! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option
        deserialize_unit deserialize_seq deserialize_map deserialize_identifier deserialize_ignored_any
    }
    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_unit()
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_newtype_struct(self)
    }
    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Malformed> {
        self.elements(len, visitor)
    }
    fn deserialize_tuple_struct<V: Visitor<'de>>(self, _: &'static str, len: usize, visitor: V) -> Result<V::Value, Malformed> {
        self.elements(len, visitor)
    }
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        self.fields(fields.len(), visitor)
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        visitor.visit_enum(self)
    }
    fn is_human_readable(&self) -> bool {
        false
    }
}

impl<'de> EnumAccess<'de> for Outermost<'_, 'de> {
    type Error = Malformed;
    type Variant = Self;
    fn variant_seed<V: DeserializeSeed<'de>>(mut self, seed: V) -> Result<(V::Value, Self), Malformed> {
        let kind = self.plain(|plain| u32::deserialize(plain))?;
        let variant = seed.deserialize(IntoDeserializer::<Malformed>::into_deserializer(kind))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Outermost<'_, 'de> {
    type Error = Malformed;
    fn unit_variant(self) -> Result<(), Malformed> {
        Ok(())
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Malformed> {
        seed.deserialize(self)
    }
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Malformed> {
        self.elements(len, visitor)
    }
    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Malformed> {
        self.fields(fields.len(), visitor)
    }
}

/// The fields of the outermost structure: those that the writer did not know yet are missing.
struct Fields<'b, 'de> {
    outermost: Outermost<'b, 'de>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Fields<'_, 'de> {
    type Error = Malformed;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Malformed> {
        if self.left == 0 || self.outermost.rest.is_empty() {
            return Ok(None);
        }
        self.left -= 1;
        self.outermost.plain(|plain| seed.deserialize(plain)).map(Some)
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// The elements of a tuple, all of which are there; the last one may be the outermost structure.
struct Elements<'b, 'de> {
    outermost: Outermost<'b, 'de>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = Malformed;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Malformed> {
        self.left = match self.left {
            0 => return Ok(None),
            left => left - 1,
        };
        match self.left {
            0 => seed.deserialize(Outermost { rest: self.outermost.rest }).map(Some),
            _ => self.outermost.plain(|plain| seed.deserialize(plain)).map(Some),
        }
    }
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Inner {
        name: String,
        parts: Vec<u16>,
    }
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Before {
        at: u64,
        inner: Inner,
    }
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct After {
        at: u64,
        inner: Inner,
        #[serde(default)]
        note: Option<String>,
        #[serde(default = "three")]
        count: u32,
    }
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Old {
        Unit,
        Whole(Before),
        Fields { a: u8, b: Option<u64> },
        Pair(u8, Before),
    }
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum New {
        Unit,
        Whole(After),
        Fields {
            a: u8,
            b: Option<u64>,
            #[serde(default)]
            c: Vec<u8>,
        },
        Pair(u8, After),
        Kind(u8),
    }
    fn three() -> u32 {
        3
    }

    fn before() -> impl Strategy<Value = Before> {
        (any::<u64>(), ".{0,4}", prop::collection::vec(any::<u16>(), 0..4))
            .prop_map(|(at, name, parts)| Before { at, inner: Inner { name, parts } })
    }
    fn grown(b: &Before, note: Option<String>, count: u32) -> After {
        After { at: b.at, inner: b.inner.clone(), note, count }
    }
    fn old() -> impl Strategy<Value = Old> {
        prop_oneof![
            Just(Old::Unit),
            before().prop_map(Old::Whole),
            (any::<u8>(), any::<Option<u64>>()).prop_map(|(a, b)| Old::Fields { a, b }),
            (any::<u8>(), before()).prop_map(|(a, b)| Old::Pair(a, b)),
        ]
    }
    /// What a reader of the later version makes of it.
    fn later(old: &Old, note: Option<String>, count: u32, c: Vec<u8>) -> New {
        match old.clone() {
            Old::Unit => New::Unit,
            Old::Whole(b) => New::Whole(grown(&b, note, count)),
            Old::Fields { a, b } => New::Fields { a, b, c },
            Old::Pair(a, b) => New::Pair(a, grown(&b, note, count)),
        }
    }

    proptest! {
        /// The bytes are postcard's, so what was written before there were envelopes is one.
        #[test]
        fn a_value_comes_back(value in old()) {
            prop_assert_eq!(&encode(&value), &postcard::to_stdvec(&value).unwrap());
            prop_assert_eq!(&decode::<Old>(&encode(&value)).unwrap(), &value);
            let pair = (7u64, value);
            prop_assert_eq!(decode::<(u64, Old)>(&encode(&pair)).unwrap(), pair);
        }

        #[test]
        fn a_field_that_the_writer_did_not_know_has_its_default(value in old()) {
            let read: New = decode(&encode(&value)).unwrap();
            prop_assert_eq!(&read, &later(&value, None, 3, Vec::new()));
            let read: (u64, New) = decode(&encode(&(1u64, &value))).unwrap();
            prop_assert_eq!(read, (1, later(&value, None, 3, Vec::new())));
        }

        #[test]
        fn a_field_that_the_reader_does_not_know_is_left_out(
            value in old(), note in any::<Option<String>>(), count: u32, c: Vec<u8>,
        ) {
            let written = later(&value, note, count, c);
            prop_assert_eq!(decode::<Old>(&encode(&written)).unwrap(), value);
        }

        /// A field without a default must be there, whole.
        #[test]
        fn bytes_that_end_too_early_are_refused(value in before()) {
            let bytes = encode(&value);
            for end in 0..bytes.len() {
                prop_assert!(decode::<Before>(&bytes[..end]).is_err(), "{end}");
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = decode::<New>(&bytes);
            let _ = decode::<(u8, New)>(&bytes);
            let _ = decode::<Vec<After>>(&bytes);
        }
    }

    #[test]
    fn a_kind_that_the_reader_does_not_know_is_refused_by_its_number() {
        let e = decode::<Old>(&encode(&New::Kind(1))).unwrap_err().to_string();
        assert!(e.contains('4') && e.contains("variant"), "{e}");
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct List<T: Serialize + serde::de::DeserializeOwned> {
        #[serde(with = "each")]
        items: Vec<T>,
        last: u8,
    }

    #[test]
    fn elements_that_are_envelopes_grow() {
        let one = Before { at: 1, inner: Inner { name: "a".into(), parts: vec![2] } };
        let before = List { items: vec![one.clone(), one.clone()], last: 9 };
        let after: List<After> = decode(&encode(&before)).unwrap();
        assert_eq!(after, List { items: vec![grown(&one, None, 3); 2], last: 9 });
        let written = List { items: vec![grown(&one, Some("x".into()), 7); 2], last: 9 };
        assert_eq!(decode::<List<Before>>(&encode(&written)).unwrap(), before);
    }

    /// Only the outermost structure grows: inside of a list its end cannot be seen.
    #[test]
    fn structures_in_a_list_have_all_their_fields() {
        let two = vec![Before { at: 1, inner: Inner { name: "a".into(), parts: vec![] } }; 2];
        assert!(decode::<Vec<After>>(&encode(&two)).map(|read| read.len() != 2).unwrap_or(true));
    }
}
