//! How many files the process may have open, and how many of those clients may take.

/// What the store, the log, other nodes and clients that are being refused need.
const KEPT: u64 = 512;

/// Raises the number of files that the process may have open as far as the system allows it. Gives
/// that number.
pub fn raise_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing for the length of the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return KEPT;
    }
    let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: `raised` is valid for reading for the length of the call.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } {
        0 => raised.rlim_cur,
        _ => limit.rlim_cur,
    }
}

/// How many of `wanted` clients fit: each takes one file, and half of them are theirs at most where
/// there are few.
pub fn clients_within(files: u64, wanted: usize) -> usize {
    let left = files.saturating_sub(KEPT).max(files / 2).max(1);
    wanted.min(usize::try_from(left).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_files_to_the_store() {
        assert_eq!(clients_within(1 << 20, 1_000), 1_000);
        assert_eq!(clients_within(1_024, 1_000), 512);
        assert_eq!(clients_within(300, 1_000), 150);
        assert_eq!(clients_within(4_096, 5_000), 3_584);
        assert_eq!(clients_within(0, 10), 1);
    }
}
