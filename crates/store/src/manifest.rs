//! What the disk backend writes down but does not check when it opens: that each keyspace's file
//! `current`, which says where the list of its files is, and the list itself are as they were
//! written. A flipped bit there would open an older list, without what came after it.
//!
//! Written for fjall 3.1 (lsm-tree 3.1, `version::persist`): `current` is the list's number (u64),
//! the list's XXH3 of 128 bits, and 0 for that kind of checksum, all little-endian; the list is the
//! file `v` and the number.

use crate::codec::damaged;
use meridian_base::error::{Error, Result};
use std::io::ErrorKind;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

const CURRENT: &str = "current";
/// The keyspace that names the others; the first to be made.
const NAMES: &str = "0";
const XXH3: u8 = 0;

/// Refuses a database with a damaged list of files, by the file's name.
pub(crate) fn check(database: &Path) -> Result<()> {
    let keyspaces = database.join("keyspaces");
    let folders = match std::fs::read_dir(&keyspaces) {
        Ok(folders) => folders,
        // A new one.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(unreadable(&keyspaces, &e)),
    };
    let (mut has_names, mut has_others) = (false, false);
    for folder in folders {
        let folder = folder.map_err(|e| unreadable(&keyspaces, &e))?;
        let is_whole = check_keyspace(&folder.path())?;
        if folder.file_name() == NAMES { has_names = is_whole } else { has_others |= is_whole }
    }
    if has_others && !has_names {
        // The others would be deleted as if nobody had named them.
        return Err(damaged(&keyspaces.join(NAMES).display().to_string(), "the names of the keyspaces are missing"));
    }
    Ok(())
}

/// Whether it has a list of files.
fn check_keyspace(folder: &Path) -> Result<bool> {
    let current = folder.join(CURRENT);
    let content = match std::fs::read(&current) {
        Ok(content) => content,
        // It was being made or deleted when the process ended. If not, it is missed when the store
        // is opened.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(unreadable(&current, &e)),
    };
    let place = current.display().to_string();
    let Some((number, checksum)) = parse(&content) else {
        return Err(damaged(&place, "it does not name a list of files"));
    };
    let list = folder.join(format!("v{number}"));
    match std::fs::read(&list) {
        Ok(list) if xxh3_128(&list) == checksum => Ok(true),
        Ok(_) => Err(damaged(&place, &format!("it, or v{number} beside it, is not what was written"))),
        Err(e) if e.kind() == ErrorKind::NotFound => Err(damaged(&place, &format!("it names v{number}, which is not there"))),
        Err(e) => Err(unreadable(&list, &e)),
    }
}

fn parse(content: &[u8]) -> Option<(u64, u128)> {
    let (number, rest) = content.split_first_chunk::<8>()?;
    let (checksum, kind) = rest.split_first_chunk::<16>()?;
    (kind == [XXH3]).then_some((u64::from_le_bytes(*number), u128::from_le_bytes(*checksum)))
}

fn unreadable(file: &Path, e: &std::io::Error) -> Error {
    Error::fatal(format!("cannot read {}: {e}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    /// A database with these keyspaces, each with a list of files.
    fn database(keyspaces: &[&str]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("keyspaces")).unwrap();
        for keyspace in keyspaces {
            let keyspace = folder.path().join("keyspaces").join(keyspace);
            fs::create_dir(&keyspace).unwrap();
            fs::write(keyspace.join("v3"), "a list").unwrap();
            let current = [&3u64.to_le_bytes()[..], &xxh3_128(b"a list").to_le_bytes(), &[XXH3]].concat();
            fs::write(keyspace.join(CURRENT), current).unwrap();
        }
        folder
    }
    /// Puts a folder where a file should be: that cannot be read, and is there.
    fn unreadable_file(path: &Path) {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    }
    fn refused(database: &TempDir, file: &str, why: &str) {
        let e = check(database.path()).expect_err(why);
        assert!(e.message().contains(why) && e.message().contains(file), "{e}");
    }

    #[test]
    fn what_was_written_and_what_is_new_is_accepted() {
        check(tempfile::tempdir().unwrap().path()).expect("a new database");
        check(database(&[]).path()).expect("one without keyspaces");
        check(database(&[NAMES]).path()).expect("one of which nothing else was made yet");
        check(database(&[NAMES, "1", "2"]).path()).expect("one with several");
        // One that was being made or deleted.
        let unfinished = database(&[NAMES, "1", "2"]);
        fs::remove_file(unfinished.path().join("keyspaces/2").join(CURRENT)).unwrap();
        check(unfinished.path()).expect("an unfinished one beside others");
        let unfinished = database(&[NAMES]);
        fs::remove_file(unfinished.path().join("keyspaces").join(NAMES).join(CURRENT)).unwrap();
        check(unfinished.path()).expect("an unfinished one alone");
    }

    #[test]
    fn what_is_not_as_it_was_written_is_refused_by_name() {
        refused(&database(&["1"]), NAMES, "the names of the keyspaces are missing");
        let one = |change: &dyn Fn(&Path)| {
            let database = database(&[NAMES, "1"]);
            change(&database.path().join("keyspaces/1"));
            database
        };
        refused(&one(&|k| fs::write(k.join("v3"), "another list").unwrap()), "1/current", "is not what was written");
        refused(&one(&|k| fs::remove_file(k.join("v3")).unwrap()), "1/current", "names v3, which is not there");
        refused(&one(&|k| fs::write(k.join(CURRENT), "short").unwrap()), "1/current", "does not name a list");
        refused(&one(&|k| unreadable_file(&k.join("v3"))), "v3", "cannot read");
        refused(&one(&|k| unreadable_file(&k.join(CURRENT))), "current", "cannot read");
        let no_folder = tempfile::tempdir().unwrap();
        fs::write(no_folder.path().join("keyspaces"), "").unwrap();
        refused(&no_folder, "keyspaces", "cannot read");
    }
}
