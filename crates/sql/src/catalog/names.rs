//! Names as statements write them, and what their meaning depends on.
//!
//! Identifiers arrive from the parser as they were written: unquoted ones are folded to lower case
//! here, quoted ones are kept, and both are cut at 63 bytes ([`fold`]).

use super::ids::ROOT_ID;
use crate::parse::{fold, truncate};
use crate::types::EvalContext;
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast::ObjectName;
use std::fmt;

/// What the meaning of an unqualified name depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Names {
    /// The current database.
    pub database: String,
    /// As `SET search_path` gave it, parsed and folded; `$user` still in it.
    pub search_path: Vec<String>,
    /// `current_user`.
    pub user: String,
    /// The same, by id.
    pub role: DescriptorId,
    /// `session_user`.
    pub session_role: DescriptorId,
}

impl Names {
    /// As a running statement resolves them.
    pub fn of(ctx: &EvalContext) -> Names {
        Names {
            database: ctx.database.to_string(),
            search_path: ctx.search_path.to_vec(),
            user: ctx.user.to_string(),
            role: ctx.role,
            session_role: ctx.session_role,
        }
    }
    /// A session's names before it sets anything: `search_path` is `"$user", public`. Whatever its
    /// name, the user is the superuser.
    pub fn new(database: &str, user: &str) -> Names {
        let search_path = vec!["$user".into(), "public".into()];
        Names { database: database.into(), search_path, user: user.into(), role: ROOT_ID, session_role: ROOT_ID }
    }
    /// The path with `$user` replaced and `pg_catalog` in its place.
    pub fn effective_path(&self) -> impl Iterator<Item = &str> {
        let implicit = !self.search_path.iter().any(|s| s == "pg_catalog");
        implicit
            .then_some("pg_catalog")
            .into_iter()
            .chain(self.search_path.iter().map(|s| if s == "$user" { self.user.as_str() } else { s.as_str() }))
    }
}

/// A name of up to three parts, folded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    pub database: Option<String>,
    pub schema: Option<String>,
    pub name: String,
}

impl Name {
    /// An unqualified name.
    pub fn bare(name: &str) -> Name {
        Name { database: None, schema: None, name: name.into() }
    }
    /// From the parser's form.
    pub fn from_ast(name: &ObjectName) -> Result<Name> {
        let mut parts = Vec::with_capacity(name.0.len());
        for part in &name.0 {
            let ident = part.as_ident().ok_or_else(|| Error::sql("42601", format!("syntax error in the name \"{name}\"")))?;
            parts.push(fold(ident));
        }
        let mut parts = parts.into_iter().rev();
        let (last, schema, database) = (parts.next(), parts.next(), parts.next());
        match last {
            Some(name) if parts.next().is_none() => Ok(Name { database, schema, name }),
            _ => Err(Error::sql("42601", format!("improper qualified name (too many dotted names): {name}"))),
        }
    }
    /// From text as `regclass` and `nextval` take it: `schema.name`, with quotes where they are
    /// needed.
    pub fn parse(text: &str) -> Result<Name> {
        let bad = || Error::sql("42602", "invalid name syntax");
        let mut parts: Vec<String> = Vec::new();
        let mut rest = text.trim();
        loop {
            let (part, after) = next_part(rest).ok_or_else(bad)?;
            parts.push(part);
            rest = after.trim_start();
            match rest.strip_prefix('.') {
                Some(after) => rest = after.trim_start(),
                None if rest.is_empty() => break,
                None => return Err(bad()),
            }
        }
        let mut parts = parts.into_iter().rev();
        let (last, schema, database) = (parts.next(), parts.next(), parts.next());
        match last {
            Some(name) if parts.next().is_none() => Ok(Name { database, schema, name }),
            _ => Err(Error::sql("42601", format!("improper qualified name (too many dotted names): {text}"))),
        }
    }
}

pub(super) fn next_part(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let mut part = String::new();
        let mut chars = quoted.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' if quoted[at + 1..].starts_with('"') => {
                    part.push('"');
                    chars.next();
                }
                '"' if part.is_empty() => return None,
                '"' => return Some((truncate(part), &quoted[at + 1..])),
                c => part.push(c),
            }
        }
        return None;
    }
    let end = text.find(|c: char| c == '.' || c == '"' || c.is_whitespace()).unwrap_or(text.len());
    (end > 0).then(|| (truncate(text[..end].to_lowercase()), &text[end..]))
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.database, &self.schema].into_iter().flatten() {
            write!(f, "{part}.")?;
        }
        f.write_str(&self.name)
    }
}
