//! `LIKE`, `SIMILAR TO` and regular expressions.
//!
//! PostgreSQL's regular expressions (manual, 9.7.3) are translated to those of the `regex` crate, which run in linear time: the classes, quantifiers
//! and anchors that both have pass through, `\y`, `\m`, `\M` become word boundaries, and what would need backtracking (`\1`, lookaround) is 0A000.

use super::args::Args;
use super::registry::Registry;
use super::{Call, SetRows};
use crate::types::{ArrayValue, Datum, Type};
use meridian_base::{Error, Result};
use regex::Regex;
use std::cell::RefCell;

/// Compiled expressions a thread keeps, newest last: a scan uses one or two again and again.
const CACHE: usize = 16;

thread_local! {
    static COMPILED: RefCell<Vec<(String, bool, Regex)>> = const { RefCell::new(Vec::new()) };
}

/// Compiles, or finds, a regular expression.
fn compile(pattern: &str, ignore_case: bool) -> Result<Regex> {
    COMPILED.with(|cache| {
        let mut cache = cache.borrow_mut();
        if let Some(i) = cache.iter().position(|(p, c, _)| p == pattern && *c == ignore_case) {
            return Ok(cache[i].2.clone());
        }
        let regex = build(pattern, ignore_case)?;
        if cache.len() == CACHE {
            cache.remove(0);
        }
        cache.push((pattern.to_string(), ignore_case, regex.clone()));
        Ok(regex)
    })
}

fn build(pattern: &str, ignore_case: bool) -> Result<Regex> {
    let mut ignore_case = ignore_case;
    let mut rest = pattern;
    // `***:` and `***=` directors, `(?i)` options.
    if let Some(literal) = rest.strip_prefix("***=") {
        return finish(&regex::escape(literal), ignore_case);
    }
    rest = rest.strip_prefix("***:").unwrap_or(rest);
    if let Some(options) = rest.strip_prefix("(?")
        && let Some(end) = options.find(')')
        && options[..end].bytes().all(|b| b.is_ascii_alphabetic())
    {
        ignore_case = ignore_case || options[..end].contains('i');
        rest = &options[end + 1..];
    }
    finish(&translate(rest)?, ignore_case)
}

fn finish(translated: &str, ignore_case: bool) -> Result<Regex> {
    regex::RegexBuilder::new(translated)
        .case_insensitive(ignore_case)
        // In PostgreSQL `.` matches a newline by default.
        .dot_matches_new_line(true)
        .size_limit(4 << 20)
        .build()
        .map_err(|e| {
            let text = e.to_string();
            let reason = text.lines().last().unwrap_or("").trim_start_matches("error: ");
            // PostgreSQL's words for the common ones.
            let reason = match reason {
                "unclosed group" | "unopened group" => "parentheses () not balanced",
                "unclosed character class" => "brackets [] not balanced",
                "repetition operator missing expression" => "quantifier operand invalid",
                r if r.starts_with("invalid repetition count") => "invalid repetition count(s)",
                r if r.starts_with("invalid character class range") => "invalid character range",
                r => r,
            };
            Error::sql("2201B", format!("invalid regular expression: {reason}"))
        })
}

fn translate(pattern: &str) -> Result<String> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let Some(next) = chars.next() else {
                    return Err(Error::sql("2201B", "invalid regular expression: invalid escape \\ sequence"));
                };
                match next {
                    'y' if !in_class => out.push_str("\\b"),
                    'Y' if !in_class => out.push_str("\\B"),
                    'm' if !in_class => out.push_str("\\b{start}"),
                    'M' if !in_class => out.push_str("\\b{end}"),
                    'Z' if !in_class => out.push_str("\\z"),
                    'A' if !in_class => out.push_str("\\A"),
                    'e' => out.push_str("\\x1B"),
                    'B' | '1'..='9' => {
                        return Err(Error::unsupported("regular expressions with back references are not supported"));
                    }
                    'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'n' | 't' | 'r' | 'f' | 'v' | 'a' | 'x' | 'u' => {
                        out.push('\\');
                        out.push(next);
                    }
                    other => out.push_str(&regex::escape(&other.to_string())),
                }
            }
            '[' if in_class => {
                // A bracket inside a class is literal unless it opens `[:alpha:]`.
                if chars.peek() == Some(&':') {
                    out.push('[');
                    for c in chars.by_ref() {
                        out.push(c);
                        if c == ']' {
                            break;
                        }
                    }
                } else {
                    out.push_str("\\[");
                }
            }
            '[' => {
                in_class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if chars.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            // Operators of the crate inside classes, plain characters in PostgreSQL.
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '(' if !in_class && chars.peek() == Some(&'?') => {
                out.push('(');
                let mut ahead = chars.clone();
                ahead.next();
                if matches!(ahead.peek(), Some('=' | '!' | '<')) {
                    return Err(Error::unsupported("regular expressions with lookaround are not supported"));
                }
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

/// `LIKE`: `%` any run, `_` any character, `escape` takes the next one literally. Greedy with one point of return, so linear times the pattern's length.
pub fn like(text: &str, pattern: &str, escape: Option<char>, ignore_case: bool) -> Result<bool> {
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

/// What every match of a `LIKE` pattern with `\` as escape starts with, and whether the pattern is only that: for index ranges.
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

/// A `SIMILAR TO` pattern as a regular expression.
fn similar(pattern: &str, escape: Option<char>) -> String {
    let mut out = String::from("^(?:");
    let mut chars = pattern.chars();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            c if Some(c) == escape => {
                if let Some(next) = chars.next() {
                    out.push_str(&regex::escape(&next.to_string()));
                }
            }
            '[' => {
                in_class = true;
                out.push('[');
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            c if in_class => out.push(c),
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '.' | '^' | '$' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push_str(")$");
    out
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

/// `g` and `i` among a function's flags.
fn flags(a: &[Datum], i: usize) -> Result<(bool, bool)> {
    if i >= a.len() {
        return Ok((false, false));
    }
    let (mut global, mut ignore_case) = (false, false);
    for f in a.text(i)?.chars() {
        match f {
            'g' => global = true,
            'i' => ignore_case = true,
            'c' => ignore_case = false,
            'n' | 'm' | 's' | 'p' | 'w' | 't' | 'e' | 'b' | 'q' | 'x' => {}
            f => return Err(Error::sql("22023", format!("invalid regular expression option: \"{f}\""))),
        }
    }
    Ok((global, ignore_case))
}

fn groups(found: &regex::Captures<'_>) -> Datum {
    let text = |m: Option<regex::Match<'_>>| m.map_or(Datum::Null, |m| Datum::text(m.as_str()));
    let items = if found.len() == 1 { vec![text(found.get(0))] } else { (1..found.len()).map(|i| text(found.get(i))).collect() };
    ArrayValue::datum(Type::Text, items)
}

/// `\1` and `\&` in a replacement.
fn expand(template: &str, found: &regex::Captures<'_>, out: &mut String) {
    let mut chars = template.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('&') => out.push_str(&found[0]),
            Some(d @ '0'..='9') => {
                let n = d as usize - '0' as usize;
                out.push_str(found.get(n).map_or("", |m| m.as_str()));
            }
            Some('\\') | None => out.push('\\'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
        }
    }
}

fn regexp_replace(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (global, ignore_case) = flags(a, 3)?;
    let regex = compile(a.text(1)?, ignore_case)?;
    let (text, template) = (a.text(0)?, a.text(2)?);
    let (mut out, mut last) = (String::with_capacity(text.len()), 0);
    for found in regex.captures_iter(text).take(if global { usize::MAX } else { 1 }) {
        let whole = found.get(0).map_or(0..0, |m| m.range());
        out.push_str(&text[last..whole.start]);
        expand(template, &found, &mut out);
        last = whole.end;
    }
    out.push_str(&text[last..]);
    Ok(Datum::text(out))
}

fn split(a: &[Datum]) -> Result<Vec<Datum>> {
    let (_, ignore_case) = flags(a, 2)?;
    let regex = compile(a.text(1)?, ignore_case)?;
    let text = a.text(0)?;
    let (mut parts, mut last) = (Vec::new(), 0);
    for m in regex.find_iter(text) {
        // An empty match at the ends or right behind the last one splits nothing.
        if m.is_empty() && (m.start() == 0 || m.start() == text.len()) {
            continue;
        }
        parts.push(Datum::text(&text[last..m.start()]));
        last = m.end();
    }
    parts.push(Datum::text(&text[last..]));
    Ok(parts)
}

fn regexp_matches(_: &Call<'_>, a: &[Datum]) -> Result<SetRows> {
    let (global, ignore_case) = flags(a, 2)?;
    let regex = compile(a.text(1)?, ignore_case)?;
    let rows: Vec<Result<Vec<Datum>>> =
        regex.captures_iter(a.text(0)?).take(if global { usize::MAX } else { 1 }).map(|f| Ok(vec![groups(&f)])).collect();
    Ok(Box::new(rows.into_iter()))
}

/// `substring(text from pattern)`: the first group, or the match.
fn substring(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let regex = compile(a.text(1)?, false)?;
    Ok(match regex.captures(a.text(0)?) {
        Some(found) => found.get(usize::from(found.len() > 1)).map_or(Datum::Null, |m| Datum::text(m.as_str())),
        None => Datum::Null,
    })
}

pub fn register(r: &mut Registry) {
    for t in ["text", "name", "bpchar"] {
        let s = format!("{t}, text -> bool");
        r.operator("~~", &s, |_, a| Ok(Datum::Bool(like(a.text(0)?, a.text(1)?, Some('\\'), false)?)));
        r.operator("!~~", &s, |_, a| Ok(Datum::Bool(!like(a.text(0)?, a.text(1)?, Some('\\'), false)?)));
        r.operator("~~*", &s, |_, a| Ok(Datum::Bool(like(a.text(0)?, a.text(1)?, Some('\\'), true)?)));
        r.operator("!~~*", &s, |_, a| Ok(Datum::Bool(!like(a.text(0)?, a.text(1)?, Some('\\'), true)?)));
        r.operator("~", &s, |_, a| Ok(Datum::Bool(compile(a.text(1)?, false)?.is_match(a.text(0)?))));
        r.operator("!~", &s, |_, a| Ok(Datum::Bool(!compile(a.text(1)?, false)?.is_match(a.text(0)?))));
        r.operator("~*", &s, |_, a| Ok(Datum::Bool(compile(a.text(1)?, true)?.is_match(a.text(0)?))));
        r.operator("!~*", &s, |_, a| Ok(Datum::Bool(!compile(a.text(1)?, true)?.is_match(a.text(0)?))));
    }
    r.operator("^@", "text, text -> bool", |_, a| Ok(Datum::Bool(a.text(0)?.starts_with(a.text(1)?))));
    // With ESCAPE, and for SIMILAR TO, the binder calls a function that makes the pattern one of the operators above.
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
        r.scalar("similar_to_escape", s, |_, a| Ok(Datum::text(similar(a.text(0)?, escape_of(a, 1)?))));
    }
    r.scalar("regexp_replace", "text, text, text -> text", regexp_replace);
    r.scalar("regexp_replace", "text, text, text, text -> text", regexp_replace);
    for s in ["text, text", "text, text, text"] {
        r.scalar("regexp_match", &format!("{s} -> text[]"), |_, a| {
            let (_, ignore_case) = flags(a, 2)?;
            Ok(compile(a.text(1)?, ignore_case)?.captures(a.text(0)?).map_or(Datum::Null, |f| groups(&f)))
        });
        r.scalar("regexp_split_to_array", &format!("{s} -> text[]"), |_, a| Ok(ArrayValue::datum(Type::Text, split(a)?)));
        r.set("regexp_split_to_table", &format!("{s} -> text"), |_, a| Ok(Box::new(split(a)?.into_iter().map(|d| Ok(vec![d])))));
        r.set("regexp_matches", &format!("{s} -> text[]"), regexp_matches);
    }
    r.scalar("regexp_like", "text, text -> bool", |_, a| Ok(Datum::Bool(compile(a.text(1)?, false)?.is_match(a.text(0)?))));
    r.scalar("regexp_like", "text, text, text -> bool", |_, a| {
        let (_, ignore_case) = flags(a, 2)?;
        Ok(Datum::Bool(compile(a.text(1)?, ignore_case)?.is_match(a.text(0)?)))
    });
    r.scalar("regexp_count", "text, text -> int4", |_, a| {
        Ok(Datum::Int(compile(a.text(1)?, false)?.find_iter(a.text(0)?).count() as i64))
    });
    r.scalar("regexp_substr", "text, text -> text", |_, a| {
        Ok(compile(a.text(1)?, false)?.find(a.text(0)?).map_or(Datum::Null, |m| Datum::text(m.as_str())))
    });
    r.scalar("substring", "text, text -> text", substring);
}
