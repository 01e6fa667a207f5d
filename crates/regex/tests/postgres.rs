//! The same expressions on the same texts, here and in a PostgreSQL: `.ci/run postgres` runs these.
//! The server is at `MERIDIAN_POSTGRES` (`host:port` or `socket directory:port`, user `postgres`,
//! trusted); its database is in UTF-8 with locale C.UTF-8.
//!
//! `REGEX_SEED` and `REGEX_PAIRS` choose other expressions, and more of them.

use meridian_regex::{Flags, Regex};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The lines that a script prints.
fn ask(script: String) -> Vec<String> {
    let address = std::env::var("MERIDIAN_POSTGRES").expect("MERIDIAN_POSTGRES=host:port names a server to compare with");
    let (host, port) = address.split_once(':').expect("MERIDIAN_POSTGRES=host:port");
    let mut psql = Command::new("psql")
        .args(["-h", host, "-p", port, "-U", "postgres", "-d", "postgres"])
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("psql runs");
    let mut stdin = psql.stdin.take().expect("piped");
    let feed = std::thread::Builder::new().spawn(move || stdin.write_all(script.as_bytes())).expect("a thread to feed psql");
    let output = psql.wait_with_output().expect("psql ends");
    feed.join().expect("the feeder ends").expect("psql reads it all");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect()
}

/// A function that answers as `ours` does: what the whole and each group matched, and where the
/// whole begins.
const ANSWER: &str = "set statement_timeout = '60s';
create function pg_temp.answer(t text, p text, f text) returns text language plpgsql as $f$
begin
  return coalesce(to_json(regexp_match(t, p, f))::text, 'null')
    || ' ' || regexp_instr(t, p, 1, 1, 0, f) || ' ' || regexp_instr(t, p, 1, 1, 1, f)
    || ' ' || (select to_json(array(select regexp_matches(t, p, f || 'g')))::text);
exception when others then return 'ERROR ' || sqlstate || ': ' || sqlerrm;
end $f$;\n";

fn json(out: &mut String, text: Option<&str>) {
    let Some(text) = text else { return out.push_str("null") };
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn groups(search: &meridian_regex::Search<'_, '_, '_>, count: usize, text: &str, whole: (usize, usize)) -> String {
    let mut out = String::from("[");
    for g in if count == 0 { 0..1 } else { 1..count + 1 } {
        if g > 1 {
            out.push(',');
        }
        let span = if g == 0 { Some(whole) } else { search.group(g) };
        json(&mut out, span.map(|(from, to)| &text[from..to]));
    }
    out.push(']');
    out
}

fn ours(text: &str, pattern: &str, flags: &str) -> String {
    let mut parsed = Flags::default();
    for f in flags.chars() {
        assert!(parsed.set(f), "{f} is no flag");
    }
    let regex = match Regex::new(pattern, parsed) {
        Ok(regex) => regex,
        Err(e) => return format!("ERROR 2201B: {e}"),
    };
    let mut check = || Ok(());
    let mut search = regex.search(text, &mut check);
    let position = |at: usize| text[..at].chars().count() + 1;
    let first = search.captures_at(0).expect("nobody interrupts");
    assert_eq!(search.find_at(0).expect("nobody interrupts"), first, "{pattern:?} {text:?}");
    assert_eq!(search.is_match(0).expect("nobody interrupts"), first.is_some(), "{pattern:?} {text:?}");
    let Some(whole) = search.captures_at(0).expect("nobody interrupts") else { return "null 0 0 []".into() };
    let mut out = format!("{} {} {} [", groups(&search, regex.groups(), text, whole), position(whole.0), position(whole.1));
    // All matches, as regexp_matches finds them: after an empty one the search goes on a character
    // further.
    let (mut at, mut is_first) = (0, true);
    while let Some(found) = if at <= text.len() { search.captures_at(at).expect("nobody interrupts") } else { None } {
        if !is_first {
            out.push(',');
        }
        is_first = false;
        out.push_str(&groups(&search, regex.groups(), text, found));
        at = found.1;
        if found.0 == found.1 {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    out.push(']');
    out
}

fn quoted(text: &str) -> String {
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n"))
}

/// What differs between here and there, of a list of (text, pattern, flags).
fn differences(cases: &[(String, String, String)]) -> Vec<String> {
    let mut script = String::from(ANSWER);
    for batch in cases.chunks(500) {
        script.push_str("select pg_temp.answer(t, p, f) from (values\n");
        for (i, (text, pattern, flags)) in batch.iter().enumerate() {
            let comma = if i == 0 { "" } else { ",\n" };
            let _ = write!(script, "{comma}({}, {}, '{flags}')", quoted(text), quoted(pattern));
        }
        script.push_str(") v(t, p, f);\n");
    }
    let theirs = ask(script);
    assert_eq!(theirs.len(), cases.len());
    let mut out = Vec::new();
    for ((text, pattern, flags), theirs) in cases.iter().zip(theirs) {
        let ours = ours(text, pattern, flags);
        // PostgreSQL's bound is another one.
        let is_too_complex = theirs.ends_with("regular expression is too complex");
        if ours != theirs && !is_too_complex {
            out.push(format!("{pattern:?} on {text:?} with {flags:?}\n  here       {ours}\n  PostgreSQL {theirs}"));
        }
    }
    out
}

/// Random expressions and texts of few characters, so that they have something to do with each
/// other.
struct Random {
    state: u64,
    groups: u32,
    /// Groups that are complete and may be referred to.
    closed: Vec<u32>,
}

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }

    fn text(&mut self) -> String {
        let letters = match self.below(4) {
            0 => &["a", "b"][..],
            1 => &["a", "b", "c", "A", "B"],
            2 => &["a", "b", "x", " ", "\n", "_", "1"],
            _ => &["a", "b", "é", "É", "-", "\n", "ß", "a b", "ab"],
        };
        (0..self.below(11)).map(|_| self.pick(letters)).collect()
    }

    fn expression(&mut self, depth: u32, look: bool) -> String {
        let branches = if self.below(3) == 0 { 1 + self.below(3) } else { 1 };
        let branches: Vec<String> = (0..branches).map(|_| self.branch(depth, look)).collect();
        branches.join("|")
    }

    fn branch(&mut self, depth: u32, look: bool) -> String {
        (0..self.below(4) + u64::from(depth > 2)).map(|_| self.item(depth, look)).collect()
    }

    fn item(&mut self, depth: u32, look: bool) -> String {
        match self.below(16) {
            0 => return self.pick(&["^", "$", "\\A", "\\Z", "\\y", "\\Y", "\\m", "\\M", "[[:<:]]", "[[:>:]]"]).to_string(),
            1 if depth > 0 => {
                let open = self.pick(&["(?=", "(?!", "(?<=", "(?<!"]);
                let inside = self.expression(depth - 1, true);
                return format!("{open}{inside})");
            }
            _ => {}
        }
        let atom = self.atom(depth, look);
        atom + self.quantifier()
    }

    fn quantifier(&mut self) -> &'static str {
        const QUANTIFIERS: &[&str] = &[
            "*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,2}?", "{2,}", "{2,}?", "{1}", "{1,1}", "{1,1}?", "{0,1}",
            "{2,3}", "{0}", "{3}?", "{0,2}?", "{1,3}",
        ];
        if self.below(2) == 0 { "" } else { self.pick(QUANTIFIERS) }
    }

    fn atom(&mut self, depth: u32, look: bool) -> String {
        if depth > 0 {
            match self.below(8) {
                0..=2 => {
                    if look {
                        return format!("({})", self.expression(depth - 1, true));
                    }
                    self.groups += 1;
                    let group = self.groups;
                    let inside = self.expression(depth - 1, false);
                    self.closed.push(group);
                    return format!("({inside})");
                }
                3 => return format!("(?:{})", self.expression(depth - 1, look)),
                4 if !look && !self.closed.is_empty() => {
                    let which = self.below(self.closed.len() as u64) as usize;
                    return format!("\\{}", self.closed[which]);
                }
                _ => {}
            }
        }
        const ATOMS: &[&str] = &[
            ".",
            "[ab]",
            "[^a]",
            "\\w",
            "\\W",
            "\\s",
            "\\d",
            "\\D",
            "\\S",
            "[a-c]",
            "[[:alpha:]]",
            "[[:upper:]]",
            "[^[:lower:]]",
            "[-a]",
            "[]a]",
            "[^]b]",
            "[\\w-]",
            "[^\\s]",
            "\\n",
            "[[.a.]b]",
            "[[=b=]]",
            "x",
            "A",
            "B",
            "é",
            "[à-ï]",
            "ß",
            "[\\D]",
            "\\x61",
            "\\u0062",
            "[[.hyphen.]]",
        ];
        match self.below(3) {
            0 => self.pick(ATOMS),
            _ => self.pick(&["a", "a", "b", "b", "c", "ab"]),
        }
        .to_string()
    }

    fn case(&mut self) -> (String, String, String) {
        (self.groups, self.closed) = (0, Vec::new());
        let depth = 1 + self.below(4) as u32;
        let mut pattern = self.expression(depth, false);
        // Some that are no expressions.
        if self.below(50) == 0 {
            let chars: Vec<char> = pattern.chars().collect();
            let at = self.below(chars.len() as u64 + 1) as usize;
            let more = self
                .pick(&["(", ")", "[", "{", "*", "?", "\\", "+?", "{1", "[[:a:]]", "[b-a]", "\\q", "|", "{2,1}", "(?", "\\9"]);
            pattern = format!("{}{more}{}", chars[..at].iter().collect::<String>(), chars[at..].iter().collect::<String>());
        }
        let flags = self.pick(&["", "", "", "", "", "", "", "", "i", "n", "p", "w", "x", "in", "e", "b"]);
        let embedded = self.pick(&["", "", "", "", "", "", "", "", "", "(?i)", "(?e)", "(?b)", "(?x)", "***:", "(?n)", "(?ei)"]);
        let pattern = format!("{embedded}{pattern}");
        (self.text(), pattern, flags.to_string())
    }
}

#[test]
#[ignore = "needs a PostgreSQL: .ci/run postgres"]
fn random_expressions_match_as_in_postgres() {
    let number = |name: &str, otherwise: u64| std::env::var(name).map_or(otherwise, |v| v.parse().expect("a number"));
    let mut random = Random { state: number("REGEX_SEED", 20_261_124) | 1, groups: 0, closed: Vec::new() };
    for _ in 0..10 {
        random.below(2);
    }
    let pairs = number("REGEX_PAIRS", 8000);
    let cases: Vec<_> = (0..pairs).map(|_| random.case()).collect();
    let found = differences(&cases);
    assert!(found.is_empty(), "{} of {pairs} differ:\n{}", found.len(), found[..found.len().min(30)].join("\n"));
}

#[test]
#[ignore = "needs a PostgreSQL: .ci/run postgres"]
fn characters_have_the_classes_and_cases_of_postgres() {
    let characters = "(select i from generate_series(1, 1114111) i where i not between 55296 and 57343) s";
    let mut script = String::new();
    let patterns =
        ["[[:alpha:]]", "[[:punct:]]", "[[:print:]]", "[[:upper:]]", "[[:lower:]]", "[[:cntrl:]]", "\\s", "\\w", "\\d"];
    for p in patterns {
        let _ = writeln!(script, "select string_agg(i::text, ',' order by i) from {characters} where chr(i) ~ '{p}';");
    }
    for f in ["lower", "upper"] {
        let _ = writeln!(
            script,
            "select string_agg(i || ' ' || ascii({f}(chr(i))), ',' order by i) from {characters} where {f}(chr(i)) <> chr(i);"
        );
    }
    let answers = ask(script);
    let mut check = || Ok(());
    for (p, theirs) in patterns.iter().zip(&answers) {
        let regex = Regex::new(p, Flags::default()).expect("an expression");
        let mut text = [0; 4];
        let ours: Vec<String> = ('\u{1}'..=char::MAX)
            .filter(|c| regex.search(c.encode_utf8(&mut text), &mut check).is_match(0).expect("nobody interrupts"))
            .map(|c| u32::from(c).to_string())
            .collect();
        assert!(ours.join(",") == *theirs, "{p} differs");
    }
    for theirs in &answers[patterns.len()..] {
        for pair in theirs.split(',') {
            let (from, to) = pair.split_once(' ').expect("two characters");
            let char_of = |n: &str| char::from_u32(n.parse().expect("a number")).expect("a character");
            let pattern = format!("^\\U{:08x}$", u32::from(char_of(from)));
            let regex = Regex::new(&pattern, Flags { ignore_case: true, ..Flags::default() }).expect("an expression");
            let mut text = [0; 4];
            let text = char_of(to).encode_utf8(&mut text);
            assert!(regex.search(text, &mut check).is_match(0).expect("nobody interrupts"), "{pair}");
        }
    }
}
