//! Examples of the manual, and the bounds.

use crate::{Error, Flags, Interrupted, Regex};

fn flags(options: &str) -> Flags {
    let mut flags = Flags::default();
    assert!(options.chars().all(|c| flags.set(c)));
    flags
}

/// What was matched and captured, `-` for nothing, or why not.
fn found(text: &str, pattern: &str, options: &str) -> String {
    let regex = match Regex::new(pattern, flags(options)) {
        Ok(regex) => regex,
        Err(e) => return e.reason().to_string(),
    };
    let mut check = || Ok(());
    let mut search = regex.search(text, &mut check);
    let Some((from, to)) = search.captures_at(0).expect("nobody interrupts") else { return "no match".into() };
    let groups = (1..=regex.groups()).map(|g| search.group(g).map_or("-", |(from, to)| &text[from..to]));
    std::iter::once(&text[from..to]).chain(groups).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_leftmost_match_is_as_long_or_short_as_preferred() {
    assert_eq!(found("foobar", "foo|foobar", ""), "foobar");
    assert_eq!(found("xyz", ".|...", ""), "xyz");
    assert_eq!(found("XY1234Z", "Y*([0-9]{1,3})", ""), "Y123 123");
    assert_eq!(found("XY1234Z", "Y*?([0-9]{1,3})", ""), "Y1 1");
    assert_eq!(found("abc01234xyz", "(.*)(\\d+)(.*)", ""), "abc01234xyz abc0123 4 xyz");
    assert_eq!(found("abc01234xyz", "(.*?)(\\d+)(.*)", ""), "abc0 abc 0 ");
    assert_eq!(found("abc01234xyz", "(?:(.*?)(\\d+)(.*)){1,1}", ""), "abc01234xyz abc 01234 xyz");
    assert_eq!(found("abcd", "a(b|bc)(cd|d)?", ""), "abcd bc d");
}

#[test]
fn groups_that_repeat_keep_the_last_repetition() {
    assert_eq!(found("ab", "(a*)*", ""), "a a");
    assert_eq!(found("ab", "(a*)+", ""), "a ");
    assert_eq!(found("aXbX", "(?:(a)|(b)|X)*", ""), "aXbX - -");
    assert_eq!(found("bb", "(b{2}|n?)\\1|b{2,3}", ""), "bb -");
}

#[test]
fn syntaxes_and_options() {
    assert_eq!(found("a.c abc", "***=a.c", ""), "a.c");
    assert_eq!(found("ABC", "(?i)b", ""), "B");
    assert_eq!(found("a\nb", "a.b", "n"), "no match");
    assert_eq!(found("a\nb", "^b$", "w"), "b");
    assert_eq!(found("ab", "a b # comment", "x"), "ab");
    assert_eq!(found("aa|", "\\(a\\)\\1|", "b"), "aa| a");
    assert_eq!(found("foo bar", "\\mb\\w+\\M", ""), "bar");
    assert_eq!(found("price 42", "(?<=e )\\d+(?!x)", ""), "42");
    assert_eq!(found("é", "[[=é=]]", ""), "é");
    assert_eq!(found("É", "é", "i"), "É");
}

#[test]
fn what_is_wrong_is_said() {
    for (pattern, reason) in [
        ("a(", "parentheses () not balanced"),
        ("a)", "parentheses () not balanced"),
        ("[a", "brackets [] not balanced"),
        ("a{1", "braces {} not balanced"),
        ("a{2,1}", "invalid repetition count(s)"),
        ("a{256}", "invalid repetition count(s)"),
        ("*a", "quantifier operand invalid"),
        ("a**", "quantifier operand invalid"),
        ("\\q", "invalid escape \\ sequence"),
        ("(a)\\2", "invalid backreference number"),
        ("[b-a]", "invalid character range"),
        ("[[:foo:]]", "invalid character class"),
        ("[[.foo.]]", "invalid collating element"),
        ("(?z)a", "invalid embedded option"),
    ] {
        assert_eq!(found("a", pattern, ""), reason, "{pattern}");
    }
    assert_eq!(Regex::new("a", flags("qx")).err(), Some(Error::Flags));
}

#[test]
fn what_costs_too_much_is_refused() {
    for pattern in [
        "(".repeat(251) + &")".repeat(251),
        "(".repeat(100_000),
        "((a{255}){255}){255}".to_string(),
        "(?:(?:(?:(?:){255}){255}){255}){255}".to_string() + &"(?:a{255}){255}".repeat(3),
        "(a)".to_string() + &(1..60).map(|n| format!("(\\{n}\\{n})")).collect::<String>(),
    ] {
        assert_eq!(Regex::new(&pattern, Flags::default()).err(), Some(Error::TooComplex));
    }
    let nested = "(".repeat(250) + "a" + &")".repeat(250);
    assert!(found("ba", &nested, "").starts_with("a a"));
    let many = "(a?)".repeat(900);
    assert!(found("aaa", &many, "").starts_with("aaa a a a  "));
    // The tree of parts is as deep, and a reference makes its division recurse.
    assert!(found("aaa", &(many + "\\1"), "").starts_with("aaa "));
}

#[test]
fn a_search_can_be_ended() {
    let regex = Regex::new("(a*)*\\1b", Flags::default()).expect("an expression");
    let text = "a".repeat(400);
    let mut checks = 0;
    let mut check = || {
        checks += 1;
        if checks < 5 { Ok(()) } else { Err(Interrupted) }
    };
    assert!(regex.search(&text, &mut check).is_match(0).is_err() || checks < 5);
    let mut stop = || Err(Interrupted);
    let regex = Regex::new("(a|b)*\\1c(?=d)|x", Flags::default()).expect("an expression");
    assert_eq!(regex.search(&"ab".repeat(100_000), &mut stop).find_at(0), Err(Interrupted));
}

#[test]
fn nested_repetitions_are_divided_in_polynomial_time() {
    let text = "a".repeat(300);
    assert!(found(&text, "((a|aa|aaaaa)*)*", "").starts_with(&text));
    assert_eq!(found(&format!("{text}b"), "(?:(aa|aaa){0,200})*c", ""), "no match");
    assert!(found(&format!("{text}a"), "(aa|aaaaaaa){0,255}", "").starts_with("aaaa"));
}
