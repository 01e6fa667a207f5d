//! The parts of a `json` value, which is text: blanks, the order of keys, keys that come twice, and
//! the spelling of numbers stay as they are written (PostgreSQL manual, 8.14).
//!
//! The text was checked when it became a `json`, so these functions only look for where its parts
//! end.

use super::Datum;
use super::jsonb::{self, Json, write_string};
use meridian_base::{Error, Result};

/// What a text is, one level deep.
pub(crate) enum Parts<'t> {
    /// Keys and values, in order.
    Object(Vec<(String, &'t str)>),
    Array(Vec<&'t str>),
    Scalar,
}

/// Takes a text apart.
pub(crate) fn parts(text: &str) -> Result<Parts<'_>> {
    let mut at = Reader { text, next: 0 };
    match at.peek() {
        Some(b'{') => {
            let mut members = Vec::new();
            while at.separator(b'}') {
                let key = string(at.value())?;
                at.separator(b'}');
                members.push((key, at.value()));
            }
            Ok(Parts::Object(members))
        }
        Some(b'[') => {
            let mut items = Vec::new();
            while at.separator(b']') {
                items.push(at.value());
            }
            Ok(Parts::Array(items))
        }
        _ => Ok(Parts::Scalar),
    }
}

/// The value of a key; of one that comes twice, the last.
pub(crate) fn member<'t>(text: &'t str, key: &str) -> Result<Option<&'t str>> {
    match parts(text)? {
        Parts::Object(members) => Ok(members.into_iter().rfind(|(k, _)| k == key).map(|(_, v)| v)),
        _ => Ok(None),
    }
}

/// An element of an array; a negative index counts from the end.
pub(crate) fn element(text: &str, index: i64) -> Result<Option<&str>> {
    let Parts::Array(items) = parts(text)? else { return Ok(None) };
    let at = if index < 0 { index + items.len() as i64 } else { index };
    Ok(usize::try_from(at).ok().and_then(|at| items.get(at).copied()))
}

/// What is at a path of keys and indexes.
pub(crate) fn at_path<'t>(text: &'t str, path: &[Datum]) -> Result<Option<&'t str>> {
    let mut at = text;
    for step in path {
        let Datum::Text(step) = step else { return Ok(None) };
        let step = step.as_str();
        let is_array = at.trim_start().starts_with('[');
        let found = match step.trim().parse() {
            Ok(index) if is_array => element(at, index)?,
            _ => member(at, step)?,
        };
        let Some(found) = found else { return Ok(None) };
        at = found;
    }
    Ok(Some(at))
}

/// A part as text: what a string says, `NULL` for null, anything else as it is written.
pub(crate) fn as_text(part: Option<&str>) -> Result<Datum> {
    match part.map(str::trim) {
        None | Some("null") => Ok(Datum::Null),
        Some(part) if part.starts_with('"') => Ok(Datum::text(string(part)?)),
        Some(part) => Ok(Datum::text(part)),
    }
}

/// The same document without the members of objects that are null, and without blanks.
pub(crate) fn without_nulls(text: &str) -> Result<String> {
    let mut out = Vec::with_capacity(text.len());
    write_without_nulls(text, &mut out)?;
    String::from_utf8(out).map_err(|_| Error::internal("a json text is not UTF-8"))
}

fn write_without_nulls(text: &str, out: &mut Vec<u8>) -> Result<()> {
    match parts(text)? {
        Parts::Scalar => out.extend_from_slice(text.trim().as_bytes()),
        Parts::Array(items) => {
            out.push(b'[');
            for (i, item) in items.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_without_nulls(item, out)?;
            }
            out.push(b']');
        }
        Parts::Object(members) => {
            out.push(b'{');
            for (i, (key, value)) in members.into_iter().filter(|(_, value)| *value != "null").enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_string(&key, out);
                out.push(b':');
                write_without_nulls(value, out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

/// What a string in quotation marks says.
fn string(quoted: &str) -> Result<String> {
    match jsonb::parse(quoted)? {
        Json::String(s) => Ok(s.to_string()),
        _ => Err(Error::internal("a json text with a key that is no string")),
    }
}

struct Reader<'t> {
    text: &'t str,
    next: usize,
}

impl<'t> Reader<'t> {
    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.next).is_some_and(u8::is_ascii_whitespace) {
            self.next += 1;
        }
        bytes.get(self.next).copied()
    }
    /// Goes behind the opening bracket, comma or colon that comes next. Whether a value follows it,
    /// and not the end.
    fn separator(&mut self, end: u8) -> bool {
        match self.peek() {
            None => false,
            Some(b) if b == end => false,
            Some(_) => {
                self.next += 1;
                self.peek().is_some_and(|b| b != end)
            }
        }
    }
    /// The value that begins at the next byte that is no blank.
    fn value(&mut self) -> &'t str {
        self.peek();
        let bytes = self.text.as_bytes();
        let start = self.next;
        let (mut depth, mut in_string) = (0usize, false);
        while let Some(b) = bytes.get(self.next) {
            match b {
                b'\\' if in_string => self.next += 1,
                b'"' => {
                    in_string = !in_string;
                    if !in_string && depth == 0 {
                        self.next += 1;
                        break;
                    }
                }
                _ if in_string => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 0 => break,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        self.next += 1;
                        break;
                    }
                }
                b',' | b':' if depth == 0 => break,
                _ => {}
            }
            self.next += 1;
        }
        let end = self.next.min(bytes.len());
        self.text.get(start..end).unwrap_or_default().trim_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is(text: &str) -> String {
        match parts(text).unwrap() {
            Parts::Object(members) => format!("{members:?}"),
            Parts::Array(items) => format!("{items:?}"),
            Parts::Scalar => "scalar".to_string(),
        }
    }

    #[test]
    fn parts_are_cut_where_they_end() {
        assert_eq!(
            is(r#" { "b" : 1.0 , "a":{"x":[1, 2]} ,"b": "}\",{" } "#),
            r#"[("b", "1.0"), ("a", "{\"x\":[1, 2]}"), ("b", "\"}\\\",{\"")]"#
        );
        assert_eq!(is("[ 1e2 ,[ ], {} , null,\"a,b\" ]"), r#"["1e2", "[ ]", "{}", "null", "\"a,b\""]"#);
        assert_eq!((is("{}"), is(" [ ] "), is("1"), is("\"{\"")), ("[]".into(), "[]".into(), "scalar".into(), "scalar".into()));
        assert_eq!(member(r#"{"a":1,"a": 2 }"#, "a").unwrap(), Some("2"));
        assert_eq!((element("[1,2,3]", -1).unwrap(), element("[1]", 1).unwrap()), (Some("3"), None));
        assert_eq!(without_nulls(r#"{ "a": null, "b" : [ null, {"c":null,"d": 1.0} ] }"#).unwrap(), r#"{"b":[null,{"d":1.0}]}"#);
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String, index: i64) {
            let _ = parts(&text);
            let _ = member(&text, "a");
            let _ = element(&text, index);
            let _ = without_nulls(&text);
        }
    }
}
