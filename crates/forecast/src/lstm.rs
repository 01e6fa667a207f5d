//! A small recurrent neural network: the kind `lstm`.
//!
//! One LSTM layer reads the last epochs, each with what demand was around it a season ago; a linear
//! function of its last state and of the lags of [`crate::Autoregression`] is the forecast. The
//! linear part beside the recurrent one is that of LSTNet (Lai et al., SIGIR 2018): the layer
//! learns what a linear function cannot say, and a short training is enough. Without it the error
//! on the paper's workload was 1 % larger.
//!
//! It begins as the autoregression, whose weights the linear part has at first. It is trained on
//! the absolute error, which Table 4 of the Samya paper reports, with Adam. The first training goes
//! through the past a few times; later ones start from there and go through it once.
//!
//! Everything is bounded: the past, the passes, and so the time (a third of a second for the first
//! training). Everything is repeatable on one machine: the generator of first weights and of the
//! order of samples is our own, since the library's cannot be seeded on a CPU. Machines with other
//! vector instructions may round differently.

use crate::autoregression::{RECENT, lags, least_squares};
use crate::forecaster::{Forecaster, Season};
use crate::scale::Scale;
use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::rnn::{LSTM, LSTMConfig, RNN};
use candle_nn::{AdamW, Optimizer, ParamsAdamW, VarBuilder};

/// Epochs that the layer reads. More took longer and brought nothing.
const STEPS: usize = 8;
/// Size of the layer's state.
const UNITS: usize = 16;
/// Fewer epochs to learn from are too few.
const SAMPLES_MIN: usize = 256;
/// Samples between two corrections of the weights.
const BATCH: usize = 64;
/// How often the first training goes through the past, and later ones.
const PASSES_FIRST: usize = 4;
const PASSES_LATER: usize = 1;
/// The size of a correction at the beginning of a training. It falls to a twentieth towards the
/// end.
const LEARNING_RATE: f64 = 0.005;
const LEARNING_RATE_FALL: f64 = 0.95;
/// Smooths the absolute error around 0.
const SMOOTHING: f64 = 1e-3;
/// Trainings are half a day of five-minute epochs apart.
const INTERVAL: u64 = 144;
/// Any number but 0.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// The paper's non-linear model, after the linear [`crate::Autoregression`].
pub struct Lstm {
    season: Season,
    net: Option<Net>,
}

impl Lstm {
    /// One that has learned nothing yet.
    pub fn new(season: Season) -> Self {
        Self { season, net: None }
    }
}

impl Forecaster for Lstm {
    fn train(&mut self, past: &[f64]) {
        let Some(inputs) = Inputs::of(self.season, past.len()) else {
            self.net = None;
            return;
        };
        let held = self.net.take().filter(|net| net.inputs == inputs);
        let trained = match held {
            Some(net) => net.trained(past, PASSES_LATER),
            None => Net::new(inputs, past).and_then(|net| net.trained(past, PASSES_FIRST)),
        };
        self.net = Some(trained.expect("the tensors have the shapes of the inputs"));
    }

    fn forecast(&mut self, past: &[f64]) -> Option<f64> {
        let net = self.net.as_ref().filter(|net| past.len() >= net.inputs.first)?;
        Some(net.next(past).expect("the tensors have the shapes of the inputs"))
    }

    fn training_interval(&self) -> u64 {
        INTERVAL
    }
}

/// What the network sees of the past.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Inputs {
    /// Of the linear part.
    lags: Vec<usize>,
    /// The season's length, if the past is long enough for it.
    season: Option<usize>,
    /// The first epoch that has a past long enough to be forecast.
    first: usize,
}

impl Inputs {
    /// `None`: the past is too short.
    fn of(season: Season, past: usize) -> Option<Self> {
        let lags = lags(season, past).filter(|lags| lags.len() >= RECENT)?;
        let longest = lags.last().copied()?;
        let season = Some(season.epochs()).filter(|day| *day < longest && *day > RECENT);
        let first = longest.max(STEPS + season.unwrap_or(0));
        (past >= first + SAMPLES_MIN).then_some(Self { lags, season, first })
    }

    /// Values that the layer reads of each epoch.
    fn features(&self) -> usize {
        1 + usize::from(self.season.is_some())
    }

    /// What is read to forecast each of these epochs: for the layer, and for the linear part.
    fn tensors(&self, logs: &[f32], epochs: &[usize]) -> Result<(Tensor, Tensor)> {
        let mut read = Vec::with_capacity(epochs.len() * STEPS * self.features());
        let mut linear = Vec::with_capacity(epochs.len() * self.lags.len());
        for epoch in epochs {
            for at in epoch - STEPS..*epoch {
                read.push(logs[at]);
                // The demand that followed a season ago, and its neighbours'.
                read.extend(self.season.map(|day| (logs[at - day] + logs[at + 1 - day] + logs[at + 2 - day]) / 3.0));
            }
            linear.extend(self.lags.iter().map(|lag| logs[epoch - lag]));
        }
        let read = Tensor::from_vec(read, (epochs.len(), STEPS, self.features()), &Device::Cpu)?;
        Ok((read, Tensor::from_vec(linear, (epochs.len(), self.lags.len()), &Device::Cpu)?))
    }
}

/// The network and what it was trained with.
struct Net {
    inputs: Inputs,
    scale: Scale,
    /// The spread of logarithms around their mean: it becomes 1.
    spread: f64,
    layer: LSTM,
    /// From the layer's state, and from the lags, to the forecast.
    from_state: Var,
    from_lags: Var,
    constant: Var,
    optimizer: AdamW,
    random: Random,
}

impl Net {
    /// A network whose linear part is the regression on this past, and whose layer says nothing.
    fn new(inputs: Inputs, past: &[f64]) -> Result<Self> {
        let mut random = Random(SEED);
        let bound = 1.0 / (UNITS as f32).sqrt();
        let mut uniform = |rows: usize, columns: usize| {
            let values: Vec<f32> = (0..rows * columns).map(|_| (2.0 * random.unit() - 1.0) * bound).collect();
            Var::from_vec(values, (rows, columns), &Device::Cpu)
        };
        let from_input = uniform(4 * UNITS, inputs.features())?;
        let from_before = uniform(4 * UNITS, UNITS)?;
        let from_state = Var::zeros((UNITS, 1), DType::F32, &Device::Cpu)?;
        // Gates are in the order input, forget, cell, output: at first, nothing is forgotten.
        let gates = (0..4 * UNITS).map(|at| if at / UNITS == 1 { 1.0f32 } else { 0.0 }).collect::<Vec<_>>();
        let bias = Var::from_vec(gates, 4 * UNITS, &Device::Cpu)?;
        let scale = Scale::of(past);
        let logs: Vec<f64> = past.iter().map(|d| scale.of_demand(*d)).collect();
        let regression: Vec<f32> = least_squares(&logs, &inputs.lags).into_iter().map(|w| w as f32).collect();
        let from_lags = Var::from_vec(regression, (inputs.lags.len(), 1), &Device::Cpu)?;
        let constant = Var::zeros(1, DType::F32, &Device::Cpu)?;
        let weights = [("weight_ih_l0", &from_input), ("weight_hh_l0", &from_before), ("bias_ih_l0", &bias)];
        let weights = weights.into_iter().map(|(name, var)| (name.to_string(), var.as_tensor().clone())).collect();
        let config = LSTMConfig { b_hh_init: None, ..LSTMConfig::default() };
        let builder = VarBuilder::from_tensors(weights, DType::F32, &Device::Cpu);
        let layer = LSTM::new(inputs.features(), UNITS, config, builder)?;
        let all = vec![from_input, from_before, bias, from_state.clone(), from_lags.clone(), constant.clone()];
        let optimizer = AdamW::new(all, ParamsAdamW { lr: LEARNING_RATE, weight_decay: 0.0, ..Default::default() })?;
        Ok(Self { inputs, scale, spread: 1.0, layer, from_state, from_lags, constant, optimizer, random })
    }

    /// The network after some passes through the past.
    fn trained(mut self, past: &[f64], passes: usize) -> Result<Self> {
        self.scale = Scale::of(past);
        let squares: f64 = past.iter().map(|d| self.scale.of_demand(*d).powi(2)).sum();
        self.spread = (squares / past.len() as f64).sqrt().max(1e-6);
        let logs = self.logs(past);
        let mut order: Vec<usize> = (self.inputs.first..past.len()).collect();
        let batches = (passes * order.len().div_ceil(BATCH)) as f64;
        let mut done = 0.0;
        for _ in 0..passes {
            self.random.shuffle(&mut order);
            for epochs in order.chunks(BATCH) {
                self.optimizer.set_learning_rate(LEARNING_RATE * (1.0 - LEARNING_RATE_FALL * done / batches));
                let expected: Vec<f32> = epochs.iter().map(|epoch| logs[*epoch]).collect();
                let expected = Tensor::from_vec(expected, epochs.len(), &Device::Cpu)?;
                let error = (self.outputs(&logs, epochs)? - expected)?;
                let loss = (error.sqr()? + SMOOTHING)?.sqrt()?.mean_all()?;
                self.optimizer.backward_step(&loss)?;
                done += 1.0;
            }
        }
        Ok(self)
    }

    /// The demand after the past.
    fn next(&self, past: &[f64]) -> Result<f64> {
        let outputs = self.outputs(&self.logs(past), &[past.len()])?;
        let log = f64::from(outputs.get(0)?.to_scalar::<f32>()?);
        Ok(self.scale.to_demand(log * self.spread, past))
    }

    fn logs(&self, past: &[f64]) -> Vec<f32> {
        past.iter().map(|d| (self.scale.of_demand(*d) / self.spread) as f32).collect()
    }

    /// The forecast of each of these epochs, on the scale of `logs`.
    fn outputs(&self, logs: &[f32], epochs: &[usize]) -> Result<Tensor> {
        let (read, linear) = self.inputs.tensors(logs, epochs)?;
        let mut state = self.layer.zero_state(epochs.len())?;
        for step in 0..STEPS {
            state = self.layer.step(&read.narrow(1, step, 1)?.squeeze(1)?.contiguous()?, &state)?;
        }
        let of_state = state.h().matmul(self.from_state.as_tensor())?;
        let of_lags = linear.matmul(self.from_lags.as_tensor())?;
        (of_state + of_lags)?.broadcast_add(self.constant.as_tensor())?.squeeze(1)
    }
}

/// A xorshift generator: the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// In `0.0..1.0`.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }

    fn shuffle(&mut self, items: &mut [usize]) {
        for last in (1..items.len()).rev() {
            let other = (self.next() >> 32) % (last as u64 + 1);
            items.swap(last, other as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecaster::HISTORY_MAX;

    fn next(season: usize, past: &[f64]) -> Option<f64> {
        let mut forecaster = Lstm::new(Season::of(season));
        forecaster.train(past);
        forecaster.forecast(past)
    }

    #[test]
    fn inputs_grow_with_the_past() {
        let of = |season, past| Inputs::of(Season::of(season), past);
        assert_eq!(of(288, 279), None);
        assert_eq!(of(288, 280).map(|i| (i.lags.len(), i.season, i.first)), Some((24, None, 24)));
        assert_eq!(of(288, HISTORY_MAX).map(|i| (i.lags.len(), i.season, i.first)), Some((29, Some(288), 296)));
        assert_eq!(of(86_400, HISTORY_MAX).and_then(|i| i.season), None, "a season that is not remembered");
        assert_eq!(of(2, HISTORY_MAX).and_then(|i| i.season), None, "a season that the lags show");
    }

    #[test]
    fn the_same_past_gives_the_same_forecast() {
        let past: Vec<f64> = (0..700).map(|at| f64::from(at * 37 % 101)).collect();
        let first = next(96, &past).expect("this is enough");
        assert_eq!(Some(first), next(96, &past));
        assert!(first.is_finite() && first >= 0.0);
    }

    #[test]
    fn a_wave_is_learned() {
        let past: Vec<f64> = (0..1_000).map(|at| 300.0 + 200.0 * (f64::from(at) * 0.2).sin()).collect();
        let mut forecaster = Lstm::new(Season::of(288));
        forecaster.train(&past[..900]);
        let (mut error, mut random_walk) = (0.0, 0.0);
        for at in 900..1_000 {
            let forecast = forecaster.forecast(&past[..at]).expect("this is enough");
            error += (forecast - past[at]).abs();
            random_walk += (past[at - 1] - past[at]).abs();
        }
        assert!(error < 0.5 * random_walk, "{error} beside {random_walk}");
    }

    #[test]
    fn short_constant_and_huge_pasts() {
        assert_eq!(next(288, &[]), None);
        assert_eq!(next(288, &[5.0; 200]), None);
        for constant in [0.0, 250.0, i64::MAX as f64, crate::DEMAND_MAX] {
            let forecast = next(288, &[constant; 400]).expect("this is enough");
            assert!((forecast - constant).abs() <= 0.5 * constant.max(2.0), "{constant} became {forecast}");
        }
    }
}
