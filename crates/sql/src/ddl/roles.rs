//! `CREATE ROLE`, `ALTER ROLE`, `DROP ROLE`, memberships, `REASSIGN OWNED`, `DROP OWNED`.

use super::Deriver;
use crate::catalog::ids::DATABASE_OWNER;
use crate::catalog::privileges::ObjectKind;
use crate::catalog::roles::{Membership, is_predefined, is_reserved};
use crate::catalog::{Descriptor, Role};
use crate::parse::{Members, Password, RoleOptions, RoleSpec, RoleStatement};
use crate::types::{Datum, Type};
use meridian_base::{DescriptorId, Error, Result};

impl Deriver<'_> {
    pub(super) fn role_statement(&mut self, statement: &RoleStatement) -> Result<&'static str> {
        Ok(match statement {
            RoleStatement::Create { name, options } => {
                self.create_role(name, options)?;
                "CREATE ROLE"
            }
            RoleStatement::Alter { role, options } => {
                self.alter_role(role, options)?;
                "ALTER ROLE"
            }
            RoleStatement::Rename { role, new } => {
                self.rename_role(role, new)?;
                "ALTER ROLE"
            }
            RoleStatement::Drop { roles, if_exists } => {
                self.drop_roles(roles, *if_exists)?;
                "DROP ROLE"
            }
            RoleStatement::Members(members) => {
                self.change_members(members)?;
                if members.revokes { "REVOKE ROLE" } else { "GRANT ROLE" }
            }
            RoleStatement::Privileges(grant) => {
                self.grant(grant)?;
                if grant.revokes { "REVOKE" } else { "GRANT" }
            }
            RoleStatement::Reassign { from, to } => {
                self.reassign_owned(from, to)?;
                "REASSIGN OWNED"
            }
            RoleStatement::DropOwned { roles, cascade } => {
                self.drop_owned(roles, *cascade)?;
                "DROP OWNED"
            }
            RoleStatement::Comment { role, comment } => {
                let id = self.named_role(role)?;
                let mut role = self.role_of(id)?;
                self.may_change_role(&role, "must have CREATEROLE privilege")?;
                role.comment = comment.clone().filter(|c| !c.is_empty());
                self.put(role);
                "COMMENT"
            }
        })
    }

    fn role_of(&self, id: DescriptorId) -> Result<Role> {
        self.catalog.role_by_id(id).cloned().ok_or_else(|| Error::sql("42704", format!("role with OID {} does not exist", id.0)))
    }
    /// Whether the user may make and change roles.
    fn creates_roles(&self) -> bool {
        self.who.is_superuser || self.catalog.role_by_id(self.who.role).is_some_and(|r| r.creates_roles)
    }
    fn may_change_role(&self, role: &Role, message: &str) -> Result<()> {
        match () {
            () if role.is_superuser => self.must_be_superuser("must be superuser to alter superusers"),
            () if self.creates_roles() => Ok(()),
            () => Err(Error::sql("42501", message.to_string())),
        }
    }

    fn create_role(&mut self, name: &str, options: &RoleOptions) -> Result<()> {
        if options.superuser == Some(true) {
            self.must_be_superuser("must be superuser to create superusers")?;
        }
        if options.replication == Some(true) {
            self.must_be_superuser("must be superuser to create replication users")?;
        }
        if options.bypass_rls == Some(true) {
            self.must_be_superuser("must be superuser to create bypassrls users")?;
        }
        if !self.creates_roles() {
            return Err(Error::sql("42501", "permission denied to create role"));
        }
        if is_reserved(name) {
            return Err(crate::parse::reserved(name).detail("Role names starting with \"pg_\" are reserved."));
        }
        self.check_free(name)?;
        let id = self.new_descriptor_id();
        let mut role = Role::new(id, name);
        self.set_attributes(&mut role, options)?;
        self.put(role);
        for of in &options.member_of {
            let of = self.named_role(of)?;
            self.add_member(of, id, false)?;
        }
        for (members, admin) in [(&options.members, false), (&options.admins, true)] {
            for member in members {
                let member = self.named_role(member)?;
                self.add_member(id, member, admin)?;
            }
        }
        Ok(())
    }
    fn check_free(&self, name: &str) -> Result<()> {
        match self.catalog.find_role(name) {
            Some(_) => Err(Error::sql("42710", format!("role \"{name}\" already exists"))),
            None => Ok(()),
        }
    }

    fn set_attributes(&mut self, role: &mut Role, o: &RoleOptions) -> Result<()> {
        let set = |place: &mut bool, value: Option<bool>| *place = value.unwrap_or(*place);
        set(&mut role.is_superuser, o.superuser);
        set(&mut role.creates_databases, o.create_db);
        set(&mut role.creates_roles, o.create_role);
        set(&mut role.inherits, o.inherit);
        set(&mut role.can_login, o.login);
        set(&mut role.may_replicate, o.replication);
        set(&mut role.bypasses_row_security, o.bypass_rls);
        role.connection_limit = o.connection_limit.unwrap_or(role.connection_limit);
        if let Some(until) = &o.valid_until {
            role.valid_until = match Datum::from_text(until, &Type::Timestamptz, self.context.eval)? {
                Datum::Timestamp(at) => Some(at),
                _ => None,
            };
        }
        match &o.password {
            None => {}
            Some(Password::None) => role.password = None,
            Some(Password::Verifier(verifier)) => role.password = Some(verifier.clone()),
            Some(Password::Text(text)) if text.is_empty() => {
                self.notice("00000", "empty string is not a valid password, clearing password".into());
                role.password = None;
            }
            // The session makes a verifier before anything sees the statement.
            Some(Password::Text(_)) => return Err(Error::internal("a password in clear text reached the catalog")),
        }
        Ok(())
    }

    fn alter_role(&mut self, spec: &RoleSpec, o: &RoleOptions) -> Result<()> {
        let id = self.named_role(spec)?;
        let mut role = self.role_of(id)?;
        if !o.members.is_empty() || !o.leaving.is_empty() {
            for member in &o.members {
                let member = self.named_role(member)?;
                self.add_member(id, member, false)?;
            }
            for member in &o.leaving {
                let member = self.named_role(member)?;
                self.remove_member(id, member, false)?;
            }
            return Ok(());
        }
        if is_reserved(&role.name) {
            return Err(crate::parse::reserved(&role.name).detail("Cannot alter reserved roles."));
        }
        if role.is_superuser || o.superuser.is_some() {
            self.must_be_superuser("must be superuser to alter superuser roles or change superuser attribute")?;
        } else if role.may_replicate || o.replication.is_some() {
            self.must_be_superuser("must be superuser to alter replication roles or change replication attribute")?;
        } else if o.bypass_rls.is_some() {
            self.must_be_superuser("must be superuser to change bypassrls attribute")?;
        } else if !self.creates_roles() {
            let only_password = RoleOptions { password: None, ..o.clone() } == RoleOptions::default() && o.password.is_some();
            if !only_password || id != self.who.role {
                return Err(Error::sql("42501", "permission denied"));
            }
        }
        if id == crate::catalog::ids::ROOT_ID && (o.superuser == Some(false) || o.login == Some(false)) {
            return Err(Error::unsupported(format!("\"{}\" stays a superuser that may log in", role.name)));
        }
        self.set_attributes(&mut role, o)?;
        self.put(role);
        Ok(())
    }

    fn rename_role(&mut self, name: &str, new: &str) -> Result<()> {
        let id = self.catalog.role(name)?.id;
        let mut role = self.role_of(id)?;
        for (own, what) in [(self.names().session_role, "session"), (self.names().role, "current")] {
            if id == own {
                return Err(Error::unsupported(format!("{what} user cannot be renamed")));
            }
        }
        if is_reserved(name) {
            return Err(crate::parse::reserved(name).detail("Role names starting with \"pg_\" are reserved."));
        }
        if is_reserved(new) {
            return Err(crate::parse::reserved(new).detail("Role names starting with \"pg_\" are reserved."));
        }
        self.check_free(new)?;
        if role.is_superuser {
            self.must_be_superuser("must be superuser to rename superusers")?;
        } else if !self.creates_roles() {
            return Err(Error::sql("42501", "permission denied to rename role"));
        }
        role.name = new.to_string();
        self.put(role);
        Ok(())
    }

    fn drop_roles(&mut self, roles: &[RoleSpec], if_exists: bool) -> Result<()> {
        if !self.creates_roles() {
            return Err(Error::sql("42501", "permission denied to drop role"));
        }
        let mut ids = Vec::new();
        for spec in roles {
            let RoleSpec::Name(name) = spec else {
                return Err(Error::sql("22023", "cannot use special role specifier in DROP ROLE"));
            };
            let Some(role) = self.catalog.find_role(name).cloned() else {
                let message = format!("role \"{name}\" does not exist");
                if !if_exists {
                    return Err(Error::sql("42704", message));
                }
                self.notice("00000", format!("{message}, skipping"));
                continue;
            };
            for (own, what) in [(self.names().role, "current"), (self.names().session_role, "session")] {
                if role.id == own {
                    return Err(Error::sql("55006", format!("{what} user cannot be dropped")));
                }
            }
            if role.is_superuser {
                self.must_be_superuser("must be superuser to drop superusers")?;
            }
            if is_predefined(role.id) {
                let message = format!("cannot drop role {name} because it is required by the database system");
                return Err(Error::sql("2BP01", message));
            }
            let dependents = self.dependents_of(role.id);
            if !dependents.is_empty() {
                return Err(Error::sql("2BP01", format!("role \"{name}\" cannot be dropped because some objects depend on it"))
                    .detail(dependents.join("\n")));
            }
            ids.push(role.id);
        }
        for id in ids {
            let members: Vec<Role> = self.catalog.roles().filter(|r| r.is_member_of(id)).cloned().collect();
            for mut member in members {
                member.member_of.retain(|m| m.role != id);
                self.put(member);
            }
            self.delete(id);
        }
        Ok(())
    }

    /// What keeps a role from being dropped, in PostgreSQL's words.
    fn dependents_of(&self, role: DescriptorId) -> Vec<String> {
        let here = self.catalog.find_database(&self.names().database).map(|d| d.id);
        let (mut found, mut elsewhere) = (Vec::new(), std::collections::BTreeMap::<DescriptorId, usize>::new());
        for d in self.catalog.descriptors.values() {
            let (Some(kind), Some(access)) = (ObjectKind::of(d), d.access()) else { continue };
            if !access.names(role) {
                continue;
            }
            let database = match &**d {
                Descriptor::Database(d) => Some(d.id),
                _ => self.database_of_object(d),
            };
            if kind != ObjectKind::Database && database != here {
                *elsewhere.entry(database.unwrap_or_default()).or_default() += 1;
                continue;
            }
            let what = if access.owner() == role { "owner of" } else { "privileges for" };
            found.push(format!("{what} {}", self.described(d)));
        }
        for (database, count) in elsewhere {
            let name = self.catalog.database_by_id(database).map_or("", |d| &d.name);
            found.push(format!("{count} object{} in database {name}", if count == 1 { "" } else { "s" }));
        }
        found
    }
    /// The database that a schema or a relation is in.
    pub(super) fn database_of_object(&self, d: &Descriptor) -> Option<DescriptorId> {
        match d {
            Descriptor::Schema(s) => Some(s.database),
            other => self.catalog.schema_by_id(other.parent()).map(|s| s.database),
        }
    }
    /// What messages call an object: with its schema where the path does not lead there.
    pub(super) fn described(&self, d: &Descriptor) -> String {
        use crate::catalog::system::quote;
        let (kind, name) = (super::database::kind(d), d.name().unwrap_or_default());
        let schema = self.catalog.schema_by_id(d.parent()).map(|s| s.name.as_str());
        match schema {
            Some(schema) if !self.names().effective_path().any(|s| s == schema) => {
                format!("{kind} {}.{}", quote(schema), quote(name))
            }
            _ => format!("{kind} {}", quote(name)),
        }
    }

    fn change_members(&mut self, m: &Members) -> Result<()> {
        if let Some(by) = &m.granted_by
            && self.named_role(by)? != self.who.role
        {
            self.must_be_superuser("must be superuser to set grantor")?;
        }
        for role in &m.roles {
            let role = self.named_role(&RoleSpec::Name(role.clone()))?;
            for member in &m.members {
                let member = self.named_role(member)?;
                match m.revokes {
                    true => self.remove_member(role, member, m.admin)?,
                    false => self.add_member(role, member, m.admin)?,
                }
            }
        }
        Ok(())
    }
    /// 42501 unless the user may let others into a role, and out.
    fn may_change_members(&self, role: &Role) -> Result<()> {
        if role.is_superuser {
            return self.must_be_superuser("must be superuser to alter superusers");
        }
        let is_admin = || self.catalog.is_admin_of(self.who.role, role.id, &self.names().database);
        match self.creates_roles() || is_admin() {
            true => Ok(()),
            false => Err(Error::sql("42501", format!("must have admin option on role \"{}\"", role.name))),
        }
    }
    fn add_member(&mut self, role: DescriptorId, member: DescriptorId, is_admin: bool) -> Result<()> {
        let (role, mut member) = (self.role_of(role)?, self.role_of(member)?);
        self.may_change_members(&role)?;
        if role.id == DATABASE_OWNER {
            return Err(Error::unsupported(format!("role \"{}\" cannot have explicit members", role.name)));
        }
        if member.id == DATABASE_OWNER {
            return Err(Error::unsupported(format!("role \"{}\" cannot be a member of any role", member.name)));
        }
        let database = &self.names().database;
        if self.catalog.memberships(role.id, database, false).contains(&member.id) {
            let message = format!("role \"{}\" is a member of role \"{}\"", role.name, member.name);
            return Err(Error::sql("0LP01", message));
        }
        match member.member_of.iter_mut().find(|m| m.role == role.id) {
            Some(m) if m.is_admin || !is_admin => {
                self.notice("00000", format!("role \"{}\" is already a member of role \"{}\"", member.name, role.name));
                return Ok(());
            }
            Some(m) => m.is_admin = true,
            None => member.member_of.push(Membership { role: role.id, is_admin, grantor: self.who.role }),
        }
        self.put(member);
        Ok(())
    }
    fn remove_member(&mut self, role: DescriptorId, member: DescriptorId, only_admin: bool) -> Result<()> {
        let (role, mut member) = (self.role_of(role)?, self.role_of(member)?);
        self.may_change_members(&role)?;
        let Some(at) = member.member_of.iter().position(|m| m.role == role.id) else {
            self.warning("01000", format!("role \"{}\" is not a member of role \"{}\"", member.name, role.name));
            return Ok(());
        };
        match only_admin {
            true => member.member_of[at].is_admin = false,
            false => {
                member.member_of.remove(at);
            }
        }
        self.put(member);
        Ok(())
    }

    /// The objects of this database, and the databases.
    fn objects_here(&self) -> Vec<DescriptorId> {
        let here = self.catalog.find_database(&self.names().database).map(|d| d.id);
        let is_here = |d: &Descriptor| match d {
            Descriptor::Database(_) => true,
            d => ObjectKind::of(d).is_some() && self.database_of_object(d) == here,
        };
        self.catalog.descriptors.values().filter(|d| is_here(d)).map(|d| d.id()).collect()
    }
    fn is_owned_by(&self, object: DescriptorId, role: DescriptorId) -> bool {
        self.catalog.access(object).is_some_and(|(_, access)| access.owner() == role)
    }

    fn reassign_owned(&mut self, from: &[RoleSpec], to: &RoleSpec) -> Result<()> {
        let from: Vec<DescriptorId> = from.iter().map(|r| self.named_role(r)).collect::<Result<_>>()?;
        let denied = || Error::sql("42501", "permission denied to reassign objects");
        if !from.iter().all(|r| self.who.has(*r)) {
            return Err(denied());
        }
        let to = self.named_role(to)?;
        if !self.who.has(to) {
            return Err(denied());
        }
        for role in from {
            self.refuse_pinned(role, "reassign ownership of")?;
            for object in self.objects_here() {
                if !self.is_owned_by(object, role) {
                    continue;
                }
                // As in PostgreSQL, who gives a schema away is asked whether it could make one.
                if let Some(Descriptor::Schema(schema)) = self.catalog.descriptors.get(&object).map(|d| &**d) {
                    self.may_create_schema(schema.database)?;
                }
                self.set_owner(object, to);
            }
        }
        Ok(())
    }
    fn drop_owned(&mut self, roles: &[RoleSpec], cascade: bool) -> Result<()> {
        let roles: Vec<DescriptorId> = roles.iter().map(|r| self.named_role(r)).collect::<Result<_>>()?;
        if !roles.iter().all(|r| self.who.has(*r)) {
            return Err(Error::sql("42501", "permission denied to drop objects"));
        }
        for role in roles {
            self.refuse_pinned(role, "drop")?;
            // Relations before the schemas that they may be in. One may take others along.
            let mut objects = self.objects_here();
            objects.sort_by_key(|id| self.catalog.access(*id).map(|(kind, _)| kind as u8));
            for object in objects {
                if self.is_owned_by(object, role) {
                    self.drop_object(object, cascade)?;
                }
                self.forget_grants_of(object, role)?;
            }
        }
        Ok(())
    }
    fn drop_object(&mut self, object: DescriptorId, cascade: bool) -> Result<()> {
        let Some(d) = self.catalog.descriptors.get(&object).cloned() else { return Ok(()) };
        match &*d {
            Descriptor::Table(t) => self.drop_table_by_id(t.id, cascade),
            Descriptor::View(v) => self.drop_view_by_id(v.id, cascade),
            Descriptor::Sequence(s) => self.drop_sequence_by_id(s.id, cascade),
            Descriptor::Schema(s) => self.drop_schema_by_id(s.id, cascade),
            // As in PostgreSQL: databases are not dropped with their owner's objects.
            _ => Ok(()),
        }
    }
    /// 2BP01: what the system itself has is neither dropped nor given away.
    fn refuse_pinned(&self, role: DescriptorId, what: &str) -> Result<()> {
        if !is_predefined(role) {
            return Ok(());
        }
        let name = self.catalog.role_name(role);
        let message = format!("cannot {what} objects owned by role {name} because they are required by the database system");
        Err(Error::sql("2BP01", message))
    }
}
