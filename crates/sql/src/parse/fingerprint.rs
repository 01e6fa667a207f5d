//! The plan cache's key: a statement's text without its literals.
//!
//! One linear scan, no parsing. Only plain DML and queries are taken, and only literals whose
//! replacement by a parameter of the same type cannot change what the statement means; when in
//! doubt there is no fingerprint and the statement is planned as it is. Left alone, because there a
//! literal is more than a value: `ORDER BY 1`, `GROUP BY 1`, `LIMIT`'s neighbours in those clauses,
//! typed literals (`DATE '…'`), type modifiers (`numeric(10,2)`), the output columns of the
//! outermost `SELECT`.

/// A statement without its literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// The statement with `$1`, `$2`, … in place of its literals.
    pub text: String,
    /// What was there, in order.
    pub literals: Vec<Literal>,
}

/// A literal cut out of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    /// The value in text format.
    pub text: String,
    pub kind: LiteralKind,
}

/// What type a literal has by itself (PostgreSQL manual 4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LiteralKind {
    Int4,
    Int8,
    Numeric,
    /// Its type comes from the context.
    String,
}

impl Fingerprint {
    /// What distinguishes plans beside the text: the types of the literals.
    pub fn kinds(&self) -> Vec<LiteralKind> {
        self.literals.iter().map(|l| l.kind).collect()
    }
    /// The types to prepare it with.
    pub fn param_types(&self) -> Vec<Option<crate::types::Type>> {
        use crate::types::Type;
        let ty = |l: &Literal| match l.kind {
            LiteralKind::Int4 => Some(Type::Int4),
            LiteralKind::Int8 => Some(Type::Int8),
            LiteralKind::Numeric => Some(Type::Numeric(None)),
            LiteralKind::String => None,
        };
        self.literals.iter().map(ty).collect()
    }
}

/// More literals than this and planning is not what costs; a long list would also fill the cache
/// with one-off keys.
const LITERALS_MAX: usize = 64;

/// The fingerprint, if the statement is one whose literals may be cut out.
pub fn fingerprint(text: &str) -> Option<Fingerprint> {
    let mut s = Scanner { text, bytes: text.as_bytes(), at: 0, out: String::with_capacity(text.len()), literals: Vec::new() };
    s.scan()?;
    Some(Fingerprint { text: s.out, literals: s.literals })
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    out: String,
    literals: Vec<Literal>,
}

/// What the token before was, as far as a following literal is concerned.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// An operator, a parenthesis, a comma, or a keyword that a value may follow.
    Operator,
    /// Something that makes a following literal a typed one or a modifier.
    Other,
}

/// Keywords that a plain value may follow.
const BEFORE_VALUE: &[&str] = &[
    "and", "or", "not", "where", "on", "having", "like", "ilike", "between", "when", "then", "else", "in", "any", "all", "set",
    "values", "limit", "offset",
];

impl Scanner<'_> {
    fn scan(&mut self) -> Option<()> {
        let mut before = Before::Other;
        // Literals are cut out only after the first WHERE, VALUES or SET: what stands before may
        // name output columns.
        let mut armed = false;
        let mut first = true;
        while self.at < self.bytes.len() {
            let start = self.at;
            match self.bytes[start] {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                b'-' if self.bytes.get(start + 1) == Some(&b'-') => return None,
                b'/' if self.bytes.get(start + 1) == Some(&b'*') => return None,
                b'\'' => {
                    let value = self.string()?;
                    if !armed || before == Before::Other {
                        return None;
                    }
                    self.cut(value, LiteralKind::String)?;
                    before = Before::Other;
                    continue;
                }
                b'"' => {
                    self.at += 1 + self.text[start + 1..].find('"')? + 1;
                    before = Before::Other;
                }
                b'0'..=b'9' => {
                    let (value, kind) = self.number()?;
                    if armed && before == Before::Operator {
                        self.cut(value, kind)?;
                        before = Before::Other;
                        continue;
                    }
                    before = Before::Other;
                }
                b'$' | b';' | b'\\' | b'{' | b'}' => return None,
                b':' => return None,
                b'[' | b']' => return None,
                c if c == b'_' || c.is_ascii_alphabetic() || c >= 0x80 => {
                    while self
                        .bytes
                        .get(self.at)
                        .is_some_and(|b| *b == b'_' || *b == b'$' || b.is_ascii_alphanumeric() || *b >= 0x80)
                    {
                        self.at += 1;
                    }
                    let word = &self.text[start..self.at];
                    let is = |of: &[&str]| of.iter().any(|o| word.eq_ignore_ascii_case(o));
                    if first && !is(&["select", "insert", "update", "delete"]) {
                        return None;
                    }
                    first = false;
                    if is(&["order", "group", "cast", "interval", "explain", "with", "union", "except", "intersect", "over"])
                        || is(&["extract", "substring", "overlay", "position", "trim", "select"]) && start > 0
                        || is(&["returning", "window", "escape", "similar", "collate", "at", "conflict"])
                    {
                        // What stands before keeps its cut literals; what follows is left as it is,
                        // and if it has literals of its own they are part of the key.
                        if is(&["order", "group", "returning"]) {
                            self.out.push_str(&self.text[start..]);
                            self.at = self.bytes.len();
                            return (!self.text[start..].contains(['$', ';'])).then_some(());
                        }
                        return None;
                    }
                    armed |= is(&["where", "values", "set"]);
                    before = if is(BEFORE_VALUE) { Before::Operator } else { Before::Other };
                    // `e'…'`, `b'…'`, `x'…'`, `u&'…'`, `date '…'`.
                    if matches!(self.bytes.get(self.at), Some(b'\'' | b'&')) && !is(BEFORE_VALUE) {
                        return None;
                    }
                }
                _ => {
                    self.at += 1;
                    before =
                        if self.bytes[start] == b')' || self.bytes[start] == b'.' { Before::Other } else { Before::Operator };
                }
            }
            self.out.push_str(&self.text[start..self.at]);
        }
        (!first).then_some(())
    }

    fn cut(&mut self, text: String, kind: LiteralKind) -> Option<()> {
        if self.literals.len() == LITERALS_MAX {
            return None;
        }
        self.literals.push(Literal { text, kind });
        self.out.push('$');
        self.out.push_str(&self.literals.len().to_string());
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        let mut value = String::new();
        let mut from = self.at + 1;
        loop {
            let end = from + self.text[from..].find('\'')?;
            value.push_str(&self.text[from..end]);
            if self.bytes.get(end + 1) != Some(&b'\'') {
                self.at = end + 1;
                return Some(value);
            }
            value.push('\'');
            from = end + 2;
        }
    }

    fn number(&mut self) -> Option<(String, LiteralKind)> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|b| b.is_ascii_digit() || *b == b'.') {
            self.at += 1;
        }
        // Exponents, hexadecimals and digit separators are left to the parser.
        if self.bytes.get(self.at).is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_') {
            return None;
        }
        let text = self.text[start..self.at].to_string();
        let kind = match text.parse::<i64>() {
            Ok(n) if n <= i32::MAX as i64 => LiteralKind::Int4,
            Ok(_) => LiteralKind::Int8,
            Err(_) => LiteralKind::Numeric,
        };
        Some((text, kind))
    }
}
