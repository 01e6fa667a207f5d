//! Whether the user of a statement may run it: asked whenever it runs, and never only when it is
//! prepared.
//!
//! A plan has what it needs ([`Need`]). That is compared with the catalog of the statement and with
//! the newest one that the node knows: what was revoked since an open block began counts at once,
//! in prepared statements, open portals and cursors, and in reads of the past. A read of the past
//! asks for what is needed now: of a view that has another definition by now, to own it. The roles
//! that the answer rests on are noted in the transaction ([`crate::env::Transaction::uses`]), as
//! its tables are, so that one that ran with a membership that is gone fails certification.
//!
//! A plan remembers for which role and version of the catalog its needs were met, so that a
//! statement that runs again asks nothing.

use super::Session;
use crate::catalog::authority::{denied, must_own};
use crate::catalog::ids::{CHECKPOINT, CONTROL_JOBS, MONITOR, READ_ALL_STATS, SIGNAL_BACKEND};
use crate::catalog::names::Name;
use crate::catalog::privileges::Privileges;
use crate::catalog::{Authority, Catalog, Descriptor};
use crate::env::Environment;
use crate::parse::Maintained;
use crate::plan::{Need, NeedOn, Prepared};
use meridian_base::{DescriptorId, Error, Result, SchemaVersion};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What roles may do by one version of the catalog.
#[derive(Default)]
pub(super) struct Authorities {
    seen: SchemaVersion,
    of: BTreeMap<DescriptorId, Arc<Authority>>,
}

impl Authorities {
    fn of(&mut self, catalog: &Catalog, role: DescriptorId, database: &str) -> Arc<Authority> {
        if catalog.is_private {
            return Arc::new(catalog.authority(role, database));
        }
        if self.seen != catalog.seen {
            (self.seen, self.of) = (catalog.seen, BTreeMap::new());
        }
        self.of.entry(role).or_insert_with(|| Arc::new(catalog.authority(role, database))).clone()
    }
}

impl<E: Environment> Session<E> {
    /// 42501 unless the user may run a plan made with a catalog. Returns the roles that this rests
    /// on.
    pub(super) fn check_privileges(&mut self, prepared: &Prepared, catalog: &Arc<Catalog>) -> Result<Vec<DescriptorId>> {
        let newest = self.env.catalog();
        let role = self.names.role;
        let is_newest = !catalog.is_private && catalog.seen == newest.seen;
        let is_known = is_newest && prepared.permit.is_of(role, newest.seen);
        let is_skipped = self.shared.checks_at_prepare_only() && prepared.permit.is_set();
        if !is_known && !is_skipped {
            self.check_needs(&prepared.needs, catalog, &newest)?;
            if is_newest {
                prepared.permit.remember(role, newest.seen);
            }
        }
        let mut rests_on = self.authorities.of(&newest, role, &self.names.database).rests_on.clone();
        for owner in prepared.needs.iter().filter_map(|n| owner_of(n, &newest).or_else(|| owner_of(n, catalog))) {
            rests_on.extend(&self.authorities.of(&newest, owner, &self.names.database).rests_on);
        }
        Ok(rests_on)
    }
    fn check_needs(&mut self, needs: &[Need], catalog: &Arc<Catalog>, newest: &Arc<Catalog>) -> Result<()> {
        let reads_past = self.block.as_ref().is_some_and(|b| b.past.is_some());
        // What a block has changed itself counts there, unless others have changed something since.
        let base = self.block.as_ref().and_then(|b| b.ddl.as_ref()).map_or(catalog.seen, |ddl| ddl.base().seen);
        let asks_newest = reads_past || base != newest.seen;
        for need in needs {
            let own = owner_of(need, catalog).unwrap_or(self.names.role);
            if !reads_past {
                self.check_need(need, own, catalog)?;
            }
            if !asks_newest {
                continue;
            }
            // Who reads the past through a view that was given away must not see what its present
            // owner could not see.
            let present = owner_of(need, newest).filter(|present| *present != own);
            for role in [own].into_iter().chain(present) {
                match &need.on {
                    NeedOn::Object(object) if !newest.descriptors.contains_key(object) => {
                        if reads_past {
                            self.check_without_grants(*object, need.privileges, role, catalog, newest)?;
                        }
                    }
                    NeedOn::Object(object) => {
                        self.check_need(need, role, newest)?;
                        // Privileges on a view, and on views over it, are on what it shows now.
                        let user = self.names.role;
                        if reads_past && shows_something_else(*object, catalog, newest) && !self.owns(*object, user, newest) {
                            self.check_without_grants(*object, need.privileges, user, catalog, newest)?;
                        }
                    }
                    NeedOn::Secrets(_) => self.check_need(need, role, newest)?,
                }
            }
        }
        Ok(())
    }
    fn owns(&mut self, object: DescriptorId, role: DescriptorId, newest: &Arc<Catalog>) -> bool {
        newest.owns(&self.authorities.of(newest, role, &self.names.database), object)
    }
    /// 42501 unless a role has privileges on an object of the past that do not come from its owner:
    /// what was granted may have been revoked before the object was dropped, and its owner may have
    /// been another one then.
    fn check_without_grants(
        &mut self,
        object: DescriptorId,
        privileges: Privileges,
        role: DescriptorId,
        past: &Arc<Catalog>,
        newest: &Arc<Catalog>,
    ) -> Result<()> {
        let who = self.authorities.of(newest, role, &self.names.database);
        past.check_without_grants(&who, object, privileges)
    }
    /// 42501 unless a role has by a catalog what is needed.
    fn check_need(&mut self, need: &Need, role: DescriptorId, catalog: &Arc<Catalog>) -> Result<()> {
        let who = self.authorities.of(catalog, role, &self.names.database);
        match &need.on {
            NeedOn::Object(object) => catalog.check(&who, *object, need.privileges),
            NeedOn::Secrets(table) if table.is_shown_to(&who) => Ok(()),
            NeedOn::Secrets(table) => Err(denied(if table.is_view { "view" } else { "table" }, table.name)),
        }
    }
    /// Whether the role may log in, and how often at this node, and into this database.
    pub(super) fn check_login(&self) -> Result<()> {
        let catalog = self.env.catalog();
        let Some(role) = catalog.role_by_id(self.login_role) else { return Ok(()) };
        if !role.can_login {
            return Err(Error::sql("28000", format!("role \"{}\" is not permitted to log in", role.name)));
        }
        let database = catalog.database(&self.names.database)?;
        let who = catalog.authority(role.id, &database.name);
        if !catalog.permits(&who, database.id, Privileges::CONNECT) {
            return Err(denied("database", &database.name).detail("User does not have CONNECT privilege."));
        }
        let sessions = self.shared.sessions().iter().filter(|s| s.role == role.id).count();
        match usize::try_from(role.connection_limit) {
            Ok(limit) if !role.is_superuser && sessions > limit => {
                Err(Error::sql("53300", format!("too many connections for role \"{}\"", role.name)))
            }
            _ => Ok(()),
        }
    }

    /// What the user may do now.
    pub(super) fn authority(&mut self) -> Arc<Authority> {
        let judges = self.judges();
        self.authorities.of(judges.last(), self.names.role, &self.names.database)
    }
    /// What is to be maintained is there, and the user may do so: owns it or, for a checkpoint, has
    /// a predefined role.
    pub(super) fn may_maintain(&mut self, tag: &str, of: &Maintained) -> Result<()> {
        let (catalog, who) = (self.catalog(), self.authority());
        match of {
            Maintained::Node if who.has(CHECKPOINT) => Ok(()),
            Maintained::Node => {
                Err(Error::sql("42501", "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT"))
            }
            Maintained::Table(name) => catalog.check_owner(&who, catalog.table(&self.names, &Name::from_ast(name)?)?.id),
            Maintained::Index(name) => {
                let (table, _) = catalog.index(&self.names, name)?;
                match catalog.owns(&who, table.id) {
                    true => Ok(()),
                    false if tag == "CLUSTER" => Err(must_own("table", &table.name)),
                    false => Err(must_own("index", &Name::from_ast(&name.name)?.name)),
                }
            }
            Maintained::OwnTables => self.refuse_in_block(tag),
            Maintained::Schema(name) => {
                self.refuse_in_block("REINDEX SCHEMA")?;
                catalog.check_owner(&who, catalog.schema(&self.names, name)?.id)
            }
            Maintained::Database(name) => {
                self.refuse_in_block("REINDEX DATABASE")?;
                let database = catalog.database(&self.names.database)?;
                if name.as_ref().is_some_and(|name| *name != database.name) {
                    return Err(Error::unsupported("can only reindex the currently open database"));
                }
                catalog.check_owner(&who, database.id)
            }
        }
    }
    /// 42501 unless the user is a superuser or a member of a predefined role.
    pub(super) fn must_have(&mut self, role: DescriptorId, what: &str) -> Result<()> {
        if self.authority().has(role) {
            return Ok(());
        }
        let name = self.catalog().role_name(role);
        Err(Error::sql("42501", format!("permission denied to {what}"))
            .detail(format!("Only superusers and members of the role \"{name}\" may do that.")))
    }
    pub(super) fn must_control_jobs(&mut self, what: &str) -> Result<()> {
        self.must_have(CONTROL_JOBS, what)
    }
    /// 42501 unless the user has made a job, or may control those of others.
    pub(super) fn must_control_job(&mut self, id: DescriptorId, what: &str) -> Result<()> {
        let (catalog, who) = (self.catalog(), self.authority());
        let maker = catalog.job(id).and_then(|job| catalog.maker(job));
        match maker {
            Some(maker) if who.has(maker) => Ok(()),
            _ => self.must_control_jobs(&what.to_lowercase().replace(" job", " jobs")),
        }
    }
}

/// The owner of the view that a privilege is needed for.
fn owner_of(need: &Need, catalog: &Catalog) -> Option<DescriptorId> {
    catalog.access(need.by?).map(|(_, access)| access.owner())
}

/// Whether a view has another definition in the past that is read.
fn shows_something_else(object: DescriptorId, past: &Catalog, newest: &Catalog) -> bool {
    let view = |catalog: &Catalog| match catalog.descriptors.get(&object).map(|d| &**d) {
        // The same text may name other tables.
        Some(Descriptor::View(v)) => Some((v.query.clone(), v.depends_on.clone())),
        _ => None,
    };
    view(past) != view(newest)
}

/// Whether somebody sees what the sessions of a user do.
pub(super) fn sees_activity(who: &Authority, user: DescriptorId) -> bool {
    who.has(READ_ALL_STATS) || who.has(MONITOR) || who.has(user)
}

/// 42501 unless somebody may stop a session of a user.
pub(super) fn may_stop(catalog: &Catalog, who: &Authority, user: DescriptorId, ends: bool) -> Result<()> {
    let what = if ends { "terminate" } else { "cancel" };
    if catalog.role_by_id(user).is_some_and(|r| r.is_superuser) && !who.is_superuser {
        let what = if ends { "terminate superuser process" } else { "cancel superuser query" };
        return Err(Error::sql("42501", format!("must be a superuser to {what}")));
    }
    if who.has(SIGNAL_BACKEND) || who.has(user) {
        return Ok(());
    }
    let whose = match what {
        "terminate" => "process is being terminated",
        _ => "query is being canceled",
    };
    Err(Error::sql("42501", format!("must be a member of the role whose {whose} or member of pg_signal_backend")))
}
