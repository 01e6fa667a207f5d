//! Who acts: the role that has logged in, or another one after `SET ROLE` or `SET SESSION
//! AUTHORIZATION`.
//!
//! Both are settings, so that they end with their transaction as settings do. What counts is the id
//! of a role: its name may be another's by the time that a transaction is rolled back.

use super::Session;
use super::judges::{Judges, Others};
use super::settings::Acting;
use super::system::SessionSystem;
use super::transaction::Block;
use crate::catalog::Catalog;
use crate::env::Environment;
use meridian_base::{DescriptorId, Error, Result};

impl<E: Environment> SessionSystem<E> {
    fn act(&self, catalog: &Catalog, acting: Acting, local: bool) {
        let role = acting.role.map_or_else(|| "none".to_string(), |role| catalog.role_name(role));
        self.settings().set_acting(acting, &catalog.role_name(acting.session), &role, local);
        self.acts_as(catalog, acting.current());
    }
    fn acts_as(&self, catalog: &Catalog, role: DescriptorId) {
        self.set_acting(role, catalog.role_by_id(role).is_some_and(|r| r.is_superuser));
    }
    /// `SET ROLE`; `None`: `NONE`, or the default.
    pub fn set_role(&self, judges: &Judges, name: Option<&str>, local: bool) -> Result<()> {
        let session = self.settings().now().acting.session;
        let role = match name {
            None => None,
            Some(name) => {
                let role = judges.role(name)?;
                if !judges.agree(role, |catalog| catalog.may_become(session, role, self.database())) {
                    return Err(Error::sql("42501", format!("permission denied to set role \"{name}\"")));
                }
                Some(role)
            }
        };
        self.act(&judges.catalog, Acting { session, role }, local);
        Ok(())
    }
    /// `SET SESSION AUTHORIZATION`; `None`: the user that has logged in.
    pub fn set_session_authorization(&self, judges: &Judges, name: Option<&str>, local: bool) -> Result<()> {
        let login = self.login_role();
        let session = match name {
            None => login,
            Some(name) => {
                let role = judges.role(name)?;
                let is_superuser = |catalog: &Catalog| catalog.role_by_id(login).is_some_and(|r| r.is_superuser);
                if role != login && !judges.agree(login, is_superuser) {
                    let refused = format!("permission denied to set session authorization \"{name}\"");
                    return Err(Error::sql("42501", refused));
                }
                role
            }
        };
        self.act(&judges.catalog, Acting { session, role: None }, local);
        Ok(())
    }
}

impl<E: Environment> Session<E> {
    /// Follows who acts, and what the catalog calls those roles. Returns whether something is new.
    pub(super) fn follow_role(&mut self) -> bool {
        let catalog = match &self.block {
            Some(Block { past: None, catalog: Some(catalog), .. }) => catalog.clone(),
            _ => self.env.catalog(),
        };
        let acting = self.system.settings().now().acting;
        let by = (!catalog.is_private).then_some(catalog.seen);
        let is_another = self.acting.is_none_or(|(before, _)| before != acting);
        if by.is_some() && self.acting == Some((acting, by)) {
            return false;
        }
        self.acting = Some((acting, by));
        (self.names.role, self.names.session_role) = (acting.current(), acting.session);
        self.names.user = catalog.role_name(acting.current());
        self.eval.user = self.names.user.as_str().into();
        self.eval.session_user = catalog.role_name(acting.session).into();
        (self.eval.role, self.eval.session_role) = (acting.current(), acting.session);
        if is_another {
            // As in PostgreSQL, the setting `is_superuser` does not follow ALTER ROLE.
            self.system.acts_as(&catalog, acting.current());
        }
        true
    }
    /// See [`Judges`].
    pub(super) fn judges(&self) -> Judges {
        let newest = self.env.catalog();
        match &self.block {
            Some(Block { ddl: Some(ddl), catalog: Some(catalog), .. }) => {
                let is_another = ddl.base().seen != newest.seen;
                let others = is_another.then(|| Others { base: ddl.base().clone(), newest });
                Judges { catalog: catalog.clone(), others }
            }
            _ => Judges::only(newest),
        }
    }
    /// See [`SessionSystem::set_role`].
    pub(super) fn set_role(&mut self, name: Option<&str>, local: bool) -> Result<()> {
        self.system.set_role(&self.judges(), name, local)?;
        self.settle_acting();
        Ok(())
    }
    /// See [`SessionSystem::set_session_authorization`].
    pub(super) fn set_session_authorization(&mut self, name: Option<&str>, local: bool) -> Result<()> {
        self.system.set_session_authorization(&self.judges(), name, local)?;
        self.settle_acting();
        Ok(())
    }
    fn settle_acting(&mut self) {
        // Outside a block a setting is committed as soon as it is made.
        if self.block.is_none() {
            self.system.settings().commit();
        }
        self.refresh();
    }
}

#[cfg(test)]
mod tests {
    use crate::env::Environment;
    use crate::session::{Session, SessionOptions};
    use crate::testing::MemEnvironment;
    use meridian_base::SessionId;

    fn session(env: &MemEnvironment, id: u64, user: &str) -> Session<MemEnvironment> {
        let (user, database) = (user.to_string(), "postgres".to_string());
        let options = SessionOptions { id: SessionId(id), user, database, ..SessionOptions::default() };
        Session::new(env.clone(), options, env.shared()).expect("a session")
    }

    async fn run(session: &mut Session<MemEnvironment>, statements: &[&str]) {
        for sql in statements {
            session.query_text(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
    }

    async fn users(session: &mut Session<MemEnvironment>) -> String {
        let results = session.query_text("select current_user || '/' || session_user").await.expect("a query");
        results[0].rows[0][0].clone().expect("a value")
    }

    const SECRET: &str = "select count(*) from pg_authid";

    /// A role's name goes to a superuser while a session acts as the role, or would act as it
    /// again.
    #[tokio::test]
    async fn who_takes_the_name_of_a_role_is_not_acted_as() {
        let ends: [&[&str]; 6] = [
            &["begin", "set local role none", "rollback"],
            &["begin", "set role none", "rollback"],
            &["begin", "savepoint a", "set role none", "rollback to a", "commit"],
            &["begin", "set local session authorization default", "rollback"],
            &["set application_name = 'x'"],
            &["reset all"],
        ];
        for end in ends {
            let env = MemEnvironment::new(&["us-east1"]);
            let mut root = session(&env, 1, "root");
            run(&mut root, &["create role ann login", "create role team", "grant team to ann"]).await;
            let mut ann = session(&env, 2, "ann");
            let (before, after) = end.split_at(end.len() / 2);
            run(&mut ann, &["set role team"]).await;
            run(&mut ann, before).await;
            run(&mut root, &["alter role team rename to crew", "create role team superuser"]).await;
            run(&mut root, &["alter role ann rename to eve", "create role ann superuser login"]).await;
            run(&mut ann, after).await;
            assert_eq!(users(&mut ann).await, "crew/eve", "{end:?}");
            assert_eq!(ann.query_text(SECRET).await.expect_err("a secret").sqlstate(), "42501", "{end:?}");
        }
    }

    #[tokio::test]
    async fn the_session_of_a_dropped_role_is_nobodys() {
        for end in [&["begin", "set local role none", "rollback"][..], &["discard all"], &["set role none"]] {
            let env = MemEnvironment::new(&["us-east1"]);
            let mut root = session(&env, 1, "root");
            run(&mut root, &["create role ann login"]).await;
            let mut ann = session(&env, 2, "ann");
            run(&mut root, &["drop role ann", "create role ann superuser login"]).await;
            run(&mut ann, end).await;
            assert_eq!(ann.query_text(SECRET).await.expect_err("a secret").sqlstate(), "42501", "{end:?}");
        }
    }

    /// Also in a block with a catalog of its own, which knows the role still.
    #[tokio::test]
    async fn a_superuser_that_was_dropped_becomes_nobody_else() {
        for change in ["create table leak (i int)", "comment on schema public is 'x'", "create role mine superuser"] {
            let env = MemEnvironment::new(&["us-east1"]);
            let mut root = session(&env, 1, "root");
            run(&mut root, &["create role evil superuser login"]).await;
            let mut evil = session(&env, 2, "evil");
            run(&mut evil, &["begin", change]).await;
            run(&mut root, &["drop role evil"]).await;
            let refused = evil.query_text("set session authorization root").await.expect_err("refused");
            assert_eq!(refused.sqlstate(), "42501", "{change}");
        }
    }

    #[tokio::test]
    async fn a_session_is_of_the_role_that_was_proved() {
        let env = MemEnvironment::new(&["us-east1"]);
        let mut root = session(&env, 1, "root");
        run(&mut root, &["create role ann login"]).await;
        let role = env.catalog().find_role("ann").map(|r| r.id);
        let options = |id| SessionOptions {
            id: SessionId(id),
            user: "ann".to_string(),
            role,
            database: "postgres".to_string(),
            ..SessionOptions::default()
        };
        run(&mut root, &["alter role ann rename to eve", "create role ann superuser login"]).await;
        let mut ann = Session::open(env.clone(), options(2), env.shared()).await.expect("a session");
        assert_eq!(users(&mut ann).await, "eve/eve");
        run(&mut root, &["drop role eve"]).await;
        let refused = Session::open(env.clone(), options(3), env.shared()).await.err().expect("refused");
        assert_eq!(refused.sqlstate(), "28000");
    }

    /// By `set_config`, too, as gateways of web applications do it.
    #[tokio::test]
    async fn a_role_may_be_set_for_one_transaction() {
        let env = MemEnvironment::new(&["us-east1"]);
        let mut root = session(&env, 1, "root");
        run(&mut root, &["create role ann login", "create role team", "create role other", "grant team to ann"]).await;
        let mut ann = session(&env, 2, "ann");
        run(&mut ann, &["begin", "select set_config('role', 'team', true)"]).await;
        assert_eq!(users(&mut ann).await, "team/ann");
        run(&mut ann, &["commit"]).await;
        assert_eq!(users(&mut ann).await, "ann/ann");
        for sql in ["select set_config('role', 'other', false)", "set role to 'other'", "set role 'other'"] {
            assert_eq!(ann.query_text(sql).await.expect_err(sql).sqlstate(), "42501", "{sql}");
        }
        run(&mut ann, &["set role to 'team'", "set session role = 'none'", "set role 'team'"]).await;
        assert_eq!(users(&mut ann).await, "team/ann");
    }

    /// What is taken away while a block is open counts in the block, too.
    #[tokio::test]
    async fn a_block_that_began_before_keeps_no_rights() {
        let cases: [(&[&str], &str, &str); 5] = [
            (&["grant admins to ann"], "revoke admins from ann", "set role admins"),
            (&["alter role ann superuser"], "alter role ann nosuperuser", "set session authorization root"),
            (&["grant pg_read_all_data to ann"], "revoke pg_read_all_data from ann", SECRET),
            (&["grant usage on schema s to ann"], "revoke usage on schema s from ann", "select count(*) from s.t"),
            (&["grant usage on schema s to ann"], "revoke usage on schema s from ann", "insert into s.t values (1)"),
        ];
        for (given, taken, used) in cases {
            let env = MemEnvironment::new(&["us-east1"]);
            let mut root = session(&env, 1, "root");
            run(&mut root, &["create role ann login", "create role admins superuser", "create schema s"]).await;
            run(&mut root, &["create table s.t (k int)", "grant all on s.t to ann"]).await;
            run(&mut root, given).await;
            let mut ann = session(&env, 2, "ann");
            run(&mut ann, &["begin", "select 1", used, "rollback", "reset session authorization"]).await;
            run(&mut ann, &["begin", "select 1"]).await;
            run(&mut root, &[taken]).await;
            assert_eq!(ann.query_text(used).await.expect_err(used).sqlstate(), "42501", "{used}");
        }
        // What a block has made itself, it may use.
        let env = MemEnvironment::new(&["us-east1"]);
        let mut root = session(&env, 1, "root");
        run(&mut root, &["create role ann login createrole"]).await;
        let mut ann = session(&env, 2, "ann");
        run(&mut ann, &["begin", "create role team", "grant team to ann"]).await;
        run(&mut root, &["create table other (k int)"]).await;
        run(&mut ann, &["set role team"]).await;
        assert_eq!(users(&mut ann).await, "team/ann");
    }

    #[tokio::test]
    async fn nobody_is_a_roles_administrator_by_being_the_role() {
        let env = MemEnvironment::new(&["us-east1"]);
        let mut root = session(&env, 1, "root");
        run(&mut root, &["create role ann login", "create role bob"]).await;
        let mut ann = session(&env, 2, "ann");
        assert_eq!(ann.query_text("grant ann to bob").await.expect_err("refused").sqlstate(), "42501");
    }

    /// What a view reads is asked of its owner.
    #[tokio::test]
    async fn a_view_shows_what_its_owner_may_see() {
        let env = MemEnvironment::new(&["us-east1"]);
        let mut root = session(&env, 1, "root");
        run(&mut root, &["create role ann login", "create view v as select rolname from pg_authid", "grant select on v to ann"])
            .await;
        let mut ann = session(&env, 2, "ann");
        run(&mut ann, &["select * from v"]).await;
    }
}
