//! Databases, schemas, roles, settings, sessions.

use super::SystemContext;
use super::rows::{Objects, Rows, acl, bool, int, oid, opt_text, owner, text};
use crate::catalog::Role;
use crate::catalog::roles::oid_of;
use crate::types::{ArrayValue, Datum, Type};

const ROOT_OID: u32 = 10;
/// `pg_database` itself.
const PG_DATABASE: i64 = 1262;
const DEFAULT_TABLESPACE: i64 = 1663;
/// UTF8, as `pg_encoding_to_char` knows it.
pub(super) const UTF8: i64 = 6;
/// Text compares by bytes.
const COLLATION: &str = "C.UTF-8";

pub(super) fn pg_database(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_database");
    for d in context.catalog().databases() {
        rows.push([
            ("oid", oid(d.id)),
            ("datname", text(&d.name)),
            ("datdba", owner(&d.access)),
            ("datacl", acl(context.catalog(), &d.access)),
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
        rows.push([
            ("oid", oid(s.id)),
            ("nspname", text(&s.name)),
            ("nspowner", owner(s.access())),
            ("nspacl", acl(context.catalog(), s.access())),
        ]);
    }
    rows.finish()
}

pub(super) fn pg_roles(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_roles");
    for r in context.catalog().roles() {
        rows.push([
            ("rolname", text(&r.name)),
            ("rolsuper", bool(r.is_superuser)),
            ("rolinherit", bool(r.inherits)),
            ("rolcreaterole", bool(r.creates_roles)),
            ("rolcreatedb", bool(r.creates_databases)),
            ("rolcanlogin", bool(r.can_login)),
            ("rolreplication", bool(r.may_replicate)),
            ("rolconnlimit", int(r.connection_limit)),
            ("rolpassword", text("********")),
            ("rolvaliduntil", valid_until(r)),
            ("rolbypassrls", bool(r.bypasses_row_security)),
            ("oid", int(r.oid())),
        ]);
    }
    rows.finish()
}

pub(super) fn pg_authid(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_authid");
    for r in context.catalog().roles() {
        rows.push([
            ("oid", int(r.oid())),
            ("rolname", text(&r.name)),
            ("rolsuper", bool(r.is_superuser)),
            ("rolinherit", bool(r.inherits)),
            ("rolcreaterole", bool(r.creates_roles)),
            ("rolcreatedb", bool(r.creates_databases)),
            ("rolcanlogin", bool(r.can_login)),
            ("rolreplication", bool(r.may_replicate)),
            ("rolbypassrls", bool(r.bypasses_row_security)),
            ("rolconnlimit", int(r.connection_limit)),
            ("rolpassword", opt_text(r.password.as_deref())),
            ("rolvaliduntil", valid_until(r)),
        ]);
    }
    rows.finish()
}

fn valid_until(role: &Role) -> Datum {
    role.valid_until.map_or(Datum::Null, Datum::Timestamp)
}

pub(super) fn pg_auth_members(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_auth_members");
    for member in context.catalog().roles() {
        for m in &member.member_of {
            rows.push([
                ("roleid", int(oid_of(m.role))),
                ("member", int(member.oid())),
                ("grantor", int(oid_of(m.grantor))),
                ("admin_option", bool(m.is_admin)),
            ]);
        }
    }
    rows.finish()
}

pub(super) fn pg_group(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", "pg_group");
    let catalog = context.catalog();
    for r in catalog.roles().filter(|r| !r.can_login) {
        let members = catalog.roles().filter(|m| m.is_member_of(r.id)).map(|m| int(m.oid())).collect();
        let members = ArrayValue::datum(Type::Oid, members);
        rows.push([("groname", text(&r.name)), ("grosysid", int(r.oid())), ("grolist", members)]);
    }
    rows.finish()
}

fn users(table: &str, context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = Rows::of("pg_catalog", table);
    for r in context.catalog().roles().filter(|r| r.can_login) {
        let password = if table == "pg_shadow" { opt_text(r.password.as_deref()) } else { text("********") };
        rows.push([
            ("usename", text(&r.name)),
            ("usesysid", int(r.oid())),
            ("usecreatedb", bool(r.creates_databases)),
            ("usesuper", bool(r.is_superuser)),
            ("userepl", bool(r.may_replicate)),
            ("usebypassrls", bool(r.bypasses_row_security)),
            ("passwd", password),
            ("valuntil", valid_until(r)),
        ]);
    }
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
        let user = context.catalog().role_by_id(s.role);
        rows.push([
            ("datid", database),
            ("datname", text(&s.database)),
            ("pid", int(i64::from(crate::rows::pid(s.session)))),
            ("usesysid", user.map_or(Datum::Null, |r| int(r.oid()))),
            ("usename", user.map_or(Datum::Null, |r| text(&r.name))),
            ("application_name", text(&s.application)),
            ("state", text(s.state)),
            ("query", opt_text(Some(&s.query))),
            ("backend_type", text("client backend")),
        ]);
    }
    rows.finish()
}
