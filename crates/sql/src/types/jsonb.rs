//! JSON: reading, writing, order.
//!
//! `json` keeps its text; `jsonb` is a [`Json`] tree. Numbers are exact decimals, an object's keys
//! are unique (the last one given wins) and ordered as PostgreSQL stores them: shorter keys first,
//! then by bytes.

use super::numeric::Numeric;
use meridian_base::{Error, Result};
use std::cmp::Ordering;
use std::collections::HashSet;

/// A JSON value. Numbers are exact; an object's keys are unique and in `jsonb`'s order (length,
/// then bytes).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Json {
    Null,
    Bool(bool),
    Number(Numeric),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Deepest nesting accepted, for the sake of the stack.
const DEPTH_MAX: usize = 512;

/// Fewer comparisons of elements than these are made one by one.
const COMPARISONS_MAX: usize = 64;

/// The order of keys in an object.
pub fn key_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

impl Json {
    /// An object of any pairs: sorted, the last of equal keys kept.
    pub fn object(pairs: Vec<(String, Json)>) -> Json {
        let mut pairs: Vec<(usize, (String, Json))> = pairs.into_iter().enumerate().collect();
        pairs.sort_by(|(i, a), (j, b)| key_order(&a.0, &b.0).then(j.cmp(i)));
        pairs.dedup_by(|b, a| a.1.0 == b.1.0);
        Json::Object(pairs.into_iter().map(|(_, p)| p).collect())
    }
    /// A member of an object.
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(pairs) => pairs.binary_search_by(|(k, _)| key_order(k, key)).ok().map(|i| &pairs[i].1),
            _ => None,
        }
    }
    /// An element of an array; negative indexes count from the end.
    pub fn at(&self, index: i64) -> Option<&Json> {
        match self {
            Json::Array(items) => {
                let i = if index < 0 { index + items.len() as i64 } else { index };
                items.get(usize::try_from(i).ok()?)
            }
            _ => None,
        }
    }
    /// `jsonb_typeof`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(_) => "number",
            Json::String(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        }
    }
    /// Whether it has more parts than these.
    pub(crate) fn has_more_than(&self, parts: usize) -> bool {
        fn left(v: &Json, parts: usize) -> Option<usize> {
            let parts = parts.checked_sub(1)?;
            match v {
                Json::Array(items) => items.iter().try_fold(parts, |parts, i| left(i, parts)),
                Json::Object(pairs) => pairs.iter().try_fold(parts, |parts, (_, v)| left(v, parts)),
                _ => Some(parts),
            }
        }
        left(self, parts).is_none()
    }
    /// What its parts take beside the value itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Json::Null | Json::Bool(_) => 0,
            Json::Number(n) => n.heap_bytes(),
            Json::String(s) => s.len(),
            Json::Array(items) => items.iter().map(|i| size_of::<Json>() + i.heap_bytes()).sum(),
            Json::Object(pairs) => pairs.iter().map(|(k, v)| size_of::<(String, Json)>() + k.len() + v.heap_bytes()).sum(),
        }
    }
    /// Whether both are written the same: `1.0` and `1.00` are equal, and are not.
    pub(crate) fn is_identical(&self, other: &Json) -> bool {
        match (self, other) {
            (Json::Number(a), Json::Number(b)) => a.is_identical(b),
            (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_identical(b)),
            (Json::Object(a), Json::Object(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|((k, v), (l, w))| k == l && v.is_identical(w))
            }
            (a, b) => a == b,
        }
    }
    /// `@>`.
    pub fn contains(&self, other: &Json) -> bool {
        match (self, other) {
            (Json::Object(_), Json::Object(b)) => b.iter().all(|(k, v)| self.get(k).is_some_and(|mine| mine.contains(v))),
            (Json::Array(a), Json::Array(b)) => {
                // Scalars are looked up where there are many.
                let is_many = a.len().saturating_mul(b.len()) > COMPARISONS_MAX;
                let set: HashSet<&Json> = if is_many { a.iter().filter(|v| v.is_scalar()).collect() } else { HashSet::new() };
                b.iter().all(|v| match is_many && v.is_scalar() {
                    true => set.contains(v),
                    false => a.iter().any(|mine| mine.contains_element(v)),
                })
            }
            (Json::Array(a), scalar) if !matches!(scalar, Json::Object(_)) => a.contains(scalar),
            (a, b) => a == b,
        }
    }
    fn is_scalar(&self) -> bool {
        !matches!(self, Json::Array(_) | Json::Object(_))
    }
    fn contains_element(&self, other: &Json) -> bool {
        match (self, other) {
            (Json::Object(_), Json::Object(_)) | (Json::Array(_), Json::Array(_)) => self.contains(other),
            (a, b) => a == b,
        }
    }
    /// Appends `jsonb`'s text: one space after `:` and `,`.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Json::Null => out.extend_from_slice(b"null"),
            Json::Bool(true) => out.extend_from_slice(b"true"),
            Json::Bool(false) => out.extend_from_slice(b"false"),
            Json::Number(n) => out.extend_from_slice(n.to_string().as_bytes()),
            Json::String(s) => write_string(s, out),
            Json::Array(items) => {
                out.push(b'[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Json::Object(pairs) => {
                out.push(b'{');
                for (i, (k, v)) in pairs.iter().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    write_string(k, out);
                    out.extend_from_slice(b": ");
                    v.write(out);
                }
                out.push(b'}');
            }
        }
    }
    /// `jsonb`'s text.
    pub fn to_text(&self) -> String {
        let mut out = Vec::new();
        self.write(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
    /// `jsonb_pretty`.
    pub fn write_pretty(&self, depth: usize, out: &mut Vec<u8>) {
        let indent = |out: &mut Vec<u8>, n: usize| {
            out.push(b'\n');
            out.resize(out.len() + 4 * n, b' ');
        };
        match self {
            Json::Array(items) => {
                out.push(b'[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    indent(out, depth + 1);
                    item.write_pretty(depth + 1, out);
                }
                indent(out, depth);
                out.push(b']');
            }
            Json::Object(pairs) => {
                out.push(b'{');
                for (i, (k, v)) in pairs.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    indent(out, depth + 1);
                    write_string(k, out);
                    out.extend_from_slice(b": ");
                    v.write_pretty(depth + 1, out);
                }
                indent(out, depth);
                out.push(b'}');
            }
            scalar => scalar.write(out),
        }
    }
    fn rank(&self) -> u8 {
        match self {
            Json::Null => 0,
            Json::String(_) => 1,
            Json::Number(_) => 2,
            Json::Bool(_) => 3,
            Json::Array(_) => 4,
            Json::Object(_) => 5,
        }
    }
}

impl Json {
    /// The order of whole documents: as of their parts, but an empty array comes before all scalars
    /// (manual, 8.14.4).
    pub fn cmp_documents(&self, other: &Json) -> Ordering {
        let is_empty = |v: &Json| matches!(v, Json::Array(items) if items.is_empty());
        match (self, other) {
            (a, b) if is_empty(a) && b.is_scalar() => Ordering::Less,
            (a, b) if a.is_scalar() && is_empty(b) => Ordering::Greater,
            (a, b) => a.cmp(b),
        }
    }
}

/// PostgreSQL's order of parts of `jsonb`: Object > Array > Boolean > Number > String > Null;
/// containers by size first.
impl Ord for Json {
    fn cmp(&self, other: &Json) -> Ordering {
        match (self, other) {
            (Json::Bool(a), Json::Bool(b)) => a.cmp(b),
            (Json::Number(a), Json::Number(b)) => a.cmp(b),
            (Json::String(a), Json::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Json::Array(a), Json::Array(b)) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
            (Json::Object(a), Json::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
                let keys = a.iter().zip(b).map(|((ka, va), (kb, vb))| ka.as_bytes().cmp(kb.as_bytes()).then_with(|| va.cmp(vb)));
                keys.into_iter().find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
            }),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}
impl PartialOrd for Json {
    fn partial_cmp(&self, other: &Json) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Appends a JSON string with its quotes.
pub fn write_string(s: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for b in s.bytes() {
        match b {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            b if b < 0x20 => out.extend_from_slice(format!("\\u{b:04x}").as_bytes()),
            b => out.push(b),
        }
    }
    out.push(b'"');
}

/// Reads a JSON text as `jsonb` does.
pub fn parse(text: &str) -> Result<Json> {
    let mut p = Parser { text, at: 0, depth: 0, exact: true };
    p.document()
}

/// Checks a JSON text as `json` does: its syntax only.
pub fn validate(text: &str) -> Result<()> {
    let mut p = Parser { text, at: 0, depth: 0, exact: false };
    p.document().map(|_| ())
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Whether values must be representable (`jsonb`), not only well written (`json`).
    exact: bool,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<Json> {
        let v = self.value()?;
        self.blanks();
        if self.at < self.text.len() {
            return Err(self.expected("end of input"));
        }
        Ok(v)
    }
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }
    fn error(&self, detail: String) -> Error {
        Error::sql("22P02", "invalid input syntax for type json").detail(detail)
    }
    /// The word or character at the current place, for a message.
    fn token(&self) -> &str {
        let rest = &self.text[self.at..];
        let word = rest
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'+') || *b >= 0x80)
            .count();
        if word > 0 { &rest[..word] } else { &rest[..rest.chars().next().map_or(0, char::len_utf8)] }
    }
    fn expected(&self, what: &str) -> Error {
        if self.at >= self.text.len() {
            return self.error("The input string ended unexpectedly.".into());
        }
        let token = self.token();
        let known = matches!(token, "true" | "false" | "null")
            || token.starts_with(['{', '}', '[', ']', ':', ',', '"'])
            || is_number(token);
        if known {
            let token = if token == "\"" { self.string_token() } else { token };
            self.error(format!("Expected {what}, but found \"{token}\"."))
        } else {
            self.error(format!("Token \"{token}\" is invalid."))
        }
    }
    fn string_token(&self) -> &str {
        let rest = &self.text[self.at..];
        let end = rest[1..].find('"').map_or(rest.len(), |i| i + 2);
        &rest[..end]
    }
    fn value(&mut self) -> Result<Json> {
        self.blanks();
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Error::sql("54001", "stack depth limit exceeded"));
        }
        let v = match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        };
        self.depth -= 1;
        v
    }
    fn word(&mut self) -> Result<Json> {
        let v = match self.token() {
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            "null" => Json::Null,
            _ => return Err(self.expected("JSON value")),
        };
        self.at += self.token().len();
        Ok(v)
    }
    fn number(&mut self) -> Result<Json> {
        let token = self.token().to_string();
        if !is_number(&token) {
            return Err(self.error(format!("Token \"{token}\" is invalid.")));
        }
        self.at += token.len();
        if !self.exact {
            return Ok(Json::Null);
        }
        match Numeric::parse(&token) {
            Some(n) => n.map(Json::Number),
            None => Err(self.error(format!("Token \"{token}\" is invalid."))),
        }
    }
    fn array(&mut self) -> Result<Json> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value()?);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::Array(items));
                }
                _ => return Err(self.expected("\",\" or \"]\"")),
            }
        }
    }
    fn object(&mut self) -> Result<Json> {
        self.at += 1;
        let mut pairs = Vec::new();
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::object(pairs));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.expected(if pairs.is_empty() { "string or \"}\"" } else { "string" }));
            }
            let key = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.expected("\":\""));
            }
            self.at += 1;
            let value = self.value()?;
            pairs.push((key, value));
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Json::object(pairs));
                }
                _ => return Err(self.expected("\",\" or \"}\"")),
            }
        }
    }
    fn string(&mut self) -> Result<String> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(c) = rest.chars().next() else {
                return Err(self.error(format!("Token \"{}\" is invalid.", &self.text[start..])));
            };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => self.escape(&mut out)?,
                c if (c as u32) < 0x20 => {
                    return Err(self.error(format!("Character with value 0x{:02x} must be escaped.", c as u32)));
                }
                c => out.push(c),
            }
        }
    }
    fn escape(&mut self, out: &mut String) -> Result<()> {
        let c = self.text[self.at..].chars().next();
        let Some(c) = c else { return Err(self.error("The input string ended unexpectedly.".into())) };
        self.at += c.len_utf8();
        match c {
            '"' | '\\' | '/' => out.push(c),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => return self.unicode(out),
            c => return Err(self.error(format!("Escape sequence \"\\{c}\" is invalid."))),
        }
        Ok(())
    }
    fn hex(&mut self) -> Result<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let Some(digits) = digits else {
            return Err(self.error("\"\\u\" must be followed by four hexadecimal digits.".into()));
        };
        let v = digits.iter().fold(0, |v, d| v * 16 + (*d as char).to_digit(16).unwrap_or(0));
        self.at += 4;
        Ok(v)
    }
    fn unicode(&mut self, out: &mut String) -> Result<()> {
        let first = self.hex()?;
        let code = match first {
            0 if self.exact => {
                return Err(
                    Error::sql("22P05", "unsupported Unicode escape sequence").detail("\\u0000 cannot be converted to text.")
                );
            }
            0xD800..=0xDBFF => {
                if !self.text[self.at..].starts_with("\\u") {
                    return Err(self.error("Unicode low surrogate must follow a high surrogate.".into()));
                }
                self.at += 2;
                let low = self.hex()?;
                if !(0xDC00..=0xDFFF).contains(&low) {
                    return Err(self.error("Unicode low surrogate must follow a high surrogate.".into()));
                }
                0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00)
            }
            c => c,
        };
        match char::from_u32(code) {
            Some(c) => out.push(c),
            None => return Err(self.error("Unicode low surrogate must follow a high surrogate.".into())),
        }
        Ok(())
    }
}

/// JSON's grammar of numbers.
fn is_number(t: &str) -> bool {
    let b = t.strip_prefix('-').unwrap_or(t).as_bytes();
    let digits = |from: usize| b[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    let whole = digits(0);
    if whole == 0 || (whole > 1 && b[0] == b'0') {
        return false;
    }
    let mut at = whole;
    if b.get(at) == Some(&b'.') {
        let n = digits(at + 1);
        if n == 0 {
            return false;
        }
        at += 1 + n;
    }
    if matches!(b.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(b.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        let n = digits(at);
        if n == 0 {
            return false;
        }
        at += n;
    }
    at == b.len()
}
