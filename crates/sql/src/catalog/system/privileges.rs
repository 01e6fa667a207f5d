//! `has_table_privilege` and its relatives (PostgreSQL manual, 9.26.2), and the tables of
//! `information_schema` about roles and privileges.

use super::rows::{Objects, Rows, text, yes};
use super::{INFORMATION_SCHEMA, SystemContext, SystemTable};
use crate::catalog::catalog_of;
use crate::catalog::ids::PUBLIC;
use crate::catalog::names::Name;
use crate::catalog::names::Names;
use crate::catalog::privileges::{Access, ObjectKind, Privileges};
use crate::catalog::relation::Relation;
use crate::catalog::roles::oid_of;
use crate::catalog::{Authority, Catalog, Role};
use crate::types::Datum;
use crate::types::functions::Call;
use crate::types::functions::args::Args;
use crate::types::functions::registry::Registry;
use meridian_base::{DescriptorId, Error, Result};

/// What a function asks about.
#[derive(Clone, Copy)]
enum About {
    Table,
    Sequence,
    Schema,
    Database,
    /// Columns have no privileges of their own.
    Column,
    /// Something that everybody may use.
    Free,
}

pub(super) fn register(r: &mut Registry) {
    use About::*;
    for (name, about) in [
        ("has_table_privilege", Table),
        ("has_any_column_privilege", Table),
        ("has_sequence_privilege", Sequence),
        ("has_schema_privilege", Schema),
        ("has_database_privilege", Database),
        ("has_function_privilege", Free),
        ("has_type_privilege", Free),
        ("has_language_privilege", Free),
        ("has_tablespace_privilege", Free),
    ] {
        macro_rules! each {
            ($($signature:literal: $user:literal),*) => { $(
                r.scalar(name, $signature, match about {
                    Table => |c, a| has(c, a, Table, $user, 0),
                    Sequence => |c, a| has(c, a, Sequence, $user, 0),
                    Schema => |c, a| has(c, a, Schema, $user, 0),
                    Database => |c, a| has(c, a, Database, $user, 0),
                    Column | Free => |_, _| Ok(Datum::Bool(true)),
                })
                .stable();
            )* };
        }
        each!(
            "text, text -> bool": false,
            "oid, text -> bool": false,
            "name, text, text -> bool": true,
            "name, oid, text -> bool": true,
            "oid, text, text -> bool": true,
            "oid, oid, text -> bool": true
        );
    }
    for signature in
        ["text, text, text -> bool", "oid, text, text -> bool", "text, int2, text -> bool", "oid, int2, text -> bool"]
    {
        r.scalar("has_column_privilege", signature, |c, a| has(c, a, About::Column, false, 1)).stable();
    }
    for signature in ["name, text, text, text -> bool", "name, oid, text, text -> bool", "name, oid, int2, text -> bool"] {
        r.scalar("has_column_privilege", signature, |c, a| has(c, a, About::Column, true, 1)).stable();
    }
    for signature in ["name, text -> bool", "oid, text -> bool"] {
        r.scalar("pg_has_role", signature, |c, a| has_role(c, None, &a[0], a.text(1)?)).stable();
    }
    for signature in ["name, name, text -> bool", "name, oid, text -> bool", "oid, name, text -> bool", "oid, oid, text -> bool"]
    {
        r.scalar("pg_has_role", signature, |c, a| has_role(c, Some(&a[0]), &a[1], a.text(2)?)).stable();
    }
}

/// A role by its name or its oid. `None`: there is none of that oid.
fn role<'c>(catalog: &'c Catalog, given: &Datum) -> Result<Option<&'c Role>> {
    match given {
        Datum::Text(name) => catalog.role(name.as_str()).map(Some),
        Datum::Int(oid) => Ok(catalog.roles().find(|r| i64::from(r.oid()) == *oid)),
        _ => Ok(None),
    }
}

fn has(c: &Call<'_>, a: &[Datum], about: About, names_user: bool, columns: usize) -> Result<Datum> {
    let catalog = catalog_of(c.ctx);
    let at = usize::from(names_user);
    let asked = wanted(a.text(at + 1 + columns)?, about)?;
    let who = match names_user {
        // PUBLIC is nobody's role, and has what everybody has.
        true if matches!(&a[0], Datum::Text(name) if name.as_str() == "public") => Authority::default(),
        true => match role(catalog, &a[0])? {
            Some(role) => catalog.authority(role.id, &c.ctx.database),
            None => Authority::default(),
        },
        false => catalog.authority(c.ctx.role, &c.ctx.database),
    };
    let Some(object) = object(c, catalog, &a[at], about)? else { return Ok(Datum::Null) };
    let Some(id) = object else {
        // A system table: everybody reads it, and nobody else changes it.
        let is_shown = system_table(c, &a[at], about).is_none_or(|t| t.is_shown_to(&who));
        let reads = asked.iter().any(|(p, grants)| *p == Privileges::SELECT && !grants);
        return Ok(Datum::Bool((reads && is_shown) || who.is_superuser));
    };
    let Some((kind, access)) = catalog.access(id) else { return Ok(Datum::Null) };
    let held = catalog.held(&who, kind, access);
    let granted = |p: Privileges, grants: bool| match grants {
        true => may_grant(&who, access, p),
        false => held.has(p),
    };
    Ok(Datum::Bool(asked.iter().any(|(p, grants)| granted(*p, *grants))))
}

fn may_grant(who: &Authority, access: &Access, privilege: Privileges) -> bool {
    let is_granted = |g: &&crate::catalog::privileges::Grant| who.roles.contains(&g.grantee) && g.grantable.has(privilege);
    who.has(access.owner()) || access.granted().into_iter().flatten().any(|g| is_granted(&g))
}

/// The system table that is asked about, if it is one.
fn system_table(c: &Call<'_>, given: &Datum, about: About) -> Option<&'static SystemTable> {
    match given {
        Datum::Text(name) if !matches!(about, About::Schema) => {
            match catalog_of(c.ctx).relation(&Names::of(c.ctx), &Name::parse(name.as_str()).ok()?).ok()? {
                Relation::System(t) => Some(t),
                _ => None,
            }
        }
        Datum::Int(oid) => super::table_by_oid(*oid as u32),
        _ => None,
    }
}

/// The object that is asked about; the inner `None` is a system table.
fn object(c: &Call<'_>, catalog: &Catalog, given: &Datum, about: About) -> Result<Option<Option<DescriptorId>>> {
    let names = Names::of(c.ctx);
    match (given, about) {
        (Datum::Text(name), About::Table | About::Sequence | About::Column) => {
            let name = Name::parse(name.as_str())?;
            let relation = catalog.relation(&names, &name)?;
            if matches!(about, About::Sequence) && !matches!(relation, Relation::Sequence(_)) {
                return Err(Error::sql("42809", format!("\"{name}\" is not a sequence")));
            }
            Ok(Some(relation.descriptor()))
        }
        (Datum::Text(name), About::Schema) if super::is_system_schema(name.as_str()) => Ok(Some(None)),
        (Datum::Text(name), About::Schema) => catalog.schema(&names, name.as_str()).map(|s| Some(Some(s.id))),
        (Datum::Text(name), _) => catalog.database(name.as_str()).map(|d| Some(Some(d.id))),
        (Datum::Int(oid), _) => {
            let id = super::from_oid(*oid as u32).filter(|id| catalog.descriptors.contains_key(id));
            let is_system = super::table_by_oid(*oid as u32).is_some() || (*oid as u32) == super::PG_CATALOG_OID;
            Ok(id.map(Some).or(is_system.then_some(None)))
        }
        _ => Ok(None),
    }
}

/// The privileges that a text names, and whether the right to grant them is meant.
fn wanted(text: &str, about: About) -> Result<Vec<(Privileges, bool)>> {
    let all = match about {
        About::Table => ObjectKind::Table.all(),
        About::Column => Privileges::SELECT.with(Privileges::INSERT).with(Privileges::UPDATE).with(Privileges::REFERENCES),
        About::Sequence => ObjectKind::Sequence.all(),
        About::Schema => ObjectKind::Schema.all(),
        _ => ObjectKind::Database.all(),
    };
    let one = |word: &str| {
        let word = word.trim();
        let upper = word.to_ascii_uppercase();
        let (name, grants) = match upper.strip_suffix(" WITH GRANT OPTION") {
            Some(name) => (name.trim_end(), true),
            None => (upper.as_str(), false),
        };
        let privilege = Privileges::named(name).filter(|p| all.has(*p));
        let unknown = || Error::sql("22023", format!("unrecognized privilege type: \"{word}\""));
        privilege.map(|p| (p, grants)).ok_or_else(unknown)
    };
    text.split(',').map(one).collect()
}

fn has_role(c: &Call<'_>, user: Option<&Datum>, of: &Datum, how: &str) -> Result<Datum> {
    let catalog = catalog_of(c.ctx);
    let user = match user {
        None => c.ctx.role,
        Some(user) => match role(catalog, user)? {
            Some(role) => role.id,
            None => return Ok(Datum::Bool(false)),
        },
    };
    let of = match role(catalog, of)? {
        Some(role) => role.id,
        None => return Ok(Datum::Bool(false)),
    };
    let database = &c.ctx.database;
    let one = |word: &str| {
        let upper = word.trim().to_ascii_uppercase();
        Ok(match upper.as_str() {
            "USAGE" => catalog.authority(user, database).has(of),
            "MEMBER" => catalog.may_become(user, of, database),
            "USAGE WITH GRANT OPTION" | "USAGE WITH ADMIN OPTION" | "MEMBER WITH GRANT OPTION" | "MEMBER WITH ADMIN OPTION" => {
                catalog.is_admin_of(user, of, database)
            }
            _ => return Err(Error::sql("22023", format!("unrecognized privilege type: \"{}\"", word.trim()))),
        })
    };
    let answers: Vec<bool> = how.split(',').map(one).collect::<Result<_>>()?;
    Ok(Datum::Bool(answers.contains(&true)))
}

/// `pg_get_userbyid`.
pub(super) fn user_by_oid(catalog: &Catalog, oid: u32) -> String {
    let found = catalog.roles().find(|r| oid_of(r.id) == oid).map(|r| r.name.clone());
    found.unwrap_or_else(|| format!("unknown (OID={oid})"))
}

/// The objects of a database that the user has to do with: what `information_schema` shows.
pub(super) fn accessible(context: &dyn SystemContext) -> Objects<'_> {
    let catalog = context.catalog();
    let mut objects = Objects::of(catalog, &context.names().database);
    let who = catalog.authority_of(context.names());
    if !who.is_superuser {
        let is_any = |id: DescriptorId| {
            catalog
                .access(id)
                .is_some_and(|(kind, access)| who.has(access.owner()) || !catalog.held(&who, kind, access).is_empty())
        };
        objects.schemas.retain(|s| is_any(s.id));
        objects.tables.retain(|t| is_any(t.id));
        objects.views.retain(|v| is_any(v.id));
        objects.sequences.retain(|s| is_any(s.id));
    }
    objects
}

fn rows_of(table: &str) -> Rows {
    Rows::of(INFORMATION_SCHEMA, table)
}

/// The roles that the user has the privileges of, or could have.
pub(super) fn enabled_roles(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = rows_of("enabled_roles");
    let who = context.catalog().authority_of(context.names());
    for role in context.catalog().roles().filter(|r| who.has(r.id)) {
        rows.push([("role_name", text(&role.name))]);
    }
    rows.finish()
}

fn memberships(context: &dyn SystemContext, table: &str) -> Vec<Vec<Datum>> {
    let mut rows = rows_of(table);
    let catalog = context.catalog();
    let who = catalog.authority_of(context.names());
    for member in catalog.roles().filter(|r| who.has(r.id)) {
        for m in &member.member_of {
            rows.push([
                ("grantee", text(&member.name)),
                ("role_name", text(catalog.role_name(m.role))),
                ("is_grantable", yes(m.is_admin)),
            ]);
        }
    }
    rows.finish()
}

pub(super) fn applicable_roles(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    memberships(context, "applicable_roles")
}

pub(super) fn administrable_role_authorizations(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    let mut rows = memberships(context, "administrable_role_authorizations");
    rows.retain(|row| row.last() == Some(&yes(true)));
    rows
}

fn grants_of_tables(context: &dyn SystemContext, table: &str, with_public: bool) -> Vec<Vec<Datum>> {
    let mut rows = rows_of(table);
    let catalog = context.catalog();
    let o = Objects::of(catalog, &context.names().database);
    let who = catalog.authority_of(context.names());
    let tables = o.tables.iter().map(|t| (t.schema, &t.name, &t.access, ObjectKind::Table));
    let views = o.views.iter().map(|v| (v.schema, &v.name, &v.access, ObjectKind::View));
    for (schema, name, access, kind) in tables.chain(views) {
        for g in access.grants(kind) {
            let is_shown = who.has(g.grantor) || who.has(g.grantee) || (g.grantee == PUBLIC && with_public);
            if !is_shown || (g.grantee == PUBLIC && !with_public) {
                continue;
            }
            for p in g.privileges.each() {
                let grantee = if g.grantee == PUBLIC { "PUBLIC".to_string() } else { catalog.role_name(g.grantee) };
                // An owner may grant all that it has.
                let is_grantable = g.grantable.has(p.privilege) || g.grantee == access.owner();
                rows.push([
                    ("grantor", text(catalog.role_name(g.grantor))),
                    ("grantee", text(grantee)),
                    ("table_catalog", text(&context.names().database)),
                    ("table_schema", text(o.schema_name(schema))),
                    ("table_name", text(name)),
                    ("privilege_type", text(p.name)),
                    ("is_grantable", yes(is_grantable)),
                    ("with_hierarchy", yes(p.privilege == Privileges::SELECT)),
                ]);
            }
        }
    }
    rows.finish()
}

pub(super) fn table_privileges(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    grants_of_tables(context, "table_privileges", true)
}

pub(super) fn role_table_grants(context: &dyn SystemContext) -> Vec<Vec<Datum>> {
    grants_of_tables(context, "role_table_grants", false)
}
