//! What the workers do: TPC-C's NewOrder and Payment, and YCSB, over hosts that each have a part of
//! the rows.

use bytes::Bytes;
use meridian_base::{ColumnMask, Key, Write};
use meridian_pod::Slot;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;

/// A load, and how much of it crosses hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// NewOrder and Payment by turns of chance, one warehouse a host. Of so many in a hundred
    /// NewOrders one item, and of Payments the customer, is another warehouse's.
    Tpcc { new_orders: u32, payments: u32 },
    /// Reads of four rows, two of which are changed. Of so many transactions in a hundred, half of
    /// the rows are another host's.
    Ycsb { cross: u32 },
}

const DISTRICTS: u64 = 10;
const CUSTOMERS: u64 = 300;
const STOCK: u64 = 2_000;
const YCSB_ROWS: u64 = 5_000;
const YCSB_BYTES: usize = 100;

const WAREHOUSE: u8 = 1;
const DISTRICT: u8 = 2;
const CUSTOMER: u8 = 3;
const STOCKED: u8 = 4;
const ORDER: u8 = 5;
const ORDER_LINE: u8 = 6;
const NEW_ORDER: u8 = 7;
const HISTORY: u8 = 8;
const USER: u8 = 9;

/// Columns that one kind of transaction changes and the other reads past.
const TAX: ColumnMask = ColumnMask::column(1);
const PAID: ColumnMask = ColumnMask::column(2);
const NEXT: ColumnMask = ColumnMask::column(3);
const NAME: ColumnMask = ColumnMask::column(4);

fn key(host: u64, table: u8, parts: [u64; 3]) -> Key {
    let mut bytes = (host as u16).to_be_bytes().to_vec();
    bytes.push(table);
    for part in parts {
        bytes.extend((part as u32).to_be_bytes());
    }
    Key::new(&bytes)
}

/// The host that a key belongs to.
pub fn home(key: &Key) -> u8 {
    key.as_bytes()[1]
}
/// A slot of its own for every host's rows.
pub fn slot_of(key: &Key) -> Slot {
    Slot(u16::from(home(key)))
}

/// A row of so many bytes that begins with a number.
fn row(number: u64, len: usize) -> Bytes {
    let mut bytes = vec![0x5a; len];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes.into()
}

fn bytes_of(table: u8) -> usize {
    match table {
        WAREHOUSE => 89,
        DISTRICT => 95,
        CUSTOMER => 655,
        STOCKED => 306,
        ORDER => 24,
        ORDER_LINE => 54,
        NEW_ORDER => 8,
        HISTORY => 46,
        _ => YCSB_BYTES,
    }
}

impl Load {
    /// How it is called in a table.
    pub fn name(self) -> String {
        match self {
            Load::Tpcc { new_orders, payments } => format!("TPC-C {new_orders}/{payments} %"),
            Load::Ycsb { cross } => format!("YCSB {cross} %"),
        }
    }

    /// The rows of a host before the load.
    pub fn rows(self, host: u8) -> Vec<Write> {
        let host = u64::from(host);
        let mut writes = Vec::new();
        let mut add = |table, parts| {
            let (key, value) = (key(host, table, parts), Some(row(1, bytes_of(table))));
            writes.push(Write { key, value, columns: ColumnMask::ALL });
        };
        match self {
            Load::Ycsb { .. } => (0..YCSB_ROWS).for_each(|i| add(USER, [i, 0, 0])),
            Load::Tpcc { .. } => {
                add(WAREHOUSE, [0; 3]);
                for district in 0..DISTRICTS {
                    add(DISTRICT, [district, 0, 0]);
                    (0..CUSTOMERS).for_each(|customer| add(CUSTOMER, [district, customer, 0]));
                }
                (0..STOCK).for_each(|item| add(STOCKED, [item, 0, 0]));
            }
        }
        writes
    }

    /// The rows of a host that other hosts' transactions touch.
    pub fn foreign_rows(self, host: u8) -> Vec<Key> {
        let is_foreign = |key: &Key| match self {
            Load::Ycsb { cross } => cross > 0,
            Load::Tpcc { new_orders, payments } => match key.as_bytes()[2] {
                STOCKED => new_orders > 0,
                CUSTOMER => payments > 0,
                _ => false,
            },
        };
        self.rows(host).into_iter().map(|write| write.key).filter(is_foreign).collect()
    }

    /// Whether a row's number is what transactions change.
    pub fn is_changed(self, key: &Key) -> bool {
        matches!(key.as_bytes()[2], WAREHOUSE | DISTRICT | CUSTOMER | STOCKED | USER)
    }

    /// The next transaction of a worker at `host`, one of `hosts`. `number` is one that no other
    /// has.
    pub fn next(self, host: u8, hosts: u8, number: u64, rng: &mut SmallRng) -> Transaction {
        let home = u64::from(host);
        let other = |rng: &mut SmallRng| (home + 1 + rng.random_range(0..u64::from(hosts).max(2) - 1)) % u64::from(hosts);
        match self {
            Load::Ycsb { cross } => {
                let is_cross = rng.random_range(0..100) < cross;
                let there = if is_cross { other(rng) } else { home };
                let mut keys = BTreeMap::new();
                while keys.len() < 4 {
                    let at = if keys.len() % 2 == 1 { there } else { home };
                    keys.insert(key(at, USER, [rng.random_range(0..YCSB_ROWS), 0, 0]), at);
                }
                let mut keys: Vec<Key> = keys.into_keys().collect();
                // Which are changed does not depend on whose they are.
                let first = rng.random_range(0..keys.len());
                keys.rotate_left(first);
                let changes = keys[..2].iter().map(|key| (key.clone(), ColumnMask::ALL, 1)).collect();
                let reads = keys.into_iter().map(|key| (key, ColumnMask::ALL)).collect();
                Transaction { phases: vec![reads], changes, inserts: Vec::new() }
            }
            Load::Tpcc { new_orders, .. } if rng.random_bool(0.5) => {
                let is_cross = rng.random_range(0..100) < new_orders;
                let district = rng.random_range(0..DISTRICTS);
                let district_key = key(home, DISTRICT, [district, 0, 0]);
                let customer = key(home, CUSTOMER, [district, rng.random_range(0..CUSTOMERS), 0]);
                let head = vec![(key(home, WAREHOUSE, [0; 3]), TAX), (district_key.clone(), ColumnMask::ALL), (customer, NAME)];
                let items: u64 = rng.random_range(5..=15);
                let mut stock = BTreeMap::new();
                let remote = if is_cross { other(rng) } else { home };
                stock.insert(key(remote, STOCKED, [rng.random_range(0..STOCK), 0, 0]), ());
                while (stock.len() as u64) < items {
                    stock.insert(key(home, STOCKED, [rng.random_range(0..STOCK), 0, 0]), ());
                }
                let mut changes = vec![(district_key, NEXT, 1)];
                changes.extend(stock.keys().map(|key| (key.clone(), ColumnMask::ALL, 1)));
                let mut inserts = vec![key(home, ORDER, [district, number, 0]), key(home, NEW_ORDER, [district, number, 0])];
                inserts.extend((0..items).map(|line| key(home, ORDER_LINE, [district, number, line])));
                let stock = stock.into_keys().map(|key| (key, ColumnMask::ALL)).collect();
                Transaction { phases: vec![head, stock], changes, inserts }
            }
            Load::Tpcc { payments, .. } => {
                let is_cross = rng.random_range(0..100) < payments;
                let remote = if is_cross { other(rng) } else { home };
                let district = rng.random_range(0..DISTRICTS);
                let (warehouse, district) = (key(home, WAREHOUSE, [0; 3]), key(home, DISTRICT, [district, 0, 0]));
                let from = rng.random_range(0..DISTRICTS);
                let customer = key(remote, CUSTOMER, [from, rng.random_range(0..CUSTOMERS), 0]);
                // Whoever writes a row has read all of it.
                let phase = [&warehouse, &district, &customer].map(|key| (key.clone(), ColumnMask::ALL)).to_vec();
                let changes = vec![(warehouse, PAID, 7), (district, PAID, 7), (customer, PAID, 7)];
                Transaction { phases: vec![phase], changes, inserts: vec![key(home, HISTORY, [number, 0, 0])] }
            }
        }
    }
}

/// What a worker does.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// What it reads, statement by statement.
    pub phases: Vec<Vec<(Key, ColumnMask)>>,
    /// Rows that it has read, and what is added to their numbers.
    changes: Vec<(Key, ColumnMask, u64)>,
    inserts: Vec<Key>,
}

impl Transaction {
    /// What it writes, when it has read these.
    pub fn writes(&self, values: &BTreeMap<Key, Option<Bytes>>) -> Vec<Write> {
        let changed = |(key, columns, by): &(Key, ColumnMask, u64)| {
            let mut value = values[key].as_ref().expect("the row is there").to_vec();
            let number = u64::from_le_bytes(value[..8].try_into().expect("eight bytes"));
            value[..8].copy_from_slice(&(number + by).to_le_bytes());
            Write { key: key.clone(), value: Some(value.into()), columns: *columns }
        };
        let inserted = |key: &Key| {
            let value = Some(row(1, bytes_of(key.as_bytes()[2])));
            Write { key: key.clone(), value, columns: ColumnMask::ALL }
        };
        self.changes.iter().map(changed).chain(self.inserts.iter().map(inserted)).collect()
    }

    /// What its changes add up to.
    pub fn added(&self) -> u64 {
        self.changes.iter().map(|(_, _, by)| by).sum()
    }
}
