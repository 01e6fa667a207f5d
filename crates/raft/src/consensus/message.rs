//! What replicas say to each other, as bytes.
//!
//! ```text
//! message = version u8 | 0 | append
//!         | version u8 | 1 | postcard(Request)      a call that is not an append
//!         | version u8 | 2 | postcard(Response)     an answer
//! append  = vote | has previous u8 | previous | has commit u8 | commit | count u32 | entry*
//! vote    = term u64 | node u32 | committed u8
//! previous, commit = index u64 | term u64
//! entry   = index u64 | term u64 | kind u8 | len u32 | body
//! ```
//!
//! Appends are nearly all of the traffic and have a form of their own, so that a received payload
//! is a slice of the message and is not copied. Nothing a peer sends makes a decoder panic.

use super::{LeaderId, LogId, SnapshotMeta, Types, Vote, from_log_entry, to_log_entry, to_log_id, to_position};
use crate::Claim;
use crate::log::{EntryKind, LogEntry};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use meridian_base::{Error, LogPosition, NodeId, Result};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest, TransferLeaderResponse, VoteRequest,
    VoteResponse,
};
use serde::{Deserialize, Serialize};

/// Raised when a message changes its meaning; a node refuses others than its own.
const VERSION: u8 = 1;
const FORM_APPEND: u8 = 0;
const FORM_REQUEST: u8 = 1;
const FORM_RESPONSE: u8 = 2;

/// A call.
pub(crate) enum Call {
    Append(AppendEntriesRequest<Types>),
    Other(Request),
}

/// A call other than an append.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Vote(VoteRequest<Types>),
    PreVote(VoteRequest<Types>),
    Transfer(TransferLeaderRequest<Types>),
    /// A snapshot follows, in chunks counted from 0. `id` tells attempts apart.
    SnapshotBegin {
        id: u64,
        vote: Vote,
        meta: SnapshotMeta,
    },
    SnapshotChunk {
        id: u64,
        number: u32,
        data: Bytes,
    },
    SnapshotEnd {
        id: u64,
        chunks: u32,
    },
    /// «Transfer your leadership to me.»
    Campaign {
        node: u32,
    },
}

/// An answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Response {
    Append(AppendEntriesResponse<Types>),
    Vote(VoteResponse<Types>),
    Transfer(TransferLeaderResponse<Types>),
    Chunk,
    Snapshot(SnapshotResponse<Types>),
    Campaign,
}

fn malformed(what: &str) -> Error {
    Error::internal(format!("malformed replication message: {what}"))
}

/// An append as bytes.
pub(crate) fn encode_append(request: &AppendEntriesRequest<Types>) -> Bytes {
    let entries: Vec<LogEntry> = request.entries.iter().map(to_log_entry).collect();
    let mut out = BytesMut::with_capacity(64 + entries.iter().map(|e| 21 + e.body.len()).sum::<usize>());
    out.put_slice(&[VERSION, FORM_APPEND]);
    out.put_u64_le(request.vote.leader_id.term);
    out.put_u32_le(request.vote.leader_id.voted_for);
    out.put_u8(u8::from(request.vote.committed));
    put_log_id(&mut out, request.prev_log_id.as_ref());
    put_log_id(&mut out, request.leader_commit.as_ref());
    out.put_u32_le(entries.len() as u32);
    for e in &entries {
        out.put_u64_le(e.position.index);
        out.put_u64_le(e.position.term);
        out.put_u8(match e.kind {
            EntryKind::Payload => 0,
            EntryKind::Blank => 1,
            EntryKind::Membership => 2,
        });
        out.put_u32_le(e.body.len() as u32);
        out.put_slice(&e.body);
    }
    out.freeze()
}

fn put_log_id(out: &mut BytesMut, id: Option<&LogId>) {
    let position = id.map(to_position).unwrap_or_default();
    out.put_u64_le(position.index);
    out.put_u64_le(position.term);
}

fn decode_append(mut input: Bytes) -> Option<AppendEntriesRequest<Types>> {
    let need = |b: &Bytes, n: usize| (b.remaining() >= n).then_some(());
    let log_id = |b: &mut Bytes| to_log_id(LogPosition { index: b.get_u64_le(), term: b.get_u64_le() });
    need(&input, 13 + 32 + 4)?;
    let leader_id = LeaderId { term: input.get_u64_le(), voted_for: input.get_u32_le() };
    let vote = Vote { leader_id, committed: input.get_u8() != 0 };
    let prev_log_id = log_id(&mut input);
    let leader_commit = log_id(&mut input);
    let count = input.get_u32_le() as usize;
    let mut entries = Vec::with_capacity(count.min(input.remaining() / 21));
    // Entries follow their predecessor without a gap: the library relies on it.
    let mut next = prev_log_id.as_ref().map_or(0, |id| id.index.saturating_add(1)).checked_add(1)?;
    for _ in 0..count {
        need(&input, 21)?;
        let position = LogPosition { index: input.get_u64_le(), term: input.get_u64_le() };
        if position.index != next {
            return None;
        }
        next = next.checked_add(1)?;
        let kind = match input.get_u8() {
            0 => EntryKind::Payload,
            1 => EntryKind::Blank,
            2 => EntryKind::Membership,
            _ => return None,
        };
        let len = input.get_u32_le() as usize;
        need(&input, len)?;
        entries.push(from_log_entry(LogEntry { position, kind, body: input.split_to(len) }).ok()?);
    }
    input.is_empty().then_some(AppendEntriesRequest { vote, prev_log_id, leader_commit, entries })
}

fn encode<T: Serialize>(form: u8, value: &T) -> Bytes {
    let head = vec![VERSION, form];
    Bytes::from(postcard::to_extend(value, head).expect("a message encodes"))
}

/// A call other than an append, as bytes.
pub(crate) fn encode_request(request: &Request) -> Bytes {
    encode(FORM_REQUEST, request)
}

/// An answer as bytes.
pub(crate) fn encode_response(response: &Response) -> Bytes {
    encode(FORM_RESPONSE, response)
}

fn split_head(message: &mut Bytes) -> Result<u8> {
    if message.remaining() < 2 {
        return Err(malformed("too short"));
    }
    let version = message.get_u8();
    if version != VERSION {
        return Err(Error::unavailable(format!("replication message of version {version}, this node speaks {VERSION}"))
            .hint("Run the same version of meridian on all nodes."));
    }
    Ok(message.get_u8())
}

/// Who stands for election or leads, if a call says so. Looks at the first bytes of an append,
/// since appends are many and large, and decodes requests for votes.
pub(crate) fn claim(message: &Bytes) -> Result<Option<Claim>> {
    const VOTE: u8 = 0;
    const PRE_VOTE: u8 = 1;
    match message[..] {
        // The term comes first.
        [_, FORM_APPEND, _, _, _, _, _, _, _, _, a, b, c, d, ..] => {
            Ok(Some(Claim::Leads(NodeId(u32::from_le_bytes([a, b, c, d])))))
        }
        [_, FORM_REQUEST, VOTE | PRE_VOTE, ..] => match decode_call(message.clone())? {
            Call::Other(Request::Vote(request) | Request::PreVote(request)) => {
                Ok(Some(Claim::Stands(NodeId(request.vote.leader_id.voted_for))))
            }
            _ => Err(malformed("candidate")),
        },
        _ => Ok(None),
    }
}

/// Reads a call.
pub(crate) fn decode_call(mut message: Bytes) -> Result<Call> {
    match split_head(&mut message)? {
        FORM_APPEND => decode_append(message).map(Call::Append).ok_or_else(|| malformed("append")),
        FORM_REQUEST => postcard::from_bytes(&message).map(Call::Other).map_err(|_| malformed("request")),
        _ => Err(malformed("not a call")),
    }
}

/// Reads an answer.
pub(crate) fn decode_response(mut message: Bytes) -> Result<Response> {
    match split_head(&mut message)? {
        FORM_RESPONSE => postcard::from_bytes(&message).map_err(|_| malformed("response")),
        _ => Err(malformed("not a response")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::{Entry, Membership, Payload};
    use openraft::EntryPayload;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn request(payloads: &[Vec<u8>], prev: u64, term: u64) -> AppendEntriesRequest<Types> {
        let mut index = prev;
        let mut entries: Vec<Entry> = payloads
            .iter()
            .map(|p| {
                index += 1;
                let log_id = to_log_id(LogPosition { index, term }).unwrap();
                Entry { log_id, payload: EntryPayload::Normal(Payload(Bytes::copy_from_slice(p))) }
            })
            .collect();
        let nodes = [1u32, 2].map(|n| (n, openraft::EmptyNode::new()));
        let membership = Membership::new(vec![BTreeSet::from([1, 2])], std::collections::BTreeMap::from(nodes)).unwrap();
        let log_id = to_log_id(LogPosition { index: index + 1, term }).unwrap();
        entries.push(Entry { log_id, payload: EntryPayload::Membership(membership) });
        AppendEntriesRequest {
            vote: Vote { leader_id: LeaderId { term, voted_for: 3 }, committed: true },
            prev_log_id: to_log_id(LogPosition { index: prev, term }),
            leader_commit: to_log_id(LogPosition { index: prev, term }),
            entries,
        }
    }

    /// The library's types are fields of calls and answers, so these bytes change if it changes
    /// them.
    #[test]
    fn what_was_written_is_read() {
        let mut fixtures = meridian_fixtures::Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/messages.txt"));
        fixtures.bytes("append", &encode_append(&request(&[b"row".to_vec(), Vec::new()], 7, 2)), |bytes| {
            let Ok(Call::Append(read)) = decode_call(Bytes::copy_from_slice(bytes)) else { return Err("no append".into()) };
            Ok((format!("{read:?}"), encode_append(&read).to_vec()))
        });
        fixtures.kinds::<Request>("request");
        fixtures.kinds::<Response>("response");
        fixtures.finish();
    }

    proptest! {
        #[test]
        fn an_append_is_read_back(payloads: Vec<Vec<u8>>, prev in 0..1_000u64, term: u64) {
            let request = request(&payloads, prev, term);
            let Call::Append(read) = decode_call(encode_append(&request)).unwrap() else { panic!("an append") };
            prop_assert_eq!(format!("{request:?}"), format!("{read:?}"));
        }
        #[test]
        fn damaged_messages_never_panic(payloads: Vec<Vec<u8>>, at: prop::sample::Index, with: u8, cut: prop::sample::Index) {
            let mut bytes = encode_append(&request(&payloads, 5, 2)).to_vec();
            let i = at.index(bytes.len());
            bytes[i] ^= with;
            bytes.truncate(cut.index(bytes.len() + 1));
            let _ = decode_call(Bytes::from(bytes));
        }
        #[test]
        fn no_bytes_panic_the_decoders(mut bytes: Vec<u8>, form in 0..3u8) {
            if bytes.len() > 1 { bytes[0] = VERSION; bytes[1] = form; }
            let bytes = Bytes::from(bytes);
            let _ = decode_call(bytes.clone());
            let _ = decode_response(bytes);
        }
    }
}
