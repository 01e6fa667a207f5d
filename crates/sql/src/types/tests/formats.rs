//! Fixtures of rows and keys: a value of every type.

use crate::types::keys::{decode_key_column, encode_key_column, has_order};
use crate::types::{Datum, EvalContext, RowView, Type, encode_row};
use bytes::Bytes;
use meridian_fixtures::Fixtures;

/// Among these there is a value for every type.
const TEXTS: [&str; 15] = [
    "-1.50",
    "2",
    "t",
    "2026-03-04 05:06:07.25",
    "05:06:07",
    "1 mon 2 days 00:00:03",
    "c0ffee00-1234-4321-8888-0123456789ab",
    "\\xc0ffee",
    "{-1.50,NULL}",
    "{2,NULL}",
    "{t,f}",
    "{2026-03-04 05:06:07.25}",
    "{05:06:07}",
    "{c0ffee00-1234-4321-8888-0123456789ab}",
    "{1 mon}",
];

fn value(ty: &Type) -> Option<Datum> {
    TEXTS.iter().find_map(|text| Datum::from_text(text, ty, &EvalContext::default()).ok())
}

#[test]
fn what_was_written_is_read() {
    let ctx = EvalContext::default();
    let mut fixtures = Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/rows.txt"));
    let mut without = Vec::new();
    for ty in Type::all() {
        let Some(value) = value(&ty) else {
            without.push(ty.name());
            continue;
        };
        let types = [Type::Int8, ty.clone(), ty.clone()];
        let row = encode_row(&types, &[Datum::Int(7), value.clone(), Datum::Null]);
        fixtures.bytes(&format!("row {}", ty.name()), &row, |bytes| {
            let row = RowView::new(Bytes::copy_from_slice(bytes)).map_err(|e| e.to_string())?;
            let datums: Result<Vec<Datum>, _> = (0..row.column_count()).map(|i| row.datum(i, &types[i])).collect();
            let datums = datums.map_err(|e| e.to_string())?;
            let texts: Vec<String> = datums.iter().zip(&types).map(|(d, ty)| d.to_text(ty, &ctx)).collect();
            Ok((texts.join(" | "), encode_row(&types, &datums).to_vec()))
        });
        if !has_order(&ty) {
            continue;
        }
        for descending in [false, true] {
            let encode = |value: &Datum| {
                let mut key = Vec::new();
                encode_key_column(&mut key, value, &ty, descending, false).map_err(|e| e.to_string())?;
                Ok::<_, String>(key)
            };
            let Ok(key) = encode(&value) else { continue };
            let name = format!("key {}{}", ty.name(), if descending { " descending" } else { "" });
            fixtures.bytes(&name, &key, |bytes| {
                let read = decode_key_column(&mut &*bytes, &ty, descending, false).map_err(|e| e.to_string())?;
                Ok((read.to_text(&ty, &ctx), encode(&read)?))
            });
        }
    }
    // These are no types of columns.
    let not_stored = ["record", "crdb_internal_region", "record[]", "crdb_internal_region[]"];
    assert_eq!(without, not_stored, "no text above is a value of these types");
    fixtures.finish();
}
