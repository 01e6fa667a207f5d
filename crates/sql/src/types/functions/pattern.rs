//! `LIKE`, `SIMILAR TO` and regular expressions (PostgreSQL's manual, 9.7).
//!
//! What an expression matches is decided by the crate `meridian-regex`; what the functions make of
//! it, their options, positions and empty matches, is here.

use super::args::Args;
use super::registry::Registry;
use super::{Call, SetRows};
use crate::types::{ArrayValue, Datum, Type};
use meridian_base::{Error, Result};
use meridian_regex::{Flags, Interrupted, Regex, Search, Span};
use std::cell::RefCell;
use std::rc::Rc;

/// Compiled expressions a thread keeps, newest last: a scan uses one or two again and again.
const CACHE: usize = 16;

thread_local! {
    static COMPILED: RefCell<Vec<(String, Flags, Rc<Regex>)>> = const { RefCell::new(Vec::new()) };
}

/// Compiles, or finds, a regular expression.
fn compile(pattern: &str, flags: Flags) -> Result<Rc<Regex>> {
    COMPILED.with(|cache| {
        let mut cache = cache.borrow_mut();
        if let Some(i) = cache.iter().rposition(|(p, f, _)| p == pattern && *f == flags) {
            cache[i..].rotate_left(1);
        } else {
            let regex = Regex::new(pattern, flags).map_err(|e| Error::sql("2201B", e.to_string()))?;
            if cache.len() == CACHE {
                cache.remove(0);
            }
            cache.push((pattern.to_string(), flags, Rc::new(regex)));
        }
        Ok(cache.last().expect("it is the last one now").2.clone())
    })
}

/// Searches a text; whoever interrupts the statement ends the search.
fn searching<R>(
    call: &Call<'_>,
    regex: &Regex,
    text: &str,
    search: impl FnOnce(&mut Search<'_, '_, '_>) -> Result<R, Interrupted>,
) -> Result<R> {
    let mut reason = None;
    let mut check = || {
        call.ctx.system.interrupted().map_err(|e| {
            reason = Some(e);
            Interrupted
        })
    };
    let outcome = search(&mut regex.search(text, &mut check));
    outcome.map_err(|Interrupted| reason.expect("only the check interrupts"))
}

/// `LIKE`: `%` any run, `_` any character, `escape` takes the next one literally. Greedy with one
/// point of return, so linear times the pattern's length.
pub fn like(text: &str, pattern: &str, escape: Option<char>, ignore_case: bool) -> Result<bool> {
    if !ignore_case && !pattern.contains(|c| c == '_' || Some(c) == escape) {
        return Ok(has_parts(text, pattern));
    }
    let fold = |s: &str| if ignore_case { s.to_lowercase() } else { s.to_string() };
    let text: Vec<char> = fold(text).chars().collect();
    let tokens = like_tokens(&fold(pattern), escape);
    let (mut t, mut p) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        match tokens.get(p) {
            Some(Token::Any) => {
                back = Some((p + 1, t));
                p += 1;
            }
            Some(Token::One) => (t, p) = (t + 1, p + 1),
            // Only an error where there is text left to compare with it.
            Some(Token::Dangling) => return Err(Error::sql("22025", "LIKE pattern must not end with escape character")),
            Some(Token::Char(c)) if *c == text[t] => (t, p) = (t + 1, p + 1),
            _ => match back.as_mut() {
                Some((after, at)) => {
                    *at += 1;
                    (p, t) = (*after, *at);
                }
                None => return Ok(false),
            },
        }
    }
    Ok(tokens[p..].iter().all(|k| matches!(k, Token::Any)))
}

/// Whether the parts between the `%` of a pattern stand in a text, in this order.
fn has_parts(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('%');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

enum Token {
    Any,
    One,
    Char(char),
    /// An escape character at the end.
    Dangling,
}

fn like_tokens(pattern: &str, escape: Option<char>) -> Vec<Token> {
    let mut out = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            c if Some(c) == escape => chars.next().map_or(Token::Dangling, Token::Char),
            '%' => Token::Any,
            '_' => Token::One,
            c => Token::Char(c),
        });
    }
    out
}

/// What every match of a `LIKE` pattern with `\` as escape starts with, and whether the pattern is
/// only that: for index ranges.
pub fn like_prefix(pattern: &str) -> (String, bool) {
    let mut prefix = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' | '_' => return (prefix, false),
            '\\' => match chars.next() {
                Some(next) => prefix.push(next),
                None => return (prefix, false),
            },
            c => prefix.push(c),
        }
    }
    (prefix, true)
}

/// A `SIMILAR TO` pattern as a regular expression. The escape character before a double quote
/// separates the part that `substring` returns; the part before it is then as short as possible.
fn similar(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut out = String::from("^(?:");
    let mut chars = pattern.chars();
    // How many brackets are open; brackets inside brackets open names, `[:alpha:]`, or nothing, and
    // are closed alike.
    let mut depth = 0u32;
    let mut separators = 0;
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            match chars.next() {
                Some('"') if depth == 0 => {
                    out.push_str(match separators {
                        0 => "){1,1}?(",
                        1 => "){1,1}(?:",
                        _ => {
                            let message = "SQL regular expression may not contain more than two escape-double-quote separators";
                            return Err(Error::sql("2200C", message));
                        }
                    });
                    separators += 1;
                }
                Some(next) => out.extend(['\\', next]),
                None => {}
            }
            continue;
        }
        match c {
            '\\' => out.push_str("\\\\"),
            '[' => {
                depth += 1;
                out.push('[');
                if depth == 1 {
                    // A closing bracket that comes first is one of the characters.
                    for first in ['^', ']'] {
                        if Some(first) != escape && chars.as_str().starts_with(first) {
                            out.extend(chars.next());
                        }
                    }
                }
            }
            ']' if depth > 0 => {
                depth -= 1;
                out.push(']');
            }
            c if depth > 0 => out.push(c),
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '.' | '^' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push_str(")$");
    Ok(out)
}

/// A `LIKE` pattern with `\` for its escape character.
fn like_escape(pattern: &str, escape: Option<char>) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            out.push('\\');
            out.extend(chars.next());
            continue;
        }
        if c == '\\' {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The escape character of `ESCAPE '…'`; the empty string means none.
fn escape_of(a: &[Datum], i: usize) -> Result<Option<char>> {
    if i >= a.len() {
        return Ok(Some('\\'));
    }
    let mut chars = a.text(i)?.chars();
    let first = chars.next();
    if chars.next().is_some() {
        return Err(Error::sql("22025", "invalid escape string").hint("Escape string must be empty or one character."));
    }
    Ok(first)
}

/// The flags of a function, and whether `g` is among them.
fn flags(a: &[Datum], i: usize) -> Result<(Flags, bool)> {
    let (mut flags, mut global) = (Flags::default(), false);
    if i < a.len() {
        for f in a.text(i)?.chars() {
            if f == 'g' {
                global = true;
            } else if !flags.set(f) {
                return Err(Error::sql("22023", format!("invalid regular expression option: \"{f}\"")));
            }
        }
    }
    Ok((flags, global))
}

/// The expression of a function that knows no `g`: it is argument 1, its flags are argument `i`.
fn compile_for(function: &str, a: &[Datum], i: usize) -> Result<Rc<Regex>> {
    let (flags, global) = flags(a, i)?;
    if global {
        let e = Error::sql("22023", format!("{function}() does not support the \"global\" option"));
        return Err(if function == "regexp_match" { e.hint("Use the regexp_matches function instead.") } else { e });
    }
    compile(a.text(1)?, flags)
}

fn ignoring_case(ignore_case: bool) -> Flags {
    Flags { ignore_case, ..Flags::default() }
}

fn is_match(call: &Call<'_>, a: &[Datum], ignore_case: bool) -> Result<bool> {
    let regex = compile(a.text(1)?, ignoring_case(ignore_case))?;
    searching(call, &regex, a.text(0)?, |s| s.is_match(0))
}

/// An optional argument that must not be below `least`.
fn number(a: &[Datum], i: usize, name: &str, least: i64, otherwise: i64) -> Result<i64> {
    let n = if i < a.len() { a.int(i)? } else { otherwise };
    if n < least {
        return Err(Error::sql("22023", format!("invalid value for parameter \"{name}\": {n}")));
    }
    Ok(n)
}

/// Where the `start`th character begins; `None` if it is beyond the end.
fn byte_of(text: &str, start: i64) -> Option<usize> {
    let before = usize::try_from(start - 1).ok()?;
    text.char_indices().map(|(i, _)| i).chain([text.len()]).nth(before)
}

/// Where the search goes on after a match: behind it, and a character further if it was empty.
fn after(text: &str, (from, to): Span) -> usize {
    if from < to { to } else { to + text[to..].chars().next().map_or(1, char::len_utf8) }
}

/// Calls `found` with each match from a byte on, while it says so.
fn each_match(
    search: &mut Search<'_, '_, '_>,
    text: &str,
    start: Option<usize>,
    mut found: impl FnMut(&mut Search<'_, '_, '_>, Span) -> bool,
) -> Result<(), Interrupted> {
    let mut at = start.unwrap_or(text.len() + 1);
    while at <= text.len() {
        let Some(span) = search.captures_at(at)? else { break };
        if !found(search, span) {
            break;
        }
        at = after(text, span);
    }
    Ok(())
}

fn piece(text: &str, span: Option<Span>) -> Datum {
    span.map_or(Datum::Null, |(from, to)| Datum::text(&text[from..to]))
}

/// What the groups captured, or the match if there are none.
fn groups(text: &str, search: &Search<'_, '_, '_>, count: usize, whole: Span) -> Datum {
    let items = match count {
        0 => vec![piece(text, Some(whole))],
        _ => (1..=count).map(|g| piece(text, search.group(g))).collect(),
    };
    ArrayValue::datum(Type::Text, items)
}

/// `\1` and `\&` in a replacement.
fn expand(template: &str, text: &str, search: &Search<'_, '_, '_>, whole: Span, out: &mut String) {
    let mut chars = template.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let span = match chars.as_str().chars().next() {
            Some('&') => Some(whole),
            Some(d @ '1'..='9') => search.group(d as usize - '0' as usize),
            Some('\\') => {
                chars.next();
                out.push('\\');
                continue;
            }
            _ => {
                out.push('\\');
                continue;
            }
        };
        chars.next();
        if let Some((from, to)) = span {
            out.push_str(&text[from..to]);
        }
    }
}

/// Replaces the nth match from a character on, or all of them if n is 0.
fn replace(call: &Call<'_>, a: &[Datum], start: i64, n: i64, flags: Flags) -> Result<Datum> {
    let regex = compile(a.text(1)?, flags)?;
    let (text, template) = (a.text(0)?, a.text(2)?);
    let (mut out, mut last, mut count) = (String::with_capacity(text.len()), 0, 0);
    searching(call, &regex, text, |search| {
        each_match(search, text, byte_of(text, start), |search, span| {
            count += 1;
            if n == 0 || n == count {
                out.push_str(&text[last..span.0]);
                expand(template, text, search, span, &mut out);
                last = span.1;
            }
            n != count
        })
    })?;
    out.push_str(&text[last..]);
    Ok(Datum::text(out))
}

/// `regexp_replace(text, pattern, replacement [, flags])`.
fn regexp_replace(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    if a.len() > 3
        && let Some(c) = a.text(3)?.chars().next().filter(char::is_ascii_digit)
    {
        return Err(Error::sql("22023", format!("invalid regular expression option: \"{c}\"")).hint(
            "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.",
        ));
    }
    let (flags, global) = flags(a, 3)?;
    replace(call, a, 1, i64::from(!global), flags)
}

/// `regexp_replace(text, pattern, replacement, start [, n [, flags]])`.
fn regexp_replace_from(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let start = number(a, 3, "start", 1, 1)?;
    let n = number(a, 4, "n", 0, 1)?;
    let (flags, _) = flags(a, 5)?;
    replace(call, a, start, n, flags)
}

fn split(call: &Call<'_>, a: &[Datum], function: &str) -> Result<Vec<Datum>> {
    let regex = compile_for(function, a, 2)?;
    let text = a.text(0)?;
    let (mut parts, mut last, mut previous) = (Vec::new(), 0, 0);
    searching(call, &regex, text, |search| {
        each_match(search, text, Some(0), |_, (from, to)| {
            // An empty match at the ends or right behind the last one splits nothing.
            if from < text.len() && to > previous {
                parts.push(Datum::text(&text[last..from]));
                last = to;
            }
            previous = to;
            true
        })
    })?;
    parts.push(Datum::text(&text[last..]));
    Ok(parts)
}

fn regexp_match(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let regex = compile_for("regexp_match", a, 2)?;
    let text = a.text(0)?;
    searching(call, &regex, text, |search| {
        Ok(search.captures_at(0)?.map_or(Datum::Null, |whole| groups(text, search, regex.groups(), whole)))
    })
}

fn regexp_matches(call: &Call<'_>, a: &[Datum]) -> Result<SetRows> {
    let (flags, global) = flags(a, 2)?;
    let regex = compile(a.text(1)?, flags)?;
    let text = a.text(0)?;
    let mut rows = Vec::new();
    searching(call, &regex, text, |search| {
        each_match(search, text, Some(0), |search, whole| {
            rows.push(Ok(vec![groups(text, search, regex.groups(), whole)]));
            global
        })
    })?;
    Ok(Box::new(rows.into_iter()))
}

fn regexp_like(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let regex = compile_for("regexp_like", a, 2)?;
    Ok(Datum::Bool(searching(call, &regex, a.text(0)?, |search| search.is_match(0))?))
}

/// `regexp_count(text, pattern [, start [, flags]])`.
fn regexp_count(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let start = number(a, 2, "start", 1, 1)?;
    let regex = compile_for("regexp_count", a, 3)?;
    let text = a.text(0)?;
    let (mut at, mut count) = (byte_of(text, start).unwrap_or(text.len() + 1), 0);
    searching(call, &regex, text, |search| {
        while at <= text.len()
            && let Some(span) = search.find_at(at)?
        {
            count += 1;
            at = after(text, span);
        }
        Ok(())
    })?;
    Ok(Datum::Int(count))
}

/// The place of group `group` in the nth match from a character on; group 0 is the match itself.
fn nth(call: &Call<'_>, regex: &Regex, text: &str, start: i64, n: i64, group: i64) -> Result<Option<Span>> {
    let (mut count, mut place) = (0, None);
    // Without groups, group 1 is the match.
    let group = if regex.groups() == 0 && group == 1 { 0 } else { group };
    searching(call, regex, text, |search| {
        each_match(search, text, byte_of(text, start), |search, whole| {
            count += 1;
            if count == n {
                place = if group == 0 { Some(whole) } else { search.group(group as usize) };
            }
            count < n
        })
    })?;
    Ok(place)
}

/// `regexp_instr(text, pattern [, start [, n [, endoption [, flags [, subexpr]]]]])`.
fn regexp_instr(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let start = number(a, 2, "start", 1, 1)?;
    let n = number(a, 3, "n", 1, 1)?;
    let end = number(a, 4, "endoption", 0, 0)?;
    if end > 1 {
        return Err(Error::sql("22023", format!("invalid value for parameter \"endoption\": {end}")));
    }
    let group = number(a, 6, "subexpr", 0, 0)?;
    let regex = compile_for("regexp_instr", a, 5)?;
    let text = a.text(0)?;
    let place = nth(call, &regex, text, start, n, group)?;
    let at = |(from, to): Span| text[..if end == 1 { to } else { from }].chars().count() as i64 + 1;
    Ok(Datum::Int(place.map_or(0, at)))
}

/// `regexp_substr(text, pattern [, start [, n [, flags [, subexpr]]]])`.
fn regexp_substr(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let start = number(a, 2, "start", 1, 1)?;
    let n = number(a, 3, "n", 1, 1)?;
    let group = number(a, 5, "subexpr", 0, 0)?;
    let regex = compile_for("regexp_substr", a, 4)?;
    let text = a.text(0)?;
    Ok(piece(text, nth(call, &regex, text, start, n, group)?))
}

/// `substring(text from pattern)`: the first group, or the match.
fn substring_of(call: &Call<'_>, text: &str, pattern: &str) -> Result<Datum> {
    let regex = compile(pattern, Flags::default())?;
    searching(call, &regex, text, |search| {
        Ok(match search.captures_at(0)? {
            Some(whole) if regex.groups() == 0 => piece(text, Some(whole)),
            Some(_) => piece(text, search.group(1)),
            None => Datum::Null,
        })
    })
}

fn substring(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    substring_of(call, a.text(0)?, a.text(1)?)
}

/// `substring(text from pattern for escape)`: of a `SIMILAR TO` pattern.
fn substring_similar(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    substring_of(call, a.text(0)?, &similar(a.text(1)?, escape_of(a, 2)?)?)
}

pub fn register(r: &mut Registry) {
    for t in ["text", "name", "bpchar"] {
        let s = format!("{t}, text -> bool");
        r.operator("~~", &s, |_, a| Ok(Datum::Bool(like(a.text(0)?, a.text(1)?, Some('\\'), false)?)));
        r.operator("!~~", &s, |_, a| Ok(Datum::Bool(!like(a.text(0)?, a.text(1)?, Some('\\'), false)?)));
        r.operator("~~*", &s, |_, a| Ok(Datum::Bool(like(a.text(0)?, a.text(1)?, Some('\\'), true)?)));
        r.operator("!~~*", &s, |_, a| Ok(Datum::Bool(!like(a.text(0)?, a.text(1)?, Some('\\'), true)?)));
        r.operator("~", &s, |c, a| Ok(Datum::Bool(is_match(c, a, false)?)));
        r.operator("!~", &s, |c, a| Ok(Datum::Bool(!is_match(c, a, false)?)));
        r.operator("~*", &s, |c, a| Ok(Datum::Bool(is_match(c, a, true)?)));
        r.operator("!~*", &s, |c, a| Ok(Datum::Bool(!is_match(c, a, true)?)));
    }
    r.operator("^@", "text, text -> bool", |_, a| Ok(Datum::Bool(a.text(0)?.starts_with(a.text(1)?))));
    // With ESCAPE, and for SIMILAR TO, the binder calls a function that makes the pattern one of
    // the operators above.
    for (name, fold) in [("like", false), ("ilike", true)] {
        for s in ["text, text -> bool", "text, text, text -> bool"] {
            if fold {
                r.scalar(name, s, |_, a| Ok(Datum::Bool(like(a.text(0)?, a.text(1)?, escape_of(a, 2)?, true)?)));
            } else {
                r.scalar(name, s, |_, a| Ok(Datum::Bool(like(a.text(0)?, a.text(1)?, escape_of(a, 2)?, false)?)));
            }
        }
    }
    r.scalar("like_escape", "text, text -> text", |_, a| Ok(Datum::text(like_escape(a.text(0)?, escape_of(a, 1)?))));
    for s in ["text -> text", "text, text -> text"] {
        r.scalar("similar_to_escape", s, |_, a| Ok(Datum::text(similar(a.text(0)?, escape_of(a, 1)?)?)));
    }
    r.scalar("regexp_replace", "text, text, text -> text", regexp_replace);
    r.scalar("regexp_replace", "text, text, text, text -> text", regexp_replace);
    for s in ["int4", "int4, int4", "int4, int4, text"] {
        r.scalar("regexp_replace", &format!("text, text, text, {s} -> text"), regexp_replace_from);
    }
    for s in ["text, text", "text, text, text"] {
        r.scalar("regexp_match", &format!("{s} -> text[]"), regexp_match);
        r.scalar("regexp_split_to_array", &format!("{s} -> text[]"), |c, a| {
            Ok(ArrayValue::datum(Type::Text, split(c, a, "regexp_split_to_array")?))
        });
        r.set("regexp_split_to_table", &format!("{s} -> text"), |c, a| {
            Ok(Box::new(split(c, a, "regexp_split_to_table")?.into_iter().map(|d| Ok(vec![d]))))
        });
        r.set("regexp_matches", &format!("{s} -> text[]"), regexp_matches);
        r.scalar("regexp_like", &format!("{s} -> bool"), regexp_like);
    }
    for s in ["", ", int4", ", int4, text"] {
        r.scalar("regexp_count", &format!("text, text{s} -> int4"), regexp_count);
    }
    for s in ["", ", int4", ", int4, int4", ", int4, int4, int4", ", int4, int4, int4, text", ", int4, int4, int4, text, int4"] {
        r.scalar("regexp_instr", &format!("text, text{s} -> int4"), regexp_instr);
    }
    for s in ["", ", int4", ", int4, int4", ", int4, int4, text", ", int4, int4, text, int4"] {
        r.scalar("regexp_substr", &format!("text, text{s} -> text"), regexp_substr);
    }
    r.scalar("substring", "text, text -> text", substring);
    r.scalar("substring", "text, text, text -> text", substring_similar);
}
