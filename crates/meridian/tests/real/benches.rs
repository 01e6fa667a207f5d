//! A bench from its command to its files, with the counters checked after every turn: no side may be fast by being wrong.

use crate::process::meridian;

#[test]
fn the_multi_region_bench_compares_all_sides_and_loses_no_increment() {
    let dir = tempfile::tempdir().expect("a directory");
    let (csv, plots) = (dir.path().join("runs.csv"), dir.path().join("plots"));
    let mut command = meridian();
    command.args(["bench", "multi-region", "--quick", "--seconds", "1", "--rows", "1000", "--check"]);
    let output = command.arg("--csv").arg(&csv).arg("--plots").arg(&plots).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    for part in ["one cross-region round trip", "local p99 with 50 %", "without what a NO tells"] {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }
    let runs = std::fs::read_to_string(&csv).expect("written");
    for side in ["Meridian", "coordinator", "single primary", "delayed", "first", "last", "both", "neither"] {
        let mine = runs.lines().filter(|line| line.split(',').nth(3) == Some(side));
        let committed: u64 = mine.filter_map(|line| line.split(',').nth(8)?.parse::<u64>().ok()).sum();
        assert!(committed > 0, "{side} committed nothing:\n{runs}");
    }
    assert!(plots.join("throughput-rmw-500.svg").is_file());
}
