//! Who may do what with an object: its owner, and what was granted (PostgreSQL manual, 5.7).
//!
//! An object's [`Access`] is part of its descriptor, so a `GRANT` or `REVOKE` is a step of the
//! catalog like any other, under the schema lease: when it is answered, no node uses what was
//! before.

use super::ids::PUBLIC;
use super::ids::{DATABASE_OWNER, ROOT_ID};
use meridian_base::DescriptorId;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A set of privileges; the bits are PostgreSQL's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Privileges(pub u32);

impl Privileges {
    pub const NONE: Privileges = Privileges(0);
    pub const INSERT: Privileges = Privileges(1);
    pub const SELECT: Privileges = Privileges(1 << 1);
    pub const UPDATE: Privileges = Privileges(1 << 2);
    pub const DELETE: Privileges = Privileges(1 << 3);
    pub const TRUNCATE: Privileges = Privileges(1 << 4);
    pub const REFERENCES: Privileges = Privileges(1 << 5);
    pub const TRIGGER: Privileges = Privileges(1 << 6);
    pub const USAGE: Privileges = Privileges(1 << 8);
    pub const CREATE: Privileges = Privileges(1 << 9);
    pub const TEMPORARY: Privileges = Privileges(1 << 10);
    pub const CONNECT: Privileges = Privileges(1 << 11);
    /// What there is on columns.
    pub const OF_COLUMNS: Privileges =
        Privileges::SELECT.with(Privileges::INSERT).with(Privileges::UPDATE).with(Privileges::REFERENCES);

    pub const fn with(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }
    pub const fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }
    pub const fn and(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }
    pub const fn has(self, other: Privileges) -> bool {
        self.0 & other.0 == other.0
    }
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// One by one, in the order of the letters of an `aclitem`.
    pub fn each(self) -> impl Iterator<Item = Named> {
        NAMED.into_iter().filter(move |n| self.has(n.privilege))
    }
    /// A privilege by its name, in any case.
    pub fn named(name: &str) -> Option<Privileges> {
        let name = if name.eq_ignore_ascii_case("temp") { "temporary" } else { name };
        NAMED.iter().find(|n| n.name.eq_ignore_ascii_case(name)).map(|n| n.privilege)
    }
}

/// A privilege, its letter and its name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    pub privilege: Privileges,
    pub letter: char,
    pub name: &'static str,
}

const fn named(privilege: Privileges, letter: char, name: &'static str) -> Named {
    Named { privilege, letter, name }
}
const NAMED: [Named; 11] = [
    named(Privileges::INSERT, 'a', "INSERT"),
    named(Privileges::SELECT, 'r', "SELECT"),
    named(Privileges::UPDATE, 'w', "UPDATE"),
    named(Privileges::DELETE, 'd', "DELETE"),
    named(Privileges::TRUNCATE, 'D', "TRUNCATE"),
    named(Privileges::REFERENCES, 'x', "REFERENCES"),
    named(Privileges::TRIGGER, 't', "TRIGGER"),
    named(Privileges::USAGE, 'U', "USAGE"),
    named(Privileges::CREATE, 'C', "CREATE"),
    named(Privileges::TEMPORARY, 'T', "TEMPORARY"),
    named(Privileges::CONNECT, 'c', "CONNECT"),
];

/// What privileges are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    Table,
    View,
    Sequence,
    Schema,
    Database,
}

impl ObjectKind {
    /// What messages call it.
    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::Table => "table",
            ObjectKind::View => "view",
            ObjectKind::Sequence => "sequence",
            ObjectKind::Schema => "schema",
            ObjectKind::Database => "database",
        }
    }
    /// All that there are on it.
    pub fn all(self) -> Privileges {
        use Privileges as P;
        match self {
            ObjectKind::Table | ObjectKind::View => Privileges(0x7F),
            ObjectKind::Sequence => P::SELECT.with(P::UPDATE).with(P::USAGE),
            ObjectKind::Schema => P::USAGE.with(P::CREATE),
            ObjectKind::Database => P::CREATE.with(P::TEMPORARY).with(P::CONNECT),
        }
    }
    /// Whether it has columns.
    pub fn has_columns(self) -> bool {
        matches!(self, ObjectKind::Table | ObjectKind::View)
    }
    /// What PUBLIC has of a new one.
    fn of_public(self) -> Privileges {
        match self {
            ObjectKind::Database => Privileges::TEMPORARY.with(Privileges::CONNECT),
            _ => Privileges::NONE,
        }
    }
}

/// What one role has granted to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// [`PUBLIC`], or a role.
    pub grantee: DescriptorId,
    pub grantor: DescriptorId,
    pub privileges: Privileges,
    /// Those of them that the grantee may grant to others.
    pub grantable: Privileges,
}

/// An object's owner and privileges. It stands inside of descriptors, so it cannot grow: privileges
/// on columns and policies for rows will be fields of the descriptors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// A role; 0: nobody was said to be it, because there were no roles then.
    owner: DescriptorId,
    /// `None`: nothing was granted or revoked.
    granted: Option<Vec<Grant>>,
}

impl Access {
    pub fn of(owner: DescriptorId) -> Access {
        Access { owner, granted: None }
    }
    /// That of a schema `public` (PostgreSQL 15's rules): everybody may use it, and nobody but the
    /// database's owner may create in it.
    pub fn of_public_schema() -> Access {
        let grant = |grantee, privileges| Grant { grantee, grantor: DATABASE_OWNER, privileges, grantable: Privileges::NONE };
        let granted = vec![grant(DATABASE_OWNER, ObjectKind::Schema.all()), grant(PUBLIC, Privileges::USAGE)];
        Access { owner: DATABASE_OWNER, granted: Some(granted) }
    }
    pub fn owner(&self) -> DescriptorId {
        if self.owner.0 == 0 { ROOT_ID } else { self.owner }
    }
    /// As it is shown: `None` if nothing was ever granted or revoked.
    pub fn granted(&self) -> Option<&[Grant]> {
        self.granted.as_deref()
    }
    /// All grants, those that come with the kind of object as well.
    pub fn grants(&self, kind: ObjectKind) -> Vec<Grant> {
        match &self.granted {
            Some(granted) => granted.clone(),
            None => {
                let owner = self.owner();
                let grant = |grantee, privileges| Grant { grantee, grantor: owner, privileges, grantable: Privileges::NONE };
                let public = Some(grant(PUBLIC, kind.of_public())).filter(|g| !g.privileges.is_empty());
                public.into_iter().chain([grant(owner, kind.all())]).collect()
            }
        }
    }
    pub fn set_grants(&mut self, grants: Vec<Grant>) {
        self.owner = self.owner();
        self.granted = Some(grants);
    }
    /// Gives it to another owner: what was granted by the old one was granted by the new one.
    pub fn give_to(&mut self, new: DescriptorId) {
        let old = self.owner();
        self.owner = new;
        let Some(granted) = &mut self.granted else { return };
        let renamed = |role: DescriptorId| if role == old { new } else { role };
        let mut merged: Vec<Grant> = Vec::new();
        for g in granted.drain(..) {
            add(&mut merged, Grant { grantee: renamed(g.grantee), grantor: renamed(g.grantor), ..g });
        }
        *granted = merged;
    }
    /// Whether a role is named in it: as the owner, or in a grant.
    pub fn names(&self, role: DescriptorId) -> bool {
        self.owner() == role || self.granted.iter().flatten().any(|g| g.grantee == role || g.grantor == role)
    }
}

/// Adds a grant to others.
pub fn add(grants: &mut Vec<Grant>, grant: Grant) {
    match grants.iter_mut().find(|g| g.grantee == grant.grantee && g.grantor == grant.grantor) {
        Some(g) => {
            g.privileges = g.privileges.with(grant.privileges);
            g.grantable = g.grantable.with(grant.grantable);
        }
        None => grants.push(grant),
    }
}

/// Takes privileges, or only the right to grant them, back. With them goes what the grantee has
/// granted on; `Err`: there is some, and `cascade` was not said.
pub fn take(
    grants: &mut Vec<Grant>,
    owner: DescriptorId,
    taken: Grant,
    only_grantable: bool,
    cascade: bool,
) -> Result<(), DependentPrivileges> {
    let before = grants.clone();
    for g in grants.iter_mut().filter(|g| g.grantee == taken.grantee && g.grantor == taken.grantor) {
        g.grantable = g.grantable.without(taken.privileges);
        if !only_grantable {
            g.privileges = g.privileges.without(taken.privileges);
        }
    }
    grants.retain(|g| !g.privileges.is_empty());
    // What its grantee may not grant any more: it may still have the right by another grantor.
    let lost = taken.privileges.without(grantable_by(grants, owner, taken.grantee));
    let dependents: Vec<Grant> = (grants.iter())
        .filter(|g| g.grantor == taken.grantee && taken.grantee != owner && taken.grantee != PUBLIC)
        .filter(|g| !g.privileges.and(lost).is_empty())
        .copied()
        .collect();
    for dependent in dependents {
        if !cascade {
            *grants = before;
            return Err(DependentPrivileges);
        }
        take(grants, owner, Grant { privileges: dependent.privileges.and(lost), ..dependent }, false, true)?;
    }
    Ok(())
}

/// Others have privileges that were granted on.
#[derive(Debug)]
pub struct DependentPrivileges;

/// What a role itself may grant.
fn grantable_by(grants: &[Grant], owner: DescriptorId, role: DescriptorId) -> Privileges {
    if role == owner {
        return Privileges(u32::MAX);
    }
    grants.iter().filter(|g| g.grantee == role).fold(Privileges::NONE, |all, g| all.with(g.grantable))
}

/// The text of an `aclitem`, given the names of its roles.
pub fn acl_item(grant: &Grant, name: &dyn Fn(DescriptorId) -> String) -> String {
    let mut text = String::new();
    if grant.grantee != PUBLIC {
        text.push_str(&quoted(&name(grant.grantee)));
    }
    text.push('=');
    for p in grant.privileges.each() {
        text.push(p.letter);
        if grant.grantable.has(p.privilege) {
            text.push('*');
        }
    }
    let _ = write!(text, "/{}", quoted(&name(grant.grantor)));
    text
}

fn quoted(name: &str) -> String {
    match name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        true => name.to_string(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: DescriptorId = DescriptorId(500);
    const A: DescriptorId = DescriptorId(501);
    const B: DescriptorId = DescriptorId(502);

    fn grant(grantor: DescriptorId, grantee: DescriptorId, is_grantable: bool) -> Grant {
        let grantable = if is_grantable { Privileges::SELECT } else { Privileges::NONE };
        Grant { grantee, grantor, privileges: Privileges::SELECT, grantable }
    }

    #[test]
    fn what_was_granted_on_goes_with_the_right_to_grant_it() {
        let mut grants = Access::of(OWNER).grants(ObjectKind::Table);
        add(&mut grants, grant(OWNER, A, true));
        add(&mut grants, grant(A, B, true));
        add(&mut grants, grant(B, PUBLIC, false));
        let before = grants.clone();
        assert!(take(&mut grants, OWNER, grant(OWNER, A, false), false, false).is_err());
        assert_eq!(grants, before);
        take(&mut grants, OWNER, grant(OWNER, A, false), true, true).unwrap();
        assert_eq!(grants.len(), 2, "{grants:?}");
        assert_eq!(grants[1].grantable, Privileges::NONE);
    }

    #[test]
    fn a_second_grantor_keeps_what_depends_on_both() {
        let mut grants = Access::of(OWNER).grants(ObjectKind::Table);
        add(&mut grants, grant(OWNER, A, true));
        add(&mut grants, grant(OWNER, B, true));
        add(&mut grants, grant(B, A, true));
        add(&mut grants, grant(A, PUBLIC, false));
        take(&mut grants, OWNER, grant(OWNER, A, false), false, false).unwrap();
        assert!(grants.iter().any(|g| g.grantee == PUBLIC));
    }

    #[test]
    fn a_new_owner_has_what_the_old_one_had() {
        let mut access = Access::of(OWNER);
        let mut grants = access.grants(ObjectKind::Table);
        add(&mut grants, grant(OWNER, A, false));
        access.set_grants(grants);
        access.give_to(A);
        assert_eq!(access.owner(), A);
        assert_eq!(access.granted().unwrap().len(), 1);
        assert_eq!(acl_item(&access.granted().unwrap()[0], &|id| format!("r{}", id.0)), "r501=arwdDxt/r501");
    }

    #[test]
    fn public_of_the_first_days_is_not_writable_by_all() {
        let access = Access::of_public_schema();
        let public: Vec<_> = access.grants(ObjectKind::Schema).into_iter().filter(|g| g.grantee == PUBLIC).collect();
        assert_eq!(public.len(), 1);
        assert_eq!(public[0].privileges, Privileges::USAGE);
    }
}
