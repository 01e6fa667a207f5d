//! What a schema change asks of whoever makes it: to own what it changes, and to be allowed to
//! create where it creates.

use super::Deriver;
use crate::catalog::authority::{denied, must_own};
use crate::catalog::hba;
use crate::catalog::privileges::{Access, ObjectKind, Privileges};
use crate::catalog::relation::Relation;
use crate::catalog::{Descriptor, Table};
use crate::parse::{RoleSpec, fold};
use meridian_base::{DescriptorId, Error, Result};
use sqlparser::ast;

impl Deriver<'_> {
    /// 42501 unless the user owns an object.
    pub(super) fn must_own(&self, object: DescriptorId) -> Result<()> {
        self.catalog.check_owner(&self.who, object)
    }
    /// The same of a relation; an index is its table's.
    pub(super) fn must_own_relation(&self, relation: &Relation) -> Result<()> {
        match relation {
            Relation::System(t) if self.who.is_superuser => {
                Err(Error::sql("42501", format!("permission denied: \"{}\" is a system catalog", t.name)))
            }
            Relation::System(t) => Err(must_own(if t.is_view { "view" } else { "table" }, t.name)),
            Relation::Index(table, id) => match self.catalog.owns(&self.who, table.id) {
                true => Ok(()),
                false => {
                    let name = table.indexes.iter().find(|i| i.id == *id).map_or("", |i| &i.name);
                    Err(must_own("index", name))
                }
            },
            other => other.descriptor().map_or(Ok(()), |id| self.must_own(id)),
        }
    }
    /// 42501 unless the user owns the table of an index.
    pub(super) fn must_own_index(&self, table: DescriptorId, id: u32) -> Result<()> {
        let table = self.catalog.table_by_id(table).ok_or_else(|| Error::internal("an index without a table"))?;
        self.must_own_relation(&Relation::Index(table, id))
    }
    /// The same, or the schema.
    pub(super) fn may_drop_index(&self, table: DescriptorId, id: u32) -> Result<()> {
        let table = self.catalog.table_by_id(table).ok_or_else(|| Error::internal("an index without a table"))?;
        self.may_drop(&Relation::Index(table, id))
    }
    /// 42501 unless the user may drop a relation: it, or its schema, is the user's.
    pub(super) fn may_drop(&self, relation: &Relation) -> Result<()> {
        let schema = relation.descriptor().and_then(|id| self.catalog.descriptors.get(&id)).map(|d| d.parent());
        match schema {
            Some(schema) if self.catalog.owns(&self.who, schema) => Ok(()),
            _ => self.must_own_relation(relation),
        }
    }
    /// 42501 unless the user may create relations in a schema.
    pub(super) fn may_create_in(&self, schema: DescriptorId) -> Result<()> {
        self.catalog.check(&self.who, schema, Privileges::CREATE)
    }
    /// 42501 unless foreign keys of the user's may refer to a table.
    pub(super) fn may_refer_to(&self, parent: &Table) -> Result<()> {
        match self.catalog.descriptors.contains_key(&parent.id) {
            true => self.catalog.check(&self.who, parent.id, Privileges::REFERENCES),
            false => Ok(()),
        }
    }
    /// The owner of something that is made now.
    pub(super) fn own_access(&self) -> Access {
        Access::of(self.who.role)
    }

    /// The role that a statement names, or 42704.
    pub(super) fn named_role(&self, spec: &RoleSpec) -> Result<DescriptorId> {
        match spec {
            RoleSpec::Name(name) => self.catalog.role(name).map(|r| r.id),
            RoleSpec::CurrentUser => Ok(self.names().role),
            RoleSpec::SessionUser => Ok(self.names().session_role),
            RoleSpec::Public => Err(Error::sql("42704", "role \"public\" does not exist")),
        }
    }
    /// The role of an `OWNER TO` or `AUTHORIZATION`.
    pub(super) fn owner(&self, owner: &ast::Owner) -> Result<DescriptorId> {
        self.named_role(&match owner {
            ast::Owner::Ident(role) if fold(role) == "public" => RoleSpec::Public,
            ast::Owner::Ident(role) => RoleSpec::Name(fold(role)),
            ast::Owner::SessionUser => RoleSpec::SessionUser,
            _ => RoleSpec::CurrentUser,
        })
    }
    /// 42501 unless the user may act as a role.
    pub(super) fn must_be_member(&self, role: DescriptorId) -> Result<()> {
        match self.catalog.may_become(self.who.role, role, &self.names().database) {
            true => Ok(()),
            false => Err(Error::sql("42501", format!("must be member of role \"{}\"", self.catalog.role_name(role)))),
        }
    }
    /// The owner of something new that a statement names.
    pub(super) fn new_owner(&self, spec: Option<&RoleSpec>) -> Result<DescriptorId> {
        let Some(spec) = spec else { return Ok(self.who.role) };
        let role = self.named_role(spec)?;
        self.must_be_member(role)?;
        Ok(role)
    }

    /// `OWNER TO`: of what the user owns, to a role that the user may act as, and that could have
    /// made it itself.
    pub(super) fn give_to(&mut self, object: DescriptorId, new: DescriptorId) -> Result<()> {
        self.must_own(object)?;
        let Some((kind, access)) = self.catalog.access(object) else { return Ok(()) };
        if access.owner() == new {
            return Ok(());
        }
        if let Some(Descriptor::Sequence(s)) = self.catalog.descriptors.get(&object).map(|d| &**d)
            && let Some(linked) = self.linked(s, &format!("change owner of sequence \"{}\"", s.name))
        {
            return Err(linked);
        }
        if !self.who.is_superuser {
            self.must_be_member(new)?;
            let parent = self.catalog.descriptors.get(&object).map(|d| d.parent()).unwrap_or_default();
            let database = self.names().database.as_str();
            match kind {
                ObjectKind::Database => {
                    if !self.catalog.role_by_id(self.who.role).is_some_and(|r| r.creates_databases) {
                        return Err(Error::sql("42501", "permission denied to change owner of database"));
                    }
                }
                ObjectKind::Schema => self.catalog.check(&self.who, parent, Privileges::CREATE)?,
                _ => {
                    let new = self.catalog.authority(new, database);
                    self.catalog.check(&new, parent, Privileges::CREATE)?;
                }
            }
        }
        self.set_owner(object, new);
        Ok(())
    }
    /// The same, unasked; the sequences of a table's columns go with it.
    pub(super) fn set_owner(&mut self, object: DescriptorId, new: DescriptorId) {
        let Some(mut d) = self.catalog.descriptors.get(&object).map(|d| (**d).clone()) else { return };
        let Some(access) = d.access_mut() else { return };
        access.give_to(new);
        let is_table = matches!(d, Descriptor::Table(_));
        self.put(d);
        if is_table {
            for sequence in self.sequences_of(object, None) {
                self.set_owner(sequence.id, new);
            }
        }
    }
    /// Changes the rules of login, when they can be read as a whole.
    pub(super) fn alter_system(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        if !self.who.is_superuser {
            return Err(Error::sql(
                "42501",
                match name {
                    "all" => "permission denied to perform ALTER SYSTEM RESET ALL".to_string(),
                    name => format!("permission denied to set parameter \"{name}\""),
                },
            ));
        }
        let text = value.unwrap_or_default();
        let mut rules = self.catalog.login_rules().cloned().unwrap_or_default();
        match name {
            "hba_rules" => {
                let parsed = hba::Rules::parse(text)?;
                must_have_maps(&parsed, &hba::Maps::parse(&rules.ident)?, "Set ident_maps first.")?;
                for rule in &parsed.0 {
                    if let Some(from) = rule.trusted_strangers() {
                        self.warning("01000", trusts_strangers(rule.line, &from));
                    }
                }
                rules.hba = text.to_string();
            }
            "ident_maps" => {
                let parsed = hba::Rules::parse(self.catalog.hba_rules())?;
                must_have_maps(&parsed, &hba::Maps::parse(text)?, "Set hba_rules first.")?;
                rules.ident = text.to_string();
            }
            name => return Err(Error::unsupported(format!("ALTER SYSTEM of the parameter \"{name}\" is not supported"))),
        }
        self.put(Descriptor::LoginRules(rules));
        Ok(())
    }
    /// 42501 for what only a superuser may do.
    pub(super) fn must_be_superuser(&self, message: &str) -> Result<()> {
        if self.who.is_superuser { Ok(()) } else { Err(Error::sql("42501", message.to_string())) }
    }
    /// 42501 unless the user may make schemas in a database.
    pub(super) fn may_create_schema(&self, database: DescriptorId) -> Result<()> {
        match self.catalog.permits(&self.who, database, Privileges::CREATE) {
            true => Ok(()),
            false => {
                let name = self.catalog.database_by_id(database).map_or("", |d| &d.name);
                Err(denied("database", name))
            }
        }
    }
}

/// F0000 if rules of login name a user map that is not there.
fn must_have_maps(rules: &hba::Rules, maps: &hba::Maps, hint: &str) -> Result<()> {
    match rules.0.iter().find_map(|r| Some((r.line, r.map.as_deref().filter(|map| !maps.has(map))?))) {
        None => Ok(()),
        Some((line, map)) => {
            let message = format!("line {line} of the rules of login: there is no user map \"{map}\"");
            Err(Error::sql("F0000", message).hint(hint.to_string()))
        }
    }
}

/// What a rule of login means that asks strangers nothing.
pub(crate) fn trusts_strangers(line: usize, from: &str) -> String {
    format!(
        "line {line} of the rules of login trusts clients from {from}: whoever reaches a node from there is any user of that line"
    )
}
