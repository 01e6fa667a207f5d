//! What a group's log contains.
//!
//! One Raft entry carries one [`Payload`]: the group's new closed timestamp, its watermark, and a
//! few records. Applying a payload is deterministic and idempotent.
//!
//! ```text
//! payload  = format u8 | closed u64 | watermark u64 | record*
//! record   = tag u8 | len u32 | body
//! Batch    = count u32 | txn*
//! txn      = id.hlc u64 | id.gateway u32 | at u64 | count u32 | write*
//! write    = columns u64 | key len u16 | key | value len u32 (u32::MAX: tombstone) | value
//! Prepared = count u32 | write* | envelope of the rest
//! Part     = count u32 | write* | envelope of the rest
//! others   = envelope
//! ```
//!
//! Integers are little-endian. Values are slices of the payload's buffer: a row is copied once into
//! the log frame and never again on its way to the row table. Envelopes can grow
//! ([`crate::envelope`]).

use crate::envelope;
use crate::error::{Error, Result};
use crate::id::{DescriptorId, GroupId, NodeId, TxnId};
use crate::key::{Key, Target};
use crate::time::Timestamp;
use crate::txn::{ColumnMask, SchemaVersion, Write};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

/// The version of the format of log records. A node refuses a larger one instead of guessing.
pub const FORMAT: u8 = 1;

const TAG_BATCH: u8 = 1;
const TAG_LEASE: u8 = 2;
const TAG_SCHEMA: u8 = 3;
const TAG_PREPARED: u8 = 4;
const TAG_REFUSED: u8 = 5;
const TAG_OUTCOME: u8 = 6;
const TAG_SETTLED: u8 = 8;
const TAG_BUILD: u8 = 9;
const TAG_PART: u8 = 10;
const TOMBSTONE: u32 = u32::MAX;

/// The content of one log entry.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Payload {
    /// No version will appear at or below this, except those of transactions prepared earlier in
    /// the log.
    pub closed: Timestamp,
    /// Transaction ids at or below this are settled (the design's `F`).
    pub watermark: Timestamp,
    pub records: Vec<Record>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Certified single-group transactions, in the order of their timestamps.
    Batch(Vec<Committed>),
    /// The primary may use timestamps up to `ceiling`; a successor starts above it.
    Lease(Lease),
    /// The catalog's grant: up to `bound` the catalog is at `version`.
    Schema(SchemaGrant),
    /// This group votes YES for a transaction over several groups, and reserves what it read and
    /// writes.
    Prepared(Box<Prepared>),
    /// This group votes NO.
    Refused(TxnId),
    /// What the votes came to, for a transaction that is prepared here. A commit makes its writes
    /// visible.
    Outcome(Outcome),
    /// Committed transactions whose outcome is in the log of every participant, with ids at or
    /// below the watermark: forgotten.
    Settled(Vec<TxnId>),
    /// Every replica fills a new index from its own rows. From [`crate::version::ClusterVersion`] 2
    /// on.
    Build(Build),
    /// Some of the writes of a transaction that is too large for one entry ([`crate::parts`]). From
    /// [`crate::version::ClusterVersion`] 2 on.
    Part(Part),
}

/// What every replica owes from this entry of the log on: the entries of a new index for the rows
/// as of `at`, as versions at `at`. Versions above `at` bring their entries themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    pub table: DescriptorId,
    /// The index, by the first bytes of its keys.
    pub index: u32,
    /// The table's primary index, whose rows are read.
    pub source: u32,
    /// The catalog has the index from this version on.
    pub version: SchemaVersion,
    /// Above every version whose transaction may not know the index.
    pub at: Timestamp,
}

/// A committed transaction's slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub id: TxnId,
    pub at: Timestamp,
    pub writes: Vec<Write>,
}

/// Some of the writes of a certified single-group transaction. It is committed when the last part
/// is in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub id: TxnId,
    /// Its commit timestamp, in every part.
    pub at: Timestamp,
    /// Counted from 0.
    pub number: u32,
    pub is_last: bool,
    pub writes: Vec<Write>,
}

/// A slice of a transaction over several groups. See [`Record::Prepared`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    pub id: TxnId,
    /// The vote: it commits here at this timestamp or above.
    pub at: Timestamp,
    /// Every participant, this group included; ascending.
    pub participants: Vec<GroupId>,
    /// What it read here: no other transaction writes there until the outcome is known.
    pub reads: Vec<Reserved>,
    pub writes: Vec<Write>,
}

/// Columns of a key or range that were read. Certified already, so it needs no `until`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    pub target: Target,
    pub columns: ColumnMask,
}

/// See [`Record::Outcome`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub id: TxnId,
    /// The commit timestamp; `None`: it aborted.
    pub at: Option<Timestamp>,
}

/// See [`Record::Lease`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub primary: NodeId,
    pub ceiling: Timestamp,
}

/// See [`Record::Schema`].
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SchemaGrant {
    pub version: SchemaVersion,
    /// The design's `B`.
    pub bound: Timestamp,
    /// Grants with a smaller number are ignored: a delayed message cannot bring an old version
    /// back.
    pub seq: u64,
    /// The commit timestamp of the step that made `version`.
    pub committed_at: Timestamp,
    /// Descriptors changed by recent steps, with the version that changed them; complete for
    /// versions above `complete_from`.
    pub changed: Vec<(DescriptorId, SchemaVersion)>,
    pub complete_from: SchemaVersion,
}

impl Payload {
    /// The bytes that go into the log.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(64 + self.records.iter().map(Record::size_hint).sum::<usize>());
        out.put_u8(FORMAT);
        out.put_u64_le(self.closed.0);
        out.put_u64_le(self.watermark.0);
        for record in &self.records {
            let tag_at = out.len();
            out.put_u8(0);
            out.put_u32_le(0);
            let tag = match record {
                Record::Batch(txns) => {
                    encode_batch(&mut out, txns);
                    TAG_BATCH
                }
                Record::Lease(lease) => {
                    out.put_slice(&envelope::encode(lease));
                    TAG_LEASE
                }
                Record::Schema(grant) => {
                    out.put_slice(&envelope::encode(grant));
                    TAG_SCHEMA
                }
                Record::Prepared(prepared) => {
                    encode_prepared(&mut out, prepared);
                    TAG_PREPARED
                }
                Record::Refused(id) => {
                    out.put_slice(&envelope::encode(id));
                    TAG_REFUSED
                }
                Record::Outcome(outcome) => {
                    out.put_slice(&envelope::encode(outcome));
                    TAG_OUTCOME
                }
                Record::Settled(ids) => {
                    out.put_slice(&envelope::encode(ids));
                    TAG_SETTLED
                }
                Record::Build(build) => {
                    out.put_slice(&envelope::encode(build));
                    TAG_BUILD
                }
                Record::Part(part) => {
                    encode_part(&mut out, part);
                    TAG_PART
                }
            };
            let len = (out.len() - tag_at - 5) as u32;
            out[tag_at] = tag;
            out[tag_at + 1..tag_at + 5].copy_from_slice(&len.to_le_bytes());
        }
        out.freeze()
    }

    /// Reads what [`Payload::encode`] wrote. Malformed bytes are an error, never a panic.
    pub fn decode(mut input: Bytes) -> Result<Payload> {
        if input.remaining() < 17 {
            return Err(malformed("shorter than its header"));
        }
        let format = input.get_u8();
        if format > FORMAT {
            return Err(Error::fatal(format!("log record format {format} is newer than this program's ({FORMAT})"))
                .hint("Start the version of meridian that wrote this data directory, or a newer one."));
        }
        if format == 0 {
            return Err(malformed("format 0"));
        }
        let mut payload =
            Payload { closed: Timestamp(input.get_u64_le()), watermark: Timestamp(input.get_u64_le()), records: Vec::new() };
        while input.has_remaining() {
            if input.remaining() < 5 {
                return Err(malformed("record header cut off"));
            }
            let tag = input.get_u8();
            let len = input.get_u32_le() as usize;
            if input.remaining() < len {
                return Err(malformed("record cut off"));
            }
            let body = input.split_to(len);
            payload.records.push(match tag {
                TAG_BATCH => Record::Batch(decode_batch(body).ok_or_else(|| malformed("batch"))?),
                TAG_LEASE => Record::Lease(envelope::decode(&body).map_err(|e| malformed(&format!("lease: {e}")))?),
                TAG_SCHEMA => Record::Schema(envelope::decode(&body).map_err(|e| malformed(&format!("schema grant: {e}")))?),
                TAG_PREPARED => Record::Prepared(Box::new(decode_prepared(body).ok_or_else(|| malformed("prepared"))?)),
                TAG_REFUSED => Record::Refused(envelope::decode(&body).map_err(|e| malformed(&format!("refused: {e}")))?),
                TAG_OUTCOME => Record::Outcome(envelope::decode(&body).map_err(|e| malformed(&format!("outcome: {e}")))?),
                TAG_SETTLED => Record::Settled(envelope::decode(&body).map_err(|e| malformed(&format!("settled: {e}")))?),
                TAG_BUILD => Record::Build(envelope::decode(&body).map_err(|e| malformed(&format!("build: {e}")))?),
                TAG_PART => Record::Part(decode_part(body).ok_or_else(|| malformed("part"))?),
                other => return Err(malformed(&format!("unknown record tag {other}"))),
            });
        }
        Ok(payload)
    }
}

fn malformed(what: &str) -> Error {
    Error::fatal(format!("malformed log record: {what}"))
}

impl Record {
    fn size_hint(&self) -> usize {
        match self {
            Record::Batch(txns) => 16 + txns.iter().map(Committed::size_hint).sum::<usize>(),
            Record::Prepared(prepared) => prepared.size_hint(),
            Record::Part(part) => 64 + writes_size_hint(&part.writes),
            _ => 96,
        }
    }
}

impl Committed {
    /// About how many bytes it takes in the log.
    pub fn size_hint(&self) -> usize {
        24 + writes_size_hint(&self.writes)
    }
}

impl Prepared {
    /// About how many bytes it takes in the log.
    pub fn size_hint(&self) -> usize {
        64 + writes_size_hint(&self.writes) + 64 * self.reads.len()
    }
}

fn writes_size_hint(writes: &[Write]) -> usize {
    writes.iter().map(write_bytes).sum()
}

/// The bytes of a write in the log.
pub(crate) fn write_bytes(w: &Write) -> usize {
    14 + w.key.as_bytes().len() + w.value.as_ref().map_or(0, Bytes::len)
}

fn encode_batch(out: &mut BytesMut, txns: &[Committed]) {
    out.put_u32_le(txns.len() as u32);
    for txn in txns {
        out.put_u64_le(txn.id.hlc.0);
        out.put_u32_le(txn.id.gateway.0);
        out.put_u64_le(txn.at.0);
        encode_writes(out, &txn.writes);
    }
}

/// A count and the writes.
fn encode_writes(out: &mut BytesMut, writes: &[Write]) {
    out.put_u32_le(writes.len() as u32);
    for w in writes {
        out.put_u64_le(w.columns.0);
        let key = w.key.as_bytes();
        out.put_u16_le(u16::try_from(key.len()).expect("keys are bounded by KEY_BYTES_MAX"));
        out.put_slice(key);
        match &w.value {
            Some(v) => {
                out.put_u32_le(u32::try_from(v.len()).expect("values are bounded by ROW_BYTES_MAX"));
                out.put_slice(v);
            }
            None => out.put_u32_le(TOMBSTONE),
        }
    }
}

fn need(b: &Bytes, n: usize) -> Option<()> {
    (b.remaining() >= n).then_some(())
}

fn decode_batch(mut body: Bytes) -> Option<Vec<Committed>> {
    need(&body, 4)?;
    let count = body.get_u32_le() as usize;
    let mut txns = Vec::with_capacity(count.min(body.remaining() / 24));
    for _ in 0..count {
        need(&body, 20)?;
        let id = TxnId { hlc: Timestamp(body.get_u64_le()), gateway: NodeId(body.get_u32_le()) };
        let at = Timestamp(body.get_u64_le());
        txns.push(Committed { id, at, writes: decode_writes(&mut body)? });
    }
    body.is_empty().then_some(txns)
}

fn decode_writes(body: &mut Bytes) -> Option<Vec<Write>> {
    need(body, 4)?;
    let count = body.get_u32_le() as usize;
    let mut writes = Vec::with_capacity(count.min(body.remaining() / 14));
    for _ in 0..count {
        need(body, 10)?;
        let columns = ColumnMask(body.get_u64_le());
        let key_len = body.get_u16_le() as usize;
        need(body, key_len + 4)?;
        let key = Key::new(&body[..key_len]);
        body.advance(key_len);
        let value_len = body.get_u32_le();
        let value = if value_len == TOMBSTONE {
            None
        } else {
            need(body, value_len as usize)?;
            Some(body.split_to(value_len as usize))
        };
        writes.push(Write { key, value, columns });
    }
    Some(writes)
}

/// What [`Prepared`] has beside its writes.
#[derive(Serialize, Deserialize)]
struct PreparedRest {
    id: TxnId,
    at: Timestamp,
    participants: Vec<GroupId>,
    reads: Vec<Reserved>,
}

fn encode_prepared(out: &mut BytesMut, prepared: &Prepared) {
    encode_writes(out, &prepared.writes);
    let Prepared { id, at, participants, reads, .. } = prepared;
    let rest = PreparedRest { id: *id, at: *at, participants: participants.clone(), reads: reads.clone() };
    out.put_slice(&envelope::encode(&rest));
}

fn decode_prepared(mut body: Bytes) -> Option<Prepared> {
    let writes = decode_writes(&mut body)?;
    let PreparedRest { id, at, participants, reads } = envelope::decode(&body).ok()?;
    Some(Prepared { id, at, participants, reads, writes })
}

/// What [`Part`] has beside its writes.
#[derive(Serialize, Deserialize)]
struct PartRest {
    id: TxnId,
    at: Timestamp,
    number: u32,
    is_last: bool,
}

fn encode_part(out: &mut BytesMut, part: &Part) {
    encode_writes(out, &part.writes);
    let Part { id, at, number, is_last, .. } = *part;
    out.put_slice(&envelope::encode(&PartRest { id, at, number, is_last }));
}

fn decode_part(mut body: Bytes) -> Option<Part> {
    let writes = decode_writes(&mut body)?;
    let PartRest { id, at, number, is_last } = envelope::decode(&body).ok()?;
    Some(Part { id, at, number, is_last, writes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn write()(key: Vec<u8>, value: Option<Vec<u8>>, columns: u64) -> Write {
            Write { key: Key::new(&key), value: value.map(Bytes::from), columns: ColumnMask(columns) }
        }
    }
    prop_compose! {
        fn committed()(hlc: u64, gateway: u32, at: u64, writes in prop::collection::vec(write(), 0..5)) -> Committed {
            Committed { id: TxnId { hlc: Timestamp(hlc), gateway: NodeId(gateway) }, at: Timestamp(at), writes }
        }
    }

    prop_compose! {
        fn prepared()(txn in committed(), groups: Vec<u32>, reads in prop::collection::vec((any::<Vec<u8>>(), any::<u64>(), any::<bool>()), 0..4)) -> Prepared {
            let reserved = |(key, columns, range): (Vec<u8>, u64, bool)| {
                let key = Key::new(&key);
                let target = match range {
                    true => Target::Range(crate::key::KeyRange::new(key.clone(), key.successor())),
                    false => Target::Key(key),
                };
                Reserved { target, columns: ColumnMask(columns) }
            };
            Prepared {
                id: txn.id,
                at: txn.at,
                participants: groups.into_iter().map(GroupId).collect(),
                reads: reads.into_iter().map(reserved).collect(),
                writes: txn.writes,
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            closed: u64,
            f: u64,
            txns in prop::collection::vec(committed(), 0..5),
            ceiling: u64,
            prepared in prepared(),
            at: Option<u64>,
        ) {
            let id = prepared.id;
            let writes = prepared.writes.clone();
            let payload = Payload {
                closed: Timestamp(closed),
                watermark: Timestamp(f),
                records: vec![
                    Record::Batch(txns),
                    Record::Lease(Lease { primary: NodeId(3), ceiling: Timestamp(ceiling) }),
                    Record::Schema(SchemaGrant { seq: 7, changed: vec![(DescriptorId(1), SchemaVersion(2))], ..Default::default() }),
                    Record::Prepared(Box::new(prepared)),
                    Record::Refused(id),
                    Record::Outcome(Outcome { id, at: at.map(Timestamp) }),
                    Record::Settled(vec![id, id]),
                    Record::Build(Build {
                        table: DescriptorId(4),
                        index: 5,
                        source: 6,
                        version: SchemaVersion(7),
                        at: Timestamp(ceiling),
                    }),
                    Record::Part(Part { id, at: Timestamp(ceiling), number: f as u32, is_last: f % 2 == 0, writes }),
                ],
            };
            prop_assert_eq!(Payload::decode(payload.encode()).unwrap(), payload);
        }
        #[test]
        fn no_bytes_panic_the_decoder(mut bytes: Vec<u8>, header: bool) {
            if header && bytes.len() > 22 { bytes[0] = FORMAT; bytes[17] %= 11; bytes[19] = 0; bytes[20] = 0; bytes[21] = 0; }
            let _ = Payload::decode(Bytes::from(bytes));
        }
        #[test]
        fn a_damaged_batch_never_panics(txns in prop::collection::vec(committed(), 1..4), at: prop::sample::Index, with: u8) {
            let payload = Payload { records: vec![Record::Batch(txns)], ..Default::default() };
            let mut bytes = payload.encode().to_vec();
            let i = at.index(bytes.len());
            bytes[i] ^= with;
            let _ = Payload::decode(Bytes::from(bytes));
        }
    }

    proptest! {
        #[test]
        fn a_damaged_prepared_record_never_panics(prepared in prepared(), at: prop::sample::Index, with: u8, cut: prop::sample::Index) {
            let payload = Payload { records: vec![Record::Prepared(Box::new(prepared))], ..Default::default() };
            let mut bytes = payload.encode().to_vec();
            let i = at.index(bytes.len());
            bytes[i] ^= with;
            bytes.truncate(cut.index(bytes.len()) + 1);
            let _ = Payload::decode(Bytes::from(bytes));
        }
    }

    #[test]
    fn a_newer_format_is_refused_by_name() {
        let mut bytes = Payload::default().encode().to_vec();
        bytes[0] = FORMAT + 1;
        let e = Payload::decode(Bytes::from(bytes)).unwrap_err();
        assert!(e.message().contains("newer"), "{e}");
    }
}
