//! Values as they are written to temporary files.
//!
//! A value says what it is, since a row of an operator has no table that knows its types. Integers
//! are little-endian; lengths take as many bytes as they need, seven bits each.

use crate::exec::eval::Row;
use crate::types::numeric::Numeric;
use crate::types::{ArrayValue, Datum, Interval, RecordValue, Text, Type, jsonb};
use bytes::Bytes;
use meridian_base::{Error, Result};
use std::sync::Arc;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INT: u8 = 3;
const FLOAT: u8 = 4;
const NUMERIC: u8 = 5;
const NUMERIC_NAN: u8 = 6;
const NUMERIC_PLUS_INFINITY: u8 = 7;
const NUMERIC_MINUS_INFINITY: u8 = 8;
const TEXT: u8 = 9;
const BYTEA: u8 = 10;
const DATE: u8 = 11;
const TIME: u8 = 12;
const TIMESTAMP: u8 = 13;
const INTERVAL: u8 = 14;
const UUID: u8 = 15;
const JSONB: u8 = 16;
const ARRAY: u8 = 17;
const RECORD: u8 = 18;

type Shape = (Arc<[String]>, Arc<[Type]>);

/// Writes values, and reads those that it has written: the types of arrays and records stay with
/// it.
#[derive(Clone, Default)]
pub(super) struct Codec {
    elements: Vec<Type>,
    shapes: Vec<Shape>,
}

fn damaged() -> Error {
    Error::sql("XX001", "a temporary file does not have what was written to it")
}

impl Codec {
    pub(super) fn put_row(&mut self, row: &[Datum], out: &mut Vec<u8>) {
        put_len(row.len(), out);
        row.iter().for_each(|value| self.put(value, out));
    }

    fn put(&mut self, value: &Datum, out: &mut Vec<u8>) {
        let sized = |tag: u8, bytes: &[u8], out: &mut Vec<u8>| {
            out.push(tag);
            put_len(bytes.len(), out);
            out.extend_from_slice(bytes);
        };
        let fixed = |tag: u8, bytes: &[u8], out: &mut Vec<u8>| {
            out.push(tag);
            out.extend_from_slice(bytes);
        };
        match value {
            Datum::Null => out.push(NULL),
            Datum::Bool(b) => out.push(if *b { TRUE } else { FALSE }),
            Datum::Int(n) => fixed(INT, &n.to_le_bytes(), out),
            Datum::Float(x) => fixed(FLOAT, &x.to_bits().to_le_bytes(), out),
            Datum::Numeric(n) => match (n.to_parts(), n) {
                (Some((mantissa, scale)), _) => {
                    sized(NUMERIC, &mantissa, out);
                    out.extend_from_slice(&scale.to_le_bytes());
                }
                (None, Numeric::PosInfinity) => out.push(NUMERIC_PLUS_INFINITY),
                (None, Numeric::NegInfinity) => out.push(NUMERIC_MINUS_INFINITY),
                (None, _) => out.push(NUMERIC_NAN),
            },
            Datum::Text(t) => sized(TEXT, t.as_bytes(), out),
            Datum::Bytea(b) => sized(BYTEA, b, out),
            Datum::Date(n) => fixed(DATE, &n.to_le_bytes(), out),
            Datum::Time(n) => fixed(TIME, &n.to_le_bytes(), out),
            Datum::Timestamp(n) => fixed(TIMESTAMP, &n.to_le_bytes(), out),
            Datum::Interval(v) => {
                fixed(INTERVAL, &v.micros.to_le_bytes(), out);
                out.extend_from_slice(&v.days.to_le_bytes());
                out.extend_from_slice(&v.months.to_le_bytes());
            }
            Datum::Uuid(u) => fixed(UUID, u, out),
            Datum::Jsonb(v) => {
                let mut text = Vec::new();
                v.write(&mut text);
                sized(JSONB, &text, out);
            }
            Datum::Array(array) => {
                out.push(ARRAY);
                put_len(place_of(&mut self.elements, &array.element), out);
                put_len(array.dims.len(), out);
                for (len, lower) in &array.dims {
                    put_len(*len, out);
                    out.extend_from_slice(&lower.to_le_bytes());
                }
                self.put_row(&array.items, out);
            }
            Datum::Record(record) => {
                out.push(RECORD);
                put_len(place_of(&mut self.shapes, &(record.names.clone(), record.types.clone())), out);
                self.put_row(&record.values, out);
            }
        }
    }

    pub(super) fn take_row(&self, from: &mut &[u8]) -> Result<Row> {
        let len = take_len(from)?;
        // Each value has a byte at least.
        let mut row = Vec::with_capacity(len.min(from.len()));
        for _ in 0..len {
            row.push(self.take(from)?);
        }
        Ok(row)
    }

    fn take(&self, from: &mut &[u8]) -> Result<Datum> {
        let [tag] = take_fixed(from)?;
        Ok(match tag {
            NULL => Datum::Null,
            FALSE => Datum::Bool(false),
            TRUE => Datum::Bool(true),
            INT => Datum::Int(i64::from_le_bytes(take_fixed(from)?)),
            FLOAT => Datum::Float(f64::from_bits(u64::from_le_bytes(take_fixed(from)?))),
            NUMERIC => {
                let mantissa = take_sized(from)?;
                Datum::Numeric(Numeric::from_parts(mantissa, u16::from_le_bytes(take_fixed(from)?)))
            }
            NUMERIC_NAN => Datum::Numeric(Numeric::NaN),
            NUMERIC_PLUS_INFINITY => Datum::Numeric(Numeric::PosInfinity),
            NUMERIC_MINUS_INFINITY => Datum::Numeric(Numeric::NegInfinity),
            // A copy: a part of the block would keep the whole of it in memory.
            TEXT => Datum::Text(Text::from(take_text(from)?)),
            BYTEA => Datum::Bytea(Bytes::copy_from_slice(take_sized(from)?)),
            DATE => Datum::Date(i32::from_le_bytes(take_fixed(from)?)),
            TIME => Datum::Time(i64::from_le_bytes(take_fixed(from)?)),
            TIMESTAMP => Datum::Timestamp(i64::from_le_bytes(take_fixed(from)?)),
            INTERVAL => Datum::Interval(Interval {
                micros: i64::from_le_bytes(take_fixed(from)?),
                days: i32::from_le_bytes(take_fixed(from)?),
                months: i32::from_le_bytes(take_fixed(from)?),
            }),
            UUID => Datum::Uuid(take_fixed(from)?),
            JSONB => Datum::Jsonb(Arc::new(jsonb::parse(take_text(from)?).map_err(|_| damaged())?)),
            ARRAY => {
                let element = self.elements.get(take_len(from)?).ok_or_else(damaged)?.clone();
                let count = take_len(from)?;
                let mut dims = Vec::with_capacity(count.min(from.len()));
                for _ in 0..count {
                    dims.push((take_len(from)?, i32::from_le_bytes(take_fixed(from)?)));
                }
                Datum::Array(Arc::new(ArrayValue { element, dims, items: self.take_row(from)? }))
            }
            RECORD => {
                let (names, types) = self.shapes.get(take_len(from)?).ok_or_else(damaged)?.clone();
                Datum::Record(Arc::new(RecordValue { names, types, values: self.take_row(from)? }))
            }
            _ => return Err(damaged()),
        })
    }
}

/// Where an item is in a list, which gets it if it has it not yet. There are few.
fn place_of<V: PartialEq + Clone>(list: &mut Vec<V>, item: &V) -> usize {
    list.iter().position(|there| there == item).unwrap_or_else(|| {
        list.push(item.clone());
        list.len() - 1
    })
}

fn put_len(mut len: usize, out: &mut Vec<u8>) {
    while len >= 0x80 {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
}

fn take_len(from: &mut &[u8]) -> Result<usize> {
    let mut len = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let [byte] = take_fixed(from)?;
        len |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(len);
        }
    }
    Err(damaged())
}

fn take_fixed<const N: usize>(from: &mut &[u8]) -> Result<[u8; N]> {
    let (bytes, rest) = from.split_first_chunk::<N>().ok_or_else(damaged)?;
    *from = rest;
    Ok(*bytes)
}

fn take_sized<'a>(from: &mut &'a [u8]) -> Result<&'a [u8]> {
    let len = take_len(from)?;
    let (bytes, rest) = from.split_at_checked(len).ok_or_else(damaged)?;
    *from = rest;
    Ok(bytes)
}

fn take_text<'a>(from: &mut &'a [u8]) -> Result<&'a str> {
    std::str::from_utf8(take_sized(from)?).map_err(|_| damaged())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Datum> {
        let text = |s: String| Datum::Text(Text::from(s.as_str()));
        let numeric = (any::<i64>(), 0_u16..30).prop_map(|(n, scale)| Numeric::from_parts(&n.to_be_bytes(), scale));
        let scalar = prop_oneof![
            Just(Datum::Null),
            any::<bool>().prop_map(Datum::Bool),
            any::<i64>().prop_map(Datum::Int),
            any::<f64>().prop_map(Datum::Float),
            numeric.prop_map(Datum::Numeric),
            Just(Datum::Numeric(Numeric::NaN)),
            Just(Datum::Numeric(Numeric::PosInfinity)),
            Just(Datum::Numeric(Numeric::NegInfinity)),
            any::<String>().prop_map(text),
            any::<Vec<u8>>().prop_map(|b| Datum::Bytea(b.into())),
            any::<i32>().prop_map(Datum::Date),
            any::<i64>().prop_map(Datum::Time),
            any::<i64>().prop_map(Datum::Timestamp),
            any::<(i32, i32, i64)>().prop_map(|(months, days, micros)| Datum::Interval(Interval { months, days, micros })),
            any::<[u8; 16]>().prop_map(Datum::Uuid),
            any::<i32>().prop_map(|n| Datum::Jsonb(Arc::new(jsonb::parse(&format!("{{\"a\": [{n}, null, \"b\"]}}")).unwrap()))),
        ];
        scalar.prop_recursive(2, 8, 4, |inner| {
            let items = prop::collection::vec(inner, 0..4);
            prop_oneof![
                (items.clone(), any::<i32>(), any::<bool>()).prop_map(|(items, lower, is_text)| {
                    let element = if is_text { Type::Text } else { Type::Int8 };
                    Datum::Array(Arc::new(ArrayValue { element, dims: vec![(items.len(), lower)], items }))
                }),
                items.prop_map(|values| {
                    let names = (0..values.len()).map(|n| format!("f{n}")).collect();
                    let types = values.iter().map(|_| Type::Int4).collect();
                    Datum::Record(Arc::new(RecordValue { names, types, values }))
                }),
            ]
        })
    }

    #[test]
    fn text_that_is_not_utf8_is_damage() {
        let row = [1, TEXT, 1, 0xFF];
        assert_eq!(Codec::default().take_row(&mut &row[..]).unwrap_err().sqlstate(), "XX001");
    }

    proptest! {
        #[test]
        fn rows_read_back(rows in prop::collection::vec(prop::collection::vec(value(), 0..6), 0..6)) {
            let (mut codec, mut out) = (Codec::default(), Vec::new());
            rows.iter().for_each(|row| codec.put_row(row, &mut out));
            let mut from = &out[..];
            for row in &rows {
                // All that a value has is told, the bits of floats too.
                prop_assert_eq!(format!("{:?}", codec.take_row(&mut from).unwrap()), format!("{row:?}"));
            }
            prop_assert!(from.is_empty());
        }

        #[test]
        fn no_bytes_panic_the_decoder(bytes: Vec<u8>) {
            let _ = Codec::default().take_row(&mut &bytes[..]);
        }
    }
}
