//! The files of a process: what is in a certificate directory, and how it is kept.
//!
//! ```text
//! ca.crt             the authorities that are trusted: one, or several while they are rotated
//! ca.key             the key that signs; only where certificates are made
//! ca.next.key        the key that will sign, during a rotation
//! node.crt           this node's certificate, and those between it and the authority, if any
//! node.key           its key
//! joining.key        the key that a node asks to have certified, until it is a node
//! client.<role>.crt  the certificate of a client, and its key
//! client.<role>.key
//! ```
//!
//! A file is replaced as a whole: it is written beside the old one, synced, renamed, and the
//! directory is synced. Keys have the mode 0600 from their first byte on, and the directory 0700.
//!
//! A certificate and its key are two files, and a crash may come between them. So the new key is
//! written as `<name>.key.next` first, then the certificate, then the key is renamed. A reader
//! takes the one of the two keys that fits the certificate.

use crate::authority::Authority;
use crate::certificate::Certificate;
use crate::error::{Error, Kind, Result};
use crate::key::PrivateKey;
use crate::secret;
use crate::verify::{Bundle, read_certificates, write_certificates};
use meridian_base::workers;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The authorities.
pub const AUTHORITIES: &str = "ca.crt";
/// The key that signs.
pub const AUTHORITY_KEY: &str = "ca.key";
/// The key that will sign.
pub const NEXT_AUTHORITY_KEY: &str = "ca.next.key";
/// A node's pair: `node.crt` and `node.key`.
pub const NODE: &str = "node";

const JOINING_KEY: &str = "joining.key";

const FILE_BYTES_MAX: u64 = 1 << 20;

/// A certificate with those between it and the authority, and its key.
#[derive(Clone, Debug)]
pub struct Pair {
    chain: Vec<Certificate>,
    key: PrivateKey,
}

impl Pair {
    /// The holder's certificate comes first. An error if the key is another one's.
    pub fn new(chain: Vec<Certificate>, key: PrivateKey) -> Result<Pair> {
        let first = chain.first().ok_or_else(|| Error::new(Kind::Absent, "there is no certificate"))?;
        match first.is_of_key(&key.public_info()?) {
            true => Ok(Pair { chain, key }),
            false => Err(Error::new(Kind::Mismatch, "the private key is not that of the certificate")),
        }
    }
    /// The holder's certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.chain[0]
    }
    /// With those between it and the authority.
    pub fn chain(&self) -> &[Certificate] {
        &self.chain
    }
    /// Its key.
    pub fn key(&self) -> &PrivateKey {
        &self.key
    }
}

/// A certificate directory.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

fn failed(done: &str, path: &Path, e: &io::Error) -> Error {
    let kind = if e.kind() == io::ErrorKind::NotFound { Kind::Absent } else { Kind::File };
    Error::new(kind, format!("cannot {done} {}: {e}", path.display()))
}

impl Directory {
    /// One that is there, or will be.
    pub fn at(path: impl Into<PathBuf>) -> Directory {
        Directory { path: path.into() }
    }
    /// Makes it, for its owner only, if it is not there. An error if it is there and others may
    /// write to it.
    pub fn create(path: impl Into<PathBuf>) -> Result<Directory> {
        workers::assert_may_wait("making a certificate directory");
        let path = path.into();
        match DirBuilder::new().recursive(true).mode(0o700).create(&path) {
            Ok(()) => {}
            Err(e) => return Err(failed("make", &path, &e)),
        }
        let mode = fs::metadata(&path).map_err(|e| failed("look at", &path, &e))?.mode();
        if mode & 0o022 != 0 {
            return Err(Error::new(
                Kind::Permissions,
                format!("{} can be written by others (mode {:04o}): chmod 0700", path.display(), mode & 0o7777),
            ));
        }
        Ok(Directory { path })
    }
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Where a file of it is.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
    /// Whether there is such a file.
    pub fn has(&self, name: &str) -> bool {
        workers::assert_may_wait("looking for a certificate");
        self.file(name).exists()
    }
    /// The names of its files, sorted.
    pub fn names(&self) -> Result<Vec<String>> {
        workers::assert_may_wait("listing certificates");
        let read = |e| failed("read", &self.path, &e);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(read)? {
            names.extend(entry.map_err(read)?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, name: &str, is_key: bool) -> Result<Zeroizing<Vec<u8>>> {
        workers::assert_may_wait("reading a certificate");
        let path = self.file(name);
        let error = |e| failed("read", &path, &e);
        let file = File::open(&path).map_err(error)?;
        // Of the open file, so that nothing can be put in its place in between.
        let about = file.metadata().map_err(error)?;
        if !about.is_file() || about.len() > FILE_BYTES_MAX {
            return Err(Error::malformed(format!("{} is no file of certificates or keys", path.display())));
        }
        // As PostgreSQL has it: a key of root's may be readable for its group.
        let forbidden = if about.uid() == 0 { 0o037 } else { 0o077 };
        if is_key && about.mode() & forbidden != 0 {
            let mode = about.mode() & 0o7777;
            let place = path.display();
            return Err(Error::new(Kind::Permissions, format!("{place} can be used by others (mode {mode:04o}): chmod 0600")));
        }
        // One buffer of the right size, so that no copy of a key is left behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(about.len() as usize + 1));
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(error)?;
        Ok(bytes)
    }

    /// Writes a file as a whole.
    fn write(&self, name: &str, bytes: &[u8], is_key: bool) -> Result<()> {
        workers::assert_may_wait("writing a certificate");
        let (path, beside) = (self.file(name), self.file(&format!(".{name}.{}", secret::hex(&secret::random::<8>()))));
        let error = |e| failed("write", &path, &e);
        let mode = if is_key { 0o600 } else { 0o644 };
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&beside, &path)
        })();
        if let Err(e) = written {
            // What cannot be removed either is left; its name says that it is nothing.
            let _ = fs::remove_file(&beside);
            return Err(error(e));
        }
        self.sync()
    }

    fn sync(&self) -> Result<()> {
        workers::assert_may_wait("the sync of a certificate directory");
        File::open(&self.path).and_then(|d| d.sync_all()).map_err(|e| failed("sync", &self.path, &e))
    }

    /// Twice is once.
    fn remove(&self, name: &str) -> Result<()> {
        match fs::remove_file(self.file(name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed("remove", &self.file(name), &e)),
            _ => self.sync(),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        fs::rename(self.file(from), self.file(to)).map_err(|e| failed("rename", &self.file(from), &e))?;
        self.sync()
    }

    /// The authorities that are trusted.
    pub fn bundle(&self) -> Result<Bundle> {
        Bundle::from_pem(&self.read(AUTHORITIES, false)?).map_err(|e| e.at(self.file(AUTHORITIES).display()))
    }
    /// Replaces them.
    pub fn save_bundle(&self, bundle: &Bundle) -> Result<()> {
        self.write(AUTHORITIES, bundle.to_pem().as_bytes(), false)
    }
    /// The authority that signs here: the one in `ca.crt` that `ca.key` is the key of.
    pub fn authority(&self) -> Result<Authority> {
        self.authority_of(AUTHORITY_KEY)
    }
    fn authority_of(&self, name: &str) -> Result<Authority> {
        let (bundle, key) = (self.bundle()?, self.key(name)?);
        let public = key.public_info().map_err(|e| e.at(self.file(name).display()))?;
        let Some(certificate) = bundle.authorities().iter().find(|a| a.is_of_key(&public)) else {
            let (key, crt) = (self.file(name), self.file(AUTHORITIES));
            let why = format!("{}: no certificate in {} is of this key", key.display(), crt.display());
            return Err(Error::new(Kind::Mismatch, why));
        };
        Authority::new(certificate.clone(), key)
    }
    /// Begins with an authority. Refused if there is one, or a key of one.
    pub fn found(&self, authority: &Authority) -> Result<()> {
        for name in [AUTHORITIES, AUTHORITY_KEY, NEXT_AUTHORITY_KEY] {
            if self.has(name) {
                return Err(Error::new(Kind::Refused, format!("{} is there already", self.file(name).display())));
            }
        }
        self.write(AUTHORITY_KEY, authority.key().to_pem().as_bytes(), true)?;
        self.save_bundle(&Bundle::new(vec![authority.certificate().clone()])?)
    }
    /// Trusts a new authority, which does not sign yet ([`crate::rotation`]).
    pub fn introduce(&self, next: &Authority) -> Result<()> {
        if self.has(NEXT_AUTHORITY_KEY) {
            let place = self.file(NEXT_AUTHORITY_KEY);
            return Err(Error::new(Kind::Refused, format!("{} is there already: a rotation is under way", place.display())));
        }
        let mut bundle = self.bundle()?;
        bundle.add(next.certificate().clone())?;
        self.write(NEXT_AUTHORITY_KEY, next.key().to_pem().as_bytes(), true)?;
        self.save_bundle(&bundle)
    }
    /// The authority that was introduced signs from now on. The key of the old one is gone.
    pub fn promote(&self) -> Result<()> {
        self.authority_of(NEXT_AUTHORITY_KEY)?;
        self.rename(NEXT_AUTHORITY_KEY, AUTHORITY_KEY)
    }
    /// The authority that was introduced and does not sign yet; `None`: there is none. A crash may
    /// leave its key without its certificate: [`Kind::Mismatch`].
    pub fn next_authority(&self) -> Result<Option<Authority>> {
        match self.has(NEXT_AUTHORITY_KEY) {
            true => self.authority_of(NEXT_AUTHORITY_KEY).map(Some),
            false => Ok(None),
        }
    }
    /// It will not sign.
    pub fn forget_next(&self) -> Result<()> {
        self.remove(NEXT_AUTHORITY_KEY)
    }

    /// The key that a process asks to have certified, durable before it asks: whoever asks again
    /// with the same one becomes the same node.
    pub fn joining_key(&self) -> Result<PrivateKey> {
        if self.has(JOINING_KEY) {
            return self.key(JOINING_KEY);
        }
        let key = PrivateKey::generate();
        self.write(JOINING_KEY, key.to_pem().as_bytes(), true)?;
        Ok(key)
    }
    /// Whether this process was joining, and its certificate is here.
    pub fn has_joined(&self) -> bool {
        let asked = self.key(JOINING_KEY).and_then(|key| key.public_info());
        let node = self.chain(NODE).ok();
        matches!((asked, node), (Ok(asked), Some(chain)) if chain[0].is_of_key(&asked))
    }
    /// It is a node now.
    pub fn end_joining(&self) -> Result<()> {
        self.remove(JOINING_KEY)
    }
    /// A text that only its owner may read, such as a password: a file of this directory.
    pub fn save_secret(&self, name: &str, text: &str) -> Result<()> {
        self.write(name, text.as_bytes(), true)
    }
    /// Reads it again; refused if others could.
    pub fn secret(&self, name: &str) -> Result<Zeroizing<String>> {
        let bytes = self.read(name, true)?;
        let text =
            std::str::from_utf8(&bytes).map_err(|_| Error::malformed(format!("{} is no text", self.file(name).display())))?;
        Ok(Zeroizing::new(text.trim().to_string()))
    }

    fn key(&self, name: &str) -> Result<PrivateKey> {
        let text = self.read(name, true)?;
        PrivateKey::from_pem(&text).map_err(|e| e.at(self.file(name).display()))
    }
    /// A certificate without its key.
    pub fn chain(&self, name: &str) -> Result<Vec<Certificate>> {
        let file = format!("{name}.crt");
        read_certificates(&self.read(&file, false)?).map_err(|e| e.at(self.file(&file).display()))
    }
    /// A certificate with its key: [`NODE`], or [`client_name`] of a role.
    pub fn pair(&self, name: &str) -> Result<Pair> {
        let (chain, key, next) = (self.chain(name)?, format!("{name}.key"), format!("{name}.key.next"));
        let pair =
            |key: &str| self.key(key).and_then(|k| Pair::new(chain.clone(), k).map_err(|e| e.at(self.file(key).display())));
        match pair(&key) {
            Err(e) if matches!(e.kind(), Kind::Mismatch | Kind::Absent) && self.has(&next) => pair(&next).map_err(|_| e),
            other => other,
        }
    }
    /// Replaces a certificate and its key, so that a crash leaves the old pair or the new one.
    pub fn save_pair(&self, name: &str, pair: &Pair) -> Result<()> {
        let (key, next) = (format!("{name}.key"), format!("{name}.key.next"));
        // What a crash has left: the key of the certificate that is there.
        if self.has(&next)
            && let Ok(found) = self.pair(name)
            && !self.key(&key).is_ok_and(|k| Pair::new(found.chain.clone(), k).is_ok())
        {
            self.rename(&next, &key)?;
        }
        self.write(&next, pair.key.to_pem().as_bytes(), true)?;
        self.write(&format!("{name}.crt"), write_certificates(&pair.chain).as_bytes(), false)?;
        self.rename(&next, &key)
    }
}

/// The name of the files of a client, without their endings. An error for a role whose name cannot
/// stand in the name of a file.
pub fn client_name(role: &str) -> Result<String> {
    let is_plain = !role.is_empty() && role.len() <= 63 && !role.chars().any(|c| c == '/' || c.is_control());
    match is_plain {
        true => Ok(format!("client.{role}")),
        false => Err(Error::new(Kind::Refused, format!("the role {role:?} cannot be the name of a file"))),
    }
}
