//! Roles, and who is a member of whom.
//!
//! A role is a descriptor. The superuser `root` and PostgreSQL's predefined roles exist in every
//! catalog, stored or not, under ids below the first one that is drawn. A role's descriptor has the
//! roles that it is a member of, so that a `REVOKE` of a membership changes the descriptor of the
//! member: transactions that relied on it fail certification.

use super::ids::*;
use meridian_base::{DescriptorId, envelope};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Predefined roles: id, name, PostgreSQL's oid.
pub(super) const PREDEFINED: [(DescriptorId, &str, u32); 14] = [
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
