//! Identifiers, as names of the catalog.

use super::ast::Ident;

/// An identifier as the catalog stores it: folded unless quoted, at most 63 bytes (PostgreSQL
/// manual 4.1.1).
pub fn fold(ident: &Ident) -> String {
    truncate(if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() })
}

/// Cuts at 63 bytes, on a character boundary.
pub fn truncate(mut name: String) -> String {
    if name.len() > 63 {
        let mut end = 63;
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        name.truncate(end);
    }
    name
}
