//! Statements that keep a server busy.

/// One kind of them.
pub struct Heavy {
    pub name: &'static str,
    /// Sent one after the other, then again from the start.
    make: fn() -> Vec<String>,
    /// What puts things right for the next kind.
    pub after: &'static [&'static str],
}

impl Heavy {
    pub fn statements(&self) -> Vec<String> {
        (self.make)()
    }
}

pub const TABLES: [&str; 3] = [
    "CREATE TABLE points (id int PRIMARY KEY, v int NOT NULL)",
    "CREATE TABLE big (id int PRIMARY KEY, a int NOT NULL, b int NOT NULL, note text NOT NULL)",
    "CREATE TABLE other (id int PRIMARY KEY, a int NOT NULL, b int NOT NULL)",
];

/// How each table is filled, from number `$first` to number `$last`, and up to which number.
pub const ROWS: [(&str, i64); 3] = [
    ("INSERT INTO points SELECT i, i FROM generate_series($first, $last) AS i", 100_000),
    (
        "INSERT INTO big SELECT i, i % 3000, (i::bigint * 7919 % 1000003)::int, 'note ' || i FROM generate_series($first, $last) AS i",
        300_000,
    ),
    ("INSERT INTO other SELECT i, i % 3000, i % 997 FROM generate_series($first, $last) AS i", 30_000),
];

fn one(sql: &str) -> Vec<String> {
    vec![sql.to_string()]
}

pub const HEAVY: [Heavy; 12] = [
    Heavy { name: "nothing", make: Vec::new, after: &[] },
    Heavy {
        name: "IN list of 20k keys",
        make: || {
            let keys: Vec<String> = (0..20_000).map(|i| (i * 13 + 1).to_string()).collect();
            vec![format!("SELECT count(*), sum(b) FROM big WHERE id IN ({})", keys.join(", "))]
        },
        after: &[],
    },
    Heavy {
        name: "running sum of 30k",
        make: || one("SELECT max(s) FROM (SELECT sum(b) OVER (ORDER BY id) AS s FROM big WHERE id <= 30000) AS r"),
        after: &[],
    },
    Heavy {
        name: "text of about 1 GB",
        make: || one("SELECT length(repeat('x', 500000000) || repeat('y', 500000000))"),
        after: &[],
    },
    Heavy { name: "9.99::numeric ^ 8000", make: || one("SELECT length((9.99::numeric ^ 8000)::text)"), after: &[] },
    Heavy {
        name: "VALUES of 100k",
        make: || {
            let rows: Vec<String> = (0..100_000).map(|i| format!("({i}, {})", i % 7)).collect();
            vec![format!("SELECT count(*), sum(column2) FROM (VALUES {}) AS v", rows.join(", "))]
        },
        after: &[],
    },
    Heavy {
        name: "sort of 300k",
        make: || {
            one("SELECT count(*) FROM (SELECT id, row_number() OVER (ORDER BY b, note) AS n FROM big) AS s WHERE n % 1000 = 0")
        },
        after: &[],
    },
    Heavy {
        name: "hash join with a residual filter",
        make: || {
            one("SELECT count(*) FROM other x JOIN other y ON x.a = y.a JOIN big z ON z.a = x.a WHERE x.b + y.b + z.b < 100")
        },
        after: &[],
    },
    Heavy {
        name: "group by, 300k to 3k",
        make: || one("SELECT count(*) FROM (SELECT a, count(*), sum(b), max(note) FROM big GROUP BY a) AS g"),
        after: &[],
    },
    Heavy {
        name: "CREATE INDEX on 300k",
        make: || vec!["CREATE INDEX big_b ON big (b)".to_string(), "DROP INDEX IF EXISTS big_b".to_string()],
        after: &["DROP INDEX IF EXISTS big_b"],
    },
    Heavy {
        name: "UPDATE of 10k at a time",
        make: || {
            (0..30)
                .map(|n| format!("UPDATE big SET a = a + 1 WHERE id BETWEEN {} AND {}", n * 10_000 + 1, (n + 1) * 10_000))
                .collect()
        },
        after: &[],
    },
    Heavy {
        name: "INSERT and DELETE of 10k",
        make: || {
            let insert =
                "INSERT INTO big SELECT i, 1, 1, 'more' FROM generate_series(1000001, 1010000) AS i ON CONFLICT DO NOTHING";
            vec![insert.to_string(), "DELETE FROM big WHERE id > 1000000".to_string()]
        },
        after: &["DELETE FROM big WHERE id > 1000000"],
    },
];
