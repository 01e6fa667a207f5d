//! Clauses of PostgreSQL that this database does not have: who writes one is told so, and not that
//! the syntax is wrong.

use super::tokens::{is, sees};
use super::{Offsets, Place};
use crate::types::typeinfo::is_missing;
use meridian_base::Error;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The words that a statement begins with, those at the place of the error, and what they are.
const CLAUSES: &[(&[&str], &[&str], &str)] = &[
    (&["with"], &["search", "breadth"], "SEARCH"),
    (&["with"], &["search", "depth"], "SEARCH"),
    (&["with"], &["cycle"], "CYCLE"),
    (&["create", "table"], &["including"], "LIKE … INCLUDING"),
    (&["create", "table"], &["excluding"], "LIKE … EXCLUDING"),
    (&["create", "table"], &["nulls"], "NULLS [NOT] DISTINCT"),
    (&["alter", "table"], &["nulls"], "NULLS [NOT] DISTINCT"),
    (&["create", "table"], &["compression"], "COMPRESSION"),
    (&["create", "table"], &["storage"], "STORAGE"),
    (&["create", "table"], &["using"], "USING"),
    (&["create", "table"], &["of"], "CREATE TABLE … OF"),
    (&["create", "table"], &["execute"], "CREATE TABLE … AS EXECUTE"),
    (&["create", "recursive"], &["recursive"], "CREATE RECURSIVE VIEW"),
    (&["create", "language"], &["language"], "CREATE LANGUAGE"),
    (&["create", "schema"], &["create"], "CREATE SCHEMA with its elements"),
    (&["create", "schema"], &["grant"], "CREATE SCHEMA with its elements"),
    (&["create"], &["tablespace"], "TABLESPACE"),
    (&["create", "index", "on", "only"], &[], "CREATE INDEX … ON ONLY"),
    (&["alter", "table"], &["set", "statistics"], "SET STATISTICS"),
    (&["alter", "table"], &["set", "storage"], "SET STORAGE"),
    (&["alter", "table"], &["set", "compression"], "SET COMPRESSION"),
    (&["alter", "table"], &["cluster"], "ALTER TABLE … CLUSTER ON"),
    (&["alter", "table"], &["without"], "ALTER TABLE … SET WITHOUT CLUSTER"),
    (&["alter", "table"], &["tablespace"], "TABLESPACE"),
    (&["alter", "table"], &["inherit"], "inheritance"),
    (&["alter", "table"], &["attach"], "partitioning"),
    (&["alter", "table"], &["detach"], "partitioning"),
    (&["alter", "table"], &["no", "inherit"], "inheritance"),
    (&["alter", "table"], &["reset"], "RESET of storage parameters"),
    (&["set", "constraints"], &[], "SET CONSTRAINTS"),
    (&["drop", "aggregate"], &[], "DROP AGGREGATE"),
    (&["create", "operator"], &[], "CREATE OPERATOR"),
    (&["alter", "operator"], &[], "ALTER OPERATOR"),
    (&["drop", "operator"], &[], "DROP OPERATOR"),
    (&["create", "view"], &["with"], "WITH CHECK OPTION"),
    (&["delete"], &["of"], "WHERE CURRENT OF"),
    (&["update"], &["of"], "WHERE CURRENT OF"),
];

/// 0A000 instead of a syntax error at a place (in bytes, from 1 on), if PostgreSQL has what stands
/// there.
pub(super) fn explained(e: Error, tokens: &[TokenWithSpan], place: &Place) -> Error {
    if e.sqlstate() != "42601" {
        return e;
    }
    let Some(position) = e.get_position() else { return literal(tokens).unwrap_or(e) };
    let mut offsets = Offsets::new(place.text);
    let Some(at) = tokens.iter().position(|t| offsets.of(t.span.start) as u32 + 1 == position) else { return e };
    match clause(tokens, at) {
        Some(clause) => Error::unsupported(format!("{clause} is not supported")).at(position),
        None => e,
    }
}

/// `inet '10.0.0.1'`, which the parser takes for a column and its alias.
fn literal(tokens: &[TokenWithSpan]) -> Option<Error> {
    let missing = tokens.windows(2).find_map(|pair| match (&pair[0].token, &pair[1].token) {
        (Token::Word(word), Token::SingleQuotedString(_)) => Some(word.value.to_lowercase()).filter(|name| is_missing(name)),
        _ => None,
    });
    missing.map(|name| Error::unsupported(format!("type \"{name}\" is not supported")))
}

fn clause(tokens: &[TokenWithSpan], at: usize) -> Option<String> {
    let (token, before) = (&tokens[at].token, at.checked_sub(1).map(|before| &tokens[before]));
    // `xmlelement(name a)`
    let is_xml = |t: &TokenWithSpan| matches!(&t.token, Token::Word(w) if w.value.to_lowercase().starts_with("xml"));
    if tokens[..at].iter().rev().take(3).any(is_xml) {
        return Some("XML".to_string());
    }
    let mut words = tokens[..at].iter().rev();
    if is(&tokens[at], "where") && words.find(|t| is(t, "do") || is(t, "conflict")).is_some_and(|t| is(t, "conflict")) {
        return Some("ON CONFLICT … WHERE".to_string());
    }
    if is(&tokens[at], "from") && before.is_some_and(|before| is(before, "rows")) {
        return Some("ROWS FROM".to_string());
    }
    if *token == Token::LParen && at > 1 && (sees(tokens, at - 2, &["set", "null"]) || sees(tokens, at - 2, &["set", "default"]))
    {
        return Some("SET NULL and SET DEFAULT of some columns".to_string());
    }
    let found = CLAUSES.iter().find(|(start, here, _)| sees(tokens, 0, start) && sees(tokens, at, here));
    found.map(|(_, _, clause)| clause.to_string())
}
