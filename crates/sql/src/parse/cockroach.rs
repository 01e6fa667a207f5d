//! What CockroachDB's schemas and statements say, in PostgreSQL's words: token by token, before
//! sqlparser sees them.
//!
//! | CockroachDB | here |
//! | --- | --- |
//! | `INDEX`, `UNIQUE INDEX` in `CREATE TABLE` | indexes that are created with the table |
//! | `FAMILY`, `USING HASH` | nothing, with a notice: they tune a storage layout that is not this one |
//! | `NOT VISIBLE` columns | hidden columns: read and written by name, and no part of `*` |
//! | `NOT VISIBLE` indexes | hidden indexes: kept, and no query is answered from them |
//! | `value:::type` | `value::type` |
//! | `table@index` | the table, with a notice: plans choose indexes |
//! | `FROM [SHOW …]`, `WITH name AS (SHOW …)` | a table whose name is the statement, in quotation marks of its own |
//! | `ESCROW` columns, which are Meridian's own | the same |
//! | `SHOW ESCROW …`, which is Meridian's own | `SELECT * FROM [SHOW ESCROW …]` |
//! | `UPSERT` | `INSERT … ON CONFLICT (primary key) DO UPDATE` of the columns that are given |

use super::escrow;
use super::tokens::{is, sees, storing, word};
use super::{NewIndex, Place, RECURSION_MAX, SHOWN};
use meridian_base::{Error, Result};
use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::borrow::Cow;
use std::ops::Range;

/// What was cut out.
#[derive(Default)]
pub(super) struct Said {
    /// Of a new table.
    pub(super) indexes: Vec<NewIndex>,
    /// Columns that are not visible.
    pub(super) hidden: Vec<String>,
    /// Columns declared `ESCROW`.
    pub(super) escrow: Vec<String>,
    pub(super) is_upsert: bool,
    /// The new index is not visible.
    pub(super) hides_index: bool,
    /// What means nothing here: messages.
    pub(super) ignored: Vec<Cow<'static, str>>,
}

impl Said {
    fn ignores(&mut self, what: &'static str) {
        if !self.ignored.iter().any(|said| said == what) {
            self.ignored.push(what.into());
        }
    }
}

const NO_FAMILIES: &str = "FAMILY is ignored: a row's columns are stored together";
const NO_SHARDS: &str = "USING HASH is ignored: an index has no shards";
const NO_HINTS: &str = "index hints are ignored: plans choose indexes";

pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>, place: &Place) -> Result<Said> {
    let mut said = Said::default();
    type_annotations(tokens);
    index_hints(tokens, &mut said);
    shown_statement(tokens);
    shown_tables(tokens);
    let mut depth = 0usize;
    for at in 0..tokens.len() {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if !sees(tokens, at, &["upsert", "into"]) => {}
            // Which `INSERT` of the tree it would be could not be told.
            _ if depth > 0 => {
                let position = place.position(tokens[at].span.start);
                return Err(Error::unsupported("UPSERT inside another statement is not supported").at(position));
            }
            _ => {
                tokens[at].token = word("INSERT", Keyword::INSERT);
                said.is_upsert = true;
            }
        }
    }
    if sees(tokens, 0, &["create", "index"]) || sees(tokens, 0, &["create", "unique", "index"]) {
        said.hides_index = take_not_visible(tokens);
    } else if sees(tokens, 0, &["create", "table"]) {
        table_elements(tokens, place, &mut said)?;
    } else if sees(tokens, 0, &["alter", "table"]) {
        for item in items(tokens, 0..tokens.len()).into_iter().rev() {
            let adds = item.clone().find(|i| is(&tokens[*i], "add"));
            if let Some(at) = adds {
                let at = if sees(tokens, at + 1, &["column"]) { at + 2 } else { at + 1 };
                let at = if sees(tokens, at, &["if", "not", "exists"]) { at + 3 } else { at };
                column(tokens, at..item.end, &mut said);
            }
        }
    }
    Ok(said)
}

/// `:::` only says what the type is.
fn type_annotations(tokens: &mut Vec<TokenWithSpan>) {
    let mut i = 1;
    while i < tokens.len() {
        if tokens[i].token == Token::Colon && tokens[i - 1].token == Token::DoubleColon {
            tokens.remove(i);
        }
        i += 1;
    }
}

/// `t@i` and `t@{…}` where a table may be named, with no space before the sign: an operator of that
/// name is only a prefix.
fn index_hints(tokens: &mut Vec<TokenWithSpan>, said: &mut Said) {
    let mut i = 2;
    while i + 1 < tokens.len() {
        let before = &tokens[i - 2];
        let may_be_a_table = matches!(before.token, Token::Comma | Token::Period)
            || ["from", "join", "update", "into", "only", "table"].iter().any(|w| is(before, w));
        let follows_a_name =
            may_be_a_table && matches!(tokens[i - 1].token, Token::Word(_)) && tokens[i - 1].span.end == tokens[i].span.start;
        if tokens[i].token == Token::AtSign && follows_a_name {
            let end = match tokens[i + 1].token {
                Token::Word(_) => i + 2,
                Token::LBrace => (i..tokens.len()).find(|e| tokens[*e].token == Token::RBrace).map_or(i, |e| e + 1),
                _ => i,
            };
            if !tokens.drain(i..end).as_slice().is_empty() {
                said.ignores(NO_HINTS);
            }
        }
        i += 1;
    }
}

/// `SHOW ESCROW …`, a query over a table, also behind `EXPLAIN` and the like.
fn shown_statement(tokens: &mut Vec<TokenWithSpan>) {
    const BEFORE: [&str; 5] = ["explain", "analyze", "verbose", "as", "for"];
    let may_begin = |at: usize| match at.checked_sub(1).map(|before| &tokens[before]) {
        None => true,
        Some(before) => BEFORE.iter().any(|w| is(before, w)) || before.token == Token::RParen,
    };
    let Some(at) = (0..tokens.len()).find(|at| sees(tokens, *at, &escrow::WORDS)).filter(|at| may_begin(*at)) else { return };
    let span = tokens[at].span;
    let query = [word("SELECT", Keyword::SELECT), Token::Mul, word("FROM", Keyword::FROM), shown(&tokens[at..])];
    tokens.splice(at.., query.map(|token| TokenWithSpan { token, span }));
}

/// A statement as the name of a table.
fn shown(statement: &[TokenWithSpan]) -> Token {
    let words: Vec<String> = statement.iter().map(|t| written(&t.token)).collect();
    Token::Word(Word { value: words.join(" "), quote_style: Some(SHOWN), keyword: Keyword::NoKeyword })
}

/// A token as it can be read again.
fn written(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_string(),
    }
}

/// `[SHOW …]` where a table may be named, and `(SHOW …)` as the query of a `WITH`.
fn shown_tables(tokens: &mut Vec<TokenWithSpan>) {
    let mut i = 1;
    while i + 3 < tokens.len() {
        let before = &tokens[i - 1];
        let is_shown = match tokens[i].token {
            Token::LBracket => before.token == Token::Comma || is(before, "from") || is(before, "join"),
            Token::LParen => is(before, "as") || is(before, "materialized"),
            _ => false,
        };
        // Only then is the end looked for: at each token, that would take quadratic time in the
        // length of a list.
        let is_shown = is_shown && sees(tokens, i + 1, &["show"]);
        let end = || match tokens[i].token {
            Token::LBracket => (i..tokens.len()).find(|e| tokens[*e].token == Token::RBracket),
            _ => Some(closing(tokens, i)).filter(|end| *end < tokens.len()),
        };
        let Some(end) = is_shown.then(end).flatten() else {
            i += 1;
            continue;
        };
        let name = shown(&tokens[i + 1..end]);
        let span = tokens[i].span;
        if tokens[i].token == Token::LBracket {
            tokens.splice(i..=end, [TokenWithSpan { token: name, span }]);
        } else {
            let query = [word("SELECT", Keyword::SELECT), Token::Mul, word("FROM", Keyword::FROM), name];
            tokens.splice(i + 1..end, query.map(|token| TokenWithSpan { token, span }));
        }
        i += 1;
    }
}

/// The elements of `CREATE TABLE name ( … )`.
fn table_elements(tokens: &mut Vec<TokenWithSpan>, place: &Place, said: &mut Said) -> Result<()> {
    let Some(open) = tokens.iter().position(|t| t.token == Token::LParen) else { return Ok(()) };
    let start = if sees(tokens, 2, &["if", "not", "exists"]) { 5 } else { 2 };
    if open <= start {
        return Ok(());
    }
    let name: Vec<TokenWithSpan> = tokens[start..open].to_vec();
    let close = closing(tokens, open);
    let mut indexes = Vec::new();
    for item in items(tokens, open + 1..close).into_iter().rev() {
        let Some(first) = item.clone().next() else { continue };
        let is_unique = sees(tokens, first, &["unique", "index"]);
        let index = if is_unique { first + 1 } else { first };
        if sees(tokens, first, &["inverted", "index"]) && has_names_after(tokens, first + 1, item.end) {
            let position = place.position(tokens[first].span.start);
            return Err(Error::unsupported("inverted indexes are not supported").at(position));
        }
        if is(&tokens[index], "index") && has_names_after(tokens, index, item.end) {
            indexes.push(index_of(tokens, item.clone(), index, is_unique, &name, place, said)?);
            remove_item(tokens, item);
        } else if is(&tokens[first], "family") && has_names_after(tokens, first, item.end) {
            said.ignores(NO_FAMILIES);
            remove_item(tokens, item);
        } else {
            column(tokens, item, said);
        }
    }
    indexes.reverse();
    said.indexes = indexes;
    Ok(())
}

/// Whether `word [name] (column …` begins there, and not a column that is called like the word.
fn has_names_after(tokens: &[TokenWithSpan], at: usize, end: usize) -> bool {
    let open = match tokens.get(at + 1).map(|t| &t.token) {
        Some(Token::LParen) => at + 1,
        Some(Token::Word(_)) => at + 2,
        _ => return false,
    };
    let is_word = |i: usize| tokens.get(i).is_some_and(|t| matches!(t.token, Token::Word(_)));
    open + 1 < end && tokens[open].token == Token::LParen && is_word(open + 1)
}

/// An index as `CREATE INDEX` would say it.
fn index_of(
    tokens: &[TokenWithSpan],
    item: Range<usize>,
    index: usize,
    is_unique: bool,
    table: &[TokenWithSpan],
    place: &Place,
    said: &mut Said,
) -> Result<NewIndex> {
    let span = tokens[index].span;
    let spanned = |value: &str, keyword| TokenWithSpan { token: word(value, keyword), span };
    let mut text = vec![spanned("CREATE", Keyword::CREATE)];
    if is_unique {
        text.push(spanned("UNIQUE", Keyword::UNIQUE));
    }
    text.push(spanned("INDEX", Keyword::INDEX));
    let open = (index..item.end).find(|i| tokens[*i].token == Token::LParen).unwrap_or(item.end);
    text.extend_from_slice(&tokens[index + 1..open]);
    text.push(spanned("ON", Keyword::ON));
    text.extend_from_slice(table);
    let mut rest = tokens[open..item.end].to_vec();
    let is_visible = !take_not_visible(&mut rest);
    without_sharding(&mut rest, said);
    storing(&mut rest);
    text.extend(rest);
    let dialect = PostgreSqlDialect {};
    let mut parser = Parser::new(&dialect).with_recursion_limit(RECURSION_MAX).with_tokens_with_locations(text);
    let parsed = parser.parse_statement().map_err(|e| place.error(&parser, e))?;
    match (parsed, parser.peek_token_ref()) {
        (ast::Statement::CreateIndex(create), t) if t.token == Token::EOF => Ok(NewIndex { create, is_visible }),
        (_, t) => Err(place.near(t.span.start)),
    }
}

/// Whether an index ends in `NOT VISIBLE`, which is cut off; so is `VISIBLE`, which says what holds
/// anyway.
fn take_not_visible(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let at = tokens.len().saturating_sub(2);
    let hides = sees(tokens, at, &["not", "visible"]);
    if hides {
        tokens.truncate(at);
    } else if at > 0 && sees(tokens, at, &["visible"]) || sees(tokens, at + 1, &["visible"]) {
        tokens.truncate(tokens.len() - 1);
    }
    hides
}

/// What a column says beside its type and PostgreSQL's options.
fn column(tokens: &mut Vec<TokenWithSpan>, item: Range<usize>, said: &mut Said) {
    const CONSTRAINTS: [&str; 7] = ["constraint", "check", "unique", "primary", "foreign", "exclude", "like"];
    let Some(Token::Word(name)) = tokens.get(item.start).map(|t| t.token.clone()) else { return };
    let mut own: Vec<TokenWithSpan> = tokens[item.clone()].to_vec();
    if CONSTRAINTS.iter().any(|w| is(&own[0], w)) {
        without_sharding(&mut own, said);
        tokens.splice(item, own);
        return;
    }
    let (mut i, mut depth) = (1, 0usize);
    while i < own.len() {
        match own[i].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > 0 {
            i += 1;
            continue;
        }
        if sees(&own, i, &["not", "visible"]) {
            own.drain(i..i + 2);
            said.hidden.push(if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() });
            continue;
        }
        if i > 1 && is(&own[i], "escrow") {
            own.remove(i);
            said.escrow.push(if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() });
            continue;
        }
        // `[CREATE [IF NOT EXISTS]] FAMILY [name]`, behind the type.
        let words = [&["create", "if", "not", "exists", "family"][..], &["create", "family"], &["family"]];
        if i > 1
            && !is(&own[i - 1], "references")
            && let Some(words) = words.into_iter().find(|words| sees(&own, i, words))
        {
            let end = i + words.len();
            let has_name = matches!(own.get(end).map(|t| &t.token), Some(Token::Word(w)) if w.keyword == Keyword::NoKeyword);
            own.drain(i..end + usize::from(has_name));
            said.ignores(NO_FAMILIES);
            continue;
        }
        i += 1;
    }
    without_sharding(&mut own, said);
    tokens.splice(item, own);
}

/// `USING HASH [WITH (…)]`, and older `USING HASH WITH BUCKET_COUNT = n`: rows are not kept in the
/// order of their keys' ranges on nodes.
fn without_sharding(tokens: &mut Vec<TokenWithSpan>, said: &mut Said) {
    let Some(at) = (0..tokens.len()).find(|i| sees(tokens, *i, &["using", "hash"])) else { return };
    said.ignores(NO_SHARDS);
    let mut end = at + 2;
    if sees(tokens, end, &["with", "bucket_count"]) {
        end = (end + 4).min(tokens.len());
    } else if sees(tokens, end, &["with"]) && tokens.get(end + 1).is_some_and(|t| t.token == Token::LParen) {
        end = closing(tokens, end + 1) + 1;
    }
    tokens.drain(at..end.min(tokens.len()));
}

/// The parts of a list, without the commas between them.
fn items(tokens: &[TokenWithSpan], list: Range<usize>) -> Vec<Range<usize>> {
    let (mut all, mut start, mut depth) = (Vec::new(), list.start, 0usize);
    for i in list.clone() {
        match tokens[i].token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => {
                all.push(start..i);
                start = i + 1;
            }
            _ => {}
        }
    }
    all.push(start..list.end);
    all
}

/// Removes an item, and one of the commas beside it.
fn remove_item(tokens: &mut Vec<TokenWithSpan>, item: Range<usize>) {
    let is_comma = |i: usize| tokens.get(i).is_some_and(|t| t.token == Token::Comma);
    match () {
        () if is_comma(item.start - 1) => drop(tokens.drain(item.start - 1..item.end)),
        () if is_comma(item.end) => drop(tokens.drain(item.start..item.end + 1)),
        () => drop(tokens.drain(item)),
    }
}

/// Where the parenthesis at `open` is closed.
fn closing(tokens: &[TokenWithSpan], open: usize) -> usize {
    let mut depth = 0usize;
    for (i, t) in tokens.iter().enumerate().skip(open) {
        match t.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    tokens.len()
}

/// Marks the statement's own `INSERT` as an `UPSERT`: sqlparser has a place for that, and no word
/// of PostgreSQL's.
pub(super) fn mark_upsert(statement: &mut ast::Statement) {
    match statement {
        ast::Statement::Insert(insert) => insert.replace_into = true,
        ast::Statement::Explain { statement, .. } | ast::Statement::Prepare { statement, .. } => mark_upsert(statement),
        ast::Statement::Query(query) => {
            if let ast::SetExpr::Insert(statement) = &mut *query.body {
                mark_upsert(statement);
            }
        }
        _ => {}
    }
}
