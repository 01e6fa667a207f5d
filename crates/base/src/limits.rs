//! Every bound, with its reason. Overload answers with a clear error, never with an unbounded
//! queue.

use std::time::Duration;

/// Default bound on the skew between two nodes' clocks. Larger skews stop a node; see
/// `Clock::observe`.
pub const MAX_OFFSET_DEFAULT: Duration = Duration::from_millis(250);
/// Largest total size of the writes of a transaction over several groups; above it, 53200. One log
/// record, and one frame, must hold a slice. A larger slice of one group alone goes to another node
/// in pieces.
pub const TXN_BYTES_MAX: usize = 16 << 20;
/// The same of a transaction of one group, of which the log holds parts. Its gateway, its primary
/// and, while they gather it, all replicas keep it in memory.
pub const LARGE_TXN_BYTES_MAX: usize = 512 << 20;
/// When so much is written, a load into a table without rows goes on in new indexes, ahead of its
/// transaction: half of what a transaction may write, so that the other half is never needed.
pub const LOAD_BYTES_MAX: usize = LARGE_TXN_BYTES_MAX / 2;
/// What the large transactions of a node may keep together, in the same way: a further one is
/// refused with 53200.
pub const LARGE_TXNS_BYTES_MAX: usize = 1 << 30;
/// Above this, the writes of a transaction go into the log in parts of about this size.
pub const PART_BYTES: usize = 4 << 20;
/// Largest row, as it is stored, and largest index entry; above it, 53200. One log record holds it.
pub const ROW_BYTES_MAX: usize = 16 << 20;
/// A transaction with more writes than this stands in the conflict index with the ranges that they
/// lie in.
pub const WRITES_INDEXED_MAX: usize = 50_000;
/// Largest key; longer ones are refused with 54000, since every index entry is held in memory while
/// in flight.
pub const KEY_BYTES_MAX: usize = 8 << 10;
/// Rows applied but not yet flushed; at half of it flushing is urgent, at all of it commits wait.
pub const DIRTY_BYTES_MAX: usize = 256 << 20;
/// Frames handed to the log thread and not yet durable; commits wait above it.
pub const LOG_QUEUE_BYTES_MAX: usize = 32 << 20;
/// Encoded result rows a session may hold before it waits for the socket.
pub const RESULT_BUFFER_BYTES: usize = 1 << 20;
/// Result bytes that a retryable statement may buffer before its first byte is sent to the client.
pub const RETRY_BUFFER_BYTES_MAX: usize = 1 << 20;
/// Escrow shares that a primary keeps in memory; what is not kept is read from the store.
pub const SHARES_HELD_MAX: usize = 100_000;
/// How long a statement's tokens are held for its transaction; after that certification decides.
pub const TOKENS_RESERVED_MAX: Duration = Duration::from_secs(10);
/// Sites of a row of an escrow column: regions of one database. What a site stores of a round grows
/// with them.
pub const ESCROW_SITES_MAX: usize = 64;
/// Entries of the conflict index; trimmed by raising its low-water mark.
pub const CONFLICT_INDEX_ENTRIES_MAX: usize = 200_000;
/// One log segment: large enough that recycling is rare, small enough that a node starts with
/// little disk.
pub const LOG_SEGMENT_BYTES: u64 = 64 << 20;
/// A frame between nodes; a snapshot is cut into pieces below it.
pub const RPC_FRAME_BYTES_MAX: usize = 64 << 20;
/// How fast a link between nodes is at least. What is large may take as long as it takes at this
/// speed.
pub const LINK_BYTES_PER_SECOND_MIN: usize = 1 << 20;
/// The largest part of a frame that is written at once: what is small, as heartbeats are, passes
/// between two parts.
pub const RPC_PART_BYTES: usize = 64 << 10;
/// Bytes that wait to be written to another node on one connection: two of the largest frames. A
/// call that finds no room fails as if the node were not there; of a peer that does not read its
/// answers, no more questions are read.
pub const RPC_QUEUE_BYTES_MAX: usize = 2 * RPC_FRAME_BYTES_MAX;
/// Frames that wait in the same way, between their maker and their writer.
pub const RPC_QUEUE_FRAMES_MAX: usize = 1 << 20;
/// Bytes that all connections between nodes keep in memory, for each of: frames that wait to be
/// written, requests that are not answered yet, large frames that arrive. Above it a connection
/// gets no more than its share.
pub const RPC_NODE_BYTES_MAX: usize = 8 * RPC_FRAME_BYTES_MAX;
/// What each connection may keep in memory whatever the others have: room for what the protocols
/// say, of 256 MiB for all connections.
pub const RPC_SHARE_BYTES: usize = 64 << 10;
/// Bytes of one connection's requests that are not answered yet. Above it, calls of statements are
/// refused; above twice of it, no more are read.
pub const RPC_IN_HAND_BYTES_MAX: usize = 2 * RPC_FRAME_BYTES_MAX;
/// Calls of one connection that are being answered; further ones are refused. Most wait for rows
/// that others hold.
pub const RPC_CALLS_MAX: usize = 1 << 16;
/// The same, with calls of the protocols: these must not wait behind statements.
pub const RPC_PROTOCOL_CALLS_MAX: usize = 2 * RPC_CALLS_MAX;
/// Connections that other nodes, and command lines, have to this node; further ones are closed. A
/// node opens one or two to each other.
pub const RPC_CONNECTIONS_MAX: usize = 4 * NODES_MAX;
/// Messages of commits over several groups that are on their way from this node; further ones are
/// dropped, as the network may, and the protocol's timers ask again.
pub const OUTBOX_MESSAGES_MAX: usize = 1 << 16;
/// Votes for one transaction that its gateway has not looked at; one that finds no room is asked
/// for again.
pub const VOTES_WAITING_MAX: usize = 4_096;
/// Nodes of a cluster: every node pings every other one. Those that were decommissioned are listed
/// for ever and count no more.
pub const NODES_MAX: usize = 1_024;
/// Names of regions and zones, and addresses, as a node that joins gives them.
pub const PLACE_BYTES_MAX: usize = 255;
/// How far a lease ceiling lies ahead of the clock. A successor waits this long at most.
pub const LEASE_AHEAD: Duration = Duration::from_millis(2_000);
/// How long a primary that starts may have to wait for the clock before that is taken for a clock
/// that was ahead once: several times what a ceiling, a lead of GLOBAL rows and clocks that differ
/// can amount to.
pub const BEHIND_MAX: Duration = Duration::from_secs(8);
/// Age at which old versions may be collected.
pub const GC_TTL_DEFAULT: Duration = Duration::from_secs(25 * 60);
/// How long an open transaction keeps old versions from being collected. The limit keeps a session
/// that was left open from filling the disk.
pub const PROTECTED_FOR_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Idle groups promise a closed timestamp this often.
pub const CLOSED_INTERVAL: Duration = Duration::from_millis(50);
/// How far the watermark `F` trails the clock: more than any commit may be late.
pub const WATERMARK_LAG: Duration = Duration::from_secs(30);
/// How far ahead the catalog grants the schema lease.
pub const SCHEMA_LEASE: Duration = Duration::from_secs(60);
/// How often the server retries a statement or transaction by itself before the client gets 40001.
pub const RETRIES_MAX: u32 = 32;
/// Calls that wait for the catalog's coordinator, and steps that wait for their turn; above it, the
/// caller comes again.
pub const CATALOG_JOBS_MAX: usize = 1_024;
/// How long a Prepare may wait at a group for something in flight, the clock or a lease; then the
/// group refuses it, since others may hold reservations meanwhile (counterexample 17).
pub const PREPARE_WAIT_MAX: Duration = Duration::from_millis(1_000);
/// How long a participant waits for the others' votes before it asks for them: more than a Prepare
/// is held and delayed by.
pub const VOTE_REQUEST_AFTER: Duration = Duration::from_millis(2_000);
/// How long a participant waits for the others' acknowledgements of an outcome before it asks for
/// them. Acknowledgements only allow the record of the outcome to be removed; no client waits.
pub const OUTCOME_ACK_AFTER: Duration = Duration::from_secs(5);
/// How long a gateway waits for a vote before it sends the Prepare again; the answer costs nothing
/// if the vote was only lost.
pub const PREPARE_RESEND_AFTER: Duration = Duration::from_millis(750);
/// How long a gateway waits for votes before it asks those that have not voted to refuse.
pub const PREPARE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a gateway waits for an outcome before it reports that it does not know (40003).
pub const OUTCOME_TIMEOUT: Duration = Duration::from_secs(20);
/// Transactions whose votes a group keeps although it has not seen their Prepare; the oldest go
/// first. Losing one costs a `VoteRequest`.
pub const EARLY_VOTES_MAX: usize = 10_000;
/// How long such votes are kept.
pub const EARLY_VOTES_KEPT: Duration = Duration::from_secs(30);
/// Newest versions that one refusal carries.
pub const FRESH_MAX: usize = 64;
/// Largest rows, at one group, of a reserving read: they are in memory there and at the gateway,
/// and travel in one message.
pub const RESERVED_BYTES_MAX: usize = 4 << 20;
/// Most keys and ranges that a reserving read reserves. Each write at the group compares its keys
/// with all of them.
pub const RESERVED_TARGETS_MAX: usize = 4_096;

/// The longest time that this many bytes need on a link between nodes, at
/// [`LINK_BYTES_PER_SECOND_MIN`].
pub const fn arrival(bytes: usize) -> Duration {
    Duration::from_millis(bytes as u64 * 1_000 / LINK_BYTES_PER_SECOND_MIN as u64)
}
