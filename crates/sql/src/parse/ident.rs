//! Identifiers, as names of the catalog.

use super::ast::Ident;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// How many bytes of a name count.
const BYTES_MAX: usize = 63;

/// An identifier as the catalog stores it: folded unless quoted, at most 63 bytes (PostgreSQL
/// manual 4.1.1).
pub fn fold(ident: &Ident) -> String {
    truncate(if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() })
}

/// Cuts at 63 bytes, on a character boundary.
pub fn truncate(mut name: String) -> String {
    if name.len() > BYTES_MAX {
        let end = (0..=BYTES_MAX).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        name.truncate(end);
    }
    name
}

/// A token's name in full, if [`fold`] cuts it.
pub(super) fn truncated(token: &TokenWithSpan) -> Option<String> {
    match &token.token {
        Token::Word(w) if w.value.len() > BYTES_MAX && w.quote_style.is_some() => Some(w.value.clone()),
        Token::Word(w) if w.value.len() > BYTES_MAX => Some(w.value.to_lowercase()),
        _ => None,
    }
}
