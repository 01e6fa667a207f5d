//! A PostgreSQL of one's own: found, set up in a temporary directory, started on loopback, and
//! ended.

use super::child::{self, Server};
use meridian_base::{Error, Result};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tokio::time::Instant;

/// PostgreSQL refuses to run as root; it runs as one of these instead.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];
const INIT_LIMIT: Duration = Duration::from_secs(120);
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Where distributions keep what they do not put into the PATH.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Its settings beyond the defaults: memory for the data of a bench, no checkpoint in the middle of
/// a run, and no weaker durability than the defaults (`fsync` and `synchronous_commit` stay on).
const SETTINGS: [&str; 6] = [
    "listen_addresses=127.0.0.1",
    "max_connections=200",
    "shared_buffers=256MB",
    "max_wal_size=4GB",
    "fsync=on",
    "synchronous_commit=on",
];

/// Where its programs are.
pub struct Programs {
    bin: PathBuf,
}

impl Programs {
    /// In `dir`, or in the PATH, or where Debian puts them.
    pub fn find(dir: Option<&Path>) -> Result<Programs> {
        let mut places: Vec<PathBuf> = dir.map(Path::to_path_buf).into_iter().collect();
        if dir.is_none() {
            places.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
            let mut versions: Vec<PathBuf> =
                std::fs::read_dir(DEBIAN).into_iter().flatten().flatten().map(|v| v.path().join("bin")).collect();
            versions.sort();
            places.extend(versions.into_iter().rev());
        }
        let has_all = |place: &PathBuf| ["postgres", "initdb", "pgbench"].iter().all(|name| place.join(name).is_file());
        match places.into_iter().find(has_all) {
            Some(bin) => Ok(Programs { bin }),
            None => Err(Error::fatal("no PostgreSQL is found to compare with: postgres, initdb and pgbench in one directory")
                .hint("Install PostgreSQL, or say where its programs are with --pg-bin.")),
        }
    }
    pub fn command(&self, name: &str) -> Command {
        Command::new(self.bin.join(name))
    }
    pub fn bin(&self) -> &Path {
        &self.bin
    }
}

/// What a PostgreSQL has beyond [`SETTINGS`].
#[derive(Default)]
pub struct More {
    /// As in `-c name=value`. A path is relative to the data directory.
    pub settings: Vec<String>,
    /// Lines in front of the others of `pg_hba.conf`, which trust everybody on this machine.
    pub hba: String,
    /// Files that are put into the data directory, 0600.
    pub files: Vec<(&'static str, PathBuf)>,
}

/// A running PostgreSQL.
pub struct Postgres {
    server: Server,
    pub port: u16,
}

impl Postgres {
    /// Sets one up under `scratch` and starts it.
    pub async fn start(programs: &Programs, scratch: &Path) -> Result<Postgres> {
        Postgres::start_with(programs, scratch, More::default()).await
    }

    /// The same, with more.
    pub async fn start_with(programs: &Programs, scratch: &Path, more: More) -> Result<Postgres> {
        let owner = owner()?;
        let home = scratch.join("postgres");
        let failed = |e: std::io::Error| Error::fatal(format!("cannot prepare {}: {e}", home.display()));
        std::fs::create_dir_all(&home).map_err(failed)?;
        if let Some((uid, gid)) = owner {
            std::os::unix::fs::chown(&home, Some(uid), Some(gid)).map_err(failed)?;
            open_the_way(scratch).map_err(failed)?;
        }
        let as_owner = |mut command: Command| {
            if let Some((uid, gid)) = owner {
                command.uid(uid).gid(gid);
            }
            command.current_dir(&home).env("HOME", &home);
            command
        };
        let data = home.join("data");
        let mut initdb = programs.command("initdb");
        initdb.args(["--username=root", "--auth=trust", "--encoding=UTF8", "--locale=C"]).arg("-D").arg(&data);
        child::run(as_owner(initdb), scratch, INIT_LIMIT).await?;
        more.write(&data, owner).map_err(failed)?;

        let port = free_port()?;
        let mut postgres = programs.command("postgres");
        postgres.arg("-D").arg(&data).arg("-p").arg(port.to_string()).arg("-k").arg(&home);
        let settings = SETTINGS.into_iter().chain(more.settings.iter().map(String::as_str));
        settings.for_each(|setting| _ = postgres.args(["-c", setting]));
        let log = scratch.join("postgres.log");
        let mut server = Server::start("PostgreSQL", as_owner(postgres), &log)?;
        let deadline = Instant::now() + START_PATIENCE;
        while crate::client::PgClient::connect(&format!("127.0.0.1:{port}"), "root", "postgres").await.is_err() {
            server.check(&log)?;
            if Instant::now() > deadline {
                return Err(Error::fatal("PostgreSQL does not answer").detail(child::tail(&log)));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(Postgres { server, port })
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }
}

impl More {
    fn write(&self, data: &Path, owner: Option<(u32, u32)>) -> std::io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let rules = data.join("pg_hba.conf");
        let others = std::fs::read_to_string(&rules)?;
        std::fs::write(&rules, format!("{}{others}", self.hba))?;
        for (name, from) in &self.files {
            let path = data.join(name);
            std::fs::copy(from, &path)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            if let Some((uid, gid)) = owner {
                std::os::unix::fs::chown(&path, Some(uid), Some(gid))?;
            }
        }
        Ok(())
    }
}

/// The user and group to run as; `None`: as whoever runs this.
fn owner() -> Result<Option<(u32, u32)>> {
    // SAFETY: asks who runs this.
    if unsafe { libc::geteuid() } != 0 {
        return Ok(None);
    }
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of = |name: &str| {
        let fields: Vec<&str> = passwd.lines().map(|l| l.split(':').collect::<Vec<_>>()).find(|f| f[0] == name)?;
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    };
    match UNPRIVILEGED.iter().find_map(|name| of(name)) {
        Some(owner) => Ok(Some(owner)),
        None => Err(Error::fatal("PostgreSQL does not run as root, and there is no user postgres or nobody")),
    }
}

/// Lets another user reach what lies in a temporary directory of this one's.
fn open_the_way(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755))
}

/// A port that was free a moment ago: PostgreSQL does not choose one itself.
#[allow(clippy::disallowed_methods)]
fn free_port() -> Result<u16> {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    port.map(|addr| addr.port()).map_err(|e| Error::fatal(format!("no free port: {e}")))
}
