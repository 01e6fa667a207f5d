//! The bench's logic without the command, for profiling: `cargo run --release -p meridian-podbench
//! --example pod`.

use meridian_podbench::{Load, Prices, Run, Side, run};

#[allow(clippy::print_stdout)]
fn main() {
    let loads = [
        Load::Ycsb { cross: 0 },
        Load::Ycsb { cross: 50 },
        Load::Tpcc { new_orders: 0, payments: 0 },
        Load::Tpcc { new_orders: 60, payments: 90 },
    ];
    for load in loads {
        for side in Side::ALL {
            let run_of =
                Run { load, hosts: 8, workers: 2, warm_up: 10_000, transactions: 10_000, seed: 1, prices: Prices::DEFAULT };
            let m = run(side, &run_of);
            println!(
                "{:16} {:12} {:9.0}/s  aborted {:5.3}  cpu {:6.1} µs  messages {:5.2} of {:5.0} B  words {:5.1} transfers {:5.1} flushes {:4.1} lines {:5.1}  in {:6.4} out {:6.4} log {:5.0} B",
                load.name(),
                side.name(),
                m.rate(),
                m.each(m.aborted),
                m.cpu_micros(),
                m.each(m.messages),
                m.each(m.message_bytes),
                m.each(m.operations.words),
                m.each(m.operations.transfers),
                m.each(m.operations.flushes),
                m.each(m.operations.lines),
                m.each(m.moved_in),
                m.each(m.moved_out),
                m.each(m.log_bytes)
            );
            for kind in &m.kinds {
                let (count, each) = (kind.count as f64, |n: u64| n as f64 / kind.count as f64);
                println!(
                    "      {:10} {:6.2} a transaction; each {:6.2} µs, {:5.1} words, {:4.1} transfers, {:4.1} flushes, {:4.1} invalidations, {:5.1} lines",
                    kind.name,
                    count / m.committed as f64,
                    kind.cpu.as_nanos() as f64 / 1e3 / count,
                    each(kind.operations.words),
                    each(kind.operations.transfers),
                    each(kind.operations.flushes),
                    each(kind.operations.invalidations),
                    each(kind.operations.lines)
                );
            }
        }
    }
}
