//! The password of `root` that a new cluster begins with.
//!
//! The founder draws it before there is a cluster, and keeps it in the file [`FILE`] of its data
//! directory, which only its own user can read. A second file beside it says that the cluster has
//! not been told yet; it goes when a session has stored the verifier. So a founder that is killed
//! in between tells it at its next start.

use crate::files;
use meridian_base::{Error, Result, SessionId};
use meridian_pki::Directory;
use meridian_pki::scram::Verifier;
use meridian_pki::secret::password;
use meridian_sql::session::{SessionFactory, SessionOptions, Shared};
use std::path::Path;
use std::sync::Arc;

/// The password, as a line of text.
pub const FILE: &str = "root.password";
/// The cluster does not know it yet.
const PENDING: &str = "root.password.pending";
/// The file that says that a directory belongs to a node (`node/src/membership/identity.rs`).
const IDENTITY: &str = "node";

fn failed(e: impl std::fmt::Display) -> Error {
    Error::fatal(e.to_string())
}

/// Before a founder's first start: draws the password, unless there is one.
pub fn prepare(data_dir: &Path) -> Result<()> {
    if files::exists(&data_dir.join(IDENTITY)) || files::exists(&data_dir.join(PENDING)) {
        return Ok(());
    }
    draw(data_dir)
}

/// A new password, which the cluster is told at the next start.
pub fn draw(data_dir: &Path) -> Result<()> {
    let directory = Directory::at(data_dir);
    directory.save_secret(FILE, &format!("{}\n", *password())).map_err(failed)?;
    directory.save_secret(PENDING, "").map_err(failed)
}

/// The password that is kept in a data directory; `None`: there is none.
pub fn read(data_dir: &Path) -> Result<Option<String>> {
    match Directory::at(data_dir).secret(FILE) {
        Ok(text) => Ok(Some(text.to_string())),
        Err(e) if e.kind() == meridian_pki::Kind::Absent => Ok(None),
        Err(e) => Err(failed(e)),
    }
}

/// When the node serves: tells the cluster, if it does not know yet.
pub(crate) async fn complete(sessions: &Arc<dyn SessionFactory>, shared: &Arc<Shared>, data_dir: &Path) -> Result<()> {
    let kept = data_dir.to_path_buf();
    let Some(password) = files::beside(move || pending(&kept)).await.map_err(failed)?? else { return Ok(()) };
    let options = SessionOptions {
        id: SessionId(sessions.random()),
        user: "root".into(),
        database: "postgres".into(),
        ..Default::default()
    };
    let mut session = sessions.open(options, shared.clone()).await?;
    // A verifier has no characters that would have to be quoted.
    let verifier = Verifier::new(&password).to_text();
    session.query_text(&format!("ALTER ROLE root PASSWORD '{}'", *verifier)).await?;
    let told = data_dir.join(PENDING);
    files::beside(move || files::remove(&told)).await.flatten().map_err(failed)
}

/// The password that the cluster has not been told yet.
fn pending(data_dir: &Path) -> Result<Option<String>> {
    if !files::exists(&data_dir.join(PENDING)) {
        return Ok(None);
    }
    match read(data_dir)? {
        Some(password) => Ok(Some(password)),
        None => Err(failed(format!("{} is gone, and the cluster does not know it yet", data_dir.join(FILE).display()))),
    }
}
