//! Roles: who there is, and who is a member of whom.
//!
//! A role is a descriptor. The superuser `root` and PostgreSQL's predefined roles exist in every
//! catalog, stored or not, under ids below the first one that is drawn. A role's descriptor has the
//! roles that it is a member of, so that a `REVOKE` of a membership changes the descriptor of the
//! member: transactions that relied on it fail certification.

use super::ids::*;
use super::names::Names;
use super::privileges::{Access, ObjectKind, Privileges};
use super::{Catalog, Descriptor};
use PUBLIC;
use meridian_base::{DescriptorId, Error, Result, envelope};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Predefined roles: id, name, PostgreSQL's oid.
const PREDEFINED: [(DescriptorId, &str, u32); 14] = [
    (DATABASE_OWNER, "pg_database_owner", 6171),
    (READ_ALL_DATA, "pg_read_all_data", 6181),
    (WRITE_ALL_DATA, "pg_write_all_data", 6182),
    (MONITOR, "pg_monitor", 3373),
    (READ_ALL_SETTINGS, "pg_read_all_settings", 3374),
    (READ_ALL_STATS, "pg_read_all_stats", 3375),
    (DescriptorId(17), "pg_stat_scan_tables", 3377),
    (SIGNAL_BACKEND, "pg_signal_backend", 4200),
    (DescriptorId(19), "pg_read_server_files", 4569),
    (DescriptorId(20), "pg_write_server_files", 4570),
    (DescriptorId(21), "pg_execute_server_program", 4571),
    (CHECKPOINT, "pg_checkpoint", 4544),
    (CONTROL_JOBS, "pg_meridian_jobs", 9001),
    (CONTROL_NODES, "pg_meridian_nodes", 9002),
];

/// A membership: of whom, and whether the member may let others in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    pub role: DescriptorId,
    pub is_admin: bool,
    pub grantor: DescriptorId,
}

/// A role.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Role {
    pub id: DescriptorId,
    pub name: String,
    pub is_superuser: bool,
    /// Whether it has the privileges of the roles that it is a member of, without `SET ROLE`.
    pub inherits: bool,
    pub creates_roles: bool,
    pub creates_databases: bool,
    pub can_login: bool,
    /// −1: no limit.
    pub connection_limit: i32,
    /// Microseconds since 2000: until when its password is good. The extreme values are the
    /// infinities.
    pub valid_until: Option<i64>,
    /// A SCRAM-SHA-256 verifier.
    pub password: Option<String>,
    pub comment: Option<String>,
    /// The roles that it is a member of.
    #[serde(with = "envelope::each")]
    pub member_of: Vec<Membership>,
    /// `REPLICATION`: kept, and asked by nothing, as there is no replication protocol.
    #[serde(default)]
    pub may_replicate: bool,
    /// `BYPASSRLS`: kept, and asked by nothing, as there is no row-level security.
    #[serde(default)]
    pub bypasses_row_security: bool,
}

/// Without its verifier.
impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Role")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("is_superuser", &self.is_superuser)
            .field("can_login", &self.can_login)
            .field("has_password", &self.password.is_some())
            .field("member_of", &self.member_of)
            .finish_non_exhaustive()
    }
}

impl Role {
    /// A new role without attributes.
    pub fn new(id: DescriptorId, name: &str) -> Role {
        Role {
            id,
            name: name.into(),
            is_superuser: false,
            inherits: true,
            creates_roles: false,
            creates_databases: false,
            can_login: false,
            connection_limit: -1,
            valid_until: None,
            password: None,
            comment: None,
            member_of: Vec::new(),
            may_replicate: false,
            bypasses_row_security: false,
        }
    }
    /// The superuser of a new cluster.
    pub fn root() -> Role {
        let root = Role::new(ROOT_ID, ROOT_ROLE);
        Role {
            is_superuser: true,
            creates_roles: true,
            creates_databases: true,
            can_login: true,
            may_replicate: true,
            bypasses_row_security: true,
            ..root
        }
    }
    /// Its oid.
    pub fn oid(&self) -> u32 {
        oid_of(self.id)
    }
    pub fn is_member_of(&self, role: DescriptorId) -> bool {
        self.member_of.iter().any(|m| m.role == role)
    }
}

/// The oid of a role.
pub fn oid_of(role: DescriptorId) -> u32 {
    match PREDEFINED.iter().find(|(id, ..)| *id == role) {
        Some((.., oid)) => *oid,
        None if role.0 < FIRST_ID => role.0,
        None => oid(role),
    }
}

/// Whether a name may not be a role's.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with("pg_")
}

/// Whether a role comes with every catalog.
pub fn is_predefined(role: DescriptorId) -> bool {
    role.0 < FIRST_ID
}

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
    /// Whether somebody has privileges on an object, all of them.
    pub fn permits(&self, who: &Authority, object: DescriptorId, wanted: Privileges) -> bool {
        if who.is_superuser {
            return true;
        }
        let Some((kind, access)) = self.access(object) else { return false };
        self.held(who, kind, access).has(wanted)
    }
    /// The privileges that somebody has on an object.
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
    /// 42501 unless somebody has privileges on an object whoever owned it and whatever was granted:
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
    /// Whether somebody has the privileges of an object's owner.
    pub fn owns(&self, who: &Authority, object: DescriptorId) -> bool {
        who.is_superuser || self.access(object).is_some_and(|(_, access)| who.roles.contains(&access.owner()))
    }
    /// 42501 unless somebody owns an object.
    pub fn check_owner(&self, who: &Authority, object: DescriptorId) -> Result<()> {
        if self.owns(who, object) {
            return Ok(());
        }
        let d = self.descriptors.get(&object);
        let kind = d.and_then(|d| ObjectKind::of(d)).map_or("object", ObjectKind::name);
        Err(must_own(kind, d.and_then(|d| d.name()).unwrap_or_default()))
    }
    /// 42501 unless somebody has privileges on an object.
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
