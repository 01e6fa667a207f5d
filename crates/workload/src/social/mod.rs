//! S-DUR's social network (§5.1 and 5.6): users follow each other, post, and read timelines.
//!
//! A user's rows are at home in one region: whom the user follows (*producers*), who follows the
//! user (*consumers*), and the user's posts. A post is local; a follow writes a row at both users'
//! homes, half of the time in two regions; a timeline merges the newest posts of everybody the user
//! follows, wherever they are, and only reads.
//!
//! The paper's timelines read a snapshot that is up to a second old and are never certified
//! ([`Timelines::Past`]). They can also be strictly serializable ([`Timelines::Fresh`]): then each
//! is one statement, which reads every region's rows at the replicas beside it and makes one round
//! of checks.
//!
//! What must hold at the end: somebody is a follower exactly where somebody is followed, and every
//! acknowledged post and follow is there ([`judge`]).

mod judge;

use crate::client::Value;
use crate::run::{Context, Progress, Verdict, Worker, Workload, account, chance, until_answered};
use crate::schema;
use crate::session::{Attempted, Mode, Session};
use crate::stats::{Locality, StatsKey};
use async_trait::async_trait;
use judge::{Follow, Found, Known, Post};
use meridian_base::Result;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The operations, as they are called in tables of results.
pub const OPERATIONS: [&str; 3] = ["timeline", "post", "follow"];
/// Posts on a timeline, and at most of one user.
const TIMELINE_POSTS: u32 = 20;
const POSTS_OF_EACH: u32 = 5;
/// Rows per INSERT of the load.
const LOAD_BATCH: usize = 200;

/// What the database survives, and so where its voters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survive {
    /// The paper's WAN 1.
    Zone,
    /// The paper's WAN 2.
    Region,
}

impl Survive {
    /// The database with tables so.
    pub fn database(self) -> &'static str {
        match self {
            Survive::Zone => "social_zone",
            Survive::Region => "social_region",
        }
    }
    fn clause(self) -> &'static str {
        match self {
            Survive::Zone => "ZONE",
            Survive::Region => "REGION",
        }
    }
}

/// What a timeline reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timelines {
    /// A moment that has passed, at the replicas beside it; never certified.
    Past,
    /// The present.
    Fresh,
    /// Nothing: the client rests for so long instead, to see what timelines cost the others.
    Rest(Duration),
}

/// The shape of the workload.
#[derive(Clone, Debug)]
pub struct SocialConfig {
    /// The paper has 100,000.
    pub users_per_region: i64,
    /// Whom a user follows to begin with, and posts of each user.
    pub follows_per_user: i64,
    pub posts_per_user: i64,
    pub timeline_share: f64,
    /// Of the follows, those of a user of another region.
    pub global_follow_share: f64,
    pub survive: Survive,
    pub timelines: Timelines,
}

impl Default for SocialConfig {
    fn default() -> SocialConfig {
        SocialConfig {
            users_per_region: 1_000,
            follows_per_user: 10,
            posts_per_user: 3,
            timeline_share: 0.85,
            global_follow_share: 0.5,
            survive: Survive::Zone,
            timelines: Timelines::Past,
        }
    }
}

/// The workload.
pub struct Social {
    config: SocialConfig,
    known: Mutex<Known>,
    clients: AtomicU64,
}

/// The schemas of all regions, and whose users are at home where.
#[derive(Clone)]
struct Homes {
    schemas: Arc<[String]>,
    users_per_region: i64,
}

impl Homes {
    fn schema(&self, user: i64) -> &str {
        &self.schemas[self.region(user)]
    }
    fn region(&self, user: i64) -> usize {
        (user / self.users_per_region) as usize
    }
    fn user(&self, region: usize, rng: &mut SmallRng) -> i64 {
        region as i64 * self.users_per_region + rng.random_range(0..self.users_per_region)
    }
    /// Another user: of this region or of another.
    fn other_user(&self, user: i64, global_share: f64, rng: &mut SmallRng) -> i64 {
        let (own, regions) = (self.region(user), self.schemas.len());
        let region = match regions > 1 && chance(global_share, rng) {
            true => (own + rng.random_range(1..regions)) % regions,
            false => own,
        };
        loop {
            let other = self.user(region, rng);
            if other != user {
                return other;
            }
        }
    }

    /// The newest posts of everybody the user follows.
    fn timeline(&self, user: i64) -> String {
        let own = self.schema(user);
        let part = |schema: &String| {
            format!(
                "SELECT p.user_id, p.id, p.body FROM {own}.producers f, LATERAL (SELECT user_id, id, body FROM {schema}.posts \
                 WHERE user_id = f.followed ORDER BY id DESC LIMIT {POSTS_OF_EACH}) p WHERE f.user_id = $1"
            )
        };
        let parts: Vec<String> = self.schemas.iter().map(part).collect();
        format!("{} ORDER BY 2 DESC LIMIT {TIMELINE_POSTS}", parts.join(" UNION ALL "))
    }
}

impl Social {
    /// A network that nobody has used yet.
    pub fn new(config: SocialConfig) -> Social {
        assert!(config.users_per_region > config.follows_per_user, "there is somebody to follow");
        Social { config, known: Mutex::default(), clients: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no panic while noting")
    }

    fn homes(&self, context: &Context) -> Homes {
        let schemas = context.connector.regions().iter().map(|region| schema::schema_of(region)).collect();
        Homes { schemas, users_per_region: self.config.users_per_region }
    }

    async fn timeline(&self, session: &mut Session, homes: &Homes, user: i64, rng: &mut SmallRng) -> Attempted<()> {
        match self.config.timelines {
            Timelines::Rest(time) => {
                tokio::time::sleep(time).await;
                Attempted::Committed(())
            }
            Timelines::Fresh => session.single(rng, &homes.timeline(user), &[user.into()]).await.map(drop),
            Timelines::Past => {
                session
                    .transaction_in(Mode::Past, rng, |statements| {
                        let sql = homes.timeline(user);
                        Box::pin(async move { statements.query(&sql, &[user.into()]).await.map(drop) })
                    })
                    .await
            }
        }
    }

    async fn post(&self, session: &mut Session, homes: &Homes, post: Post, rng: &mut SmallRng) -> Attempted<()> {
        let sql = format!("INSERT INTO {}.posts (user_id, id, body) VALUES ($1, $2, $3)", homes.schema(post.user));
        let body = format!("what {} has to say for the {}th time", post.user, post.id);
        let params: [Value; 3] = [post.user.into(), post.id.into(), body.into()];
        let attempted = session.single(rng, &sql, &params).await.map(drop);
        self.lock().posts.note(post, &attempted);
        attempted
    }

    async fn follow(&self, session: &mut Session, homes: &Homes, follow: Follow, rng: &mut SmallRng) -> Attempted<()> {
        let attempted = session
            .transaction(rng, |statements| {
                let homes = homes.clone();
                Box::pin(async move {
                    let Follow { follower, followed } = follow;
                    let producers = format!(
                        "INSERT INTO {}.producers (user_id, followed) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                        homes.schema(follower)
                    );
                    statements.query(&producers, &[follower.into(), followed.into()]).await?;
                    let consumers = format!(
                        "INSERT INTO {}.consumers (user_id, follower) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                        homes.schema(followed)
                    );
                    statements.query(&consumers, &[followed.into(), follower.into()]).await.map(drop)
                })
            })
            .await;
        self.lock().follows.note(follow, &attempted);
        attempted
    }

    /// Everybody of a region with whom they follow, who follows them, and their posts. Also who has
    /// which number.
    async fn load_region(
        &self,
        context: &Context,
        region: usize,
        homes: &Homes,
        follows: &BTreeSet<Follow>,
        done: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<()> {
        let mut session = context.session(&context.connector.regions()[region], self.config.survive.database());
        let schema = &homes.schemas[region];
        let producers = follows.iter().filter(|f| homes.region(f.follower) == region);
        let producers: Vec<String> = producers.map(|f| format!("({}, {})", f.follower, f.followed)).collect();
        let consumers = follows.iter().filter(|f| homes.region(f.followed) == region);
        let consumers: Vec<String> = consumers.map(|f| format!("({}, {})", f.followed, f.follower)).collect();
        let first = region as i64 * homes.users_per_region;
        let users = first..first + homes.users_per_region;
        let posts = users.flat_map(|user| (0..self.config.posts_per_user).map(move |id| format!("({user}, {id}, 'hello')")));
        let tables = [
            ("producers (user_id, followed)", producers),
            ("consumers (user_id, follower)", consumers),
            ("posts (user_id, id, body)", posts.collect()),
        ];
        for (table, rows) in tables {
            for batch in rows.chunks(LOAD_BATCH) {
                let sql = format!("INSERT INTO {schema}.{table} VALUES {} ON CONFLICT DO NOTHING", batch.join(", "));
                schema::run(&mut session, &sql).await?;
                done(batch.len() as u64);
            }
        }
        Ok(())
    }

    /// Who follows whom to begin with: the same in every run.
    fn first_follows(&self, homes: &Homes) -> BTreeSet<Follow> {
        let mut rng = <SmallRng as rand::SeedableRng>::seed_from_u64(1);
        let mut follows = BTreeSet::new();
        for follower in 0..homes.users_per_region * homes.schemas.len() as i64 {
            for _ in 0..self.config.follows_per_user {
                let followed = homes.other_user(follower, self.config.global_follow_share, &mut rng);
                follows.insert(Follow { follower, followed });
            }
        }
        follows
    }
}

fn tables(schema: &str, home: &str) -> [String; 4] {
    [
        format!("CREATE SCHEMA {schema}"),
        format!("CREATE TABLE {schema}.producers (user_id INT8, followed INT8, PRIMARY KEY (user_id, followed)){home}"),
        format!("CREATE TABLE {schema}.consumers (user_id INT8, follower INT8, PRIMARY KEY (user_id, follower)){home}"),
        format!("CREATE TABLE {schema}.posts (user_id INT8, id INT8, body TEXT NOT NULL, PRIMARY KEY (user_id, id)){home}"),
    ]
}

#[async_trait]
impl Workload for Social {
    fn name(&self) -> &'static str {
        "social"
    }

    async fn setup(&self, context: &Context, progress: &(dyn Fn(Progress) + Send + Sync)) -> Result<()> {
        let database = self.config.survive.database();
        schema::create_database_surviving(context, database, self.config.survive.clause()).await?;
        let regions = context.connector.regions();
        let homes = self.homes(context);
        let of_region = |region: &String| tables(&schema::schema_of(region), &schema::locality(&*context.connector, region));
        let all: Vec<String> = regions.iter().flat_map(of_region).collect();
        schema::run_block(&mut context.session(&regions[0], database), &all).await?;

        let follows = self.first_follows(&homes);
        let posts = homes.users_per_region * self.config.posts_per_user * regions.len() as i64;
        let rows_total = 2 * follows.len() as u64 + posts as u64;
        let rows_done = AtomicU64::new(0);
        let done = |rows: u64| {
            let rows_done = rows_done.fetch_add(rows, Ordering::Relaxed) + rows;
            progress(Progress { rows_done, rows_total });
        };
        let loads = (0..regions.len()).map(|region| self.load_region(context, region, &homes, &follows, &done));
        futures::future::try_join_all(loads).await.map(drop)
    }

    async fn worker(&self, context: &Context, worker: Worker) -> Result<()> {
        let mut rng = context.rng(u64::from(worker.id) + 1);
        let mut session = context.session(&worker.region, self.config.survive.database());
        let homes = self.homes(context);
        let regions = context.connector.regions();
        let own = regions.iter().position(|r| *r == worker.region).expect("a region of the cluster");
        // Numbers of posts: the seed's and the client's, above those that were loaded.
        let client = self.clients.fetch_add(1, Ordering::Relaxed) & 0xFFFF;
        let mut id = ((context.seed & 0x7FFF) << 48 | client << 32) as i64 | 1 << 31;
        while !context.stop.is_stopped() {
            let user = homes.user(own, &mut rng);
            let drawn: f64 = rng.random();
            let started = context.timer.now_micros();
            let (operation, locality, attempted) = if drawn < self.config.timeline_share {
                (0, Locality::Other, self.timeline(&mut session, &homes, user, &mut rng).await)
            } else if drawn < self.config.timeline_share + (1.0 - self.config.timeline_share) / 2.0 {
                id += 1;
                (1, Locality::Own, self.post(&mut session, &homes, Post { user, id }, &mut rng).await)
            } else {
                let followed = homes.other_user(user, self.config.global_follow_share, &mut rng);
                let is_global = homes.region(followed) != own;
                let locality = if is_global { Locality::Other } else { Locality::Own };
                let follow = Follow { follower: user, followed };
                (2, locality, self.follow(&mut session, &homes, follow, &mut rng).await)
            };
            let key = StatsKey { region: worker.region.clone(), operation: OPERATIONS[operation], locality };
            account(context, &mut session, &key, started, &attempted).await?;
        }
        Ok(())
    }

    async fn check(&self, context: &Context) -> Result<Verdict> {
        let homes = self.homes(context);
        let mut session = context.session(&context.connector.regions()[0], self.config.survive.database());
        // All regions in one transaction: a follow whose outcome nobody knows may still be on its
        // way.
        let found = until_answered(context, &mut session, |statements| {
            let homes = homes.clone();
            Box::pin(async move {
                let mut found = Found::default();
                for schema in homes.schemas.iter() {
                    let rows = statements.query(&format!("SELECT user_id, followed FROM {schema}.producers"), &[]).await?;
                    for row in 0..rows.rows.len() {
                        found.producers.insert(Follow { follower: rows.int(row, 0)?, followed: rows.int(row, 1)? });
                    }
                    let rows = statements.query(&format!("SELECT user_id, follower FROM {schema}.consumers"), &[]).await?;
                    for row in 0..rows.rows.len() {
                        found.consumers.insert(Follow { follower: rows.int(row, 1)?, followed: rows.int(row, 0)? });
                    }
                    let sql = format!("SELECT user_id, id FROM {schema}.posts WHERE id >= {}", 1i64 << 31);
                    let rows = statements.query(&sql, &[]).await?;
                    for row in 0..rows.rows.len() {
                        found.posts.insert(Post { user: rows.int(row, 0)?, id: rows.int(row, 1)? });
                    }
                }
                Ok(found)
            })
        })
        .await?;
        let mut verdict = Verdict::default();
        judge::judge(&found, &self.lock(), &mut verdict);
        Ok(verdict)
    }
}
