//! Which settings there are: PostgreSQL's names, defaults and meanings (manual, chapter 20). A
//! setting that PostgreSQL's clients set as a matter of course and that has nothing to do here is
//! accepted and says so; a value that would promise something the database does not do is refused.

/// A setting.
#[derive(Debug)]
pub(crate) struct Definition {
    pub name: &'static str,
    /// `name` in lower case, by which the table is sorted.
    key: &'static str,
    pub default: &'static str,
    pub kind: Kind,
    /// Whether clients are told of changes (`ParameterStatus`).
    pub is_reported: bool,
    /// Accepted for PostgreSQL's clients, with a notice that says why nothing depends on it: the
    /// description.
    pub is_inert: bool,
    pub description: &'static str,
}

impl Definition {
    pub fn key(&self) -> &'static str {
        self.key
    }
}

/// What values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Bool,
    Integer {
        min: i64,
        max: i64,
        unit: Option<Unit>,
    },
    Float {
        min: f64,
        max: f64,
    },
    Enum(&'static [&'static str]),
    /// The one character set that is supported. Of its name letters and digits count.
    Encoding,
    /// One meaning, under several names.
    Only {
        accepted: &'static [&'static str],
        shown: &'static str,
    },
    Text,
    ApplicationName,
    TimeZone,
    DateStyle,
    /// Identifiers.
    List,
    ReadOnly,
    /// Who acts: set by statements of their own, which ask whether one may.
    Acting,
}

const MILLIS: Kind = Kind::Integer { min: 0, max: i32::MAX as i64, unit: Some(Unit::Millis) };
const KILO_BYTES: Kind = Kind::Integer { min: 64, max: i32::MAX as i64, unit: Some(Unit::KiloBytes) };

const fn reported(
    name: &'static str,
    key: &'static str,
    default: &'static str,
    kind: Kind,
    description: &'static str,
) -> Definition {
    Definition { is_reported: true, ..quiet(name, key, default, kind, description) }
}
const fn quiet(
    name: &'static str,
    key: &'static str,
    default: &'static str,
    kind: Kind,
    description: &'static str,
) -> Definition {
    Definition { name, key, default, kind, is_reported: false, is_inert: false, description }
}

const fn inert(
    name: &'static str,
    key: &'static str,
    default: &'static str,
    kind: Kind,
    description: &'static str,
) -> Definition {
    Definition { is_inert: true, ..quiet(name, key, default, kind, description) }
}

/// Every setting, sorted by lower-case name.
pub(crate) const DEFINITIONS: &[Definition] = &[
    reported(
        "application_name",
        "application_name",
        "",
        Kind::ApplicationName,
        "The application name to be reported in statistics and logs.",
    ),
    quiet(
        "array_nulls",
        "array_nulls",
        "on",
        Kind::Only { accepted: &["on", "true", "1"], shown: "on" },
        "Unquoted NULL in array input means a null value.",
    ),
    quiet(
        "auto_rehoming_hysteresis",
        "auto_rehoming_hysteresis",
        "1",
        Kind::Integer { min: 1, max: 1_000_000, unit: None },
        "How many updates from another region, on average, move a row there.",
    ),
    quiet(
        "backslash_quote",
        "backslash_quote",
        "safe_encoding",
        Kind::Enum(&["safe_encoding", "on", "off"]),
        "Whether \\' is allowed in string literals.",
    ),
    quiet("bytea_output", "bytea_output", "hex", Kind::Enum(&["escape", "hex"]), "The output format for bytea."),
    quiet("check_function_bodies", "check_function_bodies", "on", Kind::Bool, "Check routine bodies when they are created."),
    reported("client_encoding", "client_encoding", "UTF8", Kind::Encoding, "The client's character set encoding."),
    quiet(
        "client_min_messages",
        "client_min_messages",
        "notice",
        Kind::Enum(&["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"]),
        "The message levels that are sent to the client.",
    ),
    inert(
        "constraint_exclusion",
        "constraint_exclusion",
        "partition",
        Kind::Enum(&["partition", "on", "off"]),
        "The planner chooses by itself.",
    ),
    inert(
        "cpu_index_tuple_cost",
        "cpu_index_tuple_cost",
        "0.005",
        Kind::Float { min: 0.0, max: 1e300 },
        "The planner has its own costs.",
    ),
    inert(
        "cpu_operator_cost",
        "cpu_operator_cost",
        "0.0025",
        Kind::Float { min: 0.0, max: 1e300 },
        "The planner has its own costs.",
    ),
    inert("cpu_tuple_cost", "cpu_tuple_cost", "0.01", Kind::Float { min: 0.0, max: 1e300 }, "The planner has its own costs."),
    inert(
        "cursor_tuple_fraction",
        "cursor_tuple_fraction",
        "0.1",
        Kind::Float { min: 0.0, max: 1.0 },
        "The planner chooses by itself.",
    ),
    reported("DateStyle", "datestyle", "ISO, MDY", Kind::DateStyle, "The display format for date and time values."),
    quiet("deadlock_timeout", "deadlock_timeout", "1s", MILLIS, "Sets the time to wait on a lock before checking for deadlock."),
    inert(
        "default_statistics_target",
        "default_statistics_target",
        "100",
        Kind::Integer { min: 1, max: 10000, unit: None },
        "Samples have one size.",
    ),
    quiet(
        "default_table_access_method",
        "default_table_access_method",
        "heap",
        Kind::Only { accepted: &["heap"], shown: "heap" },
        "The default table access method for new tables.",
    ),
    quiet(
        "default_tablespace",
        "default_tablespace",
        "",
        Kind::Only { accepted: &["", "pg_default"], shown: "" },
        "The default tablespace to create tables and indexes in.",
    ),
    quiet(
        "default_text_search_config",
        "default_text_search_config",
        "pg_catalog.simple",
        Kind::Text,
        "The default text search configuration.",
    ),
    quiet(
        "default_transaction_deferrable",
        "default_transaction_deferrable",
        "off",
        Kind::Bool,
        "The default deferrable status of new transactions.",
    ),
    quiet(
        "default_transaction_isolation",
        "default_transaction_isolation",
        "serializable",
        Kind::Only {
            accepted: &["serializable", "repeatable read", "read committed", "read uncommitted"],
            shown: "serializable",
        },
        "The isolation level of new transactions: every level runs as serializable.",
    ),
    reported(
        "default_transaction_read_only",
        "default_transaction_read_only",
        "off",
        Kind::Bool,
        "The default read-only status of new transactions.",
    ),
    quiet(
        "default_transaction_use_follower_reads",
        "default_transaction_use_follower_reads",
        "off",
        Kind::Bool,
        "Whether read-only transactions read AS OF SYSTEM TIME follower_read_timestamp().",
    ),
    inert("effective_cache_size", "effective_cache_size", "4GB", KILO_BYTES, "The planner has its own costs."),
    inert(
        "effective_io_concurrency",
        "effective_io_concurrency",
        "1",
        Kind::Integer { min: 0, max: 1000, unit: None },
        "Nothing depends on it.",
    ),
    inert("enable_async_append", "enable_async_append", "on", Kind::Bool, "The planner chooses by itself."),
    quiet(
        "enable_auto_rehoming",
        "enable_auto_rehoming",
        "off",
        Kind::Bool,
        "Whether rows of new REGIONAL BY ROW tables move to the region that updates them.",
    ),
    inert("enable_bitmapscan", "enable_bitmapscan", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_gathermerge", "enable_gathermerge", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_hashagg", "enable_hashagg", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_hashjoin", "enable_hashjoin", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_incremental_sort", "enable_incremental_sort", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_indexonlyscan", "enable_indexonlyscan", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_indexscan", "enable_indexscan", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_material", "enable_material", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_memoize", "enable_memoize", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_mergejoin", "enable_mergejoin", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_nestloop", "enable_nestloop", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_parallel_append", "enable_parallel_append", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_parallel_hash", "enable_parallel_hash", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_partition_pruning", "enable_partition_pruning", "on", Kind::Bool, "The planner chooses by itself."),
    inert(
        "enable_partitionwise_aggregate",
        "enable_partitionwise_aggregate",
        "off",
        Kind::Bool,
        "The planner chooses by itself.",
    ),
    inert("enable_partitionwise_join", "enable_partitionwise_join", "off", Kind::Bool, "The planner chooses by itself."),
    inert("enable_seqscan", "enable_seqscan", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_sort", "enable_sort", "on", Kind::Bool, "The planner chooses by itself."),
    inert("enable_tidscan", "enable_tidscan", "on", Kind::Bool, "The planner chooses by itself."),
    quiet(
        "enforce_home_region",
        "enforce_home_region",
        "off",
        Kind::Bool,
        "Statements that would read or write rows of another region than the gateway's fail.",
    ),
    quiet(
        "escape_string_warning",
        "escape_string_warning",
        "on",
        Kind::Bool,
        "Warn about backslash escapes in ordinary string literals.",
    ),
    quiet(
        "extra_float_digits",
        "extra_float_digits",
        "1",
        Kind::Integer { min: -15, max: 3, unit: None },
        "The number of digits displayed for floating-point values.",
    ),
    inert(
        "from_collapse_limit",
        "from_collapse_limit",
        "8",
        Kind::Integer { min: 1, max: i32::MAX as i64, unit: None },
        "The planner chooses by itself.",
    ),
    inert("geqo", "geqo", "on", Kind::Bool, "The planner chooses by itself."),
    inert(
        "geqo_threshold",
        "geqo_threshold",
        "12",
        Kind::Integer { min: 2, max: i32::MAX as i64, unit: None },
        "The planner chooses by itself.",
    ),
    inert(
        "hash_mem_multiplier",
        "hash_mem_multiplier",
        "2",
        Kind::Float { min: 1.0, max: 1000.0 },
        "Statements have one memory bound of their own.",
    ),
    quiet(
        "idle_in_transaction_session_timeout",
        "idle_in_transaction_session_timeout",
        "0",
        MILLIS,
        "The maximum allowed idle time between queries, when in a transaction.",
    ),
    quiet(
        "idle_session_timeout",
        "idle_session_timeout",
        "0",
        MILLIS,
        "The maximum allowed idle time between queries, when not in a transaction.",
    ),
    reported("in_hot_standby", "in_hot_standby", "off", Kind::ReadOnly, "Whether hot standby is currently active."),
    reported("integer_datetimes", "integer_datetimes", "on", Kind::ReadOnly, "Whether datetimes are integer based."),
    reported(
        "IntervalStyle",
        "intervalstyle",
        "postgres",
        Kind::Only { accepted: &["postgres"], shown: "postgres" },
        "The display format for interval values.",
    ),
    reported("is_superuser", "is_superuser", "on", Kind::ReadOnly, "Whether the current user is a superuser."),
    inert("jit", "jit", "off", Kind::Bool, "There is no just-in-time compilation."),
    inert(
        "jit_above_cost",
        "jit_above_cost",
        "100000",
        Kind::Float { min: -1.0, max: 1e300 },
        "There is no just-in-time compilation.",
    ),
    inert(
        "join_collapse_limit",
        "join_collapse_limit",
        "8",
        Kind::Integer { min: 1, max: i32::MAX as i64, unit: None },
        "The planner chooses by itself.",
    ),
    quiet("lc_collate", "lc_collate", "C.UTF-8", Kind::ReadOnly, "The collation order locale."),
    quiet("lc_ctype", "lc_ctype", "C.UTF-8", Kind::ReadOnly, "The character classification and case conversion locale."),
    inert("lc_messages", "lc_messages", "C", Kind::Text, "Messages, names and numbers are written as in English."),
    inert("lc_monetary", "lc_monetary", "C", Kind::Text, "Messages, names and numbers are written as in English."),
    inert("lc_numeric", "lc_numeric", "C", Kind::Text, "Messages, names and numbers are written as in English."),
    inert("lc_time", "lc_time", "C", Kind::Text, "Messages, names and numbers are written as in English."),
    quiet(
        "locality_optimized_partitioned_index_scan",
        "locality_optimized_partitioned_index_scan",
        "on",
        Kind::Bool,
        "Whether rows of REGIONAL BY ROW tables are looked for in the gateway's region before the others.",
    ),
    quiet("lock_timeout", "lock_timeout", "0", MILLIS, "The maximum allowed duration of any wait for a lock."),
    inert("logical_decoding_work_mem", "logical_decoding_work_mem", "64MB", KILO_BYTES, "Nothing depends on it."),
    inert(
        "maintenance_io_concurrency",
        "maintenance_io_concurrency",
        "10",
        Kind::Integer { min: 0, max: 1000, unit: None },
        "Nothing depends on it.",
    ),
    inert("maintenance_work_mem", "maintenance_work_mem", "64MB", KILO_BYTES, "Nothing depends on it."),
    quiet(
        "max_cross_region_round_trips",
        "max_cross_region_round_trips",
        "-1",
        Kind::Integer { min: -1, max: i32::MAX as i64, unit: None },
        "Statements that take more round trips between regions, their commit included, fail. -1 for no limit.",
    ),
    quiet("max_identifier_length", "max_identifier_length", "63", Kind::ReadOnly, "The maximum identifier length."),
    quiet("max_index_keys", "max_index_keys", "32", Kind::ReadOnly, "The maximum number of index keys."),
    inert(
        "max_parallel_maintenance_workers",
        "max_parallel_maintenance_workers",
        "2",
        Kind::Integer { min: 0, max: 1024, unit: None },
        "Statements run on one core at a time.",
    ),
    inert(
        "max_parallel_workers",
        "max_parallel_workers",
        "8",
        Kind::Integer { min: 0, max: 1024, unit: None },
        "Statements run on one core at a time.",
    ),
    inert(
        "max_parallel_workers_per_gather",
        "max_parallel_workers_per_gather",
        "2",
        Kind::Integer { min: 0, max: 1024, unit: None },
        "Statements run on one core at a time.",
    ),
    inert(
        "parallel_leader_participation",
        "parallel_leader_participation",
        "on",
        Kind::Bool,
        "Statements run on one core at a time.",
    ),
    inert(
        "parallel_setup_cost",
        "parallel_setup_cost",
        "1000",
        Kind::Float { min: 0.0, max: 1e300 },
        "The planner has its own costs.",
    ),
    inert(
        "parallel_tuple_cost",
        "parallel_tuple_cost",
        "0.1",
        Kind::Float { min: 0.0, max: 1e300 },
        "The planner has its own costs.",
    ),
    quiet(
        "password_encryption",
        "password_encryption",
        "scram-sha-256",
        Kind::Only { accepted: &["scram-sha-256"], shown: "scram-sha-256" },
        "The algorithm for encrypting passwords.",
    ),
    inert(
        "plan_cache_mode",
        "plan_cache_mode",
        "auto",
        Kind::Enum(&["auto", "force_generic_plan", "force_custom_plan"]),
        "The planner chooses by itself.",
    ),
    quiet(
        "quote_all_identifiers",
        "quote_all_identifiers",
        "off",
        Kind::Bool,
        "When generating SQL fragments, quote all identifiers.",
    ),
    inert("random_page_cost", "random_page_cost", "4", Kind::Float { min: 0.0, max: 1e300 }, "The planner has its own costs."),
    inert(
        "recursive_worktable_factor",
        "recursive_worktable_factor",
        "10",
        Kind::Float { min: 0.001, max: 1000000.0 },
        "The planner chooses by itself.",
    ),
    quiet("role", "role", "none", Kind::Acting, "The current role."),
    quiet("row_security", "row_security", "on", Kind::Bool, "Enable row security."),
    quiet(
        "search_path",
        "search_path",
        "\"$user\", public",
        Kind::List,
        "The schema search order for names that are not schema-qualified.",
    ),
    inert("seq_page_cost", "seq_page_cost", "1", Kind::Float { min: 0.0, max: 1e300 }, "The planner has its own costs."),
    reported("server_encoding", "server_encoding", "UTF8", Kind::ReadOnly, "The server (database) character set encoding."),
    reported("server_version", "server_version", "15.0", Kind::ReadOnly, "The server version."),
    quiet("server_version_num", "server_version_num", "150000", Kind::ReadOnly, "The server version as an integer."),
    reported("session_authorization", "session_authorization", "", Kind::Acting, "The session user name."),
    quiet(
        "session_replication_role",
        "session_replication_role",
        "origin",
        Kind::Only { accepted: &["origin"], shown: "origin" },
        "The session's behavior for triggers and rewrite rules.",
    ),
    quiet("ssl", "ssl", "off", Kind::ReadOnly, "Whether SSL connections are enabled."),
    reported(
        "standard_conforming_strings",
        "standard_conforming_strings",
        "on",
        Kind::Only { accepted: &["on", "true", "1", "yes"], shown: "on" },
        "Causes '...' strings to treat backslashes literally.",
    ),
    quiet("statement_timeout", "statement_timeout", "0", MILLIS, "The maximum allowed duration of any statement."),
    inert("synchronize_seqscans", "synchronize_seqscans", "on", Kind::Bool, "Nothing depends on it."),
    inert(
        "synchronous_commit",
        "synchronous_commit",
        "on",
        Kind::Enum(&["local", "remote_write", "remote_apply", "on", "off"]),
        "Every commit is durable on a quorum.",
    ),
    inert(
        "tcp_keepalives_idle",
        "tcp_keepalives_idle",
        "0",
        Kind::Integer { min: 0, max: i32::MAX as i64, unit: None },
        "Nothing depends on it.",
    ),
    quiet(
        "temp_file_limit",
        "temp_file_limit",
        "-1",
        Kind::Integer { min: -1, max: i32::MAX as i64, unit: Some(Unit::KiloBytes) },
        "The bytes that each temporary file may have; -1: as many as the disk has.",
    ),
    reported("TimeZone", "timezone", "UTC", Kind::TimeZone, "The time zone for displaying and interpreting time stamps."),
    quiet("timezone_abbreviations", "timezone_abbreviations", "Default", Kind::Text, "The file of time zone abbreviations."),
    quiet(
        "transform_null_equals",
        "transform_null_equals",
        "off",
        Kind::Only { accepted: &["off", "false", "0"], shown: "off" },
        "Treats expr=NULL as expr IS NULL.",
    ),
    quiet("work_mem", "work_mem", "256MB", KILO_BYTES, "What a statement may hold; half of it before temporary files."),
    quiet("xmlbinary", "xmlbinary", "base64", Kind::Enum(&["base64", "hex"]), "How binary values are encoded in XML."),
    quiet(
        "xmloption",
        "xmloption",
        "content",
        Kind::Enum(&["content", "document"]),
        "Whether XML data is a document or a content fragment.",
    ),
];

/// What a number without a unit means, and which units may follow it (PostgreSQL manual, 20.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Millis,
    KiloBytes,
}

impl Unit {
    /// Names and how many base units they are, largest first.
    pub(super) fn names(self) -> &'static [(&'static str, i64)] {
        match self {
            Unit::Millis => &[("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)],
            Unit::KiloBytes => &[("TB", 1 << 30), ("GB", 1 << 20), ("MB", 1 << 10), ("kB", 1)],
        }
    }
}
