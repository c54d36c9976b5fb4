//! Scales: the range of an axis, its ticks, and where a value lies.

use crate::text::number;
use crate::{Axis, Scale};

/// Ticks of an axis, at most, where all of them have a label.
const TICKS_MAX: usize = 12;

/// An axis with a range.
pub(crate) struct Ruler {
    kind: Kind,
    /// Ends of the range; exponents on a logarithmic axis.
    low: f64,
    high: f64,
    /// Where marks go, as part of the range, and what stands there.
    pub(crate) ticks: Vec<(f64, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Linear,
    Log2,
    Names,
}

impl Ruler {
    /// The ruler of `axis` for `values`.
    pub(crate) fn new(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        match &axis.scale {
            Scale::Linear => linear(values.filter(|v| v.is_finite())),
            Scale::Log2 => log2(values.filter(|v| v.is_finite() && *v > 0.0)),
            Scale::Names(names) => named(names),
        }
    }

    /// A linear ruler that ends with the largest value rather than at a tick.
    pub(crate) fn within(mut self, values: impl Iterator<Item = f64>) -> Self {
        let high = values.filter(|v| v.is_finite()).fold(0.0, f64::max).min(self.high);
        if self.kind == Kind::Linear && high > 0.0 {
            let (low, before) = (self.low, self.high - self.low);
            let stretch = before / (high - low);
            self.ticks.iter_mut().for_each(|(at, _)| *at *= stretch);
            self.ticks.retain(|(at, _)| *at <= 1.0 + 1e-9);
            self.high = high;
        }
        self
    }

    /// Where a value lies, as a part of the range; none if the axis cannot show it.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let at = match self.kind {
            Kind::Linear | Kind::Names => value,
            Kind::Log2 => value.log2(),
        };
        let part = (at - self.low) / (self.high - self.low);
        (part.is_finite() && (-1e-9..=1.0 + 1e-9).contains(&part)).then_some(part)
    }

    /// The distance between two names, as a part of the range.
    pub(crate) fn step(&self) -> f64 {
        1.0 / (self.high - self.low)
    }

    /// Where bars stand: at 0, or at the lower end of an axis without it.
    pub(crate) fn floor(&self) -> f64 {
        match self.kind {
            Kind::Linear => self.place(0.0).unwrap_or(0.0),
            Kind::Log2 | Kind::Names => 0.0,
        }
    }
}

fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends: Option<(f64, f64)>, v| {
        Some(ends.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
    })
}

fn linear(values: impl Iterator<Item = f64>) -> Ruler {
    // Halves, so that a range of all numbers there are does not overflow.
    let (low, high) = ends(values).unwrap_or((0.0, 1.0));
    let (low, mut high) = (low.clamp(-1e300, 0.0), high.clamp(0.0, 1e300));
    if high - low < 1e-300 {
        high = low + 1.0;
    }
    let rough = (high - low) / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let (first, last) = ((low / step).floor() as i64, (high / step - 1e-9).ceil() as i64);
    let (low, high) = (first as f64 * step, last.max(first + 1) as f64 * step);
    let mut ruler = Ruler { kind: Kind::Linear, low, high, ticks: vec![] };
    for i in first..=last.max(first + 1) {
        let value = i as f64 * step;
        ruler.ticks.extend(ruler.place(value).map(|at| (at, number(value))));
    }
    ruler
}

fn log2(values: impl Iterator<Item = f64>) -> Ruler {
    let (low, high) = ends(values).unwrap_or((1.0, 2.0));
    let first = (low.log2() + 1e-9).floor() as i32;
    let last = ((high.log2() - 1e-9).ceil() as i32).max(first + 1);
    let (low, high) = (f64::from(first), f64::from(last));
    let mut ruler = Ruler { kind: Kind::Log2, low, high, ticks: vec![] };
    let every = ((last - first) as usize).div_ceil(TICKS_MAX).max(1);
    for exponent in (first..=last).step_by(every) {
        let at = (f64::from(exponent) - low) / (high - low);
        ruler.ticks.push((at, number(2f64.powi(exponent))));
    }
    ruler
}

fn named(names: &[String]) -> Ruler {
    let high = names.len().max(1) as f64 - 0.5;
    let mut ruler = Ruler { kind: Kind::Names, low: -0.5, high, ticks: vec![] };
    for (i, name) in names.iter().enumerate() {
        ruler.ticks.extend(ruler.place(i as f64).map(|at| (at, name.clone())));
    }
    ruler
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ruler(scale: Scale, values: &[f64]) -> Ruler {
        Ruler::new(&Axis { label: String::new(), scale }, values.iter().copied())
    }

    fn labels(ruler: &Ruler) -> Vec<&str> {
        ruler.ticks.iter().map(|(_, label)| &**label).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_hold_all_values() {
        assert_eq!(
            labels(&ruler(Scale::Linear, &[0.18, 0.98])),
            ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        assert_eq!(labels(&ruler(Scale::Linear, &[])).len(), 6);
        assert_eq!(labels(&ruler(Scale::Linear, &[-3.0, 9.0])).first(), Some(&"-4"));
        assert_eq!(ruler(Scale::Linear, &[5.0]).floor(), 0.0);
    }

    #[test]
    fn a_ruler_can_end_with_its_values() {
        let r = ruler(Scale::Linear, &[8.0]).within([8.0].into_iter());
        assert_eq!((r.place(8.0), r.place(4.0)), (Some(1.0), Some(0.5)));
        assert_eq!(r.ticks.last().map(|(at, label)| (*at, &**label)), Some((1.0, "8")));
        let r = ruler(Scale::Linear, &[1020.0]).within([1020.0].into_iter());
        assert_eq!(labels(&r), ["0", "200", "400", "600", "800", "1000"]);
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_two() {
        assert_eq!(labels(&ruler(Scale::Log2, &[1.0, 8.0])), ["1", "2", "4", "8"]);
        assert_eq!(labels(&ruler(Scale::Log2, &[0.3, 0.4, -1.0, 0.0])), ["0.25", "0.5"]);
        assert!(ruler(Scale::Log2, &[1.0, 1e30]).ticks.len() <= TICKS_MAX + 1);
        assert_eq!(ruler(Scale::Log2, &[1.0, 4.0]).place(2.0), Some(0.5));
        assert_eq!(ruler(Scale::Log2, &[1.0, 4.0]).place(0.0), None);
    }

    #[test]
    fn names_lie_in_the_middle_of_their_steps() {
        let r = ruler(Scale::Names(vec!["a".into(), "b".into()]), &[]);
        assert_eq!((r.place(0.0), r.place(1.0), r.step()), (Some(0.25), Some(0.75), 0.5));
        assert_eq!(r.place(7.0), None);
    }
}
