//! TPC-H: a schema of eight tables, and 22 statements over it (TPC Benchmark H, revision 3.0.1,
//! clauses 1.4 and 2.4, with the values of validation). The rows follow clause 4.2.3 in what the
//! statements look at: numbers of rows, keys, dates, prices, lists of words. They are computed by
//! the same SQL on both sides, so that both have the same.

use super::queries::{self, Judged, Kind, Statement, Subject};
use super::side::Sides;
use super::{Args, verdict};
use meridian_base::Result;

/// How many times as long as PostgreSQL on one process all statements may take together, as their
/// geometric mean, and each of them.
const BUDGET: (f64, f64) = (1.2, 4.0);
const QUERIES: &str = include_str!("tpch/queries.sql");

const TABLES: &str = "
CREATE TABLE region (r_regionkey int PRIMARY KEY, r_name char(25) NOT NULL, r_comment varchar(152));
CREATE TABLE nation (n_nationkey int PRIMARY KEY, n_name char(25) NOT NULL, n_regionkey int NOT NULL, n_comment varchar(152));
CREATE TABLE part (p_partkey int PRIMARY KEY, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL, p_brand char(10) NOT NULL,
  p_type varchar(25) NOT NULL, p_size int NOT NULL, p_container char(10) NOT NULL, p_retailprice decimal(15,2) NOT NULL,
  p_comment varchar(23) NOT NULL);
CREATE TABLE supplier (s_suppkey int PRIMARY KEY, s_name char(25) NOT NULL, s_address varchar(40) NOT NULL,
  s_nationkey int NOT NULL, s_phone char(15) NOT NULL, s_acctbal decimal(15,2) NOT NULL, s_comment varchar(101) NOT NULL);
CREATE TABLE partsupp (ps_partkey int NOT NULL, ps_suppkey int NOT NULL, ps_availqty int NOT NULL,
  ps_supplycost decimal(15,2) NOT NULL, ps_comment varchar(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE customer (c_custkey int PRIMARY KEY, c_name varchar(25) NOT NULL, c_address varchar(40) NOT NULL,
  c_nationkey int NOT NULL, c_phone char(15) NOT NULL, c_acctbal decimal(15,2) NOT NULL, c_mktsegment char(10) NOT NULL,
  c_comment varchar(117) NOT NULL);
CREATE TABLE orders (o_orderkey bigint PRIMARY KEY, o_custkey int NOT NULL, o_orderstatus char(1) NOT NULL,
  o_totalprice decimal(15,2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority char(15) NOT NULL, o_clerk char(15) NOT NULL,
  o_shippriority int NOT NULL, o_comment varchar(79) NOT NULL);
CREATE TABLE lineitem (l_orderkey bigint NOT NULL, l_partkey int NOT NULL, l_suppkey int NOT NULL, l_linenumber int NOT NULL,
  l_quantity decimal(15,2) NOT NULL, l_extendedprice decimal(15,2) NOT NULL, l_discount decimal(15,2) NOT NULL,
  l_tax decimal(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL,
  l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL,
  l_comment varchar(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber))";

/// Once there are rows.
const INDEXES: [&str; 2] = ["CREATE INDEX ON lineitem (l_partkey, l_suppkey)", "CREATE INDEX ON orders (o_custkey)"];

/// Nations, and the regions they are in.
const NATIONS: &str = "ALGERIA 0,ARGENTINA 1,BRAZIL 1,CANADA 1,EGYPT 4,ETHIOPIA 0,FRANCE 3,GERMANY 3,INDIA 2,INDONESIA 2,IRAN 4,IRAQ 4,\
    JAPAN 2,JORDAN 4,KENYA 0,MOROCCO 0,MOZAMBIQUE 0,PERU 1,CHINA 2,ROMANIA 3,SAUDI ARABIA 4,VIETNAM 2,RUSSIA 3,\
    UNITED KINGDOM 3,UNITED STATES 1";
const COLORS: &str = "almond,antique,aquamarine,azure,beige,bisque,black,blanched,blue,blush,brown,burlywood,chiffon,chocolate,\
    coral,cornflower,cream,cyan,dark,deep,dim,dodger,drab,firebrick,floral,forest,frosted,gainsboro,ghost,goldenrod,green,grey,\
    honeydew,hot,indian,ivory,khaki,lace,lavender,lawn,lemon,light,lime,linen,magenta,maroon,medium,metallic,midnight,mint,\
    misty,moccasin,navajo,navy,olive,orange,orchid,pale,papaya,peach,peru,pink,plum,powder,puff,purple,red,rose,rosy,royal,\
    saddle,salmon,sandy,seashell,sienna,sky,slate,smoke,snow,spring,steel,tan,thistle,tomato,turquoise,violet,wheat,white,yellow";
const WORDS: &str = "furiously,quickly,carefully,blithely,slyly,ironic,regular,final,bold,even,express,silent,pending,accounts,\
    deposits,packages,theodolites,instructions,foxes,pinto beans,sleep,haggle,nag,wake,cajole,use,boost,detect,along,among";
/// Odd numbers of 32 bits: what is drawn with one has nothing to do with what is drawn with
/// another.
const MULTIPLIERS: [u64; 16] = [
    2_654_435_761,
    2_246_822_519,
    3_266_489_917,
    668_265_263,
    374_761_393,
    3_432_918_353,
    461_845_907,
    2_127_912_215,
    3_345_072_701,
    1_274_126_177,
    2_860_486_313,
    3_812_015_801,
    1_597_334_677,
    2_971_215_073,
    4_093_082_899,
    1_013_904_223,
];

/// A number below `n` for each number, drawn in one of 16 ways.
fn draw(number: &str, way: usize, n: u64) -> String {
    format!("(((({number})::int8 * {}) % 4294967296 >> 7) % {n})", MULTIPLIERS[way])
}

/// One of some words that are separated by commas.
fn word(number: &str, way: usize, words: &str) -> String {
    let count = words.split(',').count() as u64;
    format!("(string_to_array('{words}', ','))[1 + {}::int]", draw(number, way, count))
}

fn words(number: &str, ways: impl IntoIterator<Item = usize>, list: &str) -> String {
    ways.into_iter().map(|way| word(number, way, list)).collect::<Vec<_>>().join(" || ' ' || ")
}

fn phone(number: &str, nation: &str) -> String {
    format!(
        "(10 + {nation}) || '-' || (100 + {}) || '-' || (100 + {}) || '-' || (1000 + {})",
        draw(number, 8, 900),
        draw(number, 9, 900),
        draw(number, 10, 9_000)
    )
}

/// The price of a part, clause 4.2.3.
const PRICE: &str = "(90000 + (p / 10) % 20001 + 100 * (p % 1000))::decimal / 100";

/// The numbers of one transaction.
const SERIES: &str = "generate_series($first, $last)";

fn count(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// One of the suppliers of part `p`.
fn supplier_of(way: &str, suppliers: u64) -> String {
    format!("1 + (p + ({way}) * ({suppliers} / 4 + (p - 1) / {suppliers})) % {suppliers}")
}

/// How each table is filled, from number `$first` to number `$last`, and up to which number.
fn rows(scale: u64) -> Vec<(String, usize)> {
    let nations = NATIONS.split(',').map(|n| n.rsplit_once(' ').expect("a name and a number"));
    let nations: Vec<String> = nations.zip(0..).map(|((name, region), n)| format!("({n}, '{name}', {region}, 'none')")).collect();
    let regions = "(string_to_array('AFRICA,AMERICA,ASIA,EUROPE,MIDDLE EAST', ','))[i]";
    let mut all = vec![
        (format!("INSERT INTO region SELECT i - 1, {regions}, 'none' FROM {SERIES} i"), 5),
        (format!("INSERT INTO nation SELECT * FROM (VALUES {}) v WHERE $first <= $last", nations.join(", ")), 1),
    ];
    all.extend(goods(scale));
    all.extend(sales(scale));
    all
}

/// Parts, suppliers, and who supplies what.
fn goods(scale: u64) -> Vec<(String, usize)> {
    let (parts, suppliers) = (200_000 * scale, 10_000 * scale);
    let nation = draw("i", 3, 25);
    let balance = format!("({} - 99999)::decimal / 100", draw("i", 4, 1_099_999));
    let of_parts = format!("(SELECT i, p, 1 + (i - 1) % 4 AS s FROM (SELECT i, 1 + (i - 1) / 4 AS p FROM {SERIES} i) x) y");
    vec![
        (
            format!(
                "INSERT INTO part SELECT p, {}, 'Manufacturer#' || (1 + {m}), 'Brand#' || (1 + {m}) || (1 + {}), {} || ' ' || {} || ' ' || {}, \
             1 + {}, {} || ' ' || {}, {PRICE}, {} FROM {SERIES} p",
                words("p", 0..5, COLORS),
                draw("p", 6, 5),
                word("p", 7, "STANDARD,SMALL,MEDIUM,LARGE,ECONOMY,PROMO"),
                word("p", 8, "ANODIZED,BURNISHED,PLATED,POLISHED,BRUSHED"),
                word("p", 9, "TIN,NICKEL,BRASS,STEEL,COPPER"),
                draw("p", 10, 50),
                word("p", 11, "SM,LG,MED,JUMBO,WRAP"),
                word("p", 12, "CASE,BOX,BAG,JAR,PKG,PACK,CAN,DRUM"),
                word("p", 13, WORDS),
                m = draw("p", 5, 5)
            ),
            count(parts),
        ),
        (
            format!(
                "INSERT INTO supplier SELECT i, 'Supplier#' || lpad(i::text, 9, '0'), {}, {n}, {}, {}, \
             {} || CASE WHEN i % 2000 = 17 THEN ' Customer slow Complaints ' ELSE ' ' END || {} FROM {SERIES} i",
                words("i", 0..2, WORDS),
                phone("i", &nation),
                balance,
                words("i", 5..7, WORDS),
                words("i", 11..13, WORDS),
                n = nation
            ),
            count(suppliers),
        ),
        (
            format!(
                "INSERT INTO partsupp SELECT p, {}, 1 + {}, (100 + {})::decimal / 100, {} FROM {of_parts}",
                supplier_of("s", suppliers),
                draw("i", 0, 9_999),
                draw("i", 1, 99_901),
                words("i", 2..14, WORDS)
            ),
            count(4 * parts),
        ),
    ]
}

/// Customers, their orders, and the lines of these.
fn sales(scale: u64) -> Vec<(String, usize)> {
    let (parts, suppliers, customers, orders) = (200_000 * scale, 10_000 * scale, 150_000 * scale, 1_500_000 * scale);
    let nation = draw("i", 3, 25);
    let balance = format!("({} - 99999)::decimal / 100", draw("i", 4, 1_099_999));
    let of_orders = format!("(SELECT i, DATE '1992-01-01' + {}::int AS d FROM {SERIES} i) o", draw("i", 0, 2_405));
    let lines = format!(
        "(SELECT *, 1 + {}::int AS p, d + 1 + {}::int AS shipped FROM (SELECT i, d, n, i * 8 + n AS x FROM {of_orders}, \
         LATERAL generate_series(1, 1 + {}) n) l) l",
        draw("x", 1, parts),
        draw("x", 2, 121),
        draw("i", 3, 7)
    );
    vec![
        (
            format!(
                "INSERT INTO customer SELECT i, 'Customer#' || lpad(i::text, 9, '0'), {}, {n}, {}, {}, {}, {} FROM {SERIES} i",
                words("i", 0..2, WORDS),
                phone("i", &nation),
                balance,
                word("i", 5, "AUTOMOBILE,BUILDING,FURNITURE,MACHINERY,HOUSEHOLD"),
                words("i", 6..13, WORDS),
                n = nation
            ),
            count(customers),
        ),
        (
            format!(
                "INSERT INTO orders SELECT i, 3 * {}::int + 1 + {}::int, \
             CASE WHEN d + 122 <= DATE '1995-06-17' THEN 'F' WHEN d > DATE '1995-06-17' THEN 'O' ELSE 'P' END, \
             (100000 + {})::decimal / 100, d, {}, 'Clerk#' || lpad((1 + {})::text, 9, '0'), 0, \
             {} || CASE WHEN {} = 0 THEN ' special packages requests ' ELSE ' ' END || {} FROM {of_orders}",
                draw("i", 4, customers / 3),
                draw("i", 5, 2),
                draw("i", 6, 50_000_000),
                word("i", 7, "1-URGENT,2-HIGH,3-MEDIUM,4-NOT SPECIFIED,5-LOW"),
                draw("i", 8, 1_000 * scale),
                words("i", 9..11, WORDS),
                draw("i", 12, 100),
                words("i", 13..14, WORDS)
            ),
            count(orders),
        ),
        (
            format!(
                "INSERT INTO lineitem SELECT i, p, {}, n, q, q * {PRICE}, {}::decimal / 100, {}::decimal / 100, \
             CASE WHEN shipped + r > DATE '1995-06-17' THEN 'N' WHEN x % 2 = 0 THEN 'R' ELSE 'A' END, \
             CASE WHEN shipped > DATE '1995-06-17' THEN 'O' ELSE 'F' END, shipped, d + 30 + {}::int, shipped + r, {}, {}, {} \
             FROM (SELECT *, (1 + {}) AS q, 1 + {}::int AS r FROM {lines}) m",
                supplier_of(&draw("x", 4, 4), suppliers),
                draw("x", 5, 11),
                draw("x", 6, 9),
                draw("x", 7, 61),
                word("x", 8, "DELIVER IN PERSON,COLLECT COD,NONE,TAKE BACK RETURN"),
                word("x", 9, "REG AIR,AIR,RAIL,SHIP,TRUCK,MAIL,FOB"),
                words("x", 10..13, WORDS),
                draw("x", 13, 50),
                draw("x", 14, 30)
            ),
            count(orders),
        ),
    ]
}

/// All statements; whether all answers were equal.
pub async fn run(args: &Args, sides: &Sides, scale: u32) -> Result<bool> {
    let texts = QUERIES.split(';').map(str::trim).filter(|text| !text.is_empty());
    let statements: Vec<Statement> = texts.zip(1..).map(|(text, n)| Statement::of(&format!("Q{n}"), Kind::Join, text)).collect();
    let subject = Subject {
        name: "tpch",
        title: format!("TPC-H at scale {scale}: {} rows of orders, about four times as many lines", 1_500_000 * u64::from(scale)),
        tables: TABLES,
        rows: rows(u64::from(scale)),
        part: 100_000,
        indexes: &INDEXES,
        // One process of PostgreSQL, with as much memory for a statement as here.
        settings: [&["SET max_parallel_workers_per_gather = 0", "SET work_mem = '256MB'"], &[]],
        warm_ups: 1,
        statements,
    };
    let Judged { ratios, is_equal } = queries::compare(args, sides, &subject).await?;
    let mean = (ratios.iter().map(|(_, ratio)| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp();
    say!("geometric mean: {mean:.2} x PostgreSQL's time on one process");
    say!("{}", verdict(mean <= BUDGET.0, &format!("no more than {:.1} x together", BUDGET.0)));
    let worst = ratios.iter().filter(|(_, ratio)| *ratio > BUDGET.1).map(|(name, _)| name.as_str()).collect::<Vec<_>>();
    say!("{}", verdict(worst.is_empty(), &format!("none takes more than {:.0} x {}", BUDGET.1, worst.join(", "))));
    Ok(is_equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_22_statements_and_eight_tables() {
        assert_eq!(QUERIES.split(';').filter(|text| !text.trim().is_empty()).count(), 22);
        assert_eq!(TABLES.matches("CREATE TABLE").count(), 8);
        assert_eq!(rows(1).len(), 8);
        assert_eq!(NATIONS.split(',').count(), 25);
    }
}
