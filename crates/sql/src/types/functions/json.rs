//! `json` and `jsonb`: operators, constructors, conversion from rows and arrays.

use super::args::Args;
use super::registry::Registry;
use super::{Call, SetRows};
use crate::types::json_text::{self, Parts};
use crate::types::jsonb::{self, Json, key_order, write_string};
use crate::types::{ArrayValue, Category, Datum, EvalContext, Type};
use meridian_base::{Error, Result};
use std::sync::Arc;

fn datum(j: Json) -> Datum {
    Datum::Jsonb(Arc::new(j))
}

/// Appends the JSON form of any value, as `to_json` writes it: no blanks but those inside
/// documents.
pub fn write_value(value: &Datum, ty: &Type, ctx: &EvalContext, out: &mut Vec<u8>) {
    match (value, ty) {
        (Datum::Null, _) => out.extend_from_slice(b"null"),
        (Datum::Bool(v), _) => out.extend_from_slice(if *v { b"true" } else { b"false" }),
        (Datum::Text(t), Type::Json) => out.extend_from_slice(t.as_bytes()),
        (Datum::Jsonb(j), _) => j.write(out),
        (Datum::Array(a), _) => {
            let mut at = 0;
            write_array(a, 0, &mut at, ctx, out);
        }
        (Datum::Record(r), _) => {
            out.push(b'{');
            for (i, ((name, v), t)) in r.names.iter().zip(&r.values).zip(r.types.iter()).enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_string(name, out);
                out.push(b':');
                write_value(v, t, ctx, out);
            }
            out.push(b'}');
        }
        (v, t)
            if t.category() == Category::Numeric
                && !matches!(t, Type::Regclass | Type::Regtype | Type::Regproc | Type::Regnamespace) =>
        {
            let text = v.to_text(t, ctx);
            // NaN and infinities are no JSON numbers.
            if text.ends_with(|c: char| c.is_ascii_alphabetic()) {
                write_string(&text, out)
            } else {
                out.extend_from_slice(text.as_bytes())
            }
        }
        (v, t @ (Type::Timestamp | Type::Timestamptz)) => {
            let text = v.to_text(t, ctx);
            let mut iso = text.replacen(' ', "T", 1);
            // A JSON reader wants minutes in the offset.
            if *t == Type::Timestamptz
                && let Some(sign) = iso.rfind(['+', '-'])
                && sign > 10
                && iso.len() - sign == 3
            {
                iso.push_str(":00");
            }
            write_string(&iso, out)
        }
        (v, t) => write_string(&v.to_text(t, ctx), out),
    }
}

fn write_array(a: &ArrayValue, level: usize, at: &mut usize, ctx: &EvalContext, out: &mut Vec<u8>) {
    out.push(b'[');
    let n = a.dims.get(level).map_or(0, |d| d.0);
    for i in 0..n {
        if i > 0 {
            out.push(b',');
        }
        if level + 1 < a.dims.len() {
            write_array(a, level + 1, at, ctx, out);
        } else {
            if let Some(item) = a.items.get(*at) {
                write_value(item, &a.element, ctx, out);
            }
            *at += 1;
        }
    }
    out.push(b']');
}

/// The JSON form of any value as a document.
pub fn to_document(value: &Datum, ty: &Type, ctx: &EvalContext) -> Result<Json> {
    if let Datum::Jsonb(j) = value {
        return Ok((**j).clone());
    }
    let mut out = Vec::new();
    write_value(value, ty, ctx, &mut out);
    jsonb::parse(&String::from_utf8_lossy(&out))
}

/// The argument as a document, whether it is `json` or `jsonb`.
fn document(a: &[Datum], i: usize) -> Result<Json> {
    match &a[i] {
        Datum::Jsonb(j) => Ok((**j).clone()),
        _ => jsonb::parse(a.text(i)?),
    }
}

fn scalar_text(j: Option<&Json>) -> Datum {
    match j {
        None | Some(Json::Null) => Datum::Null,
        Some(Json::String(s)) => Datum::text(s.as_str()),
        Some(j) => Datum::text(j.to_text()),
    }
}

fn step<'a>(j: &'a Json, key: &str) -> Option<&'a Json> {
    match j {
        Json::Array(_) => j.at(key.trim().parse().ok()?),
        _ => j.get(key),
    }
}

fn path<'a>(j: &'a Json, keys: &[Datum]) -> Option<&'a Json> {
    let mut at = j;
    for k in keys {
        match k {
            Datum::Text(k) => at = step(at, k.as_str())?,
            _ => return None,
        }
    }
    Some(at)
}

fn path_of(a: &[Datum], variadic_from: Option<usize>) -> Result<Vec<Datum>> {
    match variadic_from {
        Some(i) => Ok(a[i..].to_vec()),
        None => Ok(a.array(1)?.items.clone()),
    }
}

/// A part of a `json` text as a `json`.
fn part(text: Option<&str>) -> Datum {
    text.map_or(Datum::Null, Datum::text)
}

/// `jsonb -> integer`: a scalar is kept as an array of one (PostgreSQL, `jsonb_array_element`).
fn element(j: &Json, index: i64) -> Option<&Json> {
    match j {
        Json::Array(_) | Json::Object(_) => j.at(index),
        scalar => matches!(index, 0 | -1).then_some(scalar),
    }
}

fn access(r: &mut Registry) {
    r.operator("->", "jsonb, text -> jsonb", |_, a| Ok(found(a.json(0)?.get(a.text(1)?))));
    r.operator("->", "jsonb, int4 -> jsonb", |_, a| Ok(found(element(a.json(0)?, a.int(1)?))));
    r.operator("->>", "jsonb, text -> text", |_, a| Ok(scalar_text(a.json(0)?.get(a.text(1)?))));
    r.operator("->>", "jsonb, int4 -> text", |_, a| Ok(scalar_text(element(a.json(0)?, a.int(1)?))));
    r.operator("#>", "jsonb, text[] -> jsonb", |_, a| Ok(found(path(a.json(0)?, &path_of(a, None)?))));
    r.operator("#>>", "jsonb, text[] -> text", |_, a| Ok(scalar_text(path(a.json(0)?, &path_of(a, None)?))));
    r.scalar("jsonb_extract_path", "jsonb, variadic text -> jsonb", |_, a| Ok(found(path(a.json(0)?, &path_of(a, Some(1))?))));
    r.scalar("jsonb_extract_path_text", "jsonb, variadic text -> text", |_, a| {
        Ok(scalar_text(path(a.json(0)?, &path_of(a, Some(1))?)))
    });
    r.scalar("jsonb_strip_nulls", "jsonb -> jsonb", |_, a| Ok(datum(strip_nulls(a.json(0)?.clone()))));
    r.set("jsonb_array_elements", "jsonb -> jsonb", |_, a| rows(elements(a.json(0)?)?.into_iter().map(datum)))
        .columns(&[("value", "jsonb")]);
    r.set("jsonb_array_elements_text", "jsonb -> text", |_, a| {
        rows(elements(a.json(0)?)?.into_iter().map(|j| scalar_text(Some(&j))))
    })
    .columns(&[("value", "text")]);
    r.set("jsonb_object_keys", "jsonb -> text", |_, a| {
        let Json::Object(pairs) = a.json(0)? else { return Err(no_keys(a.json(0)?, "jsonb_object_keys")) };
        rows(pairs.iter().map(|(k, _)| Datum::text(k.as_str())).collect::<Vec<_>>().into_iter())
    });
    r.set("jsonb_each", "jsonb -> record", |_, a| {
        let list = pairs(a.json(0)?, "jsonb_each")?;
        Ok(Box::new(list.into_iter().map(|(k, v)| Ok(vec![Datum::text(k), datum(v)]))))
    })
    .columns(&[("key", "text"), ("value", "jsonb")]);
    r.set("jsonb_each_text", "jsonb -> record", |_, a| {
        let list = pairs(a.json(0)?, "jsonb_each_text")?;
        Ok(Box::new(list.into_iter().map(|(k, v)| Ok(vec![Datum::text(k), scalar_text(Some(&v))]))))
    })
    .columns(&[("key", "text"), ("value", "text")]);
    for (t, typeof_, length) in [("json", "json_typeof", "json_array_length"), ("jsonb", "jsonb_typeof", "jsonb_array_length")] {
        r.scalar(typeof_, &format!("{t} -> text"), |_, a| Ok(Datum::text(document(a, 0)?.type_name())));
        r.scalar(length, &format!("{t} -> int4"), |_, a| match document(a, 0)? {
            Json::Array(items) => Ok(Datum::Int(items.len() as i64)),
            Json::Object(_) => Err(Error::sql("22023", "cannot get array length of a non-array")),
            _ => Err(Error::sql("22023", "cannot get array length of a scalar")),
        });
    }
}

/// The same for `json`, whose parts are as they are written.
fn access_text(r: &mut Registry) {
    r.operator("->", "json, text -> json", |_, a| Ok(part(json_text::member(a.text(0)?, a.text(1)?)?)));
    r.operator("->", "json, int4 -> json", |_, a| Ok(part(json_text::element(a.text(0)?, a.int(1)?)?)));
    r.operator("->>", "json, text -> text", |_, a| json_text::as_text(json_text::member(a.text(0)?, a.text(1)?)?));
    r.operator("->>", "json, int4 -> text", |_, a| json_text::as_text(json_text::element(a.text(0)?, a.int(1)?)?));
    r.operator("#>", "json, text[] -> json", |_, a| Ok(part(json_text::at_path(a.text(0)?, &path_of(a, None)?)?)));
    r.operator("#>>", "json, text[] -> text", |_, a| json_text::as_text(json_text::at_path(a.text(0)?, &path_of(a, None)?)?));
    r.scalar("json_extract_path", "json, variadic text -> json", |_, a| {
        Ok(part(json_text::at_path(a.text(0)?, &path_of(a, Some(1))?)?))
    });
    r.scalar("json_extract_path_text", "json, variadic text -> text", |_, a| {
        json_text::as_text(json_text::at_path(a.text(0)?, &path_of(a, Some(1))?)?)
    });
    r.scalar("json_strip_nulls", "json -> json", |_, a| Ok(Datum::text(json_text::without_nulls(a.text(0)?)?)));
    r.set("json_array_elements", "json -> json", |_, a| {
        let items: Vec<Datum> = items_of(a.text(0)?, "json_array_elements")?.into_iter().map(Datum::text).collect();
        rows(items.into_iter())
    })
    .columns(&[("value", "json")]);
    r.set("json_array_elements_text", "json -> text", |_, a| {
        let items: Vec<Datum> = items_of(a.text(0)?, "json_array_elements_text")?
            .into_iter()
            .map(|i| json_text::as_text(Some(i)))
            .collect::<Result<_>>()?;
        rows(items.into_iter())
    })
    .columns(&[("value", "text")]);
    r.set("json_object_keys", "json -> text", |_, a| {
        let Parts::Object(members) = json_text::parts(a.text(0)?)? else {
            return Err(no_keys(&document(a, 0)?, "json_object_keys"));
        };
        rows(members.into_iter().map(|(k, _)| Datum::text(k)).collect::<Vec<_>>().into_iter())
    });
    r.set("json_each", "json -> record", |_, a| {
        let members = members_of(a.text(0)?)?;
        let list: Vec<Vec<Datum>> = members.into_iter().map(|(k, v)| vec![Datum::text(k), Datum::text(v)]).collect();
        Ok(Box::new(list.into_iter().map(Ok)))
    })
    .columns(&[("key", "text"), ("value", "json")]);
    r.set("json_each_text", "json -> record", |_, a| {
        let row = |(k, v): (String, &str)| Ok(vec![Datum::text(k), json_text::as_text(Some(v))?]);
        let list: Vec<Vec<Datum>> = members_of(a.text(0)?)?.into_iter().map(row).collect::<Result<_>>()?;
        Ok(Box::new(list.into_iter().map(Ok)))
    })
    .columns(&[("key", "text"), ("value", "text")]);
}

/// A part of a document as a document.
fn found(j: Option<&Json>) -> Datum {
    j.map_or(Datum::Null, |j| datum(j.clone()))
}

fn items_of<'t>(text: &'t str, function: &str) -> Result<Vec<&'t str>> {
    match json_text::parts(text)? {
        Parts::Array(items) => Ok(items),
        Parts::Object(_) => Err(Error::sql("22023", format!("cannot call {function} on a non-array"))),
        Parts::Scalar => Err(Error::sql("22023", format!("cannot call {function} on a scalar"))),
    }
}

fn members_of(text: &str) -> Result<Vec<(String, &str)>> {
    match json_text::parts(text)? {
        Parts::Object(members) => Ok(members),
        Parts::Array(_) => Err(Error::sql("22023", "cannot deconstruct an array as an object")),
        Parts::Scalar => Err(Error::sql("22023", "cannot deconstruct a scalar")),
    }
}

fn rows(items: impl Iterator<Item = Datum> + Send + 'static) -> Result<SetRows> {
    Ok(Box::new(items.map(|d| Ok(vec![d]))))
}

fn elements(j: &Json) -> Result<Vec<Json>> {
    match j {
        Json::Array(items) => Ok(items.clone()),
        Json::Object(_) => Err(Error::sql("22023", "cannot extract elements from an object")),
        _ => Err(Error::sql("22023", "cannot extract elements from a scalar")),
    }
}

fn pairs(j: &Json, name: &str) -> Result<Vec<(String, Json)>> {
    match j {
        Json::Object(pairs) => Ok(pairs.clone()),
        _ => Err(Error::sql("22023", format!("cannot call {name} on a non-object"))),
    }
}

fn no_keys(j: &Json, name: &str) -> Error {
    let what = if matches!(j, Json::Array(_)) { "an array" } else { "a scalar" };
    Error::sql("22023", format!("cannot call {name} on {what}"))
}

fn strip_nulls(j: Json) -> Json {
    match j {
        Json::Object(p) => {
            Json::Object(p.into_iter().filter(|(_, v)| *v != Json::Null).map(|(k, v)| (k, strip_nulls(v))).collect())
        }
        Json::Array(items) => Json::Array(items.into_iter().map(strip_nulls).collect()),
        j => j,
    }
}

fn has_key(j: &Json, key: &str) -> bool {
    match j {
        Json::Object(_) => j.get(key).is_some(),
        Json::Array(items) => items.iter().any(|i| matches!(i, Json::String(s) if s == key)),
        Json::String(s) => s == key,
        _ => false,
    }
}

fn concat(a: &Json, b: &Json) -> Result<Json> {
    let list = |j: &Json| match j {
        Json::Array(items) => items.clone(),
        j => vec![j.clone()],
    };
    Ok(match (a, b) {
        (Json::Object(x), Json::Object(y)) => Json::object(x.iter().chain(y).cloned().collect()),
        (x, y) => Json::Array(list(x).into_iter().chain(list(y)).collect()),
    })
}

fn delete_key(j: &Json, key: &str) -> Result<Json> {
    match j {
        Json::Object(p) => Ok(Json::Object(p.iter().filter(|(k, _)| k != key).cloned().collect())),
        Json::Array(items) => {
            Ok(Json::Array(items.iter().filter(|i| !matches!(i, Json::String(s) if s == key)).cloned().collect()))
        }
        _ => Err(Error::sql("22023", "cannot delete from scalar")),
    }
}

fn delete_index(j: &Json, index: i64) -> Result<Json> {
    match j {
        Json::Array(items) => {
            let i = if index < 0 { index + items.len() as i64 } else { index };
            Ok(Json::Array(items.iter().enumerate().filter(|(at, _)| *at as i64 != i).map(|(_, v)| v.clone()).collect()))
        }
        Json::Object(_) => Err(Error::sql("22023", "cannot delete from object using integer index")),
        _ => Err(Error::sql("22023", "cannot delete from scalar")),
    }
}

/// How [`edit`] treats the end of its path.
#[derive(Clone, Copy, PartialEq)]
enum Edit {
    Delete,
    /// Replace; with `true`, create what is missing.
    Set(bool),
    /// Insert before (`false`) or after (`true`).
    Insert(bool),
}

fn edit(j: &Json, keys: &[Datum], value: Option<&Json>, how: Edit) -> Result<Json> {
    match j {
        Json::Object(_) | Json::Array(_) => edit_at(j, keys, 1, value, how),
        _ if how == Edit::Delete => Err(Error::sql("22023", "cannot delete path in scalar")),
        _ => Err(Error::sql("22023", "cannot set path in scalar")),
    }
}

/// The same below the top, where a path that leads through a scalar changes nothing. `position`: of
/// the first key in the whole path.
fn edit_at(j: &Json, keys: &[Datum], position: usize, value: Option<&Json>, how: Edit) -> Result<Json> {
    let Some((first, rest)) = keys.split_first() else { return Ok(j.clone()) };
    let Datum::Text(key) = first else {
        return Err(Error::sql("22004", format!("path element at position {position} is null")));
    };
    let key = key.as_str();
    match j {
        Json::Object(p) => {
            let mut p = p.clone();
            match (p.binary_search_by(|(k, _)| key_order(k, key)), rest.is_empty()) {
                (Ok(i), false) => p[i].1 = edit_at(&p[i].1, rest, position + 1, value, how)?,
                (Ok(i), true) => match (how, value) {
                    (Edit::Delete, _) => {
                        p.remove(i);
                    }
                    (Edit::Set(_), Some(v)) => p[i].1 = v.clone(),
                    (Edit::Insert(_), _) => {
                        return Err(Error::sql("22023", "cannot replace existing key")
                            .hint("Try using the function jsonb_set to replace key value."));
                    }
                    _ => {}
                },
                (Err(i), true) if matches!(how, Edit::Set(true) | Edit::Insert(_)) => {
                    if let Some(v) = value {
                        p.insert(i, (key.to_string(), v.clone()));
                    }
                }
                _ => {}
            }
            Ok(Json::Object(p))
        }
        Json::Array(items) => {
            let mut items = items.clone();
            let index: i64 = key
                .trim()
                .parse()
                .map_err(|_| Error::sql("22P02", format!("path element at position {position} is not an integer: \"{key}\"")))?;
            let n = items.len() as i64;
            let at = if index < 0 { index + n } else { index };
            if (0..n).contains(&at) {
                let at = at as usize;
                match (rest.is_empty(), how, value) {
                    (false, ..) => items[at] = edit_at(&items[at], rest, position + 1, value, how)?,
                    (true, Edit::Delete, _) => {
                        items.remove(at);
                    }
                    (true, Edit::Set(_), Some(v)) => items[at] = v.clone(),
                    (true, Edit::Insert(after), Some(v)) => items.insert(at + usize::from(after), v.clone()),
                    _ => {}
                }
            } else if rest.is_empty()
                && matches!(how, Edit::Set(true) | Edit::Insert(_))
                && let Some(v) = value
            {
                items.insert(if at < 0 { 0 } else { items.len() }, v.clone());
            }
            Ok(Json::Array(items))
        }
        _ => Ok(j.clone()),
    }
}

fn change(r: &mut Registry) {
    r.operator("@>", "jsonb, jsonb -> bool", |_, a| Ok(Datum::Bool(a.json(0)?.contains(a.json(1)?))));
    r.operator("<@", "jsonb, jsonb -> bool", |_, a| Ok(Datum::Bool(a.json(1)?.contains(a.json(0)?))));
    r.operator("?", "jsonb, text -> bool", |_, a| Ok(Datum::Bool(has_key(a.json(0)?, a.text(1)?))));
    fn keys(a: &[Datum]) -> Result<Vec<bool>> {
        let j = a.json(0)?;
        Ok(a.array(1)?
            .items
            .iter()
            .filter_map(|k| if let Datum::Text(k) = k { Some(has_key(j, k.as_str())) } else { None })
            .collect())
    }
    r.operator("?|", "jsonb, text[] -> bool", |_, a| Ok(Datum::Bool(keys(a)?.contains(&true))));
    r.operator("?&", "jsonb, text[] -> bool", |_, a| Ok(Datum::Bool(!keys(a)?.contains(&false))));
    r.operator("||", "jsonb, jsonb -> jsonb", |_, a| Ok(datum(concat(a.json(0)?, a.json(1)?)?)));
    r.operator("-", "jsonb, text -> jsonb", |_, a| Ok(datum(delete_key(a.json(0)?, a.text(1)?)?)));
    r.operator("-", "jsonb, int4 -> jsonb", |_, a| Ok(datum(delete_index(a.json(0)?, a.int(1)?)?)));
    r.operator("-", "jsonb, text[] -> jsonb", |_, a| {
        let mut j = a.json(0)?.clone();
        for k in &a.array(1)?.items {
            if let Datum::Text(k) = k {
                j = delete_key(&j, k.as_str())?;
            }
        }
        Ok(datum(j))
    });
    r.operator("#-", "jsonb, text[] -> jsonb", |_, a| Ok(datum(edit(a.json(0)?, &a.array(1)?.items, None, Edit::Delete)?)));
    r.scalar("jsonb_set", "jsonb, text[], jsonb -> jsonb", |_, a| {
        Ok(datum(edit(a.json(0)?, &a.array(1)?.items, Some(a.json(2)?), Edit::Set(true))?))
    });
    r.scalar("jsonb_set", "jsonb, text[], jsonb, bool -> jsonb", |_, a| {
        Ok(datum(edit(a.json(0)?, &a.array(1)?.items, Some(a.json(2)?), Edit::Set(a.bool(3)?))?))
    });
    r.scalar("jsonb_insert", "jsonb, text[], jsonb -> jsonb", |_, a| {
        Ok(datum(edit(a.json(0)?, &a.array(1)?.items, Some(a.json(2)?), Edit::Insert(false))?))
    });
    r.scalar("jsonb_insert", "jsonb, text[], jsonb, bool -> jsonb", |_, a| {
        Ok(datum(edit(a.json(0)?, &a.array(1)?.items, Some(a.json(2)?), Edit::Insert(a.bool(3)?))?))
    });
    r.scalar("jsonb_pretty", "jsonb -> text", |_, a| {
        let mut out = Vec::new();
        a.json(0)?.write_pretty(0, &mut out);
        Ok(Datum::text(String::from_utf8_lossy(&out).into_owned()))
    });
}

fn value_text(c: &Call<'_>, a: &[Datum], i: usize) -> Datum {
    let mut out = Vec::new();
    write_value(&a[i], &c.args[i], c.ctx, &mut out);
    Datum::text(String::from_utf8_lossy(&out).into_owned())
}

/// `json_build_object`: PostgreSQL's spacing, ` : ` and `, `.
fn build_object(c: &Call<'_>, a: &[Datum]) -> Result<String> {
    if !a.len().is_multiple_of(2) {
        return Err(Error::sql("22023", "argument list must have even number of elements")
            .hint("The arguments of json_build_object() must consist of alternating keys and values."));
    }
    let mut out = vec![b'{'];
    for i in (0..a.len()).step_by(2) {
        if a[i].is_null() {
            return Err(Error::sql("22023", format!("argument {}: key must not be null", i + 1)));
        }
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        write_string(&a[i].to_text(&c.args[i], c.ctx), &mut out);
        out.extend_from_slice(b" : ");
        write_value(&a[i + 1], &c.args[i + 1], c.ctx, &mut out);
    }
    out.push(b'}');
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn build_array(c: &Call<'_>, a: &[Datum]) -> String {
    let mut out = vec![b'['];
    for (i, (v, t)) in a.iter().zip(c.args).enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        write_value(v, t, c.ctx, &mut out);
    }
    out.push(b']');
    String::from_utf8_lossy(&out).into_owned()
}

pub fn register(r: &mut Registry) {
    access(r);
    access_text(r);
    change(r);
    r.scalar("to_json", "anyelement -> json", |c, a| Ok(value_text(c, a, 0))).stable();
    r.scalar("to_jsonb", "anyelement -> jsonb", |c, a| Ok(datum(to_document(&a[0], &c.args[0], c.ctx)?))).stable();
    r.scalar("row_to_json", "record -> json", |c, a| Ok(value_text(c, a, 0))).stable();
    r.scalar("array_to_json", "anyarray -> json", |c, a| Ok(value_text(c, a, 0))).stable();
    r.scalar("json_build_object", "variadic any -> json", |c, a| Ok(Datum::text(build_object(c, a)?))).sees_null().stable();
    r.scalar("jsonb_build_object", "variadic any -> jsonb", |c, a| Ok(datum(jsonb::parse(&build_object(c, a)?)?)))
        .sees_null()
        .stable();
    r.scalar("json_build_array", "variadic any -> json", |c, a| Ok(Datum::text(build_array(c, a)))).sees_null().stable();
    r.scalar("jsonb_build_array", "variadic any -> jsonb", |c, a| Ok(datum(jsonb::parse(&build_array(c, a))?)))
        .sees_null()
        .stable();
    r.scalar("jsonb_object", "text[] -> jsonb", |_, a| {
        let items = &a.array(0)?.items;
        if !items.len().is_multiple_of(2) {
            return Err(Error::sql("2202E", "array must have even number of elements"));
        }
        let mut pairs = Vec::new();
        for p in items.chunks(2) {
            let value = if p[1].is_null() { Json::Null } else { Json::String(p.text(1)?.to_string()) };
            pairs.push((p.text(0)?.to_string(), value));
        }
        Ok(datum(Json::object(pairs)))
    });
}
