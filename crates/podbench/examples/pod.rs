//! What each kind of work costs, side by side: `cargo run --release -p meridian-podbench --example
//! pod`. `meridian bench pod` has the figures.

use meridian_podbench::{Load, Prices, Run, Side, run};

#[allow(clippy::print_stdout)]
fn main() {
    let loads = [Load::Tpcc { new_orders: 0, payments: 0 }, Load::Tpcc { new_orders: 60, payments: 90 }];
    for load in loads {
        for side in Side::ALL {
            let of = Run { load, hosts: 8, workers: 2, warm_up: 10_000, transactions: 20_000, seed: 1, prices: Prices::DEFAULT };
            let measured = run(side, &of);
            println!("{}, {}: {:.0} a second", load.name(), side.name(), measured.rate());
            for kind in &measured.kinds {
                let count = kind.count as f64;
                println!(
                    "    {:10} {:5.2} a transaction; each {:6.2} µs, {:5.1} words, {:4.1} transfers, {:4.1} flushes, {:5.1} lines",
                    kind.name,
                    count / measured.committed as f64,
                    kind.cpu.as_nanos() as f64 / 1e3 / count,
                    kind.operations.words as f64 / count,
                    kind.operations.transfers as f64 / count,
                    kind.operations.flushes as f64 / count,
                    kind.operations.lines as f64 / count,
                );
            }
        }
    }
}
