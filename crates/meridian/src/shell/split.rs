//! Cutting typed text into statements and backslash commands.
//!
//! A statement ends at a semicolon outside quotes, comments and parentheses. Text comes line by
//! line, so what is unfinished is kept, and why it is unfinished shows in the prompt. Lexical
//! rules: PostgreSQL manual, §4.1 (nested comments, dollar quotes, `E''` strings with backslashes).

/// Something complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A statement, without its semicolon.
    Sql(String),
    /// A backslash command with its arguments, without the backslash.
    Command(String),
}

/// Inside what the text ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Inside {
    Nothing,
    /// A string; with `backslash`, one in which a backslash escapes.
    Single {
        backslash: bool,
    },
    Double,
    /// A dollar quote, by its whole delimiter.
    Dollar(String),
    /// Comments nest.
    Comment {
        depth: u32,
    },
}

/// Keeps what is not complete yet.
#[derive(Debug)]
pub struct Splitter {
    /// The statement so far.
    buffer: String,
    inside: Inside,
    parens: u32,
    /// Text that was fed and not looked at.
    rest: String,
}

impl Default for Splitter {
    fn default() -> Splitter {
        Splitter { buffer: String::new(), inside: Inside::Nothing, parens: 0, rest: String::new() }
    }
}

impl Splitter {
    /// Adds a line, with or without its newline.
    pub fn feed(&mut self, line: &str) {
        self.rest.push_str(line.trim_end_matches(['\n', '\r']));
        self.rest.push('\n');
    }

    /// The next complete piece.
    pub fn next(&mut self) -> Option<Piece> {
        let rest = std::mem::take(&mut self.rest);
        let mut at = 0;
        while let Some(c) = rest[at..].chars().next() {
            if self.inside == Inside::Nothing {
                match c {
                    ';' if self.parens == 0 => {
                        self.rest = rest[at + 1..].to_string();
                        match self.take_statement() {
                            Some(sql) => return Some(Piece::Sql(sql)),
                            None => return self.next(),
                        }
                    }
                    '\\' => {
                        let line = &rest[at + 1..];
                        let end = line.find('\n').unwrap_or(line.len());
                        self.rest = line[end..].to_string();
                        return Some(Piece::Command(line[..end].trim().to_string()));
                    }
                    _ => {}
                }
            }
            at += self.step(&rest[at..], c);
        }
        None
    }

    /// What is left when no more text comes: a statement without its semicolon.
    pub fn finish(&mut self) -> Option<String> {
        self.take_statement()
    }

    /// Forgets what is not complete.
    pub fn reset(&mut self) {
        *self = Splitter::default();
    }

    /// The statement so far.
    pub fn pending(&self) -> &str {
        self.buffer.trim()
    }

    /// Whether the next text begins a statement.
    pub fn is_empty(&self) -> bool {
        self.pending().is_empty() && self.inside == Inside::Nothing
    }

    /// The character before `#` in a prompt, as psql has it: `=` ready, `-` more of the statement,
    /// or what is to be closed.
    pub fn prompt_mark(&self) -> char {
        match &self.inside {
            Inside::Single { .. } => '\'',
            Inside::Double => '"',
            Inside::Dollar(_) => '$',
            Inside::Comment { .. } => '*',
            Inside::Nothing if self.parens > 0 => '(',
            Inside::Nothing if self.pending().is_empty() => '=',
            Inside::Nothing => '-',
        }
    }

    fn take_statement(&mut self) -> Option<String> {
        let sql = std::mem::take(&mut self.buffer).trim().to_string();
        self.inside = Inside::Nothing;
        self.parens = 0;
        (!is_only_comments(&sql)).then_some(sql)
    }

    /// Takes what begins `text` into the buffer; how many bytes that were.
    fn step(&mut self, text: &str, c: char) -> usize {
        let taken = match &mut self.inside {
            Inside::Nothing => return self.step_outside(text, c),
            Inside::Single { backslash: true } if c == '\\' => 1 + text[1..].chars().next().map_or(0, char::len_utf8),
            Inside::Single { .. } => {
                if c == '\'' {
                    self.inside = Inside::Nothing;
                }
                c.len_utf8()
            }
            Inside::Double => {
                if c == '"' {
                    self.inside = Inside::Nothing;
                }
                c.len_utf8()
            }
            Inside::Dollar(delimiter) => match text.starts_with(&**delimiter) {
                true => {
                    let len = delimiter.len();
                    self.inside = Inside::Nothing;
                    len
                }
                false => c.len_utf8(),
            },
            Inside::Comment { depth } => {
                if text.starts_with("/*") {
                    *depth += 1;
                    2
                } else if text.starts_with("*/") {
                    *depth -= 1;
                    if *depth == 0 {
                        self.inside = Inside::Nothing;
                    }
                    2
                } else {
                    c.len_utf8()
                }
            }
        };
        self.buffer.push_str(&text[..taken]);
        taken
    }

    fn step_outside(&mut self, text: &str, c: char) -> usize {
        let mut taken = c.len_utf8();
        match c {
            '\'' => self.inside = Inside::Single { backslash: self.is_after_escape_letter() },
            '"' => self.inside = Inside::Double,
            '(' => self.parens += 1,
            ')' => self.parens = self.parens.saturating_sub(1),
            '-' if text.starts_with("--") => taken = text.find('\n').unwrap_or(text.len()),
            '/' if text.starts_with("/*") => {
                self.inside = Inside::Comment { depth: 1 };
                taken = 2;
            }
            '$' if !self.buffer.ends_with(is_word) => {
                if let Some(delimiter) = dollar_delimiter(text) {
                    taken = delimiter.len();
                    self.inside = Inside::Dollar(delimiter.to_string());
                }
            }
            _ => {}
        }
        self.buffer.push_str(&text[..taken]);
        taken
    }

    /// Whether a quote here begins an `E''` string.
    fn is_after_escape_letter(&self) -> bool {
        let mut before = self.buffer.chars().rev();
        matches!(before.next(), Some('e' | 'E')) && !before.next().is_some_and(is_word)
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// `$$` or `$name$` at the start of a text; a parameter (`$1`) is neither.
fn dollar_delimiter(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 1;
    let tag = &text[1..end];
    let is_tag = tag.chars().all(|c| c.is_alphanumeric() || c == '_') && !tag.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| &text[..=end])
}

/// Whether a statement has nothing to run.
fn is_only_comments(sql: &str) -> bool {
    let mut rest = sql.trim_start();
    loop {
        if rest.starts_with("--") {
            rest = rest.split_once('\n').map_or("", |(_, after)| after).trim_start();
        } else if rest.starts_with("/*") {
            let mut depth = 0;
            let mut at = 0;
            while at < rest.len() {
                if rest[at..].starts_with("/*") {
                    (depth, at) = (depth + 1, at + 2);
                } else if rest[at..].starts_with("*/") {
                    (depth, at) = (depth - 1, at + 2);
                } else {
                    at += rest[at..].chars().next().map_or(1, char::len_utf8);
                }
                if depth == 0 {
                    break;
                }
            }
            rest = rest[at..].trim_start();
        } else {
            return rest.is_empty();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> (Vec<Piece>, Option<String>) {
        let mut splitter = Splitter::default();
        let mut pieces = Vec::new();
        for line in text.lines() {
            splitter.feed(line);
            while let Some(piece) = splitter.next() {
                pieces.push(piece);
            }
        }
        (pieces, splitter.finish())
    }

    fn statements(text: &str) -> Vec<String> {
        let (pieces, rest) = split(text);
        let all = pieces.into_iter().map(|p| match p {
            Piece::Sql(sql) => sql,
            Piece::Command(command) => format!("\\{command}"),
        });
        all.chain(rest).collect()
    }

    #[test]
    fn semicolons_end_statements() {
        assert_eq!(statements("select 1; select\n 2;;\n\nselect 3"), ["select 1", "select\n 2", "select 3"]);
    }

    #[test]
    fn semicolons_in_quotes_comments_and_parentheses_do_not() {
        for one in [
            "select 'a;b'",
            "select 'it''s;'",
            "select E'a\\';b'",
            "select \"a;b\"",
            "select $$a;b$$",
            "select $x$ $$;$y$ $x$",
            "select 1 -- ; not here",
            "select /* ; /* ; */ ; */ 1",
            "create rule r as (select 1; select 2)",
        ] {
            assert_eq!(statements(&format!("{one}\n; select 2;")), [one.trim(), "select 2"], "{one}");
        }
    }

    #[test]
    fn a_plain_string_keeps_its_backslash() {
        assert_eq!(statements("select 'a\\'; select 2;"), ["select 'a\\'", "select 2"]);
        assert_eq!(statements("select name'a\\'; select 2;"), ["select name'a\\'", "select 2"]);
    }

    #[test]
    fn parameters_and_names_are_no_dollar_quotes() {
        assert_eq!(statements("select $1; select $2;"), ["select $1", "select $2"]);
        assert_eq!(statements("select a$b; select c$d;"), ["select a$b", "select c$d"]);
    }

    #[test]
    fn commands_take_their_line_and_leave_the_statement() {
        assert_eq!(statements("\\d users\nselect 1;"), ["\\d users", "select 1"]);
        assert_eq!(statements("select 1; \\x\nselect 2;"), ["select 1", "\\x", "select 2"]);
        assert_eq!(statements("select\n\\timing\n3;"), ["\\timing", "select\n\n3"]);
        assert_eq!(statements("select '\\d'\n;"), ["select '\\d'"]);
    }

    #[test]
    fn comments_alone_are_no_statement() {
        assert_eq!(statements("-- nothing\n/* at /* all */ */ ;"), Vec::<String>::new());
        assert_eq!(statements("-- something\nselect 1;"), ["-- something\nselect 1"]);
    }

    #[test]
    fn the_prompt_says_what_is_open() {
        let mark = |text: &str| {
            let mut splitter = Splitter::default();
            splitter.feed(text);
            while splitter.next().is_some() {}
            splitter.prompt_mark()
        };
        let marks: String =
            ["", "select", "select 'a", "select \"a", "select (1", "select $$", "/* x", "select 1;"].map(mark).iter().collect();
        assert_eq!(marks, "=-'\"($*=");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_panics(text in "[a-e'\"$;/*()\\-\n é]{0,60}") {
            let (pieces, rest) = split(&text);
            let shown: String = pieces.iter().map(|p| match p { Piece::Sql(s) | Piece::Command(s) => s.as_str() }).chain(rest.as_deref()).collect();
            let letters = |s: &str| s.chars().filter(|c| c.is_alphabetic()).count();
            // Only comments without a statement may disappear.
            prop_assert!(letters(&shown) <= letters(&text));
            if !text.contains("--") && !text.contains("/*") {
                prop_assert_eq!(letters(&shown), letters(&text));
            }
        }
    }
}
