//! Escrow columns in a table's descriptor (`docs/design/escrow.md`).

use super::constraint::Check;
use crate::types::numeric::Numeric;
use crate::types::{Datum, Type};
use meridian_base::escrow::{self, Bounds};
use meridian_base::{Error, GroupId, Key, KeyRange, Result};
use meridian_forecast::Kind;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::time::Duration;

/// A column whose number is kept in shares, one in each of its sites. Rows store `NULL` in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EscrowColumn {
    pub ordinal: u32,
    /// The number of its index ([`escrow::index_id`]): no other index has it.
    pub index: u32,
    /// Between what the number stays, both included; scaled like the column.
    pub lo: i128,
    pub hi: i128,
    /// The groups that hold shares. A row is inserted, and its number set, with all tokens in the
    /// row's own group if that is one of them, else in the first.
    pub sites: Vec<GroupId>,
    /// Columns of the row that are bounds of the number too (E13).
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// Sites that are about to go, since their region is being dropped: what is there counts, and
    /// nothing new comes there.
    #[serde(default)]
    pub closing: Vec<GroupId>,
    /// What foresees the demand of an epoch, so that tokens are moved ahead of it; the name of a
    /// [`Kind`]. `None`: [`Kind::RandomWalk`].
    #[serde(default)]
    pub forecaster: Option<String>,
    /// `None`: [`EPOCH`].
    #[serde(default)]
    pub epoch: Option<Duration>,
    /// While its bounds change: what they were. Numbers stay within both.
    #[serde(default)]
    pub before: Option<Before>,
    /// How tokens are moved. `None`: by [`EscrowProtocol::Any`], and no row is in a round. If it
    /// says `Any`, the column has had [`EscrowProtocol::Majority`], and keeps its sites until a job
    /// has ended the rounds: offers of its rows may be out, and majorities of different sites would
    /// not meet.
    #[serde(default)]
    pub protocol: Option<EscrowProtocol>,
    /// Rows hold the numbers too, while a column becomes an escrow column or ceases to be one: who
    /// writes a row writes them, and no number changes without its row. Who reads a number reads
    /// shares.
    #[serde(default)]
    pub in_rows: bool,
}

/// Shares beside rows that hold the numbers, while a column becomes an escrow column or ceases to
/// be one. Nobody reads them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shadow {
    pub column: EscrowColumn,
    /// Who writes a row writes its shares. Else who changes or deletes one deletes them.
    pub is_written: bool,
}

/// How tokens of a column's rows are moved between its sites (`docs/design/escrow.md`,
/// «Redistribution»).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EscrowProtocol {
    /// A transaction over the sites concerned.
    Any,
    /// Rounds that a majority of the sites decides.
    Majority,
}

impl EscrowProtocol {
    /// What `escrow.protocol` calls it.
    pub fn name(self) -> &'static str {
        match self {
            EscrowProtocol::Any => "any",
            EscrowProtocol::Majority => "majority",
        }
    }
}

/// The bounds that a column had, and the constraints that said so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Before {
    pub lo: i128,
    pub hi: i128,
    pub limits: Vec<Limit>,
    pub checks: Vec<Check>,
}

/// How long an epoch is where a column does not say it.
pub const EPOCH: Duration = Duration::from_secs(300);
/// Of what a column may say, both included.
pub const EPOCHS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

/// A column of the row that the number does not cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Limit {
    pub ordinal: u32,
    /// The number stays at or below it; else at or above.
    pub is_upper: bool,
}

impl EscrowColumn {
    /// The bounds of all rows.
    pub fn bounds(&self) -> Bounds {
        let bounds = Bounds { lo: self.lo, hi: self.hi };
        self.before.as_ref().map_or(bounds, |b| Bounds { lo: self.lo.max(b.lo), hi: self.hi.min(b.hi) })
    }
    /// Within what the number of any row is, also while its bounds change.
    pub fn widest(&self) -> Bounds {
        let bounds = Bounds { lo: self.lo, hi: self.hi };
        self.before.as_ref().map_or(bounds, |b| Bounds { lo: self.lo.min(b.lo), hi: self.hi.max(b.hi) })
    }
    /// The bounds of one row; `ty` is the column's. 22003 if a limit is beyond what can be counted.
    pub fn bounds_of(&self, row: &[Datum], ty: &Type) -> Result<Bounds> {
        let before = self.before.iter().flat_map(|b| &b.limits);
        self.limits.iter().chain(before).try_fold(self.bounds(), |Bounds { lo, hi }, limit| {
            Ok(match (scaled(&row[limit.ordinal as usize], ty)?, limit.is_upper) {
                (Some(n), true) => Bounds { lo, hi: hi.min(n) },
                (Some(n), false) => Bounds { lo: lo.max(n), hi },
                (None, _) => Bounds { lo, hi },
            })
        })
    }
    /// The key of a row's share, the same in every site, from the row's key in the primary index.
    pub fn share_key(&self, primary: &Key) -> Key {
        let mut row = Vec::with_capacity(primary.as_bytes().len());
        meridian_base::key::encode::index(&mut row, escrow::index_id(self.index));
        row.extend_from_slice(primary.as_bytes().get(4..).unwrap_or_default());
        escrow::share_key(&row)
    }
    /// One that this program was built without forecasts as [`Kind::None`] does.
    pub fn forecaster(&self) -> Kind {
        let named = self.forecaster.as_deref().map(Kind::parse);
        named.map_or(Kind::RandomWalk, |kind| kind.unwrap_or(Kind::None))
    }
    pub fn epoch(&self) -> Duration {
        self.epoch.unwrap_or(EPOCH)
    }
    pub fn protocol(&self) -> EscrowProtocol {
        self.protocol.unwrap_or(EscrowProtocol::Any)
    }
    /// Whether its sites and bounds stay as they are, since rows may be in rounds.
    pub fn keeps_sites(&self) -> bool {
        self.protocol.is_some()
    }
    /// All shares, the same range in every site.
    pub fn range(&self) -> KeyRange {
        let mut prefix = Vec::with_capacity(4);
        meridian_base::key::encode::index(&mut prefix, escrow::index_id(self.index));
        KeyRange::prefix(&prefix)
    }
    /// The sites that numbers are changed in.
    pub fn open_sites(&self) -> impl Iterator<Item = GroupId> {
        self.sites.iter().copied().filter(|site| !self.closing.contains(site))
    }
    /// Where a row of this group gets all tokens.
    pub fn first_site(&self, group: GroupId) -> GroupId {
        self.open_sites().find(|site| *site == group).or_else(|| self.open_sites().next()).unwrap_or(group)
    }
}

/// The least and the greatest number of a type; `None`: it cannot be an escrow column's.
pub fn limits(ty: &Type) -> Option<Bounds> {
    let bounds = |lo: i64, hi: i64| Some(Bounds { lo: lo.into(), hi: hi.into() });
    match ty {
        Type::Int2 => bounds(i16::MIN.into(), i16::MAX.into()),
        Type::Int4 => bounds(i32::MIN.into(), i32::MAX.into()),
        Type::Int8 => bounds(i64::MIN, i64::MAX),
        Type::Numeric(Some((precision, scale))) if (1..=18).contains(precision) && *scale >= 0 => {
            let hi = 10i64.pow(u32::from(*precision)) - 1;
            bounds(-hi, hi)
        }
        _ => None,
    }
}

/// Whether values of a type can be bounds of an escrow column: they are whole numbers of its units.
pub fn can_limit(limit: &Type, ty: &Type) -> bool {
    limits(limit).is_some() && scale(limit) <= scale(ty)
}

/// How many digits of a number of the type are behind its point.
pub fn scale(ty: &Type) -> u16 {
    match ty {
        Type::Numeric(Some((_, scale))) => u16::try_from(*scale).unwrap_or(0),
        _ => 0,
    }
}

/// A value of the column as a share counts it. `None`: it is `NULL`. 22003 if it is no finite
/// number of the type's scale.
pub fn scaled(value: &Datum, ty: &Type) -> Result<Option<i128>> {
    let digits = scale(ty);
    match value {
        Datum::Null => Ok(None),
        Datum::Int(n) => Ok(Some(i128::from(*n) * 10i128.pow(digits.into()))),
        Datum::Numeric(n) => {
            let unit = Numeric::from_digits(&10u64.pow(digits.into()).to_string(), false, 0);
            let whole = unit.map(|unit| n.mul(&unit)).transpose()?.filter(|w| w.is_finite() && w.min_scale() == 0);
            let whole = whole.and_then(|w| w.to_i64());
            whole.map(|w| Some(w.into())).ok_or_else(|| Error::sql("22003", "numeric field overflow"))
        }
        _ => Err(Error::internal("a value of an escrow column is no number")),
    }
}

/// What is added to a column, as a share counts it: rounded as the sum would be. 22003 if that
/// depends on a sum whose sign the bounds do not tell.
pub fn scaled_delta(delta: &Datum, ty: &Type, bounds: Bounds) -> Result<Option<i128>> {
    let Datum::Numeric(n) = delta else { return scaled(delta, ty) };
    let digits = scale(ty);
    if !n.is_finite() || n.min_scale() <= digits {
        return scaled(delta, ty);
    }
    // Halves are rounded away from zero.
    let nearest = n.round(i32::from(digits));
    let twice = |n: &Numeric| n.add(n);
    let is_half = twice(&n.sub(&n.trunc(i32::from(digits)))?)?.abs().min_scale() <= digits;
    let away = scaled(&Datum::Numeric(nearest), ty)?;
    match (is_half, away) {
        (false, away) => Ok(away),
        // Of a sum above zero, upwards; away from zero is that where the delta is above zero.
        (true, Some(away)) if bounds.lo >= 0 => Ok(Some(if n.signum() > 0 { away } else { away + 1 })),
        (true, Some(away)) if bounds.hi <= 0 => Ok(Some(if n.signum() < 0 { away } else { away - 1 })),
        _ => Err(Error::sql("22003", "numeric field overflow")
            .detail(format!(
                "What is added has more than {digits} digits behind its point, and its last one may be rounded up or down."
            ))
            .hint("Round it first.")),
    }
}

/// The value that a share's number means.
pub fn datum(number: i128, ty: &Type) -> Result<Datum> {
    let out_of_range = || Error::sql("22003", format!("{} out of range", ty.base_name()));
    match ty {
        Type::Numeric(_) => {
            let digits = number.unsigned_abs().to_string();
            Numeric::from_digits(&digits, number < 0, scale(ty)).map(Datum::Numeric).ok_or_else(out_of_range)
        }
        _ => i64::try_from(number).map(Datum::Int).map_err(|_| out_of_range()),
    }
}
