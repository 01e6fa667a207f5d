//! Each kernel computes what [`eval`] says of the same rows.

use super::column::{self, Held};
use super::decode::Batch;
use super::groups::{hash_of, hashes_of};
use super::kernel::{Given, Kernel};
use super::page::Page;
use crate::catalog::names::Names;
use crate::env::Environment;
use crate::exec::eval::Row;
use crate::parse::parse_one_statement;
use crate::plan::eval::{Env, Memo, eval};
use crate::plan::expr::Expr;
use crate::plan::node::{Node, Scan};
use crate::plan::{Plan, PlanContext, prepare};
use crate::session::{Session, SessionOptions};
use crate::testing::MemEnvironment;
use crate::types::numeric::Numeric;
use crate::types::{Datum, EvalContext, encode_row};
use meridian_base::SessionId;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::cell::Cell;
use std::sync::Arc;

const TABLE: &str = "create table t (id int primary key, b bool, h int2, i int4, j int8, f float8, n numeric(12,2), m numeric,
    s text, c varchar(5), d date, w timestamp)";

fn session(env: &MemEnvironment) -> Session<MemEnvironment> {
    let options = SessionOptions { id: SessionId(1), user: "root".into(), database: "postgres".into(), ..Default::default() };
    Session::new(env.clone(), options, env.shared()).unwrap()
}

/// The scan of the table and an expression over its rows; `None`: it does not get that far.
fn planned(env: &MemEnvironment, expr: &str) -> Option<(Arc<Node>, Expr)> {
    let catalog = env.catalog();
    let (names, eval) = (Names::new("postgres", "root"), EvalContext { catalog: catalog.clone(), ..Default::default() });
    let context = PlanContext { catalog: &catalog, names: &names, eval: &eval };
    let text = format!("select {expr}, b, h, i, j, f, n, m, s, c, d, w from t");
    let prepared = prepare(&parse_one_statement(&text).unwrap(), &context, &[]).ok()?;
    let Plan::General(node) = &prepared.plan else { panic!("{text}") };
    let Node::Project { input, exprs } = &**node else { panic!("{text}") };
    assert!(matches!(&**input, Node::Scan(_)), "{text}");
    Some((input.clone(), exprs[0].expr.clone()))
}

fn one_of(texts: &'static [&'static str]) -> BoxedStrategy<String> {
    prop::sample::select(texts).prop_map(str::to_string).boxed()
}

fn binary(operand: BoxedStrategy<String>, ops: &'static [&'static str]) -> BoxedStrategy<String> {
    (operand.clone(), prop::sample::select(ops), operand).prop_map(|(a, op, b)| format!("({a} {op} {b})")).boxed()
}

fn ints() -> BoxedStrategy<String> {
    let leaf = one_of(&["h", "i", "j", "i", "j", "0", "1", "-1", "7", "2147483647", "9223372036854775807", "(null::int)"]);
    leaf.prop_recursive(2, 6, 2, |inner| binary(inner.boxed(), &["+", "-", "*", "/", "%"])).boxed()
}

fn decimals() -> BoxedStrategy<String> {
    let leaf = one_of(&["n", "n", "m", "i::numeric", "j::numeric", "1", "0.05", "-2.5", "100000000000000000000.5", "1e-20"]);
    leaf.prop_recursive(2, 6, 2, |inner| {
        let sums = binary(inner.clone().boxed(), &["+", "-", "*"]);
        prop_oneof![8 => sums, 1 => binary(inner.boxed(), &["/", "%"])]
    })
    .boxed()
}

fn floats() -> BoxedStrategy<String> {
    let leaf = one_of(&["f", "f", "1.5::float8", "0::float8", "'-infinity'::float8", "1e-200::float8", "1e300::float8"]);
    leaf.prop_recursive(2, 6, 2, |inner| binary(inner.boxed(), &["+", "-", "*", "/"])).boxed()
}

fn conditions() -> BoxedStrategy<String> {
    const COMPARISONS: &[&str] = &["=", "<>", "<", "<=", ">", ">="];
    let texts = one_of(&["s", "s", "c", "'ab'", "''", "'b'"]);
    let times = prop_oneof![
        binary(one_of(&["d", "d", "date '2001-02-03'", "date 'infinity'"]), COMPARISONS),
        binary(one_of(&["w", "w", "timestamp '2001-02-03 04:05:06'"]), COMPARISONS),
    ];
    let leaf = prop_oneof![
        2 => one_of(&["b", "b is null", "(b is true)", "(b is not false)", "true", "(null::bool)"]),
        4 => binary(ints(), COMPARISONS),
        4 => binary(decimals(), COMPARISONS),
        2 => binary(floats(), COMPARISONS),
        2 => binary(texts, COMPARISONS),
        2 => times,
        1 => ints().prop_map(|e| format!("({e} between -5 and 1000)")),
        1 => ints().prop_map(|e| format!("({e} in (1, 2, 0, -7))")),
        1 => ints().prop_map(|e| format!("({e} not in (1, 0, null))")),
        1 => one_of(&["(s in ('ab', '', 'zz'))", "(n in (0.5, 0.50, 100))", "(d in (date '2001-02-03', null))"]),
        1 => ints().prop_map(|e| format!("({e} is not null)")),
        1 => one_of(&["(s like 'a%')", "(h in (1,2,3,4,5,6,7,8,9,10,0))", "(coalesce(i, 0) > 1)", "(b is distinct from true)"]),
    ];
    leaf.prop_recursive(3, 10, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|all| format!("({})", all.join(" and "))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|all| format!("({})", all.join(" or "))),
            inner.prop_map(|e| format!("(not {e})")),
        ]
    })
    .boxed()
}

fn expressions() -> BoxedStrategy<String> {
    let case = (conditions(), ints()).prop_map(|(when, then)| format!("case when {when} then {then} end"));
    prop_oneof![3 => conditions(), 2 => ints(), 3 => decimals(), 1 => floats(), 1 => case].boxed()
}

fn maybe(value: BoxedStrategy<Datum>) -> BoxedStrategy<Datum> {
    prop_oneof![1 => Just(Datum::Null), 5 => value].boxed()
}

fn int_of(min: i64, max: i64) -> BoxedStrategy<Datum> {
    maybe(
        prop_oneof![2 => prop::sample::select(vec![min, max, 0, 1, -1, 7]), 3 => -50i64..50, 1 => min..=max]
            .prop_map(Datum::Int)
            .boxed(),
    )
}

fn numerics() -> BoxedStrategy<Datum> {
    let small = |mantissa, scale| Numeric::Small { mantissa, scale };
    let special = vec![Numeric::NaN, Numeric::PosInfinity, Numeric::NegInfinity, small(i128::MAX, 3), small(i128::MIN, 0)];
    maybe(
        prop_oneof![
            4 => (-5000i128..5000, 0u16..6).prop_map(move |(m, s)| small(m, s)),
            1 => (any::<i64>(), 0u16..30).prop_map(move |(m, s)| small(i128::from(m), s)),
            1 => prop::sample::select(special),
        ]
        .prop_map(Datum::Numeric)
        .boxed(),
    )
}

/// A row of the table. `is_plain`: the decimals have one scale, and nothing is at its limits.
fn table_row(is_plain: bool) -> BoxedStrategy<Row> {
    let small = |mantissa, scale| Datum::Numeric(Numeric::Small { mantissa, scale });
    let (floats, m) = match is_plain {
        true => (
            (-100i64..100).prop_map(|v| Datum::Float(v as f64 / 8.0)).boxed(),
            (-9999i128..9999).prop_map(move |m| small(m, 3)).boxed(),
        ),
        false => {
            let special = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::MAX, f64::MIN_POSITIVE, 1.5];
            (prop::sample::select(special).prop_map(Datum::Float).boxed(), numerics())
        }
    };
    let int = |min: i64, max: i64| if is_plain { maybe((-9i64..9).prop_map(Datum::Int).boxed()) } else { int_of(min, max) };
    let text = || maybe("[ab]{0,3}".prop_map(Datum::text).boxed());
    (
        maybe(any::<bool>().prop_map(Datum::Bool).boxed()),
        int(i16::MIN.into(), i16::MAX.into()),
        int(i32::MIN.into(), i32::MAX.into()),
        int(i64::MIN, i64::MAX),
        maybe(floats),
        maybe((-9_999_999_999i128..9_999_999_999).prop_map(move |m| small(m, 2)).boxed()),
        maybe(m),
        text(),
        text(),
        maybe((300i32..500).prop_map(Datum::Date).boxed()),
        maybe((-5i64..5).prop_map(|v| Datum::Timestamp(34_401_906_000_000 + v)).boxed()),
    )
        .prop_map(|(b, h, i, j, f, n, m, s, c, d, w)| vec![Datum::Int(1), b, h, i, j, f, n, m, s, c, d, w])
        .boxed()
}

#[test]
fn kernels_compute_what_eval_says() {
    let env = MemEnvironment::new(&["local"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(session(&env).query_text(TABLE)).unwrap();
    let rows = any::<bool>().prop_flat_map(|is_plain| prop::collection::vec(table_row(is_plain), 1..40));
    let config = Config { cases: 3_000, failure_persistence: None, ..Config::default() };
    let (mut runner, counts) = (TestRunner::new(config), Cell::new((0u32, 0u32, 0u32)));
    let outcome = runner.run(&(expressions(), rows, any::<u64>()), |(text, rows, some)| {
        let Some((node, expr)) = planned(&env, &text) else { return Ok(()) };
        let Node::Scan(scan) = &*node else { return Ok(()) };
        check(scan, &expr, &rows, some, &counts).map_err(|e| TestCaseError::fail(format!("{text}: {e}")))
    });
    outcome.unwrap();
    let (computed, failed, needless) = counts.get();
    assert!(computed > 10 * needless && failed > 50, "{computed} columns computed, {failed} not, {needless} of them needlessly");
}

/// `some`: which of the rows the batch has selected, and which of them the kernel is asked for.
fn check(scan: &Scan, expr: &Expr, rows: &[Row], some: u64, counts: &Cell<(u32, u32, u32)>) -> Result<(), String> {
    let mut page = Page::default();
    rows.iter().for_each(|row| page.push(&encode_row(&scan.types, row), true));
    let (ctx, memo) = (EvalContext::default(), Memo::default());
    let given = Given { args: &[], params: &[], ctx: &ctx, memo: &memo };
    let kernel = Kernel::of(expr, &[], &[]);
    let mut batch = Batch::new(scan, &page, 0..rows.len()).unwrap();
    batch.selected.retain(|row| some.is_multiple_of(3) || (some >> (row % 32)) & 1 == 1);
    let asked: Vec<u32> =
        batch.selected.iter().copied().filter(|row| some.is_multiple_of(5) || (some >> (32 + row % 32)) & 1 == 1).collect();
    let expected: Vec<_> = asked
        .iter()
        .map(|at| {
            let row: Row = scan.columns.iter().map(|o| rows[*at as usize][*o as usize].clone()).collect();
            eval(expr, &Env { row: &row, args: &[], params: &[], ctx: &ctx, memo: &memo })
        })
        .collect();
    let (computed, failed, needless) = counts.get();
    let Ok(column) = kernel.compute(&batch, &asked, given) else {
        let is_needless = expected.iter().all(Result::is_ok);
        counts.set((computed, failed + 1, needless + u32::from(is_needless)));
        return Ok(());
    };
    counts.set((computed + 1, failed, needless));
    for (at, expected) in asked.iter().zip(expected) {
        let found = column.datum(*at as usize);
        match expected {
            Ok(expected) if found.is_identical(&expected) => {}
            Ok(expected) => return Err(format!("row {:?}: {found:?} instead of {expected:?}", rows[*at as usize])),
            Err(_) => return Err(format!("row {:?}: {found:?} instead of an error", rows[*at as usize])),
        }
    }
    Ok(())
}

#[test]
fn columns_and_rows_of_equal_keys_have_one_hash() {
    let small = |mantissa, scale| Datum::Numeric(Numeric::Small { mantissa, scale });
    let same = [
        vec![small(150, 2), small(15, 1), small(1500, 3)],
        vec![Datum::Float(0.0), Datum::Float(-0.0)],
        vec![Datum::Float(f64::NAN), Datum::Float(-f64::NAN)],
        vec![Datum::text("a text of more than eight bytes")],
        vec![Datum::Date(-5)],
        vec![Datum::Null],
        vec![Datum::Bytea(bytes::Bytes::from_static(b"xy"))],
    ];
    let mut all = std::collections::BTreeSet::new();
    for values in &same {
        let mut of_values: Vec<u64> = values.iter().map(|v| hash_of(std::slice::from_ref(v))).collect();
        for v in values {
            of_values.extend(hashes_of(&[Held::Own(column::Column::of_value(v))], &[0], 1));
            of_values.extend(hashes_of(&[Held::Own(column::Column::of_datums(vec![v.clone()]))], &[0], 1));
        }
        of_values.dedup();
        assert_eq!(of_values.len(), 1, "{values:?}");
        all.extend(of_values);
    }
    assert_eq!(all.len(), same.len());
}
