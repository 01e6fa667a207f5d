//! Ids that are the same in every cluster, and the oids by which clients know what the catalog
//! holds.

use meridian_base::DescriptorId;

/// Everybody, as a grantee.
pub const PUBLIC: DescriptorId = DescriptorId(0);
/// The parent of roles: they have names of their own.
pub const ROLES: DescriptorId = DescriptorId(2);
/// The descriptor of the rules of login ([`super::LoginRules`]).
pub const LOGIN_RULES_ID: DescriptorId = DescriptorId(3);
/// Ids below it are the system's: 0 is the root, 1 the catalog's group.
pub(crate) const FIRST_ID: u32 = 100;
/// The superuser that every cluster has, and its name in a new one.
pub const ROOT_ID: DescriptorId = DescriptorId(10);
pub const ROOT_ROLE: &str = "root";
/// Who owns the current database.
pub const DATABASE_OWNER: DescriptorId = DescriptorId(11);
pub const READ_ALL_DATA: DescriptorId = DescriptorId(12);
pub const WRITE_ALL_DATA: DescriptorId = DescriptorId(13);
pub const MONITOR: DescriptorId = DescriptorId(14);
pub const READ_ALL_SETTINGS: DescriptorId = DescriptorId(15);
pub const READ_ALL_STATS: DescriptorId = DescriptorId(16);
pub const SIGNAL_BACKEND: DescriptorId = DescriptorId(18);
pub const CHECKPOINT: DescriptorId = DescriptorId(22);
/// May pause, resume and cancel jobs, and end transactions in doubt.
pub const CONTROL_JOBS: DescriptorId = DescriptorId(23);
/// May drain and decommission nodes.
pub const CONTROL_NODES: DescriptorId = DescriptorId(24);

/// The oid of something the catalog holds. Below 16384 are PostgreSQL's own.
pub fn oid(id: DescriptorId) -> u32 {
    16384 + id.0
}

/// The reverse of [`oid`].
pub fn from_oid(oid: u32) -> Option<DescriptorId> {
    oid.checked_sub(16384).map(DescriptorId)
}
