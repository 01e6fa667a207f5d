//! `meridian bench`: ratios, measured side by side on one machine.
//!
//! Absolute times say nothing on a shared machine. So the two sides run in turn, round by round,
//! and what is shown is the ratio of each round, its median and its spread, and the CPU time the
//! servers used.

mod child;
mod cluster;
#[cfg(feature = "lab")]
mod convoy;
mod ddl;
mod escrow;
mod latencies;
mod multi_region;
mod node_process;
mod pg;
#[cfg(feature = "lab")]
mod pod;
mod postgres;
mod report;
mod social;
mod tls;
mod tpcc;
mod ycsb;

use clap::Subcommand;
use meridian_base::Result;
use std::process::ExitCode;

#[derive(Subcommand)]
pub enum Command {
    /// pgbench against a node and a PostgreSQL, both started here with the same durability.
    Pg(pg::Args),
    /// Transactions over several regions: this protocol, two-phase commit with a coordinator, and a
    /// single primary.
    MultiRegion(multi_region::Args),
    /// TPC-C over three regions, its consistency conditions, and the same across a crash of the
    /// whole cluster.
    Tpcc(tpcc::Args),
    /// S-DUR's social network, surviving the loss of a zone and of a region.
    Social(social::Args),
    /// What global transactions do to local ones: S-DUR and its remedies beside this protocol, on a
    /// simulated network.
    #[cfg(feature = "lab")]
    Convoy(convoy::Args),
    /// YCSB-B and -D on REGIONAL BY ROW tables: locality-optimized search, rehoming, and where
    /// inserts look for duplicates.
    Locality(ycsb::locality::Args),
    /// YCSB-A over five regions: GLOBAL and REGIONAL tables, stale reads, and a copy in each
    /// region.
    Global(ycsb::global::Args),
    /// Schema changes from every region of the demonstration's nine nodes, while all of them
    /// commit.
    Ddl(ddl::Args),
    /// A bounded number that five regions change: an escrow column beside counters and divided
    /// bounds (Samya's evaluation).
    Escrow(escrow::Args),
    /// Hosts that share memory beside hosts that share nothing, and beside hosts that share
    /// everything (PASHA's evaluation), in simulated time.
    #[cfg(feature = "lab")]
    Pod(pod::Args),
    /// What security costs: TLS, logins, privileges, TLS between nodes, and clients that say
    /// nothing.
    Tls(tls::Args),
}

pub async fn run(command: Command) -> Result<ExitCode> {
    crate::log::to_stderr("error");
    match command {
        Command::Pg(args) => pg::run(args).await,
        Command::MultiRegion(args) => multi_region::run(args).await,
        Command::Tpcc(args) => tpcc::run(args).await,
        Command::Social(args) => social::run(args).await,
        #[cfg(feature = "lab")]
        Command::Convoy(args) => convoy::run(&args),
        Command::Locality(args) => ycsb::locality::run(args).await,
        Command::Global(args) => ycsb::global::run(args).await,
        Command::Ddl(args) => ddl::run(args).await,
        Command::Escrow(args) => escrow::run(args).await,
        #[cfg(feature = "lab")]
        Command::Pod(args) => pod::run(&args),
        Command::Tls(args) => tls::run(args).await,
    }
}
