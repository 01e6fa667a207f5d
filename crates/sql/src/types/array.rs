//! Arrays: shape and text form.
//!
//! An array is a list of elements in row-major order and, per dimension, a length and a lower
//! bound. The empty array has no dimensions.

use super::{ArrayValue, Datum, EvalContext, Type};
use meridian_base::{Error, Result};
use std::sync::Arc;

/// PostgreSQL's `MAXDIM`.
pub const DIMENSIONS_MAX: usize = 6;

impl ArrayValue {
    /// A one-dimensional array with lower bound 1; empty without items.
    pub fn new(element: Type, items: Vec<Datum>) -> ArrayValue {
        let dims = if items.is_empty() { Vec::new() } else { vec![(items.len(), 1)] };
        ArrayValue { element, dims, items }
    }
    /// The same as a datum.
    pub fn datum(element: Type, items: Vec<Datum>) -> Datum {
        Datum::Array(Arc::new(ArrayValue::new(element, items)))
    }
    /// `a[i]` for one-dimensional arrays, `a[i][j]` for others: `NULL` outside the bounds or with
    /// the wrong number of subscripts.
    pub fn subscript(&self, indexes: &[i64]) -> Datum {
        if indexes.len() != self.dims.len() || indexes.is_empty() {
            return Datum::Null;
        }
        let mut at = 0usize;
        for (i, (len, lower)) in indexes.iter().zip(&self.dims) {
            match usize::try_from(i - i64::from(*lower)) {
                Ok(o) if o < *len => at = at * len + o,
                _ => return Datum::Null,
            }
        }
        self.items.get(at).cloned().unwrap_or(Datum::Null)
    }
    /// `a[from:to]` of a one-dimensional array; the result's lower bound is 1.
    pub fn slice(&self, from: Option<i64>, to: Option<i64>) -> ArrayValue {
        let Some((len, lower)) = self.dims.first().copied() else { return ArrayValue::new(self.element.clone(), Vec::new()) };
        let lower = i64::from(lower);
        let from = (from.unwrap_or(lower).max(lower) - lower) as usize;
        let to = to.unwrap_or(i64::MAX).min(lower + len as i64 - 1) - lower + 1;
        let to = to.max(0) as usize;
        let inner: usize = self.dims[1..].iter().map(|d| d.0).product();
        if from >= to {
            return ArrayValue::new(self.element.clone(), Vec::new());
        }
        let mut dims: Vec<(usize, i32)> = self.dims.iter().map(|d| (d.0, 1)).collect();
        dims[0] = (to - from, 1);
        ArrayValue { element: self.element.clone(), dims, items: self.items[from * inner..to * inner].to_vec() }
    }
    /// An array of arrays of one shape (`ARRAY[a, b]` over arrays). 2202E if the shapes differ.
    pub fn nest(element: Type, rows: &[Datum]) -> Result<Datum> {
        let bad = || Error::sql("2202E", "multidimensional arrays must have array expressions with matching dimensions");
        let mut items = Vec::new();
        let mut shape: Option<Vec<(usize, i32)>> = None;
        for row in rows {
            let Datum::Array(a) = row else { return Err(bad()) };
            if *shape.get_or_insert_with(|| a.dims.clone()) != a.dims {
                return Err(bad());
            }
            items.extend(a.items.iter().cloned());
        }
        let inner = shape.unwrap_or_default();
        if items.is_empty() {
            return Ok(ArrayValue::datum(element, Vec::new()));
        }
        let mut dims = vec![(rows.len(), 1)];
        dims.extend(inner);
        if dims.len() > DIMENSIONS_MAX {
            return Err(Error::sql("54000", "number of array dimensions exceeds the maximum allowed (6)"));
        }
        Ok(Datum::Array(Arc::new(ArrayValue { element, dims, items })))
    }
    /// Appends `{1,NULL,"a b"}`.
    pub fn write(&self, ctx: &EvalContext, out: &mut Vec<u8>) {
        if self.dims.is_empty() || self.items.is_empty() {
            out.extend_from_slice(b"{}");
            return;
        }
        if self.dims.iter().any(|d| d.1 != 1) {
            for (len, lower) in &self.dims {
                out.extend_from_slice(format!("[{lower}:{}]", i64::from(*lower) + *len as i64 - 1).as_bytes());
            }
            out.push(b'=');
        }
        let mut at = 0;
        self.write_level(0, &mut at, ctx, out);
    }
    fn write_level(&self, level: usize, at: &mut usize, ctx: &EvalContext, out: &mut Vec<u8>) {
        out.push(b'{');
        for i in 0..self.dims[level].0 {
            if i > 0 {
                out.push(b',');
            }
            if level + 1 < self.dims.len() {
                self.write_level(level + 1, at, ctx, out);
            } else {
                match self.items.get(*at) {
                    None | Some(Datum::Null) => out.extend_from_slice(b"NULL"),
                    Some(item) => {
                        let start = out.len();
                        item.write_text(&self.element, ctx, out);
                        quote(out, start);
                    }
                }
                *at += 1;
            }
        }
        out.push(b'}');
    }
}

/// Quotes the element written from `start` on, if its text needs it.
fn quote(out: &mut Vec<u8>, start: usize) {
    let text = &out[start..];
    let special = |b: &u8| matches!(b, b'"' | b'\\' | b'{' | b'}' | b',' | b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    if !text.is_empty() && !text.iter().any(special) && !text.eq_ignore_ascii_case(b"null") {
        return;
    }
    let raw = out.split_off(start);
    out.push(b'"');
    for b in raw {
        if matches!(b, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(b);
    }
    out.push(b'"');
}

fn malformed(text: &str, detail: &str) -> Error {
    Error::sql("22P02", format!("malformed array literal: \"{text}\"")).detail(detail)
}

/// Reads an array from text.
pub fn parse(text: &str, element: &Type, ctx: &EvalContext) -> Result<ArrayValue> {
    let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c');
    let mut rest = text.trim_start_matches(blank);
    let bounds = explicit_bounds(&mut rest, text)?;
    rest = rest.trim_start_matches(blank);
    if !rest.starts_with('{') {
        let detail = if bounds.is_empty() {
            "Array value must start with \"{\" or dimension information."
        } else {
            "Array contents must start with \"{\"."
        };
        return Err(malformed(text, detail));
    }
    let mut r = Reader { text, chars: rest.char_indices().peekable(), element, ctx, items: Vec::new(), dims: Vec::new() };
    r.level(0)?;
    let end = r.chars.peek().map_or(rest.len(), |(i, _)| *i);
    if !rest[end..].trim_matches(blank).is_empty() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    let items = r.items;
    let lengths: Vec<usize> = r.dims.into_iter().map(|d| d.unwrap_or(0)).collect();
    if items.is_empty() {
        return Ok(ArrayValue::new(element.clone(), Vec::new()));
    }
    let dims = if bounds.is_empty() {
        lengths.into_iter().map(|n| (n, 1)).collect()
    } else {
        if bounds.len() != lengths.len() || bounds.iter().zip(&lengths).any(|(b, n)| b.0 != *n) {
            return Err(malformed(text, "Specified array dimensions do not match array contents."));
        }
        bounds
    };
    Ok(ArrayValue { element: element.clone(), dims, items })
}

/// `[2:4][1:1]=`.
fn explicit_bounds(rest: &mut &str, text: &str) -> Result<Vec<(usize, i32)>> {
    let mut bounds = Vec::new();
    while let Some(r) = rest.strip_prefix('[') {
        let close = r.find(']').ok_or_else(|| malformed(text, "Missing \"]\" after array dimensions."))?;
        let (low, high) = r[..close].split_once(':').unwrap_or(("1", &r[..close]));
        let number = |s: &str| {
            s.trim().parse::<i32>().map_err(|_| malformed(text, "\"[\" must introduce explicitly-specified array dimensions."))
        };
        let (low, high) = (number(low)?, number(high)?);
        if high < low {
            return Err(Error::sql("2202E", "upper bound cannot be less than lower bound"));
        }
        if bounds.len() == DIMENSIONS_MAX {
            return Err(Error::sql("54000", "number of array dimensions exceeds the maximum allowed (6)"));
        }
        bounds.push(((i64::from(high) - i64::from(low) + 1) as usize, low));
        *rest = &r[close + 1..];
    }
    if !bounds.is_empty() {
        *rest = rest.trim_start().strip_prefix('=').ok_or_else(|| malformed(text, "Missing \"=\" after array dimensions."))?;
    }
    Ok(bounds)
}

struct Reader<'a> {
    text: &'a str,
    chars: std::iter::Peekable<std::str::CharIndices<'a>>,
    element: &'a Type,
    ctx: &'a EvalContext,
    items: Vec<Datum>,
    /// The length of each dimension, once its first list is complete.
    dims: Vec<Option<usize>>,
}

impl Reader<'_> {
    fn blanks(&mut self) {
        while self.chars.next_if(|(_, c)| matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')).is_some() {}
    }
    fn end(&self) -> Error {
        malformed(self.text, "Unexpected end of input.")
    }
    fn level(&mut self, level: usize) -> Result<()> {
        if level == DIMENSIONS_MAX {
            return Err(Error::sql("54000", "number of array dimensions (7) exceeds the maximum allowed (6)"));
        }
        if self.dims.len() == level {
            self.dims.push(None);
        }
        self.chars.next();
        let mut count = 0;
        let mut holds_lists = None;
        self.blanks();
        if self.chars.next_if(|(_, c)| *c == '}').is_some() {
            return if level == 0 || self.items.is_empty() { self.close(level, 0) } else { Err(self.ragged()) };
        }
        loop {
            self.blanks();
            let is_list = match self.chars.peek() {
                None => return Err(self.end()),
                Some((_, '{')) => {
                    self.level(level + 1)?;
                    true
                }
                Some(_) => {
                    self.item()?;
                    false
                }
            };
            if *holds_lists.get_or_insert(is_list) != is_list || (!is_list && self.dims.len() > level + 1) {
                return Err(self.ragged());
            }
            count += 1;
            self.blanks();
            match self.chars.next() {
                Some((_, ',')) => {}
                Some((_, '}')) => return self.close(level, count),
                None => return Err(self.end()),
                Some((_, '{')) => return Err(malformed(self.text, "Unexpected \"{\" character.")),
                Some(_) => return Err(malformed(self.text, "Unexpected array element.")),
            }
        }
    }
    fn ragged(&self) -> Error {
        malformed(self.text, "Multidimensional arrays must have sub-arrays with matching dimensions.")
    }
    fn close(&mut self, level: usize, count: usize) -> Result<()> {
        match self.dims[level] {
            Some(n) if n != count => Err(self.ragged()),
            _ => {
                self.dims[level] = Some(count);
                Ok(())
            }
        }
    }
    fn item(&mut self) -> Result<()> {
        let mut word = String::new();
        let quoted = self.chars.next_if(|(_, c)| *c == '"').is_some();
        // Characters that were escaped keep trailing blanks.
        let mut keep = 0;
        loop {
            match self.chars.peek().copied() {
                None => return Err(self.end()),
                Some((_, '\\')) => {
                    self.chars.next();
                    word.push(self.chars.next().ok_or_else(|| self.end())?.1);
                    keep = word.len();
                }
                Some((_, '"')) if quoted => {
                    self.chars.next();
                    break;
                }
                Some((_, '"')) => return Err(malformed(self.text, "Unexpected array element.")),
                Some((_, ',' | '}')) if !quoted => break,
                Some((_, '{')) if !quoted => return Err(malformed(self.text, "Unexpected \"{\" character.")),
                Some((_, c)) => {
                    self.chars.next();
                    word.push(c);
                }
            }
        }
        if !quoted {
            let trimmed = word.trim_end_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']).len().max(keep);
            word.truncate(trimmed);
            if word.is_empty() {
                let next = self.chars.peek().map_or(' ', |c| c.1);
                return Err(malformed(self.text, &format!("Unexpected \"{next}\" character.")));
            }
            if keep == 0 && word.eq_ignore_ascii_case("null") {
                self.items.push(Datum::Null);
                return Ok(());
            }
        }
        self.items.push(Datum::from_text(&word, self.element, self.ctx)?);
        Ok(())
    }
}
