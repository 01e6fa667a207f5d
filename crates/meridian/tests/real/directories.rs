//! Data directories that earlier programs have left: this one opens them, upgrades them, and may be
//! killed meanwhile.
//!
//! A directory is kept as a text: its files, and of each the parts that are not zero.
//!
//! ```text
//! file PATH BYTES
//! OFFSET BYTES-IN-HEXADECIMAL
//! ```
//!
//! A text is made of a directory that no process uses by the test `a_directory_is_packed`, which is
//! ignored otherwise: `MERIDIAN_PACK` names the directory, and `PACKED` the file.

use crate::cluster::sql;
use crate::process::{Node, Spec};
use std::fmt::Write as _;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Written by the program of format 3, the last before there were cluster versions.
const FORMAT_3: &str = include_str!("../fixtures/directories/format-3.txt");

/// The size of a part.
const PART: usize = 48;

fn unpack(text: &str, to: &Path) {
    let mut file = None;
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("file ") {
            let (path, bytes) = head.rsplit_once(' ').expect("a path and a length");
            let path = to.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            let made = std::fs::File::create(path).expect("a file");
            made.set_len(bytes.parse().expect("a length")).expect("a file of that length");
            file = Some(made);
            continue;
        }
        let (offset, digits) = line.split_once(' ').expect("an offset and bytes");
        let pairs = digits.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).expect("digits"));
        let bytes: Vec<u8> = pairs.map(|two| u8::from_str_radix(two, 16).expect("hexadecimal digits")).collect();
        let file = file.as_mut().expect("a part is of a file");
        file.seek(SeekFrom::Start(offset.parse().expect("an offset"))).expect("a place");
        file.write_all(&bytes).expect("written");
    }
}

fn pack(directory: &Path) -> String {
    let mut text = String::new();
    let mut folders = vec![PathBuf::new()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(directory.join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let (path, kind) = (folder.join(entry.file_name()), entry.file_type().expect("a kind"));
            // Of a process that lives.
            let is_passing = ["LOCK", "sql.addr"].iter().any(|name| path == Path::new(name));
            match kind.is_dir() {
                true => folders.push(path),
                false if kind.is_file() && !is_passing => files.push(path),
                false => {}
            }
        }
    }
    files.sort();
    for path in files {
        let mut bytes = Vec::new();
        std::fs::File::open(directory.join(&path)).and_then(|mut f| f.read_to_end(&mut bytes)).expect("readable");
        writeln!(text, "file {} {}", path.display(), bytes.len()).expect("a string");
        for (number, part) in bytes.chunks(PART).enumerate().filter(|(_, part)| part.iter().any(|b| *b != 0)) {
            let digits: String = part.iter().map(|b| format!("{b:02x}")).collect();
            writeln!(text, "{} {digits}", number * PART).expect("a string");
        }
    }
    text
}

/// What was put into it, on the way through the files and the log.
async fn check(node: &Node) {
    let read = async |text: &str| sql(node, text).await.join(" ");
    assert_eq!(read("SELECT count(*), sum(cents)::bigint, min(owner), max(owner) FROM accounts").await, "200 20100 u1 u99");
    assert_eq!(read("SELECT id::text, since::text, tags::text FROM accounts WHERE owner = 'u7'").await, "7 2026-01-08 {a,7}");
    assert_eq!(read("SELECT count(*) FROM accounts WHERE note IS NULL").await, "100");
    assert_eq!(read("SELECT total::text FROM by_owner WHERE owner = 'late'").await, "42.00");
    assert_eq!(read("SELECT (nextval('numbers') > 10)::text").await, "true");
    // It takes writes, and its constraints are still known.
    assert_eq!(read("INSERT INTO accounts (id, owner, cents) VALUES (5000, 'new', 1) RETURNING id").await, "5000");
    assert_eq!(read("DELETE FROM accounts WHERE id = 5000 RETURNING owner").await, "new");
}

fn format_of(directory: &Path) -> String {
    let text = std::fs::read_to_string(directory.join("node")).expect("it says whose it is");
    text.lines().find_map(|line| line.strip_prefix("format ")).expect("a format").to_string()
}

#[tokio::test]
async fn a_directory_of_format_3_opens_and_is_upgraded() {
    let dir = tempfile::tempdir().expect("a directory");
    let spec = Spec::alone(&dir.path().join("n"));
    unpack(FORMAT_3, &spec.dir);
    assert_eq!(format_of(&spec.dir), "3");
    let node = spec.start().await;
    check(&node).await;
    assert_eq!(format_of(&spec.dir), "4");
    node.kill();
    check(&spec.start().await).await;
}

#[tokio::test]
async fn an_upgrade_may_be_killed_at_any_moment() {
    let dir = tempfile::tempdir().expect("a directory");
    for number in 0..6u64 {
        let spec = Spec::alone(&dir.path().join(format!("n{number}")));
        unpack(FORMAT_3, &spec.dir);
        let node = spec.launch();
        tokio::time::sleep(Duration::from_millis(40 * number * number)).await;
        node.kill();
        check(&spec.start().await).await;
        assert_eq!(format_of(&spec.dir), "4");
    }
}

#[test]
fn what_was_packed_is_unpacked() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = "file a/b 200\n48 0102\nfile empty 0\nfile zeros 70\n";
    unpack(text, dir.path());
    assert_eq!(pack(dir.path()), format!("file a/b 200\n48 0102{}\nfile empty 0\nfile zeros 70\n", "00".repeat(46)));
}

#[test]
#[ignore = "it makes a fixture"]
fn a_directory_is_packed() {
    let of = |name: &str| PathBuf::from(std::env::var_os(name).unwrap_or_else(|| panic!("{name} says which")));
    std::fs::write(of("PACKED"), pack(&of("MERIDIAN_PACK"))).expect("written");
}
