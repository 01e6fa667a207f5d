//! A fixture of a group's state, as it is flushed and sent in snapshots.

use bytes::Bytes;
use meridian_base::record::{Committed, Lease, Outcome, Payload, Prepared, Record, Reserved, SchemaGrant};
use meridian_base::{
    ColumnMask, DescriptorId, GroupId, Key, KeyRange, LogPosition, NodeId, SchemaVersion, Target, Timestamp, TxnId, Write,
};
use meridian_fixtures::{Fixtures, longest};
use meridian_region::{Granted, GroupState, Rules};

/// A state that has something of everything in it.
fn filled() -> GroupState {
    let id = |hlc| TxnId { hlc: Timestamp(hlc), gateway: NodeId(300) };
    let write = |value: Option<&'static [u8]>| Write {
        key: Key::new(b"key"),
        value: value.map(Bytes::from_static),
        columns: ColumnMask(1_000),
    };
    let prepared = |hlc| {
        let range = Target::Range(KeyRange::new(Key::new(b"a"), Key::new(b"b")));
        let reads = vec![Reserved { target: range, columns: ColumnMask(9) }];
        let participants = vec![GroupId(200), GroupId(300)];
        Record::Prepared(Box::new(Prepared {
            id: id(hlc),
            at: Timestamp(hlc + 1),
            participants,
            reads,
            writes: vec![write(None)],
        }))
    };
    let grant = SchemaGrant {
        version: SchemaVersion(500),
        bound: Timestamp(90_000),
        seq: 700,
        committed_at: Timestamp(40_000),
        changed: vec![(DescriptorId(800), SchemaVersion(400))],
        complete_from: SchemaVersion(100),
    };
    let records = vec![
        Record::Lease(Lease { primary: NodeId(400), ceiling: Timestamp(100_000) }),
        Record::Schema(grant),
        Record::Batch(vec![Committed { id: id(1_000), at: Timestamp(2_000), writes: vec![write(Some(b"value"))] }]),
        Record::Refused(id(3_000)),
        prepared(4_000),
        prepared(5_000),
        prepared(6_000),
        Record::Outcome(Outcome { id: id(4_000), at: Some(Timestamp(4_100)) }),
        Record::Outcome(Outcome { id: id(5_000), at: None }),
    ];
    let mut state = GroupState::new(Rules::ALL);
    let payload = Payload { closed: Timestamp(3_900), watermark: Timestamp(900), records };
    assert!(state.apply(LogPosition { index: 600, term: 700 }, &payload));
    state
}

#[test]
fn what_was_written_is_read() {
    const FORMAT: u8 = 2;
    let read = |bytes: &[u8]| {
        let state = GroupState::decode(bytes, Rules::ALL).map_err(|e| e.to_string())?;
        Ok((format!("{state:?}"), state.encode()))
    };
    let drawn = longest(&[FORMAT], |bytes| read(bytes).ok().map(|(_, bytes)| bytes)).expect("some bytes are a state");
    let mut fixtures = Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/formats.txt"));
    fixtures.bytes("group state", &drawn, read);
    fixtures.bytes("group state with all parts", &filled().encode(), read);
    fixtures.value::<Granted>("schema lease");
    fixtures.finish();
}
