//! Benches from their commands to their files, with what was written checked: nothing may be fast
//! by being wrong.

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

fn ran(command: &mut std::process::Command) -> String {
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn tpcc_is_consistent_after_a_run_and_after_a_crash_of_all_nodes() {
    let dir = tempfile::tempdir().expect("a directory");
    let csv = dir.path().join("tpcc.csv");
    let mut command = meridian();
    command.args(["bench", "tpcc", "--seconds", "4", "--clients", "2", "--scale", "0.002", "--csv"]).arg(&csv);
    let said = ran(&mut command);
    assert_eq!(said.matches("0 violated").count(), 2, "{said}");
    assert!(said.contains("all nodes killed at once"), "{said}");
    let figures = std::fs::read_to_string(&csv).expect("written");
    for (run, operation) in [("calm", "new order"), ("calm", "payment"), ("crash", "new order"), ("crash", "payment")] {
        let mine = figures.lines().map(|line| line.split(',').collect::<Vec<_>>()).filter(|f| f[0] == run && f[2] == operation);
        let committed: u64 = mine.filter_map(|fields| fields[5].parse::<u64>().ok()).sum();
        assert!(committed > 0, "{run}: no {operation}:\n{figures}");
    }
}

#[test]
fn a_convoy_shows_in_order_and_not_here() {
    let dir = tempfile::tempdir().expect("a directory");
    let csv = dir.path().join("convoy.csv");
    let mut command = meridian();
    command.args(["bench", "convoy", "--rate", "200", "--seconds", "2", "--shares", "0,10", "--thresholds", "20", "--csv"]);
    let said = ran(command.arg(&csv));
    let p99 = |system: &str, share: &str| -> f64 {
        let figures = std::fs::read_to_string(&csv).expect("written");
        let line = figures.lines().find(|line| line.starts_with(&format!("zone,{system},{share},")));
        let line = line.unwrap_or_else(|| panic!("no line of {system}:\n{said}"));
        line.split(',').nth(5).and_then(|p99| p99.parse().ok()).unwrap_or_else(|| panic!("no figure in {line}"))
    };
    assert!(p99("S-DUR in order", "10") > 5.0 * p99("S-DUR in order", "0"), "{said}");
    assert!(p99("Meridian", "10") < 1.5 * p99("Meridian", "0"), "{said}");
}

#[test]
fn the_social_network_works_under_both_placements() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = meridian();
    command.args(["bench", "social", "--seconds", "3", "--clients", "2", "--users", "100", "--csv"]);
    let said = ran(command.arg(dir.path().join("social.csv")));
    assert_eq!(said.matches("acknowledged follows and posts are there: yes").count(), 2, "{said}");
    assert!(said.contains("SURVIVE REGION FAILURE") && said.contains("What timelines cost"), "{said}");
}

#[test]
fn rows_of_ones_own_region_take_no_round_trip_and_others_come_home() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = meridian();
    command.args(["bench", "locality", "--seconds", "5", "--clients", "2", "--rows-per-client", "2", "--samples", "2"]);
    let said = ran(command.args(["--locality", "50", "--csv"]).arg(dir.path().join("locality.csv")));
    for part in ["default, 50 %: an operation on a row of its own region takes 0 round trips", "computed: an insert takes 0"] {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }
    assert!(!said.contains("MISSED"), "{said}");
}

#[test]
fn an_escrow_column_and_all_that_it_is_compared_with_end_with_the_right_number() {
    let dir = tempfile::tempdir().expect("a directory");
    let csv = dir.path().join("escrow.csv");
    let mut command = meridian();
    command.args(["bench", "escrow", "--seconds", "3", "--compress", "3", "--scale", "0.05", "--connections", "4", "--csv"]);
    let said = ran(command.arg(&csv));
    assert!(said.contains("what acknowledged changes add up to: yes") && said.contains("made up"), "{said}");
    let figures = std::fs::read_to_string(&csv).expect("written");
    for mode in ["escrow", "unbounded", "no-redistribution", "demarcation", "zone", "region"] {
        let line = figures.lines().map(|line| line.split(',').collect::<Vec<_>>()).find(|f| f[4] == mode && f[6] == "all");
        let line = line.unwrap_or_else(|| panic!("no line of {mode}:\n{said}"));
        assert!(line[10].parse::<u64>().is_ok_and(|in_time| in_time > 0), "{mode} did nothing:\n{said}");
    }
    let mut refused = meridian();
    let output = refused.args(["bench", "escrow", "--mode", "demarcation", "--reads", "50"]).output().expect("it runs");
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("--reads"));
}
