//! The statements of [`super`], and the tables that they read.

use std::borrow::Cow;

/// What a statement is judged as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A join, a subquery, or a search for keys: what plans decide.
    Join,
    /// What mostly works through many rows.
    Rows,
}

#[derive(Clone, Debug)]
pub struct Statement {
    pub name: Cow<'static, str>,
    pub kind: Kind,
    /// In the simple protocol. Its answer is the same on both sides.
    sql: Cow<'static, str>,
    /// The same as a prepared statement, with its parameters: this one is measured.
    pub prepared: Option<(&'static str, &'static [i64])>,
}

impl Statement {
    pub fn of(name: &str, kind: Kind, sql: &str) -> Statement {
        Statement { name: name.to_string().into(), kind, sql: sql.to_string().into(), prepared: None }
    }
    /// With its lists of keys spelled out.
    pub fn text(&self) -> String {
        let keys: Vec<String> = (0..1_000).map(|i| format!("{}", 1 + i * 37 % 15_000)).collect();
        let pairs: Vec<String> = (0..15).map(|i| format!("({}, {})", 1 + i * 997 % 15_000, 1 + i % 10)).collect();
        self.sql.replace("$keys", &keys.join(", ")).replace("$pairs", &pairs.join(", "))
    }
}

pub const TABLES: &str = "
CREATE TABLE users (id int PRIMARY KEY, name text NOT NULL, city int NOT NULL);
CREATE TABLE categories (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE products (id int PRIMARY KEY, category_id int NOT NULL, name text NOT NULL, price int NOT NULL);
CREATE TABLE orders (id int PRIMARY KEY, user_id int NOT NULL, total int NOT NULL, note int NOT NULL);
CREATE INDEX orders_user ON orders (user_id);
CREATE INDEX orders_total ON orders (total);
CREATE TABLE items (order_id int, line int, product_id int NOT NULL, quantity int NOT NULL, price int NOT NULL, PRIMARY KEY (order_id, line));
CREATE INDEX items_product ON items (product_id);
CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL)";

/// Rows of one transaction.
pub const PART: usize = 10_000;

/// How each table is filled, from number `$first` to number `$last`, and up to which number.
pub const ROWS: [(&str, usize); 5] = [
    ("INSERT INTO users SELECT i, 'user ' || i, i % 100 FROM generate_series($first, $last) AS i", 1_500),
    ("INSERT INTO categories SELECT i, 'category ' || i FROM generate_series($first, $last) AS i", 50),
    (
        "INSERT INTO products SELECT i, 1 + i % 50, 'product ' || i, 1 + (i * 7919) % 997 FROM generate_series($first, $last) AS i",
        2_000,
    ),
    (
        "INSERT INTO orders SELECT i, 1 + (i * 31) % 1500, (i * 7919) % 100003, (i * 104729) % 15013 \
         FROM generate_series($first, $last) AS i",
        15_000,
    ),
    (
        "INSERT INTO items SELECT 1 + (i - 1) / 10, 1 + (i - 1) % 10, 1 + (i * 613) % 2000, 1 + (i * 7) % 13, 1 + (i * 7919) % 10007 \
         FROM generate_series($first, $last) AS i",
        150_000,
    ),
];

const fn join(name: &'static str, sql: &'static str) -> Statement {
    Statement { name: Cow::Borrowed(name), kind: Kind::Join, sql: Cow::Borrowed(sql), prepared: None }
}

const fn rows(name: &'static str, sql: &'static str) -> Statement {
    Statement { name: Cow::Borrowed(name), kind: Kind::Rows, sql: Cow::Borrowed(sql), prepared: None }
}

const USER_ORDERS: &str = "SELECT o.id, o.total, i.line, i.quantity, p.name, c.name FROM orders o JOIN items i ON i.order_id = o.id \
    JOIN products p ON p.id = i.product_id JOIN categories c ON c.id = p.category_id WHERE o.user_id = 77 ORDER BY o.id, i.line";

pub static ALL: [Statement; 27] = [
    join("a user's orders, items, products, categories", USER_ORDERS),
    Statement {
        name: Cow::Borrowed("the same, prepared"),
        kind: Kind::Join,
        sql: Cow::Borrowed(USER_ORDERS),
        prepared: Some((
            "SELECT o.id, o.total, i.line, i.quantity, p.name, c.name FROM orders o JOIN items i ON i.order_id = o.id \
             JOIN products p ON p.id = i.product_id JOIN categories c ON c.id = p.category_id WHERE o.user_id = $1 ORDER BY o.id, i.line",
            &[77],
        )),
    },
    join(
        "33 orders with items and products",
        "SELECT o.id, sum(i.quantity * p.price) FROM orders o JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id \
         WHERE o.id BETWEEN 100 AND 132 GROUP BY o.id ORDER BY o.id",
    ),
    join(
        "all users with their orders",
        "SELECT u.city, count(*), sum(o.total) FROM users u JOIN orders o ON o.user_id = u.id GROUP BY u.city ORDER BY u.city",
    ),
    join(
        "correlated EXISTS, 15k x 150k",
        "SELECT count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id AND i.price > 9000)",
    ),
    join(
        "correlated EXISTS for one user",
        "SELECT count(*) FROM orders o WHERE o.user_id = 78 AND EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id AND i.price > 9000)",
    ),
    join("IN (SELECT)", "SELECT count(*) FROM users WHERE id IN (SELECT user_id FROM orders WHERE total > 90000)"),
    join("IN (SELECT) of few", "SELECT sum(total) FROM orders WHERE user_id IN (SELECT id FROM users WHERE city = 42)"),
    join(
        "NOT EXISTS, 15k x 150k",
        "SELECT count(*) FROM orders o WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id AND i.quantity = 13)",
    ),
    join(
        "NOT EXISTS, 2k x 150k",
        "SELECT count(*) FROM products p WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.product_id = p.id AND i.price > 9900)",
    ),
    join("scalar aggregate subquery", "SELECT count(*) FROM orders WHERE total > (SELECT avg(total) FROM orders)"),
    join(
        "correlated scalar aggregate for 100 users",
        "SELECT u.id, (SELECT max(o.total) FROM orders o WHERE o.user_id = u.id) FROM users u WHERE u.id <= 100 ORDER BY u.id",
    ),
    join(
        "row-value IN list of 15",
        "SELECT order_id, line, price FROM items WHERE (order_id, line) IN ($pairs) ORDER BY order_id, line",
    ),
    join("OR of one column", "SELECT id, total FROM orders WHERE id = 4711 OR id = 815 ORDER BY id"),
    join("OR of two indexes", "SELECT id, total FROM orders WHERE id = 4711 OR user_id = 79 ORDER BY id"),
    join("OR of ranges", "SELECT count(*), sum(total) FROM orders WHERE id < 20 OR total > 99900"),
    join("IN list of 1,000 keys", "SELECT count(*), sum(total) FROM orders WHERE id IN ($keys)"),
    join("BETWEEN on an index", "SELECT count(*), sum(id) FROM orders WHERE total BETWEEN 50000 AND 50500"),
    join("min and max of an index", "SELECT min(total), max(total) FROM orders"),
    join("top 10 by an index", "SELECT id, total FROM orders ORDER BY total DESC LIMIT 10"),
    rows("top 10 without an index", "SELECT id, note FROM orders ORDER BY note DESC, id LIMIT 10"),
    rows("top 10 of 150k", "SELECT order_id, line, price FROM items ORDER BY price DESC, order_id, line LIMIT 10"),
    rows("DISTINCT ON, 15k", "SELECT DISTINCT ON (user_id) user_id, id, total FROM orders ORDER BY user_id, total DESC, id"),
    rows(
        "running sum of 40k",
        "SELECT count(*), max(s) FROM (SELECT sum(quantity) OVER (ORDER BY order_id, line) AS s FROM items WHERE order_id <= 4000) AS r",
    ),
    rows("group by 10 groups, 150k", "SELECT line, count(*), sum(price), avg(quantity) FROM items GROUP BY line ORDER BY line"),
    rows(
        "upsert of 32k",
        "INSERT INTO counters SELECT i, 1 FROM generate_series(1, 32000) AS i ON CONFLICT (id) DO UPDATE SET n = counters.n + 1",
    ),
    rows("count of what was upserted", "SELECT count(*), count(DISTINCT n) FROM counters"),
];
