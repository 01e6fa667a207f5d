//! Text to statements.
//!
//! sqlparser (PostgreSQL dialect) does the grammar. Around it, at the level of tokens:
//!
//! * a query string is cut into statements, and each keeps its own text, so that errors and
//!   `pg_stat_activity` can show it;
//! * depth is bounded before anything recursive sees the tokens (54001), because a tree that is too
//!   deep could not even be dropped without overflowing the stack;
//! * the multi-region statements, and the PostgreSQL statements sqlparser lacks, are parsed here
//!   ([`extra`]);
//! * clauses it lacks inside statements it has (`LOCALITY`, `AS OF SYSTEM TIME`, `OVERRIDING`, `FOR
//!   NO KEY UPDATE`) are cut out or rewritten ([`rewrite`]; CockroachDB's in [`cockroach`]).
//!
//! A syntax error is PostgreSQL's: 42601, «syntax error at or near "x"», with its position.

mod cockroach;
mod cursor;
mod escrow;
mod extra;
mod fingerprint;
mod foreign;
mod ident;
mod missing;
mod rewrite;
mod role_statement;
mod roles;
mod statement;
mod tokens;

pub(crate) use escrow::{ShowEscrow, show_escrow};
pub use fingerprint::{Fingerprint, Literal, LiteralKind, fingerprint};
pub use ident::{fold, truncate};
pub use role_statement::*;
pub(crate) use roles::reserved;
pub use roles::without_passwords;
pub use sqlparser::ast;
pub use statement::*;

use cursor::Cursor;
use meridian_base::{Error, Result};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, TokenizerError};
use std::ops::Range;

/// The quotation mark of a name that is a `SHOW` statement.
pub(crate) const SHOWN: char = '[';
/// How deep sqlparser may recurse. A level costs up to 10 KiB of stack.
const RECURSION_MAX: usize = 64;
/// How many `AND`/`OR` may follow each other: such chains are flattened as soon as they are bound.
const CHAIN_MAX: usize = 2_000;
/// How many other operators may follow each other: each is a level of the tree.
const OPERATORS_MAX: usize = 160;
/// How many `CASE`s may be inside one another, or prefix operators follow one another: sqlparser,
/// at its limit, would try other readings and report a syntax error.
const CASES_MAX: usize = 24;
/// Longest statement text: about what one message may carry and still be parsed in memory.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// Parses a query string of any number of statements.
pub fn parse(text: &str) -> Result<Vec<Statement>> {
    let mut statements = Vec::new();
    parse_each(text, |statement| statements.push(statement))?;
    Ok(statements)
}

/// A statement of a query string.
#[derive(Debug)]
pub(crate) enum Piece {
    Parsed(Box<Statement>),
    /// One of very many: where it is in the text. It has no syntax error.
    Checked(Range<usize>),
}

/// So many statements of a query string are kept as they were parsed: one takes 16 KB.
const PARSED_MAX: usize = 1_000;

/// The same for a query string of any length. A syntax error is found before the first statement is
/// run, wherever it is.
pub(crate) fn parse_string(text: &str) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    parse_each(text, |statement| {
        let start = statement.offset as usize;
        pieces.push(match pieces.len() < PARSED_MAX {
            true => Piece::Parsed(Box::new(statement)),
            false => Piece::Checked(start..start + statement.text.len()),
        });
    })?;
    Ok(pieces)
}

fn parse_each(text: &str, mut each: impl FnMut(Statement)) -> Result<()> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::sql("54000", format!("query string is longer than {} MiB", TEXT_BYTES_MAX >> 20)));
    }
    let dialect = PostgreSqlDialect {};
    let tokens = tokens_of(&dialect, text)?;
    let mut offsets = Offsets::new(text);
    let solid = without_space(tokens);
    for part in solid.split(|t| t.token == Token::SemiColon) {
        let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
        let start = offsets.of(first.span.start);
        let end = offsets.of(last.span.end).max(start);
        let place = Place { text: &text[start..end] };
        let tokens = rebased(part, first.span.start);
        let truncated = tokens.iter().filter_map(ident::truncated).collect();
        let (kind, cut) = check_depth(&tokens, &place).and_then(|()| parse_one(tokens, &place)).map_err(|e| {
            let e = missing::explained(e, &rebased(part, first.span.start), &place);
            match e.get_position() {
                Some(p) => e.at(p + start as u32),
                None => e,
            }
        })?;
        each(Statement {
            kind,
            text: place.text.to_string(),
            offset: start as u32,
            as_of: cut.as_of,
            overriding: cut.overriding,
            row_locks: cut.row_locks,
            ignored: cut.said.ignored,
            truncated,
        });
    }
    Ok(())
}

fn tokens_of(dialect: &PostgreSqlDialect, text: &str) -> Result<Vec<TokenWithSpan>> {
    let failed = |e: TokenizerError| lexical_error(text, &e.message, e.location);
    let tokens = Tokenizer::new(dialect, text).tokenize_with_location().map_err(failed)?;
    let is_empty_name = |t: &&TokenWithSpan| matches!(&t.token, Token::Word(w) if w.quote_style.is_some() && w.value.is_empty());
    if let Some(t) = tokens.iter().find(is_empty_name) {
        let message = "zero-length delimited identifier at or near \"\"\"\"";
        return Err(Error::sql("42601", message).at(Place { text }.position(t.span.start)));
    }
    if let Some((junk, start)) = (0..tokens.len()).find_map(|at| junk_after(&tokens, at)) {
        let message = format!("trailing junk after numeric literal at or near \"{junk}\"");
        return Err(Error::sql("42601", message).at(Place { text }.position(start)));
    }
    let has_sign = |t: &TokenWithSpan| matches!(&t.token, Token::CustomBinaryOperator(op) if op.ends_with(['+', '-']));
    if !tokens.iter().any(has_sign) {
        return Ok(tokens);
    }
    let mut apart = Vec::with_capacity(tokens.len() + 2);
    for token in tokens {
        without_signs(dialect, token, &mut apart).map_err(failed)?;
    }
    Ok(apart)
}

/// A number and what follows it without a space, if it looks like a name (PostgreSQL 15, release
/// notes), and where it begins. A region may be called `ap-south-1a`.
fn junk_after(tokens: &[TokenWithSpan], at: usize) -> Option<(String, Location)> {
    let Token::Number(number, _) = &tokens[at].token else { return None };
    let before = at.checked_sub(2).map(|word| (&tokens[word].token, &tokens[word + 1].token));
    let start = tokens[at].span.start;
    match tokens.get(at + 1).map(|t| &t.token) {
        _ if matches!(before, Some((Token::Word(_), Token::Minus))) => None,
        Some(Token::Word(w)) if w.quote_style.is_none() => Some((format!("{number}{}", w.value), start)),
        _ => number.contains('_').then(|| (number.clone(), start)),
    }
}

/// Leaves white space out. String literals on several lines are one (PostgreSQL, 4.1.2.1).
fn without_space(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut solid: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for mut t in tokens {
        if matches!(t.token, Token::Whitespace(_)) {
            continue;
        }
        if let (Token::SingleQuotedString(more), Some(last)) = (&mut t.token, solid.last_mut())
            && let Token::SingleQuotedString(begun) = &mut last.token
            && last.span.end.line < t.span.start.line
        {
            begun.push_str(more);
            last.span.end = t.span.end;
            continue;
        }
        solid.push(t);
    }
    solid
}

/// `a >-1` is a comparison with a negative number: an operator of several characters ends in a sign
/// only if it has one of some others in it (PostgreSQL, lexical structure of operators).
fn without_signs(
    dialect: &PostgreSqlDialect,
    t: TokenWithSpan,
    out: &mut Vec<TokenWithSpan>,
) -> std::result::Result<(), TokenizerError> {
    const MAY_END_IN_SIGNS: [char; 10] = ['~', '!', '@', '#', '%', '^', '&', '|', '`', '?'];
    let Token::CustomBinaryOperator(op) = &t.token else {
        out.push(t);
        return Ok(());
    };
    let bare = op.trim_end_matches(['+', '-']);
    if bare.is_empty() || op.contains(MAY_END_IN_SIGNS) {
        out.push(t);
        return Ok(());
    }
    let mut at = t.span.start;
    let mut push = |token: Token, len: usize| {
        let end = Location { column: at.column + len as u64, ..at };
        out.push(TokenWithSpan::new(token, Span::new(at, end)));
        at = end;
    };
    for token in Tokenizer::new(dialect, bare).tokenize()? {
        let len = token.to_string().len();
        push(token, len);
    }
    for sign in op[bare.len()..].chars() {
        push(if sign == '-' { Token::Minus } else { Token::Plus }, 1);
    }
    Ok(())
}

/// Parses exactly one statement; an empty text is [`Kind::Empty`].
pub fn parse_one_statement(text: &str) -> Result<Statement> {
    let mut all = parse(text)?;
    match all.len() {
        0 => Ok(Statement {
            kind: Kind::Empty,
            text: String::new(),
            offset: 0,
            as_of: None,
            overriding: None,
            row_locks: RowLocks::default(),
            ignored: Vec::new(),
            truncated: Vec::new(),
        }),
        1 => Ok(all.remove(0)),
        _ => Err(Error::sql("42601", "cannot insert multiple commands into a prepared statement")),
    }
}

/// Parses a scalar expression: a default, a check, a predicate of an index, as descriptors store
/// them.
pub fn parse_expression(text: &str) -> Result<ast::Expr> {
    let dialect = PostgreSqlDialect {};
    let tokens = tokens_of(&dialect, text)?;
    let place = Place { text };
    check_depth(&tokens, &place)?;
    let mut parser = Parser::new(&dialect).with_recursion_limit(RECURSION_MAX).with_tokens_with_locations(tokens);
    let expr = parser.parse_expr().map_err(|e| place.error(&parser, e))?;
    match parser.peek_token_ref() {
        t if t.token == Token::EOF => Ok(expr),
        t => Err(place.near(t.span.start)),
    }
}

/// The expression that some tokens begin with, and how many of them it takes.
fn expression_at_start(tokens: &[TokenWithSpan], place: &Place) -> Result<(ast::Expr, usize)> {
    check_depth(tokens, place)?;
    let dialect = PostgreSqlDialect {};
    let mut parser = Parser::new(&dialect).with_recursion_limit(RECURSION_MAX).with_tokens_with_locations(tokens.to_vec());
    let e = parser.parse_expr().map_err(|e| place.error(&parser, e))?;
    Ok((e, parser.index()))
}

/// The type that a name such as `numeric(10,2)` or `timestamptz[]` means to the parser.
pub fn parse_data_type(text: &str) -> Result<ast::DataType> {
    let dialect = PostgreSqlDialect {};
    let tokens = tokens_of(&dialect, text)?;
    let place = Place { text };
    check_depth(&tokens, &place)?;
    let mut parser = Parser::new(&dialect).with_recursion_limit(RECURSION_MAX).with_tokens_with_locations(tokens);
    let ty = parser.parse_data_type().map_err(|e| place.error(&parser, e))?;
    match parser.peek_token_ref() {
        t if t.token == Token::EOF => Ok(ty),
        t => Err(place.near(t.span.start)),
    }
}

impl Statement {
    /// A statement inside another one: what `PREPARE` and `EXPLAIN` are about. Shares the text of
    /// the outer one, so that positions stay right.
    pub fn inner(&self, statement: ast::Statement) -> Statement {
        Statement { kind: Kind::Sql(Box::new(statement)), ..self.clone() }
    }
}

/// The tokens of a statement with locations relative to its own text.
fn rebased(tokens: &[TokenWithSpan], start: Location) -> Vec<TokenWithSpan> {
    let rebase = |l: Location| Location {
        line: l.line - start.line + 1,
        column: if l.line == start.line { l.column - start.column + 1 } else { l.column },
    };
    let rebase_token = |t: &TokenWithSpan| {
        let mut t = t.clone();
        (t.span.start, t.span.end) = (rebase(t.span.start), rebase(t.span.end));
        t
    };
    tokens.iter().map(rebase_token).collect()
}

fn parse_one(mut tokens: Vec<TokenWithSpan>, place: &Place) -> Result<(Kind, rewrite::Cut)> {
    let as_of = rewrite::cut_as_of(&mut tokens, place)?;
    let mut cursor = Cursor::new(&tokens, place);
    let extra = match roles::parse(&mut cursor)? {
        Some(kind) => Some(kind),
        None => extra::parse(&mut cursor)?,
    };
    if let Some(kind) = extra {
        let said = cockroach::Said { ignored: cursor.ignored, ..Default::default() };
        return Ok((kind, rewrite::Cut { as_of, said, ..rewrite::Cut::default() }));
    }
    foreign::refuse_options(&tokens, place)?;
    let (tokens, mut cut) = rewrite::rewrite(tokens, place)?;
    cut.as_of = as_of;
    let dialect = PostgreSqlDialect {};
    let mut parser = Parser::new(&dialect).with_recursion_limit(RECURSION_MAX).with_tokens_with_locations(tokens);
    let mut parsed = parser.parse_statement().map_err(|e| place.error(&parser, e))?;
    let rest = parser.peek_token_ref();
    if rest.token != Token::EOF {
        return Err(place.near(rest.span.start));
    }
    foreign::refuse(&parsed)?;
    cut.restore(&mut parsed);
    let kind = match (parsed, cut.locality.take()) {
        (ast::Statement::CreateTable(table), locality) => {
            let indexes = std::mem::take(&mut cut.said.indexes);
            Kind::CreateTable { table: Box::new(table), locality, indexes }
        }
        (ast::Statement::CreateIndex(create), None) => {
            Kind::CreateIndex(Box::new(NewIndex { create, is_visible: !cut.said.hides_index }))
        }
        (parsed, _) => Kind::Sql(Box::new(parsed)),
    };
    Ok((kind, cut))
}

/// Refuses what would recurse too deep: see the constants above.
fn check_depth(tokens: &[TokenWithSpan], place: &Place) -> Result<()> {
    // Per open parenthesis: operators and AND/ORs since the last comma.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let (mut operators, mut links) = (0usize, 0usize);
    let (mut operators_below, mut links_below) = (0usize, 0usize);
    // Set operations and statements within statements: counted over the whole text, which is coarse
    // and enough.
    let (mut levels, mut cases) = (0usize, 0usize);
    // Prefix operators in a row.
    let mut prefixes = 0usize;
    for t in tokens {
        prefixes = match &t.token {
            Token::Minus | Token::Plus | Token::Tilde => prefixes + 1,
            Token::Word(w) if is_word(&w.value, &["not"]) => prefixes + 1,
            Token::Whitespace(_) => prefixes,
            _ => 0,
        };
        match &t.token {
            Token::Whitespace(_) => continue,
            Token::LParen | Token::LBracket => {
                if t.token == Token::LBracket {
                    operators += 1;
                }
                open.push((operators, links));
                operators_below += operators;
                links_below += links;
                (operators, links) = (0, 0);
            }
            Token::RParen | Token::RBracket => {
                if let Some((o, l)) = open.pop() {
                    operators_below -= o;
                    links_below -= l;
                    (operators, links) = (o, l);
                }
            }
            Token::Comma => (operators, links) = (0, 0),
            Token::Word(w) if w.quote_style.is_none() => match () {
                _ if is_word(&w.value, &["and", "or"]) => {
                    links += 1;
                    operators = 0;
                }
                _ if is_word(
                    &w.value,
                    &["is", "not", "in", "like", "ilike", "between", "collate", "at", "isnull", "notnull"],
                ) =>
                {
                    operators += 1
                }
                // The arms of a CASE stand beside each other.
                _ if is_word(&w.value, &["when", "then", "else"]) => (operators, links) = (operators.min(40), 0),
                _ if is_word(&w.value, &["case"]) => cases += 1,
                _ if is_word(&w.value, &["end"]) => cases = cases.saturating_sub(1),
                _ if is_word(&w.value, &["union", "except", "intersect", "explain"]) => levels += 1,
                _ if is_word(&w.value, &["select", "from", "where", "having", "values", "on"]) => {
                    (operators, links) = (operators.min(40), 0)
                }
                _ => {}
            },
            Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) | Token::Period => {}
            _ => operators += 1,
        }
        if operators + operators_below > OPERATORS_MAX
            || links + links_below > CHAIN_MAX
            || levels > OPERATORS_MAX
            || cases.max(prefixes) > CASES_MAX
            || open.len() > 4 * RECURSION_MAX
        {
            return Err(too_deep().at(place.position(t.span.start)));
        }
    }
    Ok(())
}

fn is_word(word: &str, of: &[&str]) -> bool {
    of.iter().any(|o| word.eq_ignore_ascii_case(o))
}

pub(crate) fn too_deep() -> Error {
    Error::sql("54001", "stack depth limit exceeded").hint("Write the statement with fewer levels of nesting.")
}

/// A statement's text; makes errors with positions in it.
struct Place<'a> {
    text: &'a str,
}

impl Place<'_> {
    /// Position of a location, from 1 on.
    fn position(&self, at: Location) -> u32 {
        Offsets::new(self.text).of(at) as u32 + 1
    }
    /// «syntax error at or near …».
    fn near(&self, at: Location) -> Error {
        let offset = Offsets::new(self.text).of(at);
        match token_text(&self.text[offset..]) {
            "" | ";" => self.end(),
            near => Error::sql("42601", format!("syntax error at or near \"{near}\"")).at(offset as u32 + 1),
        }
    }
    /// «syntax error at end of input».
    fn end(&self) -> Error {
        Error::sql("42601", "syntax error at end of input").at(self.text.len() as u32 + 1)
    }
    /// sqlparser's error as PostgreSQL would say it.
    fn error(&self, parser: &Parser, e: ParserError) -> Error {
        let message = match e {
            ParserError::RecursionLimitExceeded => return too_deep(),
            ParserError::TokenizerError(m) | ParserError::ParserError(m) => m,
        };
        match location_in(&message) {
            Some(at) => self.near(at),
            None if message.contains("found: EOF") => self.end(),
            None => self.near(parser.get_current_token().span.start).detail(message),
        }
    }
}

/// sqlparser appends « at Line: 1, Column: 8».
fn location_in(message: &str) -> Option<Location> {
    let (_, tail) = message.rsplit_once(" at Line: ")?;
    let (line, column) = tail.split_once(", Column: ")?;
    let location = Location { line: line.parse().ok()?, column: column.trim().parse().ok()? };
    (location.line > 0).then_some(location)
}

/// The token that a text begins with, as an error message shows it.
fn token_text(text: &str) -> &str {
    let word = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(text.len());
    if word > 0 {
        return &text[..word];
    }
    let mut chars = text.char_indices();
    let Some((_, first)) = chars.next() else { return "" };
    if first == '\'' || first == '"' {
        let end = text[1..].find(first).map_or(text.len(), |i| i + 2);
        return &text[..end];
    }
    &text[..first.len_utf8()]
}

fn lexical_error(text: &str, message: &str, at: Location) -> Error {
    let offset = Offsets::new(text).of(at);
    let what = match message {
        m if m.contains("nterminated") && m.contains("comment") => "unterminated /* comment",
        m if m.contains("comment") => "unterminated /* comment",
        m if m.contains("dollar") => "unterminated dollar-quoted string",
        m if m.contains("identifier") || m.contains("delimite") => "unterminated quoted identifier",
        m if m.contains("nterminated") => "unterminated quoted string",
        _ => "syntax error",
    };
    let near = &text[offset..];
    let near = &near[..near.char_indices().nth(40).map_or(near.len(), |(i, _)| i)];
    Error::sql("42601", format!("{what} at or near \"{}\"", near.trim_end())).at(offset as u32 + 1)
}

/// Turns the tokenizer's lines and columns (in characters, from 1 on) into byte offsets, in one
/// walk for ascending locations.
struct Offsets<'a> {
    text: &'a str,
    at: usize,
    line: u64,
    column: u64,
}

impl<'a> Offsets<'a> {
    fn new(text: &'a str) -> Offsets<'a> {
        Offsets { text, at: 0, line: 1, column: 1 }
    }
    fn of(&mut self, location: Location) -> usize {
        if (location.line, location.column) < (self.line, self.column) {
            *self = Offsets::new(self.text);
        }
        for c in self.text[self.at..].chars() {
            if (self.line, self.column) >= (location.line, location.column) {
                break;
            }
            self.at += c.len_utf8();
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.at
    }
}

/// The position of a span in a statement's text, from 1 on; `None` for what was not in the text.
pub(crate) fn position_in(text: &str, span: sqlparser::tokenizer::Span) -> Option<u32> {
    (span.start.line > 0).then(|| Offsets::new(text).of(span.start) as u32 + 1)
}

#[cfg(test)]
mod tests;
