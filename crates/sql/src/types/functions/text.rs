//! Functions on text and bytea.

use super::args::Args;
use super::registry::Registry;
use super::{Call, md5};
use crate::types::compare::trim_blanks;
use crate::types::io::{write_bytea, write_hex};
use crate::types::{ArrayValue, Datum, Type};
use bytes::Bytes;
use meridian_base::{Error, Result};

/// Results longer than this are refused (PostgreSQL's 1 GB, cut to what a session may hold).
const LENGTH_MAX: usize = 256 << 20;

/// Strings are split into so many parts at most: each takes some fifty bytes.
const PARTS_MAX: usize = 4 << 20;

fn too_long() -> Error {
    Error::sql("54000", "requested length too large")
}

fn text(s: impl Into<crate::types::Text>) -> Result<Datum> {
    Ok(Datum::Text(s.into()))
}

fn count(n: usize) -> Result<Datum> {
    Ok(Datum::Int(n as i64))
}

/// Byte range of characters `from..from+len` (from 1 on; SQL lets both lie outside).
fn substring(s: &str, from: i64, len: Option<i64>) -> Result<&str> {
    let end = match len {
        Some(n) if n < 0 => return Err(Error::sql("22011", "negative substring length not allowed")),
        Some(n) => from.saturating_add(n),
        None => i64::MAX,
    };
    let skip = (from - 1).max(0) as usize;
    let take = (end.saturating_sub(from.max(1))).max(0) as usize;
    let mut places = s.char_indices().map(|(i, _)| i).chain(std::iter::once(s.len()));
    let Some(start) = places.nth(skip) else { return Ok("") };
    let stop = if take == 0 { Some(start) } else { places.nth(take - 1) };
    Ok(&s[start..stop.unwrap_or(s.len())])
}

fn byte_substring(b: &[u8], from: i64, len: Option<i64>) -> Result<&[u8]> {
    let end = match len {
        Some(n) if n < 0 => return Err(Error::sql("22011", "negative substring length not allowed")),
        Some(n) => from.saturating_add(n),
        None => i64::MAX,
    };
    let start = ((from - 1).max(0) as usize).min(b.len());
    let stop = (end.max(1) as usize - 1).min(b.len()).max(start);
    Ok(&b[start..stop])
}

fn left(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (s, n) = (a.text(0)?, a.int(1)?);
    let keep = if n >= 0 { n } else { (s.chars().count() as i64 + n).max(0) };
    text(substring(s, 1, Some(keep))?)
}
fn right(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (s, n) = (a.text(0)?, a.int(1)?);
    let length = s.chars().count() as i64;
    let skip = if n >= 0 { (length - n).max(0) } else { n.saturating_neg() };
    text(substring(s, skip + 1, None)?)
}

fn pad(a: &[Datum], on_left: bool) -> Result<Datum> {
    let (s, n) = (a.text(0)?, a.int(1)?.max(0) as usize);
    if n > LENGTH_MAX {
        return Err(too_long());
    }
    let fill: Vec<char> = if a.len() > 2 { a.text(2)?.chars().collect() } else { vec![' '] };
    let length = s.chars().count();
    if n <= length {
        return text(substring(s, 1, Some(n as i64))?);
    }
    if fill.is_empty() {
        return text(s);
    }
    let padding: String = fill.iter().cycle().take(n - length).collect();
    text(if on_left { padding + s } else { s.to_string() + &padding })
}

fn trim(a: &[Datum], at_start: bool, at_end: bool) -> Result<Datum> {
    let mut s = a.text(0)?;
    let set: Vec<char> = if a.len() > 1 { a.text(1)?.chars().collect() } else { vec![' '] };
    if at_start {
        s = s.trim_start_matches(&set[..]);
    }
    if at_end {
        s = s.trim_end_matches(&set[..]);
    }
    text(s)
}

fn position(haystack: &str, needle: &str) -> Result<Datum> {
    match haystack.find(needle) {
        Some(at) => count(haystack[..at].chars().count() + 1),
        None => Ok(Datum::Int(0)),
    }
}

fn split_part(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (s, delimiter, n) = (a.text(0)?, a.text(1)?, a.int(2)?);
    if n == 0 {
        return Err(Error::sql("22023", "field position must not be zero"));
    }
    if delimiter.is_empty() {
        return text(if n == 1 || n == -1 { s } else { "" });
    }
    let i = n.unsigned_abs() as usize - 1;
    let part = if n > 0 { s.split(delimiter).nth(i) } else { s.rsplit(delimiter).nth(i) };
    text(part.unwrap_or(""))
}

fn initcap(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    let mut inside = false;
    for c in s.chars() {
        if inside {
            out.push(lower(c));
        } else {
            out.push(upper(c));
        }
        inside = c.is_alphanumeric();
    }
    out
}

/// The text form of an argument of any type, as `concat` and `format('%s')` show it.
fn any_text(c: &Call<'_>, a: &[Datum], i: usize) -> String {
    a[i].to_text(&c.args[i], c.ctx)
}

fn concat(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let mut out = Vec::new();
    for (value, ty) in a.iter().zip(c.args) {
        value.write_text(ty, c.ctx, &mut out);
    }
    text(String::from_utf8_lossy(&out).into_owned())
}

fn concat_ws(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let parts: Vec<String> = (1..a.len()).filter(|i| !a[*i].is_null()).map(|i| any_text(c, a, i)).collect();
    text(parts.join(a.text(0)?))
}

/// `format`: `%s`, `%I`, `%L`, `%%`, positions and widths.
fn format(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let mut out = String::new();
    let mut next = 1;
    let mut chars = a.text(0)?.chars().peekable();
    let unterminated = || Error::sql("22023", "unterminated format() type specifier").hint("For a single \"%\" use \"%%\".");
    let few = || Error::sql("22023", "too few arguments for format()");
    while let Some(ch) = chars.next() {
        if ch != '%' {
            out.push(ch);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut number = None;
        let read_number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            let mut n: Option<usize> = None;
            while let Some(d) = chars.peek().and_then(|c| c.to_digit(10)) {
                n = Some(n.unwrap_or(0).saturating_mul(10).saturating_add(d as usize).min(LENGTH_MAX));
                chars.next();
            }
            n
        };
        let mut width = read_number(&mut chars);
        if width.is_some() && chars.next_if_eq(&'$').is_some() {
            number = width.take();
        }
        let mut minus = false;
        while chars.next_if_eq(&'-').is_some() {
            minus = true;
        }
        if width.is_none() {
            width = read_number(&mut chars);
        }
        if chars.next_if_eq(&'*').is_some() {
            let w = a.get(next).ok_or_else(few)?;
            next += 1;
            let w: i64 = if w.is_null() { 0 } else { w.to_text(&c.args[next - 1], c.ctx).parse().unwrap_or(0) };
            minus |= w < 0;
            width = Some((w.unsigned_abs() as usize).min(LENGTH_MAX));
        }
        let kind = chars.next().ok_or_else(unterminated)?;
        let at = match number {
            Some(0) => return Err(Error::sql("22023", "format specifies argument 0, but arguments are numbered from 1")),
            Some(n) => n,
            None => next,
        };
        next = at + 1;
        let value = a.get(at).ok_or_else(few)?;
        let shown = match kind {
            's' => any_text(c, a, at),
            'I' if value.is_null() => {
                return Err(Error::sql("22004", "null values cannot be formatted as an SQL identifier"));
            }
            'I' => quote_ident(&any_text(c, a, at)),
            'L' if value.is_null() => "NULL".to_string(),
            'L' => quote_literal(&any_text(c, a, at)),
            other => {
                return Err(Error::sql("22023", format!("unrecognized format() type specifier \"{other}\""))
                    .hint("For a single \"%\" use \"%%\"."));
            }
        };
        let fill = width.unwrap_or(0).saturating_sub(shown.chars().count());
        if !minus {
            out.extend(std::iter::repeat_n(' ', fill));
        }
        out.push_str(&shown);
        if minus {
            out.extend(std::iter::repeat_n(' ', fill));
        }
    }
    text(out)
}

/// Words that must be quoted to be names: PostgreSQL's reserved and partly reserved ones (manual,
/// appendix C). Sorted.
pub(crate) const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "between",
    "bigint",
    "binary",
    "bit",
    "boolean",
    "both",
    "case",
    "cast",
    "char",
    "character",
    "check",
    "coalesce",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "dec",
    "decimal",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "extract",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "greatest",
    "group",
    "grouping",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "inout",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "least",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "national",
    "natural",
    "nchar",
    "none",
    "normalize",
    "not",
    "notnull",
    "null",
    "nullif",
    "numeric",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "out",
    "outer",
    "overlaps",
    "overlay",
    "placing",
    "position",
    "precision",
    "primary",
    "real",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "session_user",
    "setof",
    "similar",
    "smallint",
    "some",
    "substring",
    "symmetric",
    "table",
    "tablesample",
    "then",
    "time",
    "timestamp",
    "to",
    "trailing",
    "treat",
    "trim",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "values",
    "varchar",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

/// Whether an identifier must be quoted to mean itself.
pub fn needs_quotes(name: &str) -> bool {
    let plain = |(i, b): (usize, u8)| b.is_ascii_lowercase() || b == b'_' || (i > 0 && b.is_ascii_digit());
    name.is_empty() || !name.bytes().enumerate().all(plain) || RESERVED.binary_search(&name).is_ok()
}

/// `quote_ident`: an identifier as SQL text, quoted only if needed.
pub fn quote_ident(name: &str) -> String {
    if needs_quotes(name) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_string() }
}

/// `quote_literal`.
pub fn quote_literal(s: &str) -> String {
    let quoted = s.replace('\'', "''");
    if s.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64_encode(data: &[u8]) -> String {
    let mut out = String::with_capacity(data.len() * 4 / 3 + 8);
    let mut line = 0;
    for chunk in data.chunks(3) {
        // Lines of 76 characters (RFC 2045).
        if line == 76 {
            out.push('\n');
            line = 0;
        }
        let n = u32::from(chunk[0]) << 16 | u32::from(*chunk.get(1).unwrap_or(&0)) << 8 | u32::from(*chunk.get(2).unwrap_or(&0));
        for i in 0..4 {
            let c = if i <= chunk.len() { BASE64[(n >> (18 - 6 * i) & 63) as usize] } else { b'=' };
            out.push(char::from(c));
        }
        line += 4;
    }
    out
}

fn base64_decode(s: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(s.len() * 3 / 4);
    let (mut bits, mut n, mut ended) = (0u32, 0, 0);
    for c in s.bytes().filter(|c| !c.is_ascii_whitespace()) {
        if c == b'=' {
            ended += 1;
            continue;
        }
        let v = BASE64.iter().position(|b| *b == c).filter(|_| ended == 0);
        let v = v.ok_or_else(|| {
            Error::sql("22023", format!("invalid symbol \"{}\" found while decoding base64 sequence", char::from(c)))
        })?;
        bits = bits << 6 | v as u32;
        n += 1;
        if n == 4 {
            out.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, n) = (0, 0);
        }
    }
    match (n, ended) {
        (0, 0) => {}
        (2, 2) => out.push((bits >> 4) as u8),
        (3, 1) => out.extend_from_slice(&[(bits >> 10) as u8, (bits >> 2) as u8]),
        _ => {
            return Err(Error::sql("22023", "invalid base64 end sequence")
                .hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
        }
    }
    Ok(out)
}

fn encode(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let data = a.bytes(0)?;
    let mut out = Vec::new();
    match a.text(1)?.to_ascii_lowercase().as_str() {
        "hex" => write_hex(data, &mut out),
        "escape" => {
            for b in data {
                match b {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    0 | 0x80..=0xFF => out.extend_from_slice(format!("\\{b:03o}").as_bytes()),
                    b => out.push(*b),
                }
            }
        }
        "base64" => return text(base64_encode(data)),
        other => return Err(Error::sql("22023", format!("unrecognized encoding: \"{other}\""))),
    }
    text(String::from_utf8_lossy(&out).into_owned())
}

fn decode(c: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let s = a.text(0)?;
    match a.text(1)?.to_ascii_lowercase().as_str() {
        "hex" => Datum::from_text(&format!("\\x{s}"), &Type::Bytea, c.ctx),
        // `\x` would be read as hexadecimal input.
        "escape" if !s.starts_with("\\x") => Datum::from_text(s, &Type::Bytea, c.ctx),
        "escape" => Err(Error::sql("22P02", "invalid input syntax for type bytea")),
        "base64" => Ok(Datum::Bytea(Bytes::from(base64_decode(s)?))),
        other => Err(Error::sql("22023", format!("unrecognized encoding: \"{other}\""))),
    }
}

fn repeat(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (s, n) = (a.text(0)?, a.int(1)?.max(0) as usize);
    if s.len().saturating_mul(n) > LENGTH_MAX {
        return Err(too_long());
    }
    text(s.repeat(n))
}

fn translate(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (from, to): (Vec<char>, Vec<char>) = (a.text(1)?.chars().collect(), a.text(2)?.chars().collect());
    let swap = |c: char| match from.iter().position(|f| *f == c) {
        Some(i) => to.get(i).copied(),
        None => Some(c),
    };
    text(a.text(0)?.chars().filter_map(swap).collect::<String>())
}

fn overlay(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (s, by, from) = (a.text(0)?, a.text(1)?, a.int(2)?);
    if from <= 0 {
        return Err(Error::sql("22011", "negative substring length not allowed"));
    }
    let len = if a.len() > 3 { a.int(3)? } else { by.chars().count() as i64 };
    text(format!("{}{by}{}", substring(s, 1, Some(from - 1))?, substring(s, from.saturating_add(len), None)?))
}

/// One character for one, as in PostgreSQL: `ß` stays as it is.
fn one(mut mapped: impl ExactSizeIterator<Item = char>, c: char) -> char {
    if mapped.len() == 1 { mapped.next().unwrap_or(c) } else { c }
}

fn lower(c: char) -> char {
    if c == 'İ' { 'i' } else { one(c.to_lowercase(), c) }
}

fn upper(c: char) -> char {
    one(c.to_uppercase(), c)
}

fn chr(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    match a.int(0)? {
        0 => Err(Error::sql("54000", "null character not permitted")),
        n if n < 0 => Err(Error::sql("22023", "character number must be positive")),
        n => match u32::try_from(n).ok().and_then(char::from_u32) {
            Some(c) => text(c.to_string()),
            None => Err(Error::sql("54000", format!("requested character too large for encoding: {n}"))),
        },
    }
}

fn string_to_array(s: &Datum, a: &[Datum]) -> Result<Option<Vec<Datum>>> {
    let Datum::Text(s) = s else { return Ok(None) };
    let s = s.as_str();
    let most = match &a[1] {
        Datum::Null => s.len(),
        _ if a.text(1)?.is_empty() => 1,
        _ => s.matches(a.text(1)?).count() + 1,
    };
    if most > PARTS_MAX {
        return Err(Error::sql("54000", format!("array size exceeds the maximum allowed ({PARTS_MAX})")));
    }
    let parts: Vec<String> = match &a[1] {
        _ if s.is_empty() => Vec::new(),
        Datum::Null => s.chars().map(String::from).collect(),
        _ if a.text(1)?.is_empty() => vec![s.to_string()],
        _ => s.split(a.text(1)?).map(String::from).collect(),
    };
    let null = match a.get(2) {
        None | Some(Datum::Null) => None,
        Some(_) => Some(a.text(2)?),
    };
    Ok(Some(parts.into_iter().map(|p| if Some(p.as_str()) == null { Datum::Null } else { Datum::text(p) }).collect()))
}

fn to_hex(v: u64, narrow: bool) -> String {
    if narrow { format!("{:x}", v as u32) } else { format!("{v:x}") }
}

fn strings(r: &mut Registry) {
    r.operator("||", "text, text -> text", |_, a| text([a.text(0)?, a.text(1)?].concat()));
    r.operator("||", "text, anynonarray -> text", |c, a| text(format!("{}{}", a.text(0)?, operand(c, a, 1)))).stable();
    r.operator("||", "anynonarray, text -> text", |c, a| text(format!("{}{}", operand(c, a, 0), a.text(1)?))).stable();
    for name in ["length", "char_length", "character_length"] {
        r.scalar(name, "text -> int4", |_, a| count(a.text(0)?.chars().count()));
        r.scalar(name, "bpchar -> int4", |_, a| count(a.text(0)?.trim_end_matches(' ').chars().count()));
    }
    r.scalar("length", "bytea -> int4", |_, a| count(a.bytes(0)?.len()));
    r.scalar("octet_length", "text -> int4", |_, a| count(a.text(0)?.len()));
    r.scalar("octet_length", "bpchar -> int4", |_, a| count(a.text(0)?.len()));
    r.scalar("octet_length", "bytea -> int4", |_, a| count(a.bytes(0)?.len()));
    r.scalar("bit_length", "text -> int4", |_, a| count(a.text(0)?.len() * 8));
    r.scalar("bit_length", "bytea -> int4", |_, a| count(a.bytes(0)?.len() * 8));
    r.scalar("lower", "text -> text", |_, a| text(a.text(0)?.chars().map(lower).collect::<String>()));
    r.scalar("upper", "text -> text", |_, a| text(a.text(0)?.chars().map(upper).collect::<String>()));
    r.scalar("initcap", "text -> text", |_, a| text(initcap(a.text(0)?)));
    r.scalar("reverse", "text -> text", |_, a| text(a.text(0)?.chars().rev().collect::<String>()));
    for name in ["substring", "substr"] {
        r.scalar(name, "text, int4 -> text", |_, a| text(substring(a.text(0)?, a.int(1)?, None)?));
        r.scalar(name, "text, int4, int4 -> text", |_, a| text(substring(a.text(0)?, a.int(1)?, Some(a.int(2)?))?));
        r.scalar(name, "bytea, int4 -> bytea", |_, a| {
            Ok(Datum::Bytea(Bytes::copy_from_slice(byte_substring(a.bytes(0)?, a.int(1)?, None)?)))
        });
        r.scalar(name, "bytea, int4, int4 -> bytea", |_, a| {
            Ok(Datum::Bytea(Bytes::copy_from_slice(byte_substring(a.bytes(0)?, a.int(1)?, Some(a.int(2)?))?)))
        });
    }
    r.scalar("left", "text, int4 -> text", left);
    r.scalar("right", "text, int4 -> text", right);
    for s in ["text, int4 -> text", "text, int4, text -> text"] {
        r.scalar("lpad", s, |_, a| pad(a, true)).dear_above(100_000);
        r.scalar("rpad", s, |_, a| pad(a, false)).dear_above(100_000);
    }
    for s in ["text -> text", "text, text -> text"] {
        r.scalar("btrim", s, |_, a| trim(a, true, true));
        r.scalar("ltrim", s, |_, a| trim(a, true, false));
        r.scalar("rtrim", s, |_, a| trim(a, false, true));
    }
    r.scalar("position", "text, text -> int4", |_, a| position(a.text(0)?, a.text(1)?));
    r.scalar("strpos", "text, text -> int4", |_, a| position(a.text(0)?, a.text(1)?));
    r.scalar("replace", "text, text, text -> text", |_, a| {
        let (s, from, to) = (a.text(0)?, a.text(1)?, a.text(2)?);
        let grows = to.len().saturating_sub(from.len());
        match from.is_empty() {
            true => Ok(a[0].clone()),
            false if grows > 0 && s.matches(from).count().saturating_mul(grows) > LENGTH_MAX - s.len().min(LENGTH_MAX) => {
                Err(too_long())
            }
            false => text(s.replace(from, to)),
        }
    });
    r.scalar("split_part", "text, text, int4 -> text", split_part);
    r.scalar("starts_with", "text, text -> bool", |_, a| Ok(Datum::Bool(a.text(0)?.starts_with(a.text(1)?))));
    r.scalar("repeat", "text, int4 -> text", repeat).dear_above(10_000);
    r.scalar("translate", "text, text, text -> text", translate);
    r.scalar("overlay", "text, text, int4 -> text", overlay);
    r.scalar("overlay", "text, text, int4, int4 -> text", overlay);
    r.scalar("ascii", "text -> int4", |_, a| Ok(Datum::Int(a.text(0)?.chars().next().map_or(0, |c| i64::from(c as u32)))));
    r.scalar("chr", "int4 -> text", chr);
    r.scalar("concat", "variadic any -> text", concat).sees_null().stable();
    r.scalar("concat_ws", "text, variadic any -> text", concat_ws).sees_null().stable();
    r.scalar("format", "text, variadic any -> text", format).sees_null().stable();
}

fn operand(c: &Call<'_>, a: &[Datum], i: usize) -> String {
    match &a[i] {
        // `||` goes through the cast to text, which writes booleans out.
        Datum::Bool(v) => v.to_string(),
        Datum::Text(t) if matches!(c.args[i], Type::Char(_)) => String::from_utf8_lossy(trim_blanks(t.as_bytes())).into_owned(),
        _ => any_text(c, a, i),
    }
}

pub fn register(r: &mut Registry) {
    strings(r);
    r.scalar("quote_ident", "text -> text", |_, a| text(quote_ident(a.text(0)?)));
    r.scalar("quote_literal", "text -> text", |_, a| text(quote_literal(a.text(0)?)));
    r.scalar("quote_literal", "anyelement -> text", |c, a| text(quote_literal(&any_text(c, a, 0)))).stable();
    r.scalar("quote_nullable", "text -> text", |_, a| {
        text(if a[0].is_null() { "NULL".to_string() } else { quote_literal(a.text(0)?) })
    })
    .sees_null();
    r.scalar("quote_nullable", "anyelement -> text", |c, a| {
        text(if a[0].is_null() { "NULL".to_string() } else { quote_literal(&any_text(c, a, 0)) })
    })
    .sees_null()
    .stable();
    r.scalar("md5", "text -> text", |_, a| digest_text(a.text(0)?.as_bytes()));
    r.scalar("md5", "bytea -> text", |_, a| digest_text(a.bytes(0)?));
    r.scalar("encode", "bytea, text -> text", encode);
    r.scalar("decode", "text, text -> bytea", decode);
    r.scalar("to_hex", "int4 -> text", |_, a| text(to_hex(a.int(0)? as u64, true)));
    r.scalar("to_hex", "int8 -> text", |_, a| text(to_hex(a.int(0)? as u64, false)));
    for s in ["text, text", "text, text, text"] {
        r.scalar("string_to_array", &format!("{s} -> text[]"), |_, a| {
            Ok(string_to_array(&a[0], a)?.map_or(Datum::Null, |items| ArrayValue::datum(Type::Text, items)))
        })
        .sees_null();
        r.set("string_to_table", &format!("{s} -> text"), |_, a| {
            Ok(Box::new(string_to_array(&a[0], a)?.unwrap_or_default().into_iter().map(|d| Ok(vec![d]))))
        })
        .sees_null();
    }
    r.operator("||", "bytea, bytea -> bytea", |_, a| Ok(Datum::Bytea(Bytes::from([a.bytes(0)?, a.bytes(1)?].concat()))));
    r.scalar("get_byte", "bytea, int4 -> int4", |_, a| {
        let (b, i) = (a.bytes(0)?, a.int(1)?);
        match usize::try_from(i).ok().and_then(|i| b.get(i)) {
            Some(b) => Ok(Datum::Int(i64::from(*b))),
            None => Err(Error::sql("2202E", format!("index {i} out of valid range, 0..{}", b.len() as i64 - 1))),
        }
    });
    r.scalar("convert_from", "bytea, name -> text", |_, a| match std::str::from_utf8(a.bytes(0)?) {
        Ok(s) => text(s),
        Err(e) => Err(Error::sql(
            "22021",
            format!("invalid byte sequence for encoding \"UTF8\": 0x{:02x}", a.bytes(0)?[e.valid_up_to()]),
        )),
    });
    r.scalar("convert_to", "text, name -> bytea", |_, a| Ok(Datum::Bytea(Bytes::copy_from_slice(a.text(0)?.as_bytes()))));
    r.scalar("textsend", "text -> bytea", |_, a| Ok(Datum::Bytea(Bytes::copy_from_slice(a.text(0)?.as_bytes()))));
    r.scalar("byteaout", "bytea -> text", |c, a| {
        let mut out = Vec::new();
        write_bytea(a.bytes(0)?, c.ctx.style.bytea_escape, &mut out);
        text(String::from_utf8_lossy(&out).into_owned())
    })
    .stable();
}

fn digest_text(data: &[u8]) -> Result<Datum> {
    let mut out = Vec::new();
    write_hex(&md5::digest(data), &mut out);
    text(String::from_utf8_lossy(&out).into_owned())
}
