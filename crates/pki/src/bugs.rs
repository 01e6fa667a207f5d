//! Planted bugs: rules that tests leave out one at a time, to check that another test fails.

meridian_base::planted_bugs! {
    /// A certificate of another cluster is good if its authority is.
    IgnoresCluster = "ignores-cluster",
    /// Whoever calls a node takes another node's answer.
    IgnoresWhoAnswers = "ignores-who-answers",
    /// Certificates hold for ever.
    IgnoresExpiry = "ignores-expiry",
    /// A decommissioned node's certificate goes on working.
    IgnoresRevocation = "ignores-revocation",
    /// A node's certificate is a login of the role of its common name.
    NodeIsRole = "node-is-role",
    /// A joiner sends its proof to whoever answers.
    JoinerTrustsAnybody = "joiner-trusts-anybody",
    /// A token is good for a second node.
    TokenUsedTwice = "token-used-twice",
    /// A token is good after its end.
    TokenIgnoresExpiry = "token-ignores-expiry",
    /// The proof says nothing about the connection, so whoever sees it may use it elsewhere.
    ProofUnbound = "proof-unbound",
    /// The proof says nothing about the key, so whoever passes it on may put another one in.
    KeyUnbound = "key-unbound",
    /// The joiner is told why it is refused.
    RefusalTellsWhy = "refusal-tells-why",
    /// A client resumes a session, and its certificate is not looked at.
    ResumesSessions = "resumes-sessions",
    /// The new authority signs before everybody knows it.
    SignsEarly = "signs-early",
    /// The old authority goes before its last certificate.
    RemovesEarly = "removes-early",
    /// Unknown users are given another salt each time.
    RandomMockSalt = "random-mock-salt",
}
