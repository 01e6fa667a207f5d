//! From text to `Ast`: PostgreSQL's three syntaxes of regular expressions (manual, 9.7.3.1 to
//! 9.7.3.4 and 9.7.3.7).
//!
//! A token is read when the one before it is consumed, in the context that the parser is in by
//! then: inside a bracket expression, a bound or outside. Advanced expressions are meant where
//! nothing else is said; `Extended` has neither escapes nor `(?…)`, in `Basic` parentheses and
//! braces take a backslash.

use crate::ast::{Assertion, Ast, Id, Node, UNBOUNDED};
use crate::ctype::{self, Class};
use crate::error::Error;
use crate::limits;
use crate::set::{CharSet, LAST};

/// Which of the syntaxes a pattern is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Syntax {
    #[default]
    Advanced,
    Extended,
    Basic,
    /// Every character stands for itself.
    Literal,
}

/// What may be said beside a pattern, and in `(?…)` at its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    pub syntax: Syntax,
    pub ignore_case: bool,
    /// White space and comments are skipped.
    pub expanded: bool,
    /// `.` and `[^…]` do not match a newline.
    pub newline_stops: bool,
    /// `^` and `$` match at every newline.
    pub newline_anchors: bool,
}

impl Flags {
    /// Takes one more option of a function's flags; false if there is none of that letter. The
    /// manual has extended expressions for `e`; PostgreSQL 15 reads basic ones, except in `(?e)`.
    pub fn set(&mut self, option: char) -> bool {
        self.set_one(option, Syntax::Basic)
    }

    fn set_one(&mut self, option: char, for_e: Syntax) -> bool {
        match option {
            'b' => self.syntax = Syntax::Basic,
            'c' => self.ignore_case = false,
            'e' => self.syntax = for_e,
            'i' => self.ignore_case = true,
            'm' | 'n' => (self.newline_stops, self.newline_anchors) = (true, true),
            'p' => (self.newline_stops, self.newline_anchors) = (true, false),
            'q' => self.syntax = Syntax::Literal,
            's' => (self.newline_stops, self.newline_anchors) = (false, false),
            't' => self.expanded = false,
            'w' => (self.newline_stops, self.newline_anchors) = (false, true),
            'x' => self.expanded = true,
            _ => return false,
        }
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    End,
    Plain(u32),
    Digit(u32),
    Comma,
    Backref(u32),
    /// `\d`, `\D` and their like.
    Class(Class, bool),
    Dot,
    Assert(Assertion),
    /// A parenthesis; does it capture?
    Open(bool),
    Look {
        ahead: bool,
        negative: bool,
    },
    Close,
    /// A bracket; is it `[^`?
    OpenBracket(bool),
    CloseBracket,
    Range,
    /// `[.`, `[=`, `[:`, by their second character.
    OpenName(u32),
    CloseName,
    Bar,
    /// `*`, `+`, `?`: least and most; greedy or not.
    Quantifier(u16, u16, bool),
    OpenBrace,
    CloseBrace(bool),
}

/// Where the next token is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    Outside,
    Bound,
    Bracket,
    /// In `[.…`, `[=…`, `[:…`, by that character.
    Name(u32),
}

struct Parser<'a> {
    text: &'a [u32],
    at: usize,
    flags: Flags,
    context: Context,
    token: Token,
    /// The token before `token`; `None` at the beginning.
    before: Option<Token>,
    ast: Ast,
    depth: u32,
}

const fn ch(c: char) -> u32 {
    c as u32
}

fn is_ascii(c: u32, test: fn(&u8) -> bool) -> bool {
    u8::try_from(c).is_ok_and(|b| b.is_ascii() && test(&b))
}

/// C's `isspace`: Rust's test leaves out the vertical tab.
fn is_space(c: u32) -> bool {
    matches!(c, 0x09..=0x0d | 0x20)
}

/// Reads a pattern. The flags are those that hold for it in the end.
pub fn parse(pattern: &str, flags: Flags) -> Result<(Ast, Id, Flags), Error> {
    if flags.syntax == Syntax::Literal && (flags.expanded || flags.newline_anchors || flags.newline_stops) {
        return Err(Error::Flags);
    }
    let text: Vec<u32> = pattern.chars().map(u32::from).collect();
    let mut p = Parser {
        text: &text,
        at: 0,
        flags,
        context: Context::Outside,
        token: Token::End,
        before: None,
        ast: Ast::default(),
        depth: 0,
    };
    p.prefixes()?;
    let root = if p.flags.syntax == Syntax::Literal {
        let mut items = Vec::new();
        for &c in &p.text[p.at..] {
            items.push(p.one(c)?);
        }
        p.ast.cat(&items)?
    } else {
        p.token = p.read()?;
        p.alternatives(false, false)?
    };
    Ok((p.ast, root, p.flags))
}

impl Parser<'_> {
    fn peek(&self, ahead: usize) -> Option<u32> {
        self.text.get(self.at + ahead).copied()
    }

    fn sees(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.peek(i) == Some(ch(c)))
    }

    /// Skips what is next if it is this character.
    fn eat(&mut self, c: char) -> bool {
        let found = self.peek(0) == Some(ch(c));
        self.at += usize::from(found);
        found
    }

    fn is_advanced(&self) -> bool {
        self.flags.syntax == Syntax::Advanced
    }

    /// `***:`, `***=` and `(?options)`.
    fn prefixes(&mut self) -> Result<(), Error> {
        if self.flags.syntax == Syntax::Literal {
            return Ok(());
        }
        if self.sees("***") && self.peek(3).is_some() {
            match self.peek(3) {
                Some(c) if c == ch('?') => return Err(Error::Version),
                Some(c) if c == ch('=') => {
                    let ignore_case = self.flags.ignore_case;
                    self.flags = Flags { syntax: Syntax::Literal, ignore_case, ..Flags::default() };
                    self.at += 4;
                    return Ok(());
                }
                Some(c) if c == ch(':') => {
                    self.flags.syntax = Syntax::Advanced;
                    self.at += 4;
                }
                _ => return Err(Error::QuantifierOperand),
            }
        }
        if self.is_advanced() && self.sees("(?") && self.peek(2).is_some_and(|c| is_ascii(c, u8::is_ascii_alphabetic)) {
            self.at += 2;
            while let Some(c) = self.peek(0).filter(|&c| is_ascii(c, u8::is_ascii_alphabetic)) {
                if !self.flags.set_one(char::from_u32(c).expect("ASCII"), Syntax::Extended) {
                    return Err(Error::EmbeddedOption);
                }
                self.at += 1;
            }
            if !self.eat(')') {
                return Err(Error::EmbeddedOption);
            }
            if self.flags.syntax == Syntax::Literal {
                self.flags = Flags { syntax: Syntax::Literal, ignore_case: self.flags.ignore_case, ..Flags::default() };
            }
        }
        Ok(())
    }

    // --- tokens

    fn next(&mut self) -> Result<(), Error> {
        self.before = Some(self.token);
        self.token = self.read()?;
        Ok(())
    }

    /// White space and comments of the expanded syntax.
    fn skip(&mut self) {
        loop {
            while self.peek(0).is_some_and(is_space) {
                self.at += 1;
            }
            if self.peek(0) != Some(ch('#')) {
                return;
            }
            while self.peek(0).is_some_and(|c| c != ch('\n')) {
                self.at += 1;
            }
        }
    }

    fn read(&mut self) -> Result<Token, Error> {
        loop {
            if self.flags.expanded && matches!(self.context, Context::Outside | Context::Bound) {
                self.skip();
            }
            let Some(c) = self.peek(0) else {
                return match self.context {
                    Context::Outside => Ok(Token::End),
                    Context::Bound => Err(Error::Braces),
                    Context::Bracket | Context::Name(_) => Err(Error::Brackets),
                };
            };
            self.at += 1;
            return match self.context {
                Context::Outside if self.flags.syntax == Syntax::Basic => self.read_basic(c),
                Context::Outside => match self.read_outside(c)? {
                    Some(token) => Ok(token),
                    // A comment.
                    None => continue,
                },
                Context::Bound => self.read_bound(c),
                Context::Bracket => self.read_bracket(c),
                Context::Name(kind) => {
                    if c == kind && self.eat(']') {
                        self.context = Context::Bracket;
                        return Ok(Token::CloseName);
                    }
                    Ok(Token::Plain(c))
                }
            };
        }
    }

    fn greedy(&mut self) -> bool {
        !(self.is_advanced() && self.eat('?'))
    }

    fn read_outside(&mut self, c: u32) -> Result<Option<Token>, Error> {
        let Some(known) = char::from_u32(c) else { return Ok(Some(Token::Plain(c))) };
        Ok(Some(match known {
            '|' => Token::Bar,
            '*' => Token::Quantifier(0, UNBOUNDED, self.greedy()),
            '+' => Token::Quantifier(1, UNBOUNDED, self.greedy()),
            '?' => Token::Quantifier(0, 1, self.greedy()),
            '{' => {
                if self.flags.expanded {
                    self.skip();
                }
                if self.peek(0).is_some_and(|c| is_ascii(c, u8::is_ascii_digit)) {
                    self.context = Context::Bound;
                    Token::OpenBrace
                } else {
                    Token::Plain(c)
                }
            }
            '(' if self.is_advanced() && self.eat('?') => return self.read_special(),
            '(' => Token::Open(true),
            ')' => Token::Close,
            '[' => self.open_bracket(),
            '.' => Token::Dot,
            '^' => Token::Assert(self.line_begin()),
            '$' => Token::Assert(self.line_end()),
            '\\' => {
                let Some(next) = self.peek(0) else { return Err(Error::Escape) };
                if self.is_advanced() {
                    self.read_escape()?
                } else {
                    self.at += 1;
                    Token::Plain(next)
                }
            }
            _ => Token::Plain(c),
        }))
    }

    fn line_begin(&self) -> Assertion {
        if self.flags.newline_anchors { Assertion::LineBegin } else { Assertion::Begin }
    }

    fn line_end(&self) -> Assertion {
        if self.flags.newline_anchors { Assertion::LineEnd } else { Assertion::End }
    }

    /// What follows `(?`; `None` for a comment.
    fn read_special(&mut self) -> Result<Option<Token>, Error> {
        let kind = self.peek(0).ok_or(Error::QuantifierOperand)?;
        self.at += 1;
        Ok(Some(match char::from_u32(kind) {
            Some(':') => Token::Open(false),
            Some('#') => {
                while self.peek(0).is_some_and(|c| c != ch(')')) {
                    self.at += 1;
                }
                self.at = (self.at + 1).min(self.text.len());
                return Ok(None);
            }
            Some('=') => Token::Look { ahead: true, negative: false },
            Some('!') => Token::Look { ahead: true, negative: true },
            Some('<') if self.eat('=') => Token::Look { ahead: false, negative: false },
            Some('<') if self.eat('!') => Token::Look { ahead: false, negative: true },
            _ => return Err(Error::QuantifierOperand),
        }))
    }

    /// What follows `[`, outside of brackets.
    fn open_bracket(&mut self) -> Token {
        for (text, assertion) in [("[:<:]]", Assertion::WordBegin), ("[:>:]]", Assertion::WordEnd)] {
            if self.sees(text) {
                self.at += 6;
                return Token::Assert(assertion);
            }
        }
        self.context = Context::Bracket;
        Token::OpenBracket(self.eat('^'))
    }

    fn read_basic(&mut self, c: u32) -> Result<Token, Error> {
        let is_first = matches!(self.before_or_none(), None | Some(Token::Open(_)));
        Ok(match char::from_u32(c) {
            Some('*') if !is_first => Token::Quantifier(0, UNBOUNDED, true),
            Some('[') => self.open_bracket(),
            Some('.') => Token::Dot,
            Some('^') if is_first => Token::Assert(self.line_begin()),
            Some('$') => {
                if self.flags.expanded {
                    self.skip();
                }
                if self.peek(0).is_none() || self.sees("\\)") { Token::Assert(self.line_end()) } else { Token::Plain(c) }
            }
            Some('\\') => {
                let next = self.peek(0).ok_or(Error::Escape)?;
                self.at += 1;
                match char::from_u32(next) {
                    Some('{') => {
                        self.context = Context::Bound;
                        Token::OpenBrace
                    }
                    Some('(') => Token::Open(true),
                    Some(')') => Token::Close,
                    Some('<') => Token::Assert(Assertion::WordBegin),
                    Some('>') => Token::Assert(Assertion::WordEnd),
                    Some(d @ '1'..='9') => Token::Backref(ch(d) - ch('0')),
                    _ => Token::Plain(next),
                }
            }
            _ => Token::Plain(c),
        })
    }

    /// The token before the one that is being read; `None` at the beginning.
    fn before_or_none(&self) -> Option<Token> {
        self.before.is_some().then_some(self.token)
    }

    fn read_bound(&mut self, c: u32) -> Result<Token, Error> {
        let is_basic = self.flags.syntax == Syntax::Basic;
        match char::from_u32(c) {
            Some(d @ '0'..='9') => Ok(Token::Digit(ch(d) - ch('0'))),
            Some(',') => Ok(Token::Comma),
            Some('}') if !is_basic => {
                self.context = Context::Outside;
                Ok(Token::CloseBrace(self.greedy()))
            }
            Some('\\') if is_basic && self.eat('}') => {
                self.context = Context::Outside;
                Ok(Token::CloseBrace(true))
            }
            _ => Err(Error::RepetitionCount),
        }
    }

    fn read_bracket(&mut self, c: u32) -> Result<Token, Error> {
        let is_first = matches!(self.token, Token::OpenBracket(_));
        match char::from_u32(c) {
            Some('\\') if self.is_advanced() => {
                if self.peek(0).is_none() {
                    return Err(Error::Escape);
                }
                match self.read_escape()? {
                    token @ (Token::Plain(_) | Token::Class(..)) => Ok(token),
                    _ => Err(Error::Escape),
                }
            }
            Some('-') if !is_first && self.peek(0) != Some(ch(']')) => Ok(Token::Range),
            Some(']') if !is_first => {
                self.context = Context::Outside;
                Ok(Token::CloseBracket)
            }
            Some('[') => match self.peek(0) {
                None => Err(Error::Brackets),
                Some(kind) if [ch('.'), ch('='), ch(':')].contains(&kind) => {
                    self.at += 1;
                    self.context = Context::Name(kind);
                    Ok(Token::OpenName(kind))
                }
                Some(_) => Ok(Token::Plain(c)),
            },
            _ => Ok(Token::Plain(c)),
        }
    }

    /// What follows a backslash of an advanced expression.
    fn read_escape(&mut self) -> Result<Token, Error> {
        let c = self.peek(0).ok_or(Error::Escape)?;
        self.at += 1;
        if !is_ascii(c, u8::is_ascii_alphanumeric) {
            return Ok(Token::Plain(c));
        }
        Ok(match char::from_u32(c).expect("ASCII") {
            'a' => Token::Plain(7),
            'A' => Token::Assert(Assertion::Begin),
            'b' => Token::Plain(8),
            'B' => Token::Plain(ch('\\')),
            'c' => {
                let of = self.peek(0).ok_or(Error::Escape)?;
                self.at += 1;
                Token::Plain(of & 0x1f)
            }
            'd' => Token::Class(Class::Digit, false),
            'D' => Token::Class(Class::Digit, true),
            'e' => Token::Plain(0x1b),
            'f' => Token::Plain(0x0c),
            'm' => Token::Assert(Assertion::WordBegin),
            'M' => Token::Assert(Assertion::WordEnd),
            'n' => Token::Plain(ch('\n')),
            'r' => Token::Plain(ch('\r')),
            's' => Token::Class(Class::Space, false),
            'S' => Token::Class(Class::Space, true),
            't' => Token::Plain(ch('\t')),
            'u' => Token::Plain(self.character(4, 4)?),
            'U' => Token::Plain(self.character(8, 8)?),
            'v' => Token::Plain(0x0b),
            'w' => Token::Class(Class::Word, false),
            'W' => Token::Class(Class::Word, true),
            'x' => Token::Plain(self.character(1, 255)?),
            'y' => Token::Assert(Assertion::WordBoundary),
            'Y' => Token::Assert(Assertion::NoWordBoundary),
            'Z' => Token::Assert(Assertion::End),
            '0' => self.octal()?,
            '1'..='9' => {
                let first = self.at;
                self.at -= 1;
                let number = self.digits(10, 1, 255)?;
                // Several digits are a reference only if that many groups have been opened.
                if self.at == first || (number > 0 && number as usize <= self.ast.groups.len() && number < 1 << 31) {
                    Token::Backref(number)
                } else {
                    self.at = first;
                    self.octal()?
                }
            }
            _ => return Err(Error::Escape),
        })
    }

    /// Up to three octal digits, of which the first was read; two, if three are more than a byte.
    fn octal(&mut self) -> Result<Token, Error> {
        self.at -= 1;
        let mut value = self.digits(8, 1, 3)?;
        if value > 0xff {
            self.at -= 1;
            value >>= 3;
        }
        Ok(Token::Plain(value))
    }

    fn digits(&mut self, base: u32, least: usize, most: usize) -> Result<u32, Error> {
        let (mut value, mut count) = (0u32, 0);
        while count < most {
            let digit = self.peek(0).and_then(char::from_u32).and_then(|c| c.to_digit(base));
            let Some(digit) = digit else { break };
            value = value.wrapping_mul(base).wrapping_add(digit);
            self.at += 1;
            count += 1;
        }
        if count < least { Err(Error::Escape) } else { Ok(value) }
    }

    fn character(&mut self, least: usize, most: usize) -> Result<u32, Error> {
        let value = self.digits(16, least, most)?;
        if value > LAST { Err(Error::Escape) } else { Ok(value) }
    }

    // --- structure

    /// One character, in both cases where they do not matter.
    fn one(&mut self, c: u32) -> Result<Id, Error> {
        let set = self.cases(c);
        self.ast.add_set(set)
    }

    fn cases(&self, c: u32) -> CharSet {
        if !self.flags.ignore_case {
            return CharSet::one(c);
        }
        let mut set = CharSet::one(ctype::to_lower(c));
        let upper = ctype::to_upper(c);
        set.add(upper, upper);
        set.tidy();
        set
    }

    fn class(&self, class: Class) -> CharSet {
        match class {
            Class::Lower | Class::Upper if self.flags.ignore_case => ctype::class(Class::Alpha),
            class => ctype::class(class),
        }
    }

    /// Branches up to a closing parenthesis, which stays, or to the end.
    fn alternatives(&mut self, in_group: bool, in_look: bool) -> Result<Id, Error> {
        self.depth += 1;
        // The pattern itself is one level.
        if self.depth > limits::NESTING + 1 {
            return Err(Error::TooComplex);
        }
        let mut branches = Vec::new();
        loop {
            let mut items = Vec::new();
            while !(matches!(self.token, Token::Bar | Token::End) || in_group && self.token == Token::Close) {
                if let Some(item) = self.quantified(in_look)? {
                    items.push(item);
                }
            }
            branches.push(self.ast.cat(&items)?);
            if self.token != Token::Bar {
                break;
            }
            self.next()?;
        }
        if in_group && self.token != Token::Close {
            return Err(Error::Parentheses);
        }
        self.depth -= 1;
        match branches[..] {
            [one] => Ok(one),
            _ => self.ast.add(Node::Alt(branches)),
        }
    }

    /// An atom with its quantifier, or a constraint, which takes none. `None` for what is repeated
    /// zero times.
    fn quantified(&mut self, in_look: bool) -> Result<Option<Id>, Error> {
        let node = match self.token {
            Token::Assert(assertion) => {
                self.next()?;
                return self.ast.add(Node::Assert(assertion)).map(Some);
            }
            Token::Look { ahead, negative } => {
                self.next()?;
                let node = self.alternatives(true, true)?;
                self.next()?;
                return self.ast.add(Node::Look { node, ahead, negative }).map(Some);
            }
            Token::Quantifier(..) | Token::OpenBrace => return Err(Error::QuantifierOperand),
            Token::Close if self.flags.syntax == Syntax::Extended => {
                self.next()?;
                self.one(ch(')'))?
            }
            Token::Close => return Err(Error::Parentheses),
            Token::Open(captures) if captures && !in_look => {
                self.ast.groups.push(None);
                let number = self.ast.groups.len();
                self.next()?;
                let node = self.alternatives(true, false)?;
                self.ast.groups[number - 1] = Some(node);
                self.next()?;
                self.ast.add(Node::Group(node, number as u32))?
            }
            Token::Open(_) => {
                self.next()?;
                let node = self.alternatives(true, in_look)?;
                self.next()?;
                match self.ast.node(node) {
                    // What is quantified inside is an atom to what is outside.
                    Node::Backref(_) | Node::Repeat { .. } => self.ast.add(Node::Cat(vec![node]))?,
                    _ => node,
                }
            }
            Token::Backref(number) => {
                if in_look || !matches!(self.ast.groups.get(number as usize - 1), Some(Some(_))) {
                    return Err(Error::BackReference);
                }
                self.next()?;
                self.ast.has_backrefs = true;
                self.ast.add(Node::Backref(number))?
            }
            Token::OpenBracket(is_negated) => {
                self.next()?;
                let set = self.bracket(is_negated)?;
                self.next()?;
                self.ast.add_set(set)?
            }
            Token::Class(class, is_negated) => {
                self.next()?;
                let set = self.class(class);
                self.ast.add_set(if is_negated { set.negated() } else { set })?
            }
            Token::Dot => {
                self.next()?;
                let all = CharSet::default().negated();
                self.ast.add_set(if self.flags.newline_stops { all.without(ch('\n')) } else { all })?
            }
            Token::Plain(c) => {
                self.next()?;
                self.one(c)?
            }
            Token::Digit(_)
            | Token::Comma
            | Token::CloseBracket
            | Token::Range
            | Token::OpenName(_)
            | Token::CloseName
            | Token::CloseBrace(_)
            | Token::Bar
            | Token::End => unreachable!("{:?} is not read outside of brackets and braces", self.token),
        };
        let (min, max, greedy) = match self.token {
            Token::Quantifier(min, max, greedy) => {
                self.next()?;
                (min, max, Some(greedy))
            }
            Token::OpenBrace => self.bound()?,
            _ => return Ok(Some(node)),
        };
        if max == 0 {
            return Ok(None);
        }
        self.ast.add(Node::Repeat { node, min, max, greedy }).map(Some)
    }

    /// `{m}`, `{m,}`, `{m,n}`.
    fn bound(&mut self) -> Result<(u16, u16, Option<bool>), Error> {
        self.next()?;
        let min = self.count()?;
        let (max, says) = if self.token == Token::Comma {
            self.next()?;
            let max = if matches!(self.token, Token::Digit(_)) { self.count()? } else { UNBOUNDED };
            if min > max {
                return Err(Error::RepetitionCount);
            }
            (max, true)
        } else {
            (min, false)
        };
        let Token::CloseBrace(greedy) = self.token else { return Err(Error::RepetitionCount) };
        self.next()?;
        Ok((min, max, says.then_some(greedy)))
    }

    fn count(&mut self) -> Result<u16, Error> {
        let mut n = 0;
        while let Token::Digit(d) = self.token {
            n = n * 10 + d;
            if n > limits::REPETITIONS {
                return Err(Error::RepetitionCount);
            }
            self.next()?;
        }
        Ok(n as u16)
    }

    /// What is between the brackets; the closing one stays.
    fn bracket(&mut self, is_negated: bool) -> Result<CharSet, Error> {
        let mut set = CharSet::default();
        while self.token != Token::CloseBracket {
            let from = match self.token {
                Token::Range => return Err(Error::CharacterRange),
                Token::Plain(c) => {
                    self.next()?;
                    if self.token != Token::Range {
                        set.add_all(&self.cases(c));
                        continue;
                    }
                    c
                }
                Token::OpenName(kind) if kind == ch('.') => self.collating_element()?,
                Token::OpenName(kind) if kind == ch('=') => {
                    let c = self.collating_element()?;
                    set.add_all(&self.cases(c));
                    continue;
                }
                Token::OpenName(_) => {
                    let name = self.name(Error::CharacterClass)?;
                    let name: Option<String> = name.iter().map(|&c| char::from_u32(c)).collect();
                    let class = name.and_then(|n| Class::named(&n)).ok_or(Error::CharacterClass)?;
                    set.add_all(&self.class(class));
                    continue;
                }
                Token::Class(class, is_negated) => {
                    self.next()?;
                    let class = self.class(class);
                    set.add_all(&if is_negated { class.negated() } else { class });
                    continue;
                }
                other => unreachable!("{other:?} is not read inside brackets"),
            };
            let mut to = from;
            if self.token == Token::Range {
                self.next()?;
                to = match self.token {
                    Token::Plain(c) => {
                        self.next()?;
                        c
                    }
                    Token::Range => {
                        self.next()?;
                        ch('-')
                    }
                    Token::OpenName(kind) if kind == ch('.') => self.collating_element()?,
                    _ => return Err(Error::CharacterRange),
                };
            }
            if from > to {
                return Err(Error::CharacterRange);
            }
            set.add(from, to);
            if self.flags.ignore_case {
                ctype::add_cases(&mut set, from, to);
            }
        }
        set.tidy();
        Ok(match is_negated {
            true if self.flags.newline_stops => set.negated().without(ch('\n')),
            true => set.negated(),
            false => set,
        })
    }

    /// The name inside `[.…` and its like.
    fn name(&mut self, if_empty: Error) -> Result<Vec<u32>, Error> {
        self.next()?;
        let mut name = Vec::new();
        while let Token::Plain(c) = self.token {
            name.push(c);
            self.next()?;
        }
        self.next()?;
        if name.is_empty() { Err(if_empty) } else { Ok(name) }
    }

    fn collating_element(&mut self) -> Result<u32, Error> {
        let name = self.name(Error::CollatingElement)?;
        ctype::collating_element(&name).ok_or(Error::CollatingElement)
    }
}
