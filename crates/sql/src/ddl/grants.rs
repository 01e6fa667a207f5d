//! `GRANT` and `REVOKE` on objects.

use super::Deriver;
use crate::catalog::Descriptor;
use crate::catalog::authority::denied;
use crate::catalog::ids::PUBLIC;
use crate::catalog::names::Name;
use crate::catalog::privileges::{self, Access, Grant, ObjectKind, Privileges};
use crate::catalog::relation::Relation;
use crate::parse::{GrantOn, GrantPrivileges, RoleSpec};
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast::ObjectName;

impl Deriver<'_> {
    pub(super) fn grant(&mut self, grant: &GrantPrivileges) -> Result<()> {
        if let Some(by) = &grant.granted_by
            && self.named_role(by)? != self.who.role
        {
            return Err(Error::unsupported("grantor must be current user"));
        }
        let mut grantees = Vec::new();
        for role in &grant.roles {
            grantees.push(match role {
                RoleSpec::Public if grant.option && !grant.revokes => {
                    return Err(Error::sql("0LP01", "grant options can only be granted to roles"));
                }
                RoleSpec::Public => PUBLIC,
                role => self.named_role(role)?,
            });
        }
        let kind = match &grant.on {
            GrantOn::Tables(_) | GrantOn::AllTables(_) => ObjectKind::Table,
            GrantOn::Sequences(_) | GrantOn::AllSequences(_) => ObjectKind::Sequence,
            GrantOn::Schemas(_) => ObjectKind::Schema,
            GrantOn::Databases(_) => ObjectKind::Database,
        };
        let objects = self.granted_on(&grant.on)?;
        let named = grant.privileges.as_ref().map(|names| named_privileges(names, kind)).transpose()?;
        for object in objects {
            let Some((own, _)) = self.catalog.access(object) else { continue };
            let mut wanted = named.unwrap_or_else(|| own.all());
            if own == ObjectKind::Sequence && kind == ObjectKind::Table && !own.all().has(wanted) {
                // GRANT … ON TABLE may name a sequence, for what sequences have in common with
                // tables.
                let name = self.name_of(object);
                let message = format!("sequence \"{name}\" only supports USAGE, SELECT, and UPDATE privileges");
                self.warning("0LP01", message);
                wanted = wanted.and(own.all());
            }
            if own != ObjectKind::Sequence && wanted.has(Privileges::USAGE) && kind == ObjectKind::Table {
                return Err(Error::sql("0LP01", "invalid privilege type USAGE for table"));
            }
            if own != kind && kind == ObjectKind::Sequence {
                return Err(Error::sql("42809", format!("\"{}\" is not a sequence", self.name_of(object))));
            }
            self.grant_on(object, wanted, named.is_none(), &grantees, grant)?;
        }
        Ok(())
    }

    fn name_of(&self, object: DescriptorId) -> String {
        self.catalog.descriptors.get(&object).and_then(|d| d.name()).unwrap_or_default().to_string()
    }

    fn granted_on(&self, on: &GrantOn) -> Result<Vec<DescriptorId>> {
        let relation = |name: &ObjectName| {
            let found = self.catalog.relation(self.names(), &Name::from_ast(name)?)?;
            match (&found, found.descriptor()) {
                (Relation::Index(..), _) => Err(Error::sql("42809", format!("\"{name}\" is an index"))),
                (_, Some(id)) => Ok(id),
                (_, None) => Err(Error::unsupported("privileges on system catalogs cannot be changed")),
            }
        };
        let in_schemas = |schemas: &[String], wanted: fn(&Descriptor) -> bool| -> Result<Vec<DescriptorId>> {
            let mut found = Vec::new();
            for schema in schemas {
                let schema = self.catalog.schema(self.names(), schema)?.id;
                found.extend(self.catalog.descriptors.values().filter(|d| d.parent() == schema && wanted(d)).map(|d| d.id()));
            }
            Ok(found)
        };
        match on {
            GrantOn::Tables(names) | GrantOn::Sequences(names) => names.iter().map(relation).collect(),
            GrantOn::AllTables(schemas) => in_schemas(schemas, |d| matches!(d, Descriptor::Table(_) | Descriptor::View(_))),
            GrantOn::AllSequences(schemas) => in_schemas(schemas, |d| matches!(d, Descriptor::Sequence(_))),
            GrantOn::Schemas(names) => names.iter().map(|n| self.catalog.schema(self.names(), n).map(|s| s.id)).collect(),
            GrantOn::Databases(names) => names.iter().map(|n| self.catalog.database(n).map(|d| d.id)).collect(),
        }
    }

    /// As whom the user grants, and what it may grant so.
    fn grantor(&self, access: &Access, grants: &[Grant], wanted: Privileges) -> (DescriptorId, Privileges) {
        if self.who.has(access.owner()) {
            return (access.owner(), wanted);
        }
        let (mut best, mut most) = (self.who.role, Privileges::NONE);
        for role in &self.who.roles {
            let may = grants.iter().filter(|g| g.grantee == *role).fold(Privileges::NONE, |all, g| all.with(g.grantable));
            let may = may.and(wanted);
            if may.0.count_ones() > most.0.count_ones() {
                (best, most) = (*role, may);
            }
        }
        (best, most)
    }

    fn grant_on(
        &mut self,
        object: DescriptorId,
        wanted: Privileges,
        is_all: bool,
        grantees: &[DescriptorId],
        said: &GrantPrivileges,
    ) -> Result<()> {
        let Some(mut d) = self.catalog.descriptors.get(&object).map(|d| (**d).clone()) else { return Ok(()) };
        let (Some(kind), Some(access)) = (ObjectKind::of(&d), d.access_mut()) else { return Ok(()) };
        let name = self.name_of(object);
        let mut grants = access.grants(kind);
        let owner = access.owner();
        let (grantor, may) = self.grantor(access, &grants, wanted);
        let held = self.catalog.held(&self.who, kind, access);
        let is_stranger = |of: Privileges| may.and(of).is_empty() && held.and(of).is_empty();
        // PostgreSQL takes privileges from the columns as well, and asks for each.
        let takes_from_columns = said.revokes && kind.has_columns() && !wanted.and(Privileges::OF_COLUMNS).is_empty();
        if is_stranger(kind.all()) || (takes_from_columns && is_stranger(Privileges::OF_COLUMNS)) {
            return Err(denied(kind.name(), &name));
        }
        if !is_all && may != wanted {
            let (code, message) = match (said.revokes, may.is_empty()) {
                (false, true) => ("01007", format!("no privileges were granted for \"{name}\"")),
                (false, false) => ("01007", format!("not all privileges were granted for \"{name}\"")),
                (true, true) => ("01006", format!("no privileges could be revoked for \"{name}\"")),
                (true, false) => ("01006", format!("not all privileges could be revoked for \"{name}\"")),
            };
            self.warning(code, message);
        } else if is_all && may.is_empty() {
            let (code, what) = if said.revokes { ("01006", "could be revoked") } else { ("01007", "were granted") };
            self.warning(code, format!("no privileges {what} for \"{name}\""));
        }
        if may.is_empty() {
            return Ok(());
        }
        for grantee in grantees {
            let grantable = if said.option { may } else { Privileges::NONE };
            let grant = Grant { grantee: *grantee, grantor, privileges: may, grantable };
            if said.revokes {
                if privileges::take(&mut grants, owner, grant, said.option, said.cascade).is_err() {
                    return Err(Error::sql("2BP01", "dependent privileges exist").hint("Use CASCADE to revoke them too."));
                }
            } else {
                if self.grants_back(&grants, owner, grantor, *grantee) && said.option {
                    return Err(Error::sql("0LP01", "grant options cannot be granted back to your own grantor"));
                }
                privileges::add(&mut grants, grant);
            }
        }
        access.set_grants(grants);
        self.put(d);
        Ok(())
    }

    /// Whether the grantor has its right to grant from the grantee, or is the grantee: such a grant
    /// would survive the revocation of the one that it rests on.
    fn grants_back(&self, grants: &[Grant], owner: DescriptorId, grantor: DescriptorId, grantee: DescriptorId) -> bool {
        let (mut from, mut open) = (std::collections::BTreeSet::from([grantor]), vec![grantor]);
        while let Some(role) = open.pop() {
            if role == owner {
                continue;
            }
            let givers = grants.iter().filter(|g| g.grantee == role && !g.grantable.is_empty()).map(|g| g.grantor);
            open.extend(givers.filter(|g| from.insert(*g)));
        }
        grantor != owner && from.contains(&grantee)
    }

    /// `DROP OWNED`: a role has no privileges on an object any more, and has granted none.
    pub(super) fn forget_grants_of(&mut self, object: DescriptorId, role: DescriptorId) -> Result<()> {
        let Some(mut d) = self.catalog.descriptors.get(&object).map(|d| (**d).clone()) else { return Ok(()) };
        let (Some(kind), Some(access)) = (ObjectKind::of(&d), d.access_mut()) else { return Ok(()) };
        if !access.names(role) || access.owner() == role {
            return Ok(());
        }
        let (mut grants, owner) = (access.grants(kind), access.owner());
        let of_role: Vec<Grant> = grants.iter().filter(|g| g.grantee == role || g.grantor == role).copied().collect();
        for grant in of_role {
            let _ = privileges::take(&mut grants, owner, Grant { privileges: kind.all(), ..grant }, false, true);
        }
        access.set_grants(grants);
        self.put(d);
        Ok(())
    }
}

/// Privileges by name: 42601 if there is no such, 0LP01 if it is not one of that kind of object.
fn named_privileges(names: &[String], kind: ObjectKind) -> Result<Privileges> {
    let mut all = Privileges::NONE;
    for name in names {
        let Some(privilege) = Privileges::named(name) else {
            let known = ["execute", "set", "alter system"].contains(&name.as_str());
            let known = known.then(|| Error::sql("0LP01", invalid(name, kind)));
            return Err(known.unwrap_or_else(|| Error::sql("42601", format!("unrecognized privilege type \"{name}\""))));
        };
        // GRANT … ON TABLE may name sequences.
        let may_be_of_sequence = kind == ObjectKind::Table && privilege == Privileges::USAGE;
        if !kind.all().has(privilege) && !may_be_of_sequence {
            return Err(Error::sql("0LP01", invalid(name, kind)));
        }
        all = all.with(privilege);
    }
    Ok(all)
}

fn invalid(name: &str, kind: ObjectKind) -> String {
    let kind = if kind == ObjectKind::Table { "relation" } else { kind.name() };
    format!("invalid privilege type {} for {kind}", name.to_uppercase())
}
