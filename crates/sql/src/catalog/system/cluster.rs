//! Databases, schemas, roles, settings, sessions.

use super::relations::PG_DATABASE;
use super::rows::{Objects, Rows, bool, int, oid, opt_text, text};
use super::{Catalog, SystemContext};
use crate::catalog::Descriptor;
use crate::catalog::bootstrap::ROOT_ROLE;
use crate::types::Datum;
use std::collections::BTreeSet;

const ROOT_OID: u32 = 10;
const DEFAULT_TABLESPACE: i64 = 1663;
/// UTF8, as `pg_encoding_to_char` knows it.
pub(super) const UTF8: i64 = 6;
/// Text compares by bytes.
const COLLATION: &str = "C.UTF-8";

/// The oid of a role: there is no table of roles yet, so it follows from the name.
pub(super) fn role_oid(role: &str) -> u32 {
    if role == ROOT_ROLE {
        return ROOT_OID;
    }
    let hash = role.bytes().fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    0x4000_0000 | (hash & 0x3FFF_FFFF)
}

/// Every role that owns something, and the user's own.
pub(super) fn roles(catalog: &Catalog, user: &str) -> BTreeSet<String> {
    let owners = catalog.descriptors.values().filter_map(|d| match &**d {
        Descriptor::Database(x) => Some(x.owner.clone()),
        Descriptor::Schema(x) => Some(x.owner.clone()),
        Descriptor::Table(x) => Some(x.owner.clone()),
        Descriptor::View(x) => Some(x.owner.clone()),
        Descriptor::Sequence(x) => Some(x.owner.clone()),
        Descriptor::Group(_) | Descriptor::Job(_) | Descriptor::Leaving(_) | Descriptor::Statistics(_) => None,
    });
    owners.chain([ROOT_ROLE.to_string(), user.to_string()]).collect()
}

pub(super) fn pg_database(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_database");
    for d in context.catalog().databases() {
        rows.push([
            ("oid", oid(d.id)),
            ("datname", text(&d.name)),
            ("datdba", int(role_oid(&d.owner))),
            ("encoding", int(UTF8)),
            ("datlocprovider", text("c")),
            ("datallowconn", bool(true)),
            ("datconnlimit", int(-1)),
            ("dattablespace", int(DEFAULT_TABLESPACE)),
            ("datcollate", text(COLLATION)),
            ("datctype", text(COLLATION)),
        ]);
    }
    rows.finish()
}

pub(super) fn pg_shdescription(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_shdescription");
    for d in context.catalog().databases() {
        if let Some(comment) = &d.comment {
            rows.push([("objoid", oid(d.id)), ("classoid", int(PG_DATABASE)), ("description", text(comment))]);
        }
    }
    rows.finish()
}

pub(super) fn pg_namespace(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_namespace");
    for (id, name) in [(super::PG_CATALOG_OID, super::PG_CATALOG), (super::INFORMATION_SCHEMA_OID, super::INFORMATION_SCHEMA)] {
        rows.push([("oid", int(id)), ("nspname", text(name)), ("nspowner", int(ROOT_OID))]);
    }
    for s in Objects::of(context.catalog(), &context.names().database).schemas {
        rows.push([("oid", oid(s.id)), ("nspname", text(&s.name)), ("nspowner", int(role_oid(&s.owner)))]);
    }
    rows.finish()
}

fn each_role(context: &dyn SystemContext, mut push: impl FnMut(&str, u32)) {
    for role in roles(context.catalog(), &context.names().user) {
        push(&role, role_oid(&role));
    }
}

pub(super) fn pg_roles(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_roles");
    each_role(context, |name, id| {
        rows.push([
            ("rolname", text(name)),
            ("rolsuper", bool(true)),
            ("rolinherit", bool(true)),
            ("rolcreaterole", bool(true)),
            ("rolcreatedb", bool(true)),
            ("rolcanlogin", bool(true)),
            ("rolreplication", bool(false)),
            ("rolconnlimit", int(-1)),
            ("rolpassword", text("********")),
            ("rolbypassrls", bool(true)),
            ("oid", int(id)),
        ]);
    });
    rows.finish()
}

pub(super) fn pg_authid(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_authid");
    each_role(context, |name, id| {
        rows.push([
            ("oid", int(id)),
            ("rolname", text(name)),
            ("rolsuper", bool(true)),
            ("rolinherit", bool(true)),
            ("rolcreaterole", bool(true)),
            ("rolcreatedb", bool(true)),
            ("rolcanlogin", bool(true)),
            ("rolbypassrls", bool(true)),
            ("rolconnlimit", int(-1)),
        ]);
    });
    rows.finish()
}

fn users(table: &str, context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", table);
    each_role(context, |name, id| {
        rows.push([
            ("usename", text(name)),
            ("usesysid", int(id)),
            ("usecreatedb", bool(true)),
            ("usesuper", bool(true)),
            ("userepl", bool(false)),
            ("usebypassrls", bool(true)),
            ("passwd", text("********")),
        ]);
    });
    rows.finish()
}

pub(super) fn pg_user(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    users("pg_user", context)
}

pub(super) fn pg_shadow(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    users("pg_shadow", context)
}

pub(super) fn pg_tablespace(_: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_tablespace");
    for (id, name) in [(DEFAULT_TABLESPACE, "pg_default"), (1664, "pg_global")] {
        rows.push([("oid", int(id)), ("spcname", text(name)), ("spcowner", int(ROOT_OID))]);
    }
    rows.finish()
}

pub(super) fn pg_settings(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_settings");
    for s in context.settings() {
        let kind = match s.value.as_str() {
            "on" | "off" => "bool",
            v if v.parse::<i64>().is_ok() => "integer",
            _ => "string",
        };
        rows.push([
            ("name", text(&s.name)),
            ("setting", text(&s.value)),
            ("category", text("Meridian")),
            ("short_desc", text(&s.description)),
            ("context", text("user")),
            ("vartype", text(kind)),
            ("source", text("default")),
            ("boot_val", text(&s.value)),
            ("reset_val", text(&s.value)),
            ("pending_restart", bool(false)),
        ]);
    }
    rows.finish()
}

pub(super) fn pg_stat_activity(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_stat_activity");
    for s in context.sessions() {
        let database = context.catalog().find_database(&s.database).map_or(Datum::Null, |d| oid(d.id));
        rows.push([
            ("datid", database),
            ("datname", text(&s.database)),
            ("pid", int(i64::from(crate::rows::pid(s.session)))),
            ("usesysid", int(role_oid(&s.user))),
            ("usename", text(&s.user)),
            ("application_name", text(&s.application)),
            ("state", text(s.state)),
            ("query", opt_text(Some(&s.query))),
            ("backend_type", text("client backend")),
        ]);
    }
    rows.finish()
}
