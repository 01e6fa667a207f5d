//! The forecasters that can be named.

use crate::autoregression::Autoregression;
use crate::forecaster::{Forecaster, RandomWalk, Season};
#[cfg(feature = "lstm")]
use crate::lstm::Lstm;
use std::fmt;
use std::str::FromStr;

/// A forecaster's name, as in `SET (escrow.forecaster = 'arima')`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Forecasts nothing: tokens move when a statement is short of them.
    None,
    /// The next epoch is as the last one.
    RandomWalk,
    /// An autoregression with day lags ([`Autoregression`]).
    Arima,
    /// A recurrent neural network. It needs the feature `lstm` of this crate.
    Lstm,
}

/// Why there is no forecaster of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindError {
    /// No forecaster has this name.
    Unknown(String),
    /// This program was built without it.
    NotBuilt(Kind),
}

impl Kind {
    /// All of them, also those that this program was built without.
    pub const ALL: [Kind; 4] = [Kind::None, Kind::RandomWalk, Kind::Arima, Kind::Lstm];

    /// The forecaster of this name. Case matters, as for all names of settings' values.
    pub fn parse(name: &str) -> Result<Kind, KindError> {
        let kind = Kind::ALL.into_iter().find(|k| k.name() == name);
        match kind.ok_or_else(|| KindError::Unknown(name.to_string()))? {
            kind if kind.is_built() => Ok(kind),
            kind => Err(KindError::NotBuilt(kind)),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::None => "none",
            Kind::RandomWalk => "random-walk",
            Kind::Arima => "arima",
            Kind::Lstm => "lstm",
        }
    }

    /// The names of those that this program was built with, for messages: `none, random-walk, …`.
    pub fn names() -> String {
        let names: Vec<&str> = Kind::ALL.into_iter().filter(|k| k.is_built()).map(Kind::name).collect();
        names.join(", ")
    }

    /// Whether this program was built with it.
    pub fn is_built(self) -> bool {
        self != Kind::Lstm || cfg!(feature = "lstm")
    }

    /// A forecaster of this kind that has learned nothing yet. `None` where none forecasts: for
    /// [`Kind::None`], and for a kind that this program was built without.
    pub fn forecaster(self, season: Season) -> Option<Box<dyn Forecaster>> {
        match self {
            Kind::None => None,
            Kind::RandomWalk => Some(Box::new(RandomWalk)),
            Kind::Arima => Some(Box::new(Autoregression::new(season))),
            #[cfg(feature = "lstm")]
            Kind::Lstm => Some(Box::new(Lstm::new(season))),
            #[cfg(not(feature = "lstm"))]
            Kind::Lstm => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = KindError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Kind::parse(name)
    }
}

impl fmt::Display for KindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KindError::Unknown(name) => write!(f, "forecaster \"{name}\" does not exist; there are: {}", Kind::names()),
            KindError::NotBuilt(kind) => write!(
                f,
                "this program was built without the forecaster \"{kind}\"; build it with `--features {kind}`, or choose \
                 one of: {}",
                Kind::names()
            ),
        }
    }
}

impl std::error::Error for KindError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in Kind::ALL.into_iter().filter(|k| k.is_built()) {
            assert_eq!(Kind::parse(&kind.to_string()), Ok(kind));
            assert_eq!(kind.forecaster(Season::of(288)).is_some(), kind != Kind::None, "{kind}");
        }
        assert_eq!("arima".parse(), Ok(Kind::Arima));
    }

    #[test]
    fn another_name_is_refused_with_those_that_there_are() {
        for name in ["", "ARIMA", "arima ", "lstm2", "random_walk"] {
            let error = Kind::parse(name).expect_err("there is no such forecaster");
            assert_eq!(error, KindError::Unknown(name.to_string()));
            assert!(error.to_string().contains("none, random-walk, arima"), "{error}");
        }
    }

    #[test]
    #[cfg(not(feature = "lstm"))]
    fn a_kind_that_was_left_out_says_how_to_have_it() {
        let error = Kind::parse("lstm").expect_err("this build has none");
        assert_eq!(error, KindError::NotBuilt(Kind::Lstm));
        assert!(error.to_string().contains("--features lstm"), "{error}");
        assert!(!Kind::names().contains("lstm"));
        assert!(Kind::Lstm.forecaster(Season::of(288)).is_none());
    }
}
