//! How clients log in: the rules, the user maps, and what the sessions' connections are protected
//! with.

use super::SystemContext;
use super::rows::{Rows, bool, int, opt_text, text};
use crate::catalog::hba;
use crate::types::{ArrayValue, Datum, Type};

fn texts<'t>(all: impl IntoIterator<Item = &'t str>) -> Datum {
    ArrayValue::datum(Type::Text, all.into_iter().map(text).collect())
}

fn number(line: usize) -> Datum {
    int(i64::try_from(line).unwrap_or(i64::MAX))
}

pub(super) fn pg_hba_file_rules(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_hba_file_rules");
    // As logins have them.
    let catalog = context.newest();
    match hba::Rules::parse(catalog.hba_rules()) {
        Ok(rules) => {
            for rule in &rules.0 {
                let (address, mask) = rule.address().map_or((None, None), |(address, mask)| (Some(address), mask));
                let options = rule.options();
                rows.push([
                    ("line_number", number(rule.line)),
                    ("type", text(rule.kind())),
                    ("database", texts(rule.databases())),
                    ("user_name", texts(rule.users())),
                    ("address", opt_text(address)),
                    ("netmask", opt_text(mask)),
                    ("auth_method", text(rule.method.name())),
                    ("options", if options.is_empty() { Datum::Null } else { texts(options.iter().map(String::as_str)) }),
                ]);
            }
        }
        Err(e) => rows.push([("error", text(e.message()))]),
    }
    rows.finish()
}

pub(super) fn pg_ident_file_mappings(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_ident_file_mappings");
    let catalog = context.newest();
    match hba::Maps::parse(catalog.ident_maps()) {
        Ok(maps) => {
            for map in maps.each() {
                rows.push([
                    ("line_number", number(map.line)),
                    ("map_name", text(&map.name)),
                    ("sys_name", text(&map.system)),
                    ("pg_username", text(&map.role)),
                ]);
            }
        }
        Err(e) => rows.push([("error", text(e.message()))]),
    }
    rows.finish()
}

/// The sessions of this node, as far as the user may see what they do.
pub(super) fn pg_stat_ssl(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_stat_ssl");
    for s in context.sessions().into_iter().filter(|s| !s.is_hidden) {
        let tls = s.encryption.as_ref();
        rows.push([
            ("pid", int(i64::from(crate::rows::pid(s.session)))),
            ("ssl", bool(tls.is_some())),
            ("version", opt_text(tls.map(|tls| &tls.version))),
            ("cipher", opt_text(tls.map(|tls| &tls.cipher))),
            ("bits", tls.map_or(Datum::Null, |tls| int(tls.bits))),
            ("client_dn", opt_text(tls.and_then(|tls| tls.client.as_ref()).map(|role| format!("/CN={role}")))),
        ]);
    }
    rows.finish()
}
