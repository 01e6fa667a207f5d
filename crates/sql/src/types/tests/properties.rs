//! Codecs give back what they got, keys sort as values do, and no bytes panic a decoder.

use crate::types::jsonb::Json;
use crate::types::keys::{decode_key_column, encode_key_column, has_order, keeps_looks};
use crate::types::numeric::Numeric;
use crate::types::{ArrayValue, Datum, EvalContext, Format, Interval, RowView, Type, datetime, encode_row};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use std::sync::Arc;

fn numeric() -> impl Strategy<Value = Numeric> {
    prop_oneof![6 => finite(), 1 => Just(Numeric::NaN), 1 => Just(Numeric::PosInfinity), 1 => Just(Numeric::NegInfinity)]
}

fn finite() -> impl Strategy<Value = Numeric> {
    prop_oneof![
        (any::<i64>(), 0u16..20).prop_map(|(m, scale)| Numeric::Small { mantissa: i128::from(m), scale }),
        (-1000i128..1000, 0u16..5).prop_map(|(mantissa, scale)| Numeric::Small { mantissa, scale }),
        any::<i128>()
            .prop_filter("the smallest has no negative", |m| *m != i128::MIN)
            .prop_map(|mantissa| Numeric::Small { mantissa, scale: 9 }),
        ("[1-9][0-9]{40,60}", any::<bool>(), 0u16..30)
            .prop_map(|(d, negative, scale)| Numeric::from_digits(&d, negative, scale).expect("digits")),
    ]
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        (any::<i64>(), 0u16..5).prop_map(|(m, scale)| Json::Number(Numeric::Small { mantissa: i128::from(m), scale })),
        "[^\\x00]{0,8}".prop_map(Json::String),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            prop::collection::vec(("[a-c]{0,3}", inner), 0..4).prop_map(|p| Json::object(p.into_iter().collect())),
        ]
    })
}

/// A scalar type and two values of it.
fn scalar_pair() -> impl Strategy<Value = (Type, Datum, Datum)> {
    fn two<S: Strategy<Value = Datum> + Clone + 'static>(ty: Type, s: S) -> BoxedStrategy<(Type, Datum, Datum)> {
        (Just(ty), s.clone(), s).boxed()
    }
    let text = prop_oneof!["[^\\x00]{0,12}", "[ab ]{0,4}"].prop_map(Datum::text).boxed();
    let day = (datetime::DATE_MIN..2_000_000).prop_map(Datum::Date).boxed();
    let time = (datetime::TIMESTAMP_MIN..datetime::TIMESTAMP_END).prop_map(Datum::Timestamp).boxed();
    let interval = (any::<i16>(), any::<i16>(), -200_000_000_000i64..200_000_000_000)
        .prop_map(|(m, d, micros)| Datum::Interval(Interval { months: i32::from(m), days: i32::from(d), micros }))
        .boxed();
    prop_oneof![
        two(Type::Bool, any::<bool>().prop_map(Datum::Bool).boxed()),
        two(Type::Int2, any::<i16>().prop_map(|v| Datum::Int(i64::from(v))).boxed()),
        two(Type::Int4, any::<i32>().prop_map(|v| Datum::Int(i64::from(v))).boxed()),
        two(Type::Int8, any::<i64>().prop_map(Datum::Int).boxed()),
        two(Type::Oid, any::<u32>().prop_map(|v| Datum::Int(i64::from(v))).boxed()),
        two(Type::Float4, any::<f32>().prop_map(|v| Datum::Float(f64::from(v))).boxed()),
        two(Type::Float8, any::<f64>().prop_map(Datum::Float).boxed()),
        two(Type::Numeric(None), numeric().prop_map(Datum::Numeric).boxed()),
        two(Type::Text, text.clone()),
        two(Type::Varchar(None), text.clone()),
        two(Type::Bytea, any::<Vec<u8>>().prop_map(|b| Datum::Bytea(Bytes::from(b))).boxed()),
        two(Type::Date, day),
        two(Type::Time, (0..=datetime::DAY).prop_map(Datum::Time).boxed()),
        two(Type::Timestamp, time.clone()),
        two(Type::Timestamptz, time),
        two(Type::Interval, interval),
        two(Type::Uuid, any::<[u8; 16]>().prop_map(Datum::Uuid).boxed()),
        two(Type::Jsonb, json().prop_map(|j| Datum::Jsonb(Arc::new(j))).boxed()),
        two(Type::Json, json().prop_map(|j| Datum::text(j.to_text())).boxed()),
    ]
}

/// Scalars, arrays of them, and NULLs.
fn pair() -> impl Strategy<Value = (Type, Datum, Datum)> {
    let array = prop::collection::vec(scalar_pair(), 0..1).prop_flat_map(|_| {
        scalar_pair().prop_flat_map(|(ty, a, b)| {
            let choices = vec![a, b, Datum::Null];
            let items = prop::collection::vec(prop::sample::select(choices), 0..4);
            (Just(ty), items.clone(), items)
                .prop_map(|(ty, x, y)| (ty.array_of(), ArrayValue::datum(ty.clone(), x), ArrayValue::datum(ty, y)))
        })
    });
    prop_oneof![
        4 => scalar_pair(),
        2 => array,
        1 => scalar_pair().prop_map(|(ty, a, _)| (ty, a, Datum::Null)),
    ]
}

/// The same value and the same looks.
fn same(a: &Datum, b: &Datum, ty: &Type) -> bool {
    let ctx = EvalContext::default();
    a == b && a.to_text(ty, &ctx) == b.to_text(ty, &ctx)
}

fn key(v: &Datum, ty: &Type, descending: bool, nulls_first: bool) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key_column(&mut out, v, ty, descending, nulls_first).expect("an ordered type");
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn text_reads_back((ty, v, _) in pair()) {
        let ctx = EvalContext::default();
        let text = v.to_text(&ty, &ctx);
        let back = Datum::from_text(&text, &ty, &ctx);
        prop_assert!(back.as_ref().is_ok_and(|b| same(b, &v, &ty)), "{ty:?} {v:?} {text} {back:?}");
    }

    #[test]
    fn binary_reads_back((ty, v, _) in pair()) {
        let mut out = Vec::new();
        v.write_binary(&ty, &mut out);
        let back = Datum::from_binary(&Bytes::from(out), &ty);
        prop_assert!(back.as_ref().is_ok_and(|b| same(b, &v, &ty)), "{ty:?} {v:?} {back:?}");
    }

    #[test]
    fn keys_compare_as_values_and_read_back((ty, a, b) in pair(), descending: bool, nulls_first: bool) {
        prop_assume!(has_order(&ty));
        let (x, y) = (key(&a, &ty, descending, nulls_first), key(&b, &ty, descending, nulls_first));
        let expected = match (a.is_null(), b.is_null()) {
            (true, true) => std::cmp::Ordering::Equal,
            (true, false) if nulls_first => std::cmp::Ordering::Less,
            (true, false) => std::cmp::Ordering::Greater,
            (false, true) if nulls_first => std::cmp::Ordering::Greater,
            (false, true) => std::cmp::Ordering::Less,
            _ if descending => b.cmp(&a),
            _ => a.cmp(&b),
        };
        prop_assert_eq!(x.cmp(&y), expected, "{:?} {:?} {:?}", ty, a, b);
        // Another column behind it does not disturb reading it back.
        let mut two = x.clone();
        two.extend_from_slice(&y);
        let mut input = &two[..];
        let back = decode_key_column(&mut input, &ty, descending, nulls_first).expect("what was encoded");
        prop_assert!(back == a, "{ty:?} {a:?} {back:?}");
        prop_assert!(!keeps_looks(&ty) || same(&back, &a, &ty));
        prop_assert_eq!(input, &y[..]);
    }

    #[test]
    fn rows_read_back(columns in prop::collection::vec(pair(), 0..12), binary: bool, second: bool) {
        let types: Vec<Type> = columns.iter().map(|c| c.0.clone()).collect();
        let values: Vec<Datum> = columns.into_iter().map(|c| if second { c.2 } else { c.1 }).collect();
        let row = RowView::new(encode_row(&types, &values)).expect("a row");
        let ctx = EvalContext::default();
        let format = if binary { Format::Binary } else { Format::Text };
        prop_assert_eq!(row.column_count(), values.len());
        prop_assert!(row.is_missing(values.len()));
        for (i, (ty, v)) in types.iter().zip(&values).enumerate() {
            prop_assert_eq!(row.is_null(i), v.is_null());
            prop_assert!(same(&row.datum(i, ty).expect("a value"), v, ty));
            let borrowed = RowView::new(&row.bytes()[..]).expect("a row");
            prop_assert!(same(&borrowed.datum(i, ty).expect("a value"), v, ty));
            let (mut stored, mut direct) = (BytesMut::new(), BytesMut::new());
            row.write_field(i, ty, format, &ctx, &mut stored).expect("a field");
            v.write_field(ty, format, &ctx, &mut direct);
            prop_assert_eq!(stored, direct, "{:?} {:?}", ty, v);
        }
    }

    #[test]
    fn equal_values_hash_alike((_, a, b) in pair()) {
        use std::hash::{BuildHasher, RandomState};
        let state = RandomState::new();
        prop_assert!(a != b || state.hash_one(&a) == state.hash_one(&b));
    }

    #[test]
    fn identical_values_are_equal_and_written_alike((ty, a, b) in pair()) {
        let ctx = EvalContext::default();
        let text = |d: &Datum| (!d.is_null()).then(|| d.to_text(&ty, &ctx));
        prop_assert!(a.is_identical(&a.clone()));
        prop_assert_eq!(a.is_identical(&b), a == b && text(&a) == text(&b), "{:?} {:?} {:?}", ty, a, b);
    }

    #[test]
    fn no_bytes_panic_a_decoder(bytes: Vec<u8>, count in 0u16..4, kind in 0usize..64, descending: bool) {
        let all = Type::all();
        let ty = &all[kind % all.len()];
        let _ = Datum::from_binary(&Bytes::from(bytes.clone()), ty);
        let _ = decode_key_column(&mut &bytes[..], ty, descending, false);
        let mut row = vec![1, u8::from(descending)];
        row.extend_from_slice(&count.to_be_bytes());
        row.extend_from_slice(&bytes);
        let ctx = EvalContext::default();
        if let Ok(row) = RowView::new(Bytes::from(row)) {
            for i in 0..row.column_count() {
                let _ = row.datum(i, ty);
                let _ = row.write_field(i, ty, Format::Text, &ctx, &mut BytesMut::new());
                let _ = row.write_field(i, ty, Format::Binary, &ctx, &mut BytesMut::new());
            }
        }
    }

    #[test]
    fn no_text_panics_a_reader(text in "[-+0-9a-zA-Z:., {}\\[\\]\"\\\\/TZP]{0,24}", kind in 0usize..64) {
        let all = Type::all();
        let _ = Datum::from_text(&text, &all[kind % all.len()], &EvalContext::default());
    }

    #[test]
    fn small_and_large_decimals_agree(a in finite(), b in finite()) {
        // (a + b) − b = a, and a·b / b = a where it is exact; both cross the border between the
        // representations.
        prop_assert_eq!(a.add(&b).and_then(|s| s.sub(&b)).expect("in range"), a.clone());
        if !b.is_zero() {
            let q = a.div_trunc(&b).expect("not zero");
            let r = a.rem(&b).expect("not zero");
            prop_assert_eq!(q.mul(&b).and_then(|p| p.add(&r)).expect("in range"), a);
        }
    }
}
