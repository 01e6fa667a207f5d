//! Fixtures of the formats of this crate: log records, and what gateways and primaries send.

use bytes::Bytes;
use meridian_base::envelope;
use meridian_base::escrow::{Free, Late, Offer};
use meridian_base::record::{Build, Committed, Lease, Outcome, Part, Payload, Prepared, Record, Reserved, SchemaGrant};
use meridian_base::version::Versions;
use meridian_base::{
    BallotMessage, Change, ColumnMask, CommitOutcome, CommitRequest, Conflict, ConflictReason, DescriptorId, Error, ErrorKind,
    Fresh, GlobalReads, GroupId, Key, KeyRange, LogPosition, Mutation, NodeId, Peer, Prepare, ReadEntry, Refusal, SchemaUse,
    SchemaVersion, Target, Timestamp, TxnId, Vote, Write,
};
use meridian_fixtures::Fixtures;

fn id(hlc: u64) -> TxnId {
    TxnId { hlc: Timestamp(hlc), gateway: NodeId(3) }
}

fn writes() -> Vec<Write> {
    let put = Write { key: Key::new(b"put"), value: Some(Bytes::from_static(b"value")), columns: ColumnMask(5) };
    vec![put, Write { key: Key::new(b"gone"), value: None, columns: ColumnMask::ALL }]
}

/// One of each kind.
fn records() -> Vec<Record> {
    let range = KeyRange::new(Key::new(b"a"), Key::new(b"b"));
    let reads = [Target::Key(Key::new(b"read")), Target::Range(range)];
    let reads = reads.map(|target| Reserved { target, columns: ColumnMask(9) }).to_vec();
    let participants = vec![GroupId(2), GroupId(7)];
    let grant = SchemaGrant {
        version: SchemaVersion(5),
        bound: Timestamp(60),
        seq: 7,
        committed_at: Timestamp(40),
        changed: vec![(DescriptorId(8), SchemaVersion(4))],
        complete_from: SchemaVersion(1),
    };
    vec![
        Record::Batch(vec![Committed { id: id(10), at: Timestamp(20), writes: writes() }]),
        Record::Lease(Lease { primary: NodeId(1), ceiling: Timestamp(300) }),
        Record::Schema(grant),
        Record::Prepared(Box::new(Prepared { id: id(11), at: Timestamp(21), participants, reads, writes: writes() })),
        Record::Refused(id(12)),
        Record::Outcome(Outcome { id: id(11), at: Some(Timestamp(22)) }),
        Record::Outcome(Outcome { id: id(13), at: None }),
        Record::Settled(vec![id(1), id(2)]),
        Record::Build(Build { table: DescriptorId(8), index: 9, source: 10, version: SchemaVersion(4), at: Timestamp(30) }),
        Record::Part(Part { id: id(14), at: Timestamp(31), number: 2, is_last: false, writes: writes() }),
    ]
}

fn read_payload(bytes: &[u8]) -> Result<(String, Vec<u8>), String> {
    let payload = Payload::decode(Bytes::copy_from_slice(bytes)).map_err(|e| e.to_string())?;
    Ok((format!("{payload:?}"), payload.encode().to_vec()))
}

#[test]
fn what_was_written_is_read() {
    let mut fixtures = Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/formats.txt"));
    for (i, record) in records().into_iter().enumerate() {
        let payload = Payload { closed: Timestamp(100), watermark: Timestamp(9), records: vec![record] };
        fixtures.bytes(&format!("log record {i}"), &payload.encode(), read_payload);
    }
    fixtures.value::<CommitRequest>("commit request");
    fixtures.kinds::<CommitOutcome>("commit outcome");
    fixtures.kinds::<ConflictReason>("conflict");
    fixtures.kinds::<BallotMessage>("ballot");
    fixtures.kinds::<Vote>("vote");
    fixtures.value::<Error>("error");
    fixtures.kinds::<ErrorKind>("error kind");
    // What stands inside of these.
    fixtures.value::<Prepare>("prepare");
    fixtures.value::<Refusal>("refusal");
    fixtures.value::<Fresh>("fresh");
    fixtures.kinds::<Peer>("peer");
    fixtures.value::<Mutation>("mutation");
    fixtures.kinds::<Change>("change");
    fixtures.value::<Write>("write");
    fixtures.value::<ReadEntry>("read entry");
    fixtures.kinds::<Target>("target");
    fixtures.value::<KeyRange>("key range");
    fixtures.value::<ColumnMask>("column mask");
    fixtures.value::<SchemaUse>("use of the schema");
    fixtures.value::<GlobalReads>("global reads");
    fixtures.value::<Conflict>("conflict of a transaction");
    fixtures.value::<Late>("late key");
    fixtures.value::<Free>("free tokens");
    fixtures.value::<Offer>("offer");
    fixtures.value::<TxnId>("transaction");
    fixtures.value::<LogPosition>("log position");
    fixtures.value::<Versions>("versions");
    fixtures.finish();
}

/// A record may end with what a later program added.
#[test]
fn a_record_that_has_grown_is_read_without_what_is_new() {
    let lease = Lease { primary: NodeId(1), ceiling: Timestamp(300) };
    let payload = Payload { records: vec![Record::Lease(lease.clone())], ..Payload::default() };
    let mut bytes = payload.encode().to_vec();
    let len = envelope::encode(&lease).len() as u32 + 3;
    let at = bytes.len() - envelope::encode(&lease).len() - 4;
    bytes[at..at + 4].copy_from_slice(&len.to_le_bytes());
    bytes.extend([1, 2, 3]);
    assert_eq!(Payload::decode(bytes.into()).unwrap(), payload);
}
