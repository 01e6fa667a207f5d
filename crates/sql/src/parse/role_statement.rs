//! Statements about roles and privileges, once they are parsed.

use sqlparser::ast::ObjectName;
use std::fmt;

/// A statement about roles and privileges.
#[derive(Clone, Debug)]
pub enum RoleStatement {
    /// `CREATE ROLE`; also `USER`, which may log in, and `GROUP`.
    Create { name: String, options: RoleOptions },
    /// `ALTER ROLE`.
    Alter { role: RoleSpec, options: RoleOptions },
    /// `ALTER ROLE … RENAME TO`.
    Rename { role: String, new: String },
    /// `DROP ROLE`.
    Drop { roles: Vec<RoleSpec>, if_exists: bool },
    /// `GRANT role TO role`; with `revokes`, `REVOKE role FROM role`.
    Members(Members),
    /// `GRANT … ON … TO`; with `revokes`, `REVOKE … ON … FROM`.
    Privileges(GrantPrivileges),
    /// `REASSIGN OWNED BY … TO`.
    Reassign { from: Vec<RoleSpec>, to: RoleSpec },
    /// `DROP OWNED BY`.
    DropOwned { roles: Vec<RoleSpec>, cascade: bool },
    /// `ALTER VIEW … OWNER TO`.
    /// `COMMENT ON ROLE`.
    Comment { role: RoleSpec, comment: Option<String> },
}

/// A role as it is named in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleSpec {
    Name(String),
    CurrentUser,
    SessionUser,
    Public,
}

impl RoleSpec {
    /// From a name that is folded already.
    pub fn of(name: &str) -> RoleSpec {
        match name {
            "current_user" | "current_role" => RoleSpec::CurrentUser,
            "session_user" => RoleSpec::SessionUser,
            "public" => RoleSpec::Public,
            name => RoleSpec::Name(name.to_string()),
        }
    }
}

/// What a role is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleOptions {
    pub superuser: Option<bool>,
    pub create_db: Option<bool>,
    pub create_role: Option<bool>,
    pub inherit: Option<bool>,
    pub login: Option<bool>,
    pub replication: Option<bool>,
    pub bypass_rls: Option<bool>,
    pub connection_limit: Option<i32>,
    pub valid_until: Option<String>,
    pub password: Option<Password>,
    /// `IN ROLE`: what it becomes a member of.
    pub member_of: Vec<RoleSpec>,
    /// `ROLE`, `USER`: who becomes its member.
    pub members: Vec<RoleSpec>,
    /// `ADMIN`: the same, with the right to let others in.
    pub admins: Vec<RoleSpec>,
    /// `ALTER GROUP … ADD USER`, `… DROP USER`.
    pub leaving: Vec<RoleSpec>,
}

/// What `PASSWORD` says.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// `PASSWORD NULL`.
    None,
    /// As it was written: a password, or what a server keeps of one.
    Text(String),
    /// A SCRAM-SHA-256 verifier.
    Verifier(String),
}

/// Without what it is.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Password::None { "None" } else { "********" })
    }
}

/// Memberships that come or go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    pub roles: Vec<String>,
    pub members: Vec<RoleSpec>,
    pub revokes: bool,
    /// `WITH ADMIN OPTION`, or `ADMIN OPTION FOR`.
    pub admin: bool,
    pub granted_by: Option<RoleSpec>,
    pub cascade: bool,
}

/// Privileges that are granted or revoked.
#[derive(Clone, Debug)]
pub struct GrantPrivileges {
    /// By name, lower case; `None`: `ALL`.
    pub privileges: Option<Vec<String>>,
    pub on: GrantOn,
    pub roles: Vec<RoleSpec>,
    pub revokes: bool,
    /// `WITH GRANT OPTION`, or `GRANT OPTION FOR`.
    pub option: bool,
    pub granted_by: Option<RoleSpec>,
    pub cascade: bool,
}

/// What privileges are granted on.
#[derive(Clone, Debug)]
pub enum GrantOn {
    Tables(Vec<ObjectName>),
    Sequences(Vec<ObjectName>),
    AllTables(Vec<String>),
    AllSequences(Vec<String>),
    Schemas(Vec<String>),
    Databases(Vec<String>),
}
