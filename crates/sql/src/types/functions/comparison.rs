//! `=`, `<>`, `<`, `<=`, `>`, `>=` on every ordered type, and between the related ones.

use super::args::Args;
use super::registry::Registry;
use super::{Call, ScalarFn};
use crate::types::compare::trim_blanks;
use crate::types::{Datum, Type, datetime};
use meridian_base::Result;
use std::cmp::Ordering;

type Compare = fn(&Call<'_>, &[Datum]) -> Result<Ordering>;

macro_rules! six {
    ($r:expr, $signature:expr, $compare:path) => {{
        fn eq(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::Bool($compare(c, a)?.is_eq()))
        }
        fn ne(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::Bool($compare(c, a)?.is_ne()))
        }
        fn lt(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::Bool($compare(c, a)?.is_lt()))
        }
        fn le(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::Bool($compare(c, a)?.is_le()))
        }
        fn gt(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::Bool($compare(c, a)?.is_gt()))
        }
        fn ge(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
            Ok(Datum::Bool($compare(c, a)?.is_ge()))
        }
        let bodies: [(&'static str, ScalarFn); 7] =
            [("=", eq), ("<>", ne), ("!=", ne), ("<", lt), ("<=", le), (">", gt), (">=", ge)];
        for (op, body) in bodies {
            $r.operator(op, $signature, body);
        }
        let _: Compare = $compare;
    }};
}

fn plain(_: &Call<'_>, a: &[Datum]) -> Result<Ordering> {
    Ok(a[0].cmp(&a[1]))
}

fn blank_padded(_: &Call<'_>, a: &[Datum]) -> Result<Ordering> {
    Ok(trim_blanks(a.text(0)?.as_bytes()).cmp(trim_blanks(a.text(1)?.as_bytes())))
}

/// Dates and timestamps of different types, as instants if one of them is, else as local times.
fn mixed_times(c: &Call<'_>, a: &[Datum]) -> Result<Ordering> {
    let instant = c.args.contains(&Type::Timestamptz);
    let value = |i: usize| -> Result<i64> {
        let local = match &a[i] {
            // A date too large for a timestamp is larger than all of them.
            Datum::Date(d) => datetime::date_to_timestamp(*d).unwrap_or(if *d > 0 { i64::MAX - 1 } else { i64::MIN + 1 }),
            _ => a.timestamp(i)?,
        };
        Ok(if instant && c.args[i] != Type::Timestamptz { datetime::to_utc(local, &c.ctx.zone).unwrap_or(local) } else { local })
    };
    Ok(value(0)?.cmp(&value(1)?))
}

pub fn register(r: &mut Registry) {
    for t in [
        "bool",
        "numeric",
        "text",
        "name",
        "char",
        "bytea",
        "uuid",
        "oid",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "interval",
        "jsonb",
        "crdb_internal_region",
    ] {
        six!(r, &format!("{t}, {t} -> bool"), plain);
    }
    for set in [&["int2", "int4", "int8"][..], &["float4", "float8"]] {
        for a in set {
            for b in set {
                six!(r, &format!("{a}, {b} -> bool"), plain);
            }
        }
    }
    six!(r, "name, text -> bool", plain);
    six!(r, "text, name -> bool", plain);
    six!(r, "bpchar, bpchar -> bool", blank_padded);
    six!(r, "anyarray, anyarray -> bool", plain);
    six!(r, "record, record -> bool", plain);
    let times = ["date", "timestamp", "timestamptz"];
    for a in times {
        for b in times.into_iter().filter(|b| *b != a) {
            six!(r, &format!("{a}, {b} -> bool"), mixed_times);
            if a != "date" || b != "timestamp" {
                // Depends on the zone.
                stable_last(r);
            }
        }
    }
    r.scalar("booleq", "bool, bool -> bool", |_, a| Ok(Datum::Bool(a[0] == a[1])));
}

fn stable_last(r: &mut Registry) {
    for op in ["=", "<>", "!=", "<", "<=", ">", ">="] {
        if let Some(def) = r.operators.get_mut(op).and_then(|defs| defs.last_mut()) {
            def.stable();
        }
    }
}
