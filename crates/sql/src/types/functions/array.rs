//! Functions and operators on arrays.

use super::args::Args;
use super::registry::Registry;
use super::{Call, SetRows};
use crate::types::{ArrayValue, Datum, Type};
use meridian_base::{Error, Result};
use std::collections::HashSet;
use std::sync::Arc;

fn array(a: ArrayValue) -> Result<Datum> {
    Ok(Datum::Array(Arc::new(a)))
}

fn element(c: &Call<'_>) -> Type {
    c.result.element().cloned().unwrap_or(Type::Text)
}

/// The items of an argument; `NULL` has none.
fn items(a: &[Datum], i: usize) -> Result<&[Datum]> {
    if a[i].is_null() { Ok(&[]) } else { Ok(&a.array(i)?.items) }
}

fn one_dimension(a: &[Datum], i: usize, what: &str) -> Result<()> {
    if !a[i].is_null() && a.array(i)?.dims.len() > 1 {
        return Err(Error::sql("22000", what));
    }
    Ok(())
}

/// `array || array`: one more row if one side has a dimension more.
fn concat(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    match (&a[0], &a[1]) {
        (Datum::Null, other) | (other, Datum::Null) => return Ok(other.clone()),
        _ => {}
    }
    let (x, y) = (a.array(0)?, a.array(1)?);
    if x.items.is_empty() {
        return Ok(a[1].clone());
    }
    if y.items.is_empty() {
        return Ok(a[0].clone());
    }
    let bad = || Error::sql("2202E", "cannot concatenate incompatible arrays");
    let inner = |v: &ArrayValue| v.dims[1..].iter().map(|d| d.0).collect::<Vec<_>>();
    let outer = |v: &ArrayValue| v.dims.iter().map(|d| d.0).collect::<Vec<_>>();
    let mut dims = match x.dims.len() as i64 - y.dims.len() as i64 {
        0 if inner(x) == inner(y) => x.dims.clone(),
        1 if inner(x) == outer(y) => x.dims.clone(),
        -1 if outer(x) == inner(y) => y.dims.clone(),
        _ => return Err(bad()),
    };
    dims[0].0 = match x.dims.len() as i64 - y.dims.len() as i64 {
        0 => x.dims[0].0 + y.dims[0].0,
        1 => x.dims[0].0 + 1,
        _ => y.dims[0].0 + 1,
    };
    array(ArrayValue { element: element(c), dims, items: x.items.iter().chain(&y.items).cloned().collect() })
}

fn push(c: &Call<'_>, a: &[Datum], list: usize, item: usize, at_end: bool) -> Result<Datum> {
    one_dimension(a, list, "argument must be empty or one-dimensional array")?;
    let mut all: Vec<Datum> = items(a, list)?.to_vec();
    let lower = if a[list].is_null() { 1 } else { a.array(list)?.dims.first().map_or(1, |d| d.1) };
    all.insert(if at_end { all.len() } else { 0 }, a[item].clone());
    let dims = vec![(all.len(), lower)];
    array(ArrayValue { element: element(c), dims, items: all })
}

/// Fewer comparisons than these are made one by one.
const COMPARISONS_MAX: usize = 64;

/// Tells whether a value is in a list, for a caller that asks `times` often. No `NULL` is.
fn membership(list: &[Datum], times: usize) -> impl Fn(&Datum) -> bool {
    let set: Option<HashSet<&Datum>> = (list.len().saturating_mul(times) > COMPARISONS_MAX).then(|| list.iter().collect());
    move |d| !d.is_null() && set.as_ref().map_or_else(|| list.contains(d), |set| set.contains(d))
}

fn contains(a: &[Datum], whole: usize, part: usize) -> Result<Datum> {
    let (whole, part) = (items(a, whole)?, items(a, part)?);
    let is_there = membership(whole, part.len());
    Ok(Datum::Bool(part.iter().all(is_there)))
}

fn to_text(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() || a[1].is_null() {
        return Ok(Datum::Null);
    }
    let v = a.array(0)?;
    let null = match a.get(2) {
        None | Some(Datum::Null) => None,
        Some(_) => Some(a.text(2)?),
    };
    let shown: Vec<String> = v
        .items
        .iter()
        .filter_map(|i| if i.is_null() { null.map(String::from) } else { Some(i.to_text(&v.element, c.ctx)) })
        .collect();
    Ok(Datum::text(shown.join(a.text(1)?)))
}

fn dimension(a: &[Datum]) -> Result<Option<(usize, i32)>> {
    let n = a.int(1)?;
    Ok(usize::try_from(n - 1).ok().and_then(|i| a.array(0).ok()?.dims.get(i).copied()))
}

fn replace(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let v = a.array(0)?;
    let swapped = v.items.iter().map(|i| if *i == a[1] { a[2].clone() } else { i.clone() }).collect();
    array(ArrayValue { element: element(c), dims: v.dims.clone(), items: swapped })
}

fn position(a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    one_dimension(a, 0, "searching for elements in multidimensional arrays is not supported")?;
    let v = a.array(0)?;
    let lower = v.dims.first().map_or(1, |d| i64::from(d.1));
    if a.get(2).is_some_and(Datum::is_null) {
        return Err(Error::sql("22004", "initial position must not be null"));
    }
    let from = if a.len() > 2 { (a.int(2)? - lower).max(0) as usize } else { 0 };
    Ok(v.items.iter().skip(from).position(|i| *i == a[1]).map_or(Datum::Null, |i| Datum::Int((i + from) as i64 + lower)))
}

fn fill(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let mut dims = Vec::new();
    for d in items(a, 1)? {
        let Datum::Int(n) = d else { return Err(Error::sql("22004", "dimension values cannot be null")) };
        dims.push((usize::try_from(*n).map_err(|_| Error::sql("54000", "array size exceeds the maximum allowed"))?, 1));
    }
    let total = dims.iter().try_fold(1usize, |t, d| t.checked_mul(d.0)).filter(|t| *t <= 1 << 24);
    let total = total.ok_or_else(|| Error::sql("54000", "array size exceeds the maximum allowed (16777216)"))?;
    if dims.is_empty() || total == 0 {
        return array(ArrayValue::new(element(c), Vec::new()));
    }
    array(ArrayValue { element: element(c), dims, items: vec![a[0].clone(); total] })
}

fn unnest(_: &Call<'_>, a: &[Datum]) -> Result<SetRows> {
    let Datum::Array(v) = &a[0] else { return Ok(Box::new(std::iter::empty())) };
    let v = v.clone();
    Ok(Box::new((0..v.items.len()).map(move |i| Ok(vec![v.items[i].clone()]))))
}

pub fn register(r: &mut Registry) {
    r.operator("||", "anycompatiblearray, anycompatiblearray -> anycompatiblearray", concat).sees_null();
    r.operator("||", "anycompatiblearray, anycompatible -> anycompatiblearray", |c, a| push(c, a, 0, 1, true)).sees_null();
    r.operator("||", "anycompatible, anycompatiblearray -> anycompatiblearray", |c, a| push(c, a, 1, 0, false)).sees_null();
    r.operator("@>", "anyarray, anyarray -> bool", |_, a| contains(a, 0, 1));
    r.operator("<@", "anyarray, anyarray -> bool", |_, a| contains(a, 1, 0));
    r.operator("&&", "anyarray, anyarray -> bool", |_, a| {
        let (one, other) = (items(a, 0)?, items(a, 1)?);
        Ok(Datum::Bool(one.iter().any(membership(other, one.len()))))
    });
    r.scalar("array_cat", "anycompatiblearray, anycompatiblearray -> anycompatiblearray", concat).sees_null();
    r.scalar("array_append", "anycompatiblearray, anycompatible -> anycompatiblearray", |c, a| push(c, a, 0, 1, true))
        .sees_null();
    r.scalar("array_prepend", "anycompatible, anycompatiblearray -> anycompatiblearray", |c, a| push(c, a, 1, 0, false))
        .sees_null();
    r.scalar("array_length", "anyarray, int4 -> int4", |_, a| Ok(dimension(a)?.map_or(Datum::Null, |d| Datum::Int(d.0 as i64))));
    r.scalar("array_lower", "anyarray, int4 -> int4", |_, a| {
        Ok(dimension(a)?.map_or(Datum::Null, |d| Datum::Int(i64::from(d.1))))
    });
    r.scalar("array_upper", "anyarray, int4 -> int4", |_, a| {
        Ok(dimension(a)?.map_or(Datum::Null, |d| Datum::Int(i64::from(d.1) + d.0 as i64 - 1)))
    });
    r.scalar("array_ndims", "anyarray -> int4", |_, a| {
        let n = a.array(0)?.dims.len();
        Ok(if n == 0 { Datum::Null } else { Datum::Int(n as i64) })
    });
    r.scalar("array_dims", "anyarray -> text", |_, a| {
        let v = a.array(0)?;
        let shown: String = v.dims.iter().map(|(n, low)| format!("[{low}:{}]", i64::from(*low) + *n as i64 - 1)).collect();
        Ok(if shown.is_empty() { Datum::Null } else { Datum::text(shown) })
    });
    r.scalar("cardinality", "anyarray -> int4", |_, a| Ok(Datum::Int(a.array(0)?.items.len() as i64)));
    for s in ["anyarray, text -> text", "anyarray, text, text -> text"] {
        r.scalar("array_to_string", s, to_text).sees_null().stable();
    }
    r.scalar("array_remove", "anycompatiblearray, anycompatible -> anycompatiblearray", |c, a| {
        if a[0].is_null() {
            return Ok(Datum::Null);
        }
        one_dimension(a, 0, "removing elements from multidimensional arrays is not supported")?;
        let kept: Vec<Datum> = items(a, 0)?.iter().filter(|i| **i != a[1]).cloned().collect();
        array(ArrayValue::new(element(c), kept))
    })
    .sees_null();
    r.scalar("array_replace", "anycompatiblearray, anycompatible, anycompatible -> anycompatiblearray", replace).sees_null();
    r.scalar("array_position", "anycompatiblearray, anycompatible -> int4", |_, a| position(a)).sees_null();
    r.scalar("array_position", "anycompatiblearray, anycompatible, int4 -> int4", |_, a| position(a)).sees_null();
    r.scalar("array_positions", "anycompatiblearray, anycompatible -> int4[]", |_, a| {
        if a[0].is_null() {
            return Ok(Datum::Null);
        }
        let lower = a.array(0)?.dims.first().map_or(1, |d| i64::from(d.1));
        let found =
            items(a, 0)?.iter().enumerate().filter(|(_, i)| **i == a[1]).map(|(at, _)| Datum::Int(at as i64 + lower)).collect();
        Ok(ArrayValue::datum(Type::Int4, found))
    })
    .sees_null();
    r.scalar("array_fill", "anyelement, int4[] -> anyarray", fill).sees_null().dear_above(10_000);
    r.scalar("trim_array", "anyarray, int4 -> anyarray", |_, a| {
        let (v, n) = (a.array(0)?, a.int(1)?);
        let len = v.dims.first().map_or(0, |d| d.0 as i64);
        if !(0..=len).contains(&n) {
            return Err(Error::sql("2202E", format!("number of elements to trim must be between 0 and {len}")));
        }
        let lower = v.dims.first().map_or(1, |d| i64::from(d.1));
        array(v.slice(None, Some(lower + len - 1 - n)))
    });
    r.set("unnest", "anyarray -> anyelement", unnest);
    r.set("generate_subscripts", "anyarray, int4 -> int4", |_, a| match dimension(a)? {
        Some((n, lower)) => Ok(Box::new((0..n as i64).map(move |i| Ok(vec![Datum::Int(i64::from(lower) + i)])))),
        None => Ok(Box::new(std::iter::empty())),
    });
}
