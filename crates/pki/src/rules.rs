//! The rules of this crate, which tests break one at a time (`base::rules`).

meridian_base::rules! {
    /// A certificate of another cluster is good if its authority is.
    IgnoresCluster = "ignores-cluster" breaks compares_clusters,
    /// A caller of a node takes another node's answer.
    IgnoresWhoAnswers = "ignores-who-answers" breaks compares_who_answers,
    /// Certificates hold for ever.
    IgnoresExpiry = "ignores-expiry" breaks certificates_expire,
    /// A decommissioned node's certificate goes on working.
    IgnoresRevocation = "ignores-revocation" breaks revokes,
    /// A node's certificate is a login of the role of its common name.
    NodeIsRole = "node-is-role" breaks tells_nodes_from_roles,
    /// A joiner sends its proof to any process that answers.
    JoinerTrustsAnybody = "joiner-trusts-anybody" breaks joiners_verify,
    /// A token is good for a second node.
    TokenUsedTwice = "token-used-twice" breaks tokens_are_used_once,
    /// A token is good after its end.
    TokenIgnoresExpiry = "token-ignores-expiry" breaks tokens_expire,
    /// The proof says nothing about the connection, so a process that sees it may use it elsewhere.
    ProofUnbound = "proof-unbound" breaks binds_proofs_to_connections,
    /// The proof says nothing about the key, so a process that passes it on may put another one in.
    KeyUnbound = "key-unbound" breaks binds_proofs_to_keys,
    /// The joiner is told why it is refused.
    RefusalTellsWhy = "refusal-tells-why" breaks hides_refusals,
    /// A client resumes a session, and its certificate is not looked at.
    ResumesSessions = "resumes-sessions" breaks resumes_no_sessions,
    /// The new authority signs before everybody knows it.
    SignsEarly = "signs-early" breaks signs_when_known,
    /// The old authority goes before its last certificate.
    RemovesEarly = "removes-early" breaks removes_when_unused,
    /// Unknown users are given another salt each time.
    RandomMockSalt = "random-mock-salt" breaks mock_salts_repeat,
}
