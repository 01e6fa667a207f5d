//! Classes of characters, their cases, and the names of collating elements, as a database in UTF-8
//! with locale C.UTF-8 has them.

use crate::set::CharSet;
use std::sync::OnceLock;

/// A named class: `[:alpha:]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Alnum,
    Alpha,
    Ascii,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Xdigit,
    Word,
}

impl Class {
    pub fn named(name: &str) -> Option<Class> {
        Some(match name {
            "alnum" => Class::Alnum,
            "alpha" => Class::Alpha,
            "ascii" => Class::Ascii,
            "blank" => Class::Blank,
            "cntrl" => Class::Cntrl,
            "digit" => Class::Digit,
            "graph" => Class::Graph,
            "lower" => Class::Lower,
            "print" => Class::Print,
            "punct" => Class::Punct,
            "space" => Class::Space,
            "upper" => Class::Upper,
            "xdigit" => Class::Xdigit,
            "word" => Class::Word,
            _ => return None,
        })
    }
}

/// A run of characters that are mapped alike: every `step`th from `from` to `to`, by `delta`.
struct Run {
    from: u32,
    to: u32,
    step: u32,
    delta: i32,
}

#[derive(Default)]
struct Table {
    alpha: CharSet,
    alnum: CharSet,
    word: CharSet,
    graph: CharSet,
    print: CharSet,
    punct: CharSet,
    space: CharSet,
    cntrl: CharSet,
    upper: CharSet,
    lower: CharSet,
    to_lower: Vec<Run>,
    to_upper: Vec<Run>,
}

fn hex(digits: &str) -> u32 {
    u32::from_str_radix(digits, 16).expect("the table is in hexadecimal")
}

fn range(text: &str) -> (u32, u32) {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    (hex(from), hex(to))
}

/// `a`, `a-b` or `a-b/2`, and `+d` or `-d`.
fn run(text: &str) -> Run {
    let (span, delta) = text.split_at(text.rfind(['+', '-']).expect("a distance"));
    let (span, step) = span.strip_suffix("/2").map_or((span, 1), |s| (s, 2));
    let (from, to) = range(span);
    let sign = if delta.starts_with('-') { -1 } else { 1 };
    Run { from, to, step, delta: sign * i32::try_from(hex(&delta[1..])).expect("a small distance") }
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut t = Table::default();
        let mut section = "";
        for line in include_str!("ctype.txt").lines().filter(|l| !l.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                section = name;
                continue;
            }
            for word in line.split(' ') {
                let set = match section {
                    "to_lower" => {
                        t.to_lower.push(run(word));
                        continue;
                    }
                    "to_upper" => {
                        t.to_upper.push(run(word));
                        continue;
                    }
                    "alpha" => &mut t.alpha,
                    "graph" => &mut t.graph,
                    "space" => &mut t.space,
                    "cntrl" => &mut t.cntrl,
                    "upper" => &mut t.upper,
                    "lower" => &mut t.lower,
                    other => unreachable!("there is no section {other}"),
                };
                let (from, to) = range(word);
                set.add(from, to);
            }
        }
        t.alnum = union(&t.alpha, &[(0x30, 0x39)]);
        t.word = union(&t.alnum, &[(0x5f, 0x5f)]);
        t.punct = minus(&t.graph, &t.alnum);
        let mut breaks = CharSet::default();
        breaks.add(0x09, 0x0d);
        breaks.add(0x2028, 0x2029);
        t.print = union(&t.graph, minus(&t.space, &breaks).ranges());
        t
    })
}

fn union(a: &CharSet, more: &[(u32, u32)]) -> CharSet {
    let mut out = a.clone();
    for &(from, to) in more {
        out.add(from, to);
    }
    out.tidy();
    out
}

fn minus(a: &CharSet, b: &CharSet) -> CharSet {
    union(&a.negated(), b.ranges()).negated()
}

fn small(ranges: &[(u32, u32)]) -> CharSet {
    union(&CharSet::default(), ranges)
}

/// The members of a class.
pub fn class(class: Class) -> CharSet {
    let t = table();
    match class {
        Class::Alnum => t.alnum.clone(),
        Class::Alpha => t.alpha.clone(),
        Class::Ascii => small(&[(0, 0x7f)]),
        Class::Blank => small(&[(0x09, 0x09), (0x20, 0x20)]),
        Class::Cntrl => t.cntrl.clone(),
        Class::Digit => small(&[(0x30, 0x39)]),
        Class::Graph => t.graph.clone(),
        Class::Lower => t.lower.clone(),
        Class::Print => t.print.clone(),
        Class::Punct => t.punct.clone(),
        Class::Space => t.space.clone(),
        Class::Upper => t.upper.clone(),
        Class::Xdigit => small(&[(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)]),
        Class::Word => t.word.clone(),
    }
}

fn mapped(runs: &[Run], c: u32) -> u32 {
    let i = runs.partition_point(|r| r.to < c);
    match runs.get(i) {
        Some(r) if r.from <= c && (c - r.from).is_multiple_of(r.step) => c.wrapping_add_signed(r.delta),
        _ => c,
    }
}

pub fn to_lower(c: u32) -> u32 {
    mapped(&table().to_lower, c)
}

pub fn to_upper(c: u32) -> u32 {
    mapped(&table().to_upper, c)
}

/// Adds the other cases of the characters from `from` to `to`.
pub fn add_cases(set: &mut CharSet, from: u32, to: u32) {
    let t = table();
    for runs in [&t.to_lower, &t.to_upper] {
        for r in &runs[runs.partition_point(|r| r.to < from)..] {
            if r.from > to {
                break;
            }
            // The first member of the run that is not below `from`.
            let first = r.from + from.saturating_sub(r.from).div_ceil(r.step) * r.step;
            let mut c = first;
            while c <= r.to.min(to) {
                let other = c.wrapping_add_signed(r.delta);
                set.add(other, other);
                c += r.step;
            }
        }
    }
}

/// The collating element of a name, `[.hyphen.]` (POSIX, portable character set), or the one
/// character itself.
pub fn collating_element(name: &[u32]) -> Option<u32> {
    if let [c] = name {
        return Some(*c);
    }
    let name: String = name.iter().map(|&c| char::from_u32(c)).collect::<Option<_>>()?;
    NAMES.iter().find(|(n, _)| *n == name).map(|(_, c)| u32::from(*c))
}

const NAMES: &[(&str, u8)] = &[
    ("NUL", 0),
    ("SOH", 1),
    ("STX", 2),
    ("ETX", 3),
    ("EOT", 4),
    ("ENQ", 5),
    ("ACK", 6),
    ("BEL", 7),
    ("alert", 7),
    ("BS", 8),
    ("backspace", 8),
    ("HT", 9),
    ("tab", 9),
    ("LF", 10),
    ("newline", 10),
    ("VT", 11),
    ("vertical-tab", 11),
    ("FF", 12),
    ("form-feed", 12),
    ("CR", 13),
    ("carriage-return", 13),
    ("SO", 14),
    ("SI", 15),
    ("DLE", 16),
    ("DC1", 17),
    ("DC2", 18),
    ("DC3", 19),
    ("DC4", 20),
    ("NAK", 21),
    ("SYN", 22),
    ("ETB", 23),
    ("CAN", 24),
    ("EM", 25),
    ("SUB", 26),
    ("ESC", 27),
    ("IS4", 28),
    ("FS", 28),
    ("IS3", 29),
    ("GS", 29),
    ("IS2", 30),
    ("RS", 30),
    ("IS1", 31),
    ("US", 31),
    ("space", b' '),
    ("exclamation-mark", b'!'),
    ("quotation-mark", b'"'),
    ("number-sign", b'#'),
    ("dollar-sign", b'$'),
    ("percent-sign", b'%'),
    ("ampersand", b'&'),
    ("apostrophe", b'\''),
    ("left-parenthesis", b'('),
    ("right-parenthesis", b')'),
    ("asterisk", b'*'),
    ("plus-sign", b'+'),
    ("comma", b','),
    ("hyphen", b'-'),
    ("hyphen-minus", b'-'),
    ("period", b'.'),
    ("full-stop", b'.'),
    ("slash", b'/'),
    ("solidus", b'/'),
    ("zero", b'0'),
    ("one", b'1'),
    ("two", b'2'),
    ("three", b'3'),
    ("four", b'4'),
    ("five", b'5'),
    ("six", b'6'),
    ("seven", b'7'),
    ("eight", b'8'),
    ("nine", b'9'),
    ("colon", b':'),
    ("semicolon", b';'),
    ("less-than-sign", b'<'),
    ("equals-sign", b'='),
    ("greater-than-sign", b'>'),
    ("question-mark", b'?'),
    ("commercial-at", b'@'),
    ("left-square-bracket", b'['),
    ("backslash", b'\\'),
    ("reverse-solidus", b'\\'),
    ("right-square-bracket", b']'),
    ("circumflex", b'^'),
    ("circumflex-accent", b'^'),
    ("underscore", b'_'),
    ("low-line", b'_'),
    ("grave-accent", b'`'),
    ("left-brace", b'{'),
    ("left-curly-bracket", b'{'),
    ("vertical-line", b'|'),
    ("right-brace", b'}'),
    ("right-curly-bracket", b'}'),
    ("tilde", b'~'),
    ("DEL", 127),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_cases() {
        assert!(class(Class::Alpha).contains(u32::from('ß')) && !class(Class::Alpha).contains(u32::from('1')));
        assert!(class(Class::Punct).contains(u32::from('«')) && class(Class::Print).contains(0x20));
        assert!(!class(Class::Print).contains(0x09));
        assert_eq!((to_upper(u32::from('ж')), to_lower(u32::from('Ж'))), (u32::from('Ж'), u32::from('ж')));
        assert_eq!((to_upper(u32::from('ā')), to_lower(u32::from('ā'))), (u32::from('Ā'), u32::from('ā')));
        // A single dz with caron has neither of its cases in one step of 2.
        assert_eq!((to_lower(0x1c5), to_upper(0x1c5)), (0x1c6, 0x1c4));
    }

    #[test]
    fn cases_of_a_range() {
        let mut s = CharSet::default();
        add_cases(&mut s, u32::from('y'), 0x102);
        s.tidy();
        for c in ['Y', 'Z', 'Ā', 'ā', 'à', 'À'] {
            assert!(s.contains(u32::from(c)), "{c}");
        }
        assert!(!s.contains(u32::from('x')));
        assert_eq!(collating_element(&[u32::from('n'), u32::from('o')]), None);
    }
}
