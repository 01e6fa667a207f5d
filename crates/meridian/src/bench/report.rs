//! What a bench found, as a table and as CSV.

use std::time::Duration;

/// One run of pgbench.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    pub tps: f64,
    pub transactions: u64,
    pub failed: u64,
    /// Of all the server's processes.
    pub cpu: Duration,
}

impl Run {
    /// CPU time per transaction in microseconds.
    pub fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / (self.transactions.max(1) as f64)
    }
}

/// The two sides of one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    pub postgres: Run,
    pub meridian: Run,
}

/// All rounds of one script over one protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    pub script: String,
    pub protocol: String,
    pub rounds: Vec<Round>,
}

/// A median with what it lies between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Of at least one value.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Spread { median, min: values[0], max: values[values.len() - 1] }
    }
}

impl Compared {
    fn spread(&self, of: impl Fn(&Round) -> f64) -> Spread {
        Spread::of(self.rounds.iter().map(of))
    }
    /// Above one: the node is faster.
    pub fn throughput_ratio(&self) -> Spread {
        self.spread(|r| r.meridian.tps / r.postgres.tps.max(1e-9))
    }
    /// Below one: the node needs less.
    pub fn cpu_ratio(&self) -> Spread {
        self.spread(|r| r.meridian.cpu_micros() / r.postgres.cpu_micros().max(1e-9))
    }
}

/// A ratio with its spread.
pub fn ratio(spread: Spread) -> String {
    format!("{:.2} x ({:.2} to {:.2})", spread.median, spread.min, spread.max)
}

/// A line per script and protocol.
pub fn table(all: &[Compared]) -> String {
    let mut out = format!(
        "{:<14} {:<9} {:>10} {:>10}  {:^22}  {:>9} {:>9}  {:^22}\n{:<24} {:>10} {:>10}  {:^22}  {:>9} {:>9}  {:^22}\n",
        "",
        "",
        "PostgreSQL",
        "Meridian",
        "throughput",
        "PostgreSQL",
        "Meridian",
        "CPU",
        "script, protocol",
        "tx/s",
        "tx/s",
        "ratio (spread)",
        "CPU µs/tx",
        "CPU µs/tx",
        "ratio (spread)"
    );
    for compared in all {
        let median = |of: &dyn Fn(&Round) -> f64| compared.spread(of).median;
        out += &format!(
            "{:<14} {:<9} {:>10.0} {:>10.0}  {:^22}  {:>9.0} {:>9.0}  {:^22}",
            compared.script,
            compared.protocol,
            median(&|r| r.postgres.tps),
            median(&|r| r.meridian.tps),
            ratio(compared.throughput_ratio()),
            median(&|r| r.postgres.cpu_micros()),
            median(&|r| r.meridian.cpu_micros()),
            ratio(compared.cpu_ratio()),
        );
        let failed: u64 = compared.rounds.iter().map(|r| r.meridian.failed + r.postgres.failed).sum();
        out = out.trim_end().to_string();
        if failed > 0 {
            out += &format!("  {failed} failed");
        }
        out.push('\n');
    }
    out
}

/// A line per run.
pub fn csv(all: &[Compared]) -> String {
    let mut out = String::from("script,protocol,round,system,tps,transactions,failed,cpu_micros_per_transaction\n");
    for compared in all {
        for (n, round) in compared.rounds.iter().enumerate() {
            for (system, run) in [("postgresql", round.postgres), ("meridian", round.meridian)] {
                out += &format!(
                    "{},{},{},{system},{:.1},{},{},{:.1}\n",
                    compared.script,
                    compared.protocol,
                    n + 1,
                    run.tps,
                    run.transactions,
                    run.failed,
                    run.cpu_micros()
                );
            }
        }
    }
    out
}

/// Reads pgbench's summary; the CPU time is measured elsewhere.
pub fn parse_pgbench(text: &str, cpu: Duration) -> Option<Run> {
    let after = |name: &str| text.lines().find_map(|l| l.trim().strip_prefix(name)).map(str::trim);
    let number = |text: &str| text.split([' ', '/', '(']).next()?.parse::<f64>().ok();
    Some(Run {
        tps: number(after("tps =")?)?,
        transactions: number(after("number of transactions actually processed:")?)? as u64,
        // Before version 15 there was no such line.
        failed: after("number of failed transactions:").and_then(number).unwrap_or(0.0) as u64,
        cpu,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(tps: f64, cpu_millis: u64) -> Run {
        Run { tps, transactions: 1_000, failed: 0, cpu: Duration::from_millis(cpu_millis) }
    }

    #[test]
    fn ratios_are_of_rounds_and_not_of_sums() {
        let round = |a, b| Round { postgres: run(a, 100), meridian: run(b, 50) };
        let compared = Compared {
            script: "select-only".into(),
            protocol: "prepared".into(),
            rounds: vec![round(100.0, 200.0), round(1_000.0, 1_000.0), round(100.0, 150.0)],
        };
        assert_eq!(compared.throughput_ratio(), Spread { median: 1.5, min: 1.0, max: 2.0 });
        assert_eq!(compared.cpu_ratio(), Spread { median: 0.5, min: 0.5, max: 0.5 });
        assert!(table(std::slice::from_ref(&compared)).contains("1.50 x (1.00 to 2.00)"));
        assert_eq!(csv(&[compared]).lines().count(), 7);
    }

    #[test]
    fn the_median_of_two_lies_between_them() {
        assert_eq!(Spread::of([3.0, 1.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
    }

    #[test]
    fn pgbench_is_understood() {
        let text = "transaction type: <builtin: select only>\nnumber of transactions actually processed: 12345\n\
                    number of failed transactions: 7 (0.057%)\nlatency average = 0.8 ms\n\
                    tps = 9876.543210 (without initial connection time)\n";
        let expected = Run { tps: 9_876.543_21, transactions: 12_345, failed: 7, cpu: Duration::from_secs(1) };
        assert_eq!(parse_pgbench(text, Duration::from_secs(1)), Some(expected));
        assert_eq!(parse_pgbench("pgbench: error", Duration::ZERO), None);
    }
}
