//! The roles of a catalog, and what each may do.

use super::ids::*;
use super::names::Names;
use super::privileges::{Access, ObjectKind, Privileges};
use super::roles::{Membership, PREDEFINED, Role, is_predefined, oid_of};
use super::{Catalog, Descriptor};
use meridian_base::{DescriptorId, Error, Result};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

static BUILT_IN: LazyLock<Vec<Arc<Descriptor>>> = LazyLock::new(|| {
    let mut roles = vec![Role::root()];
    for (id, name, _) in PREDEFINED {
        let mut role = Role::new(id, name);
        if id == MONITOR {
            let member = |role| Membership { role, is_admin: false, grantor: ROOT_ID };
            role.member_of = [READ_ALL_SETTINGS, READ_ALL_STATS, DescriptorId(17)].map(member).to_vec();
        }
        roles.push(role);
    }
    roles.into_iter().map(|role| Arc::new(Descriptor::Role(role))).collect()
});

/// What a role may do, as one version of the catalog has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authority {
    pub role: DescriptorId,
    pub is_superuser: bool,
    /// The roles whose privileges it has, its own first one included.
    pub roles: BTreeSet<DescriptorId>,
    /// Those that the answer rests on and the catalog stores.
    pub rests_on: Vec<DescriptorId>,
}

impl Authority {
    /// Whether it has the privileges of a role.
    pub fn has(&self, role: DescriptorId) -> bool {
        self.is_superuser || self.roles.contains(&role)
    }
}

impl Catalog {
    /// A role by id.
    pub fn role_by_id(&self, id: DescriptorId) -> Option<&Role> {
        let stored = self.descriptors.get(&id).map(|d| &**d);
        let built_in = || BUILT_IN.iter().find(|d| d.id() == id).map(|d| &**d).filter(|_| is_predefined(id));
        match stored.or_else(built_in)? {
            Descriptor::Role(role) => Some(role),
            _ => None,
        }
    }
    /// A role by name.
    pub fn find_role(&self, name: &str) -> Option<&Role> {
        match self.by_name.get(&(ROLES, name.to_string())) {
            Some(id) => self.role_by_id(*id),
            None => {
                let built_in = BUILT_IN.iter().find(|d| d.name() == Some(name))?;
                // It may be stored under another name.
                self.role_by_id(built_in.id()).filter(|r| r.name == name)
            }
        }
    }
    /// A role by name, or 42704.
    pub fn role(&self, name: &str) -> Result<&Role> {
        self.find_role(name).ok_or_else(|| Error::sql("42704", format!("role \"{name}\" does not exist")))
    }
    /// All roles, by id.
    pub fn roles(&self) -> impl Iterator<Item = &Role> {
        let built_in = BUILT_IN.iter().map(|d| d.id()).filter_map(|id| self.role_by_id(id));
        let others = self.descriptors.values().filter_map(|d| match &**d {
            Descriptor::Role(role) if !is_predefined(role.id) => Some(role),
            _ => None,
        });
        built_in.chain(others)
    }
    /// The name of a role, or its number if it is gone.
    pub fn role_name(&self, id: DescriptorId) -> String {
        self.role_by_id(id).map_or_else(|| oid_of(id).to_string(), |r| r.name.clone())
    }
    /// The roles that one is a member of, directly or not, itself included. `inherited`: only those
    /// whose privileges it has without `SET ROLE`.
    pub fn memberships(&self, role: DescriptorId, database: &str, inherited: bool) -> BTreeSet<DescriptorId> {
        let owner = self.find_database(database).map(|d| d.access.owner());
        let mut found = BTreeSet::from([role]);
        let mut open = vec![role];
        while let Some(id) = open.pop() {
            let Some(role) = self.role_by_id(id) else { continue };
            if inherited && !role.inherits {
                continue;
            }
            let implicit = (owner == Some(id)).then_some(DATABASE_OWNER);
            open.extend(role.member_of.iter().map(|m| m.role).chain(implicit).filter(|r| found.insert(*r)));
        }
        found
    }
    /// Whether a role may act as another one (`SET ROLE`).
    pub fn may_become(&self, role: DescriptorId, other: DescriptorId, database: &str) -> bool {
        self.role_by_id(role).is_some_and(|r| r.is_superuser) || self.memberships(role, database, false).contains(&other)
    }
    /// Whether a role may let others into one.
    pub fn is_admin_of(&self, role: DescriptorId, of: DescriptorId, database: &str) -> bool {
        if self.role_by_id(role).is_some_and(|r| r.is_superuser) {
            return true;
        }
        let is_admin =
            |m: DescriptorId| self.role_by_id(m).is_some_and(|r| r.member_of.iter().any(|m| m.role == of && m.is_admin));
        self.memberships(role, database, false).into_iter().any(is_admin)
    }
    /// What a role may do in a database.
    pub fn authority(&self, role: DescriptorId, database: &str) -> Authority {
        let roles = self.memberships(role, database, true);
        let is_superuser = self.role_by_id(role).is_some_and(|r| r.is_superuser);
        let relied = if is_superuser { BTreeSet::from([role]) } else { roles.clone() };
        let rests_on = relied.into_iter().filter(|r| self.descriptors.contains_key(r)).collect();
        Authority { role, is_superuser, roles, rests_on }
    }
    /// The same of who runs a statement.
    pub fn authority_of(&self, names: &Names) -> Authority {
        self.authority(names.role, &names.database)
    }

    /// The owner and the privileges of an object.
    pub fn access(&self, id: DescriptorId) -> Option<(ObjectKind, &Access)> {
        let d = self.descriptors.get(&id)?;
        Some((ObjectKind::of(d)?, d.access()?))
    }
    /// Whether a role has privileges on an object, all of them.
    pub fn permits(&self, who: &Authority, object: DescriptorId, wanted: Privileges) -> bool {
        if who.is_superuser {
            return true;
        }
        let Some((kind, access)) = self.access(object) else { return false };
        self.held(who, kind, access).has(wanted)
    }
    /// The privileges that a role has on an object.
    pub fn held(&self, who: &Authority, kind: ObjectKind, access: &Access) -> Privileges {
        if who.is_superuser {
            return kind.all();
        }
        let mut held = Privileges::NONE;
        match access.granted() {
            None if who.roles.contains(&access.owner()) => return kind.all(),
            None => held = access.grants(kind).iter().filter(|g| g.grantee == PUBLIC).fold(held, |h, g| h.with(g.privileges)),
            Some(granted) => {
                for g in granted.iter().filter(|g| g.grantee == PUBLIC || who.roles.contains(&g.grantee)) {
                    held = held.with(g.privileges);
                }
            }
        }
        let (reads, writes) = (who.roles.contains(&READ_ALL_DATA), who.roles.contains(&WRITE_ALL_DATA));
        match kind {
            ObjectKind::Schema if reads || writes => held.with(Privileges::USAGE),
            ObjectKind::Table | ObjectKind::View | ObjectKind::Sequence => {
                let read = if reads { Privileges::SELECT } else { Privileges::NONE };
                let changes = Privileges::INSERT.with(Privileges::UPDATE).with(Privileges::DELETE);
                let written = if writes { changes } else { Privileges::NONE };
                held.with(read).with(written).and(kind.all())
            }
            _ => held,
        }
    }
    /// 42501 unless a role has privileges on an object whoever owned it and whatever was granted:
    /// those of predefined roles.
    pub fn check_without_grants(&self, who: &Authority, object: DescriptorId, wanted: Privileges) -> Result<()> {
        let Some((kind, _)) = self.access(object) else { return self.check(who, object, wanted) };
        match kind {
            // Nothing else says who may go through them.
            ObjectKind::Schema | ObjectKind::Database => self.check(who, object, wanted),
            _ if self.held(who, kind, &Access::of(ROOT_ID)).has(wanted) => Ok(()),
            _ => Err(denied(kind.name(), self.descriptors.get(&object).and_then(|d| d.name()).unwrap_or_default())),
        }
    }
    /// Whether a role has the privileges of an object's owner.
    pub fn owns(&self, who: &Authority, object: DescriptorId) -> bool {
        who.is_superuser || self.access(object).is_some_and(|(_, access)| who.roles.contains(&access.owner()))
    }
    /// 42501 unless a role owns an object.
    pub fn check_owner(&self, who: &Authority, object: DescriptorId) -> Result<()> {
        if self.owns(who, object) {
            return Ok(());
        }
        let d = self.descriptors.get(&object);
        let kind = d.and_then(|d| ObjectKind::of(d)).map_or("object", ObjectKind::name);
        Err(must_own(kind, d.and_then(|d| d.name()).unwrap_or_default()))
    }
    /// 42501 unless a role has privileges on an object.
    pub fn check(&self, who: &Authority, object: DescriptorId, wanted: Privileges) -> Result<()> {
        if self.permits(who, object, wanted) {
            return Ok(());
        }
        let d = self.descriptors.get(&object);
        let kind = d.and_then(|d| ObjectKind::of(d)).map_or("object", ObjectKind::name);
        Err(denied(kind, d.and_then(|d| d.name()).unwrap_or_default()))
    }
}

/// 42501.
pub fn denied(kind: &str, name: &str) -> Error {
    Error::sql("42501", format!("permission denied for {kind} {name}"))
}
/// 42501.
pub fn must_own(kind: &str, name: &str) -> Error {
    Error::sql("42501", format!("must be owner of {kind} {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_base::SchemaVersion;

    fn member(role: DescriptorId) -> Membership {
        Membership { role, is_admin: false, grantor: ROOT_ID }
    }

    #[test]
    fn every_catalog_has_root_and_the_predefined_roles() {
        let catalog = Catalog::default();
        assert!(catalog.find_role("root").unwrap().is_superuser);
        assert_eq!(catalog.find_role("pg_monitor").unwrap().oid(), 3373);
        assert_eq!(catalog.roles().count(), PREDEFINED.len() + 1);
        assert_eq!(catalog.role("nobody").unwrap_err().sqlstate(), "42704");
    }

    #[test]
    fn a_stored_root_takes_the_place_of_the_built_in_one() {
        let mut catalog = Catalog::default();
        catalog.put(Descriptor::Role(Role { name: "admin".into(), ..Role::root() }), SchemaVersion(1));
        assert!(catalog.find_role("root").is_none());
        assert_eq!(catalog.find_role("admin").unwrap().id, ROOT_ID);
        assert_eq!(catalog.roles().count(), PREDEFINED.len() + 1);
    }

    #[test]
    fn memberships_end_where_a_role_does_not_inherit() {
        let (a, b, c) = (DescriptorId(500), DescriptorId(501), DescriptorId(502));
        let mut catalog = Catalog::default();
        catalog.put(Descriptor::Role(Role { member_of: vec![member(b)], ..Role::new(a, "a") }), SchemaVersion(1));
        let inherits = Role { member_of: vec![member(c)], inherits: false, ..Role::new(b, "b") };
        catalog.put(Descriptor::Role(inherits), SchemaVersion(1));
        catalog.put(Descriptor::Role(Role::new(c, "c")), SchemaVersion(1));
        assert_eq!(catalog.memberships(a, "x", true), BTreeSet::from([a, b]));
        assert_eq!(catalog.memberships(a, "x", false), BTreeSet::from([a, b, c]));
        assert!(catalog.may_become(a, c, "x") && !catalog.may_become(c, a, "x"));
    }
}
