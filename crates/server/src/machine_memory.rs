//! How much memory the machine has, and how much of it statements and caches may hold.

use crate::files;
use std::path::Path;

/// What statements may hold if nothing is said, and what caches may: this part of the machine's
/// memory each.
const PART: u64 = 4;
/// What each may hold at least.
const LEAST: u64 = 256 << 20;

/// The bytes that statements may hold together on this machine. It reads a file.
pub fn for_statements() -> usize {
    quarter()
}

/// The bytes that caches may hold together. It reads a file.
pub fn for_caches() -> usize {
    quarter()
}

fn quarter() -> usize {
    let of_group = files::text(Path::new("/sys/fs/cgroup/memory.max"));
    let bytes = part_of(installed(), of_group.as_deref());
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// A part of what is installed, or of what the process's control group may use if that is less
/// (cgroups v2, `memory.max`: bytes, or `max`).
fn part_of(installed: Option<u64>, of_group: Option<&str>) -> u64 {
    let of_group = of_group.and_then(|bytes| bytes.parse().ok());
    let bytes = installed.into_iter().chain(of_group).min().unwrap_or(0);
    (bytes / PART).max(LEAST)
}

fn installed() -> Option<u64> {
    // SAFETY: the calls touch no memory of ours.
    let (pages, bytes) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).ok()?.checked_mul(u64::try_from(bytes).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_a_part_of_what_the_process_may_use() {
        assert_eq!(part_of(Some(24 << 30), Some("max")), 6 << 30);
        assert_eq!(part_of(Some(24 << 30), Some("4294967296")), 1 << 30);
        assert_eq!(part_of(Some(24 << 30), None), 6 << 30);
        assert_eq!(part_of(Some(512 << 20), None), LEAST);
        assert_eq!(part_of(None, None), LEAST);
        assert!(installed().is_some_and(|bytes| bytes > 64 << 20));
    }
}
