//! Axes: from values to places, and the round numbers between.

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart; values of zero and less are not drawn.
    Log,
}

/// What an axis measures.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The quantity and its unit.
    pub label: String,
    /// How values are spread.
    pub scale: Scale,
    /// What the axis spans; if `None`, all values with a margin.
    pub span: Option<(f64, f64)>,
}

impl Axis {
    /// An axis of equal differences.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, span: None }
    }

    /// An axis of equal ratios.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Log, span: None }
    }

    /// The same axis over a given span.
    #[must_use]
    pub fn over(mut self, least: f64, most: f64) -> Self {
        self.span = Some((least, most));
        self
    }

    /// The axis laid from one pixel to another, wide enough for all values.
    pub(super) fn lay(&self, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Laid {
        let scale = self.scale;
        let drawn =
            values.filter(|&value| value.is_finite() && (scale == Scale::Linear || value > 0.0));
        let (mut least, mut most) = self.span.unwrap_or_else(|| {
            let (least, most) = drawn
                .map(|value| spread(scale, value))
                .fold((f64::MAX, f64::MIN), |(least, most), value| {
                    (least.min(value), most.max(value))
                });
            let margin = if most > least { (most - least) * 0.04 } else { 0.5 };
            (unspread(scale, least - margin), unspread(scale, most + margin))
        });
        if !(least < most && least.is_finite() && most.is_finite()) {
            // There is nothing to draw; any axis serves.
            (least, most) = (1.0, 10.0);
        }
        Laid { scale, least: spread(scale, least), most: spread(scale, most), from, to }
    }
}

fn spread(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Linear => value,
        Scale::Log => value.log10(),
    }
}

fn unspread(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Linear => value,
        Scale::Log => 10_f64.powf(value),
    }
}

/// An axis that knows its pixels. `least` and `most` are logarithms on a logarithmic one.
pub(super) struct Laid {
    scale: Scale,
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Laid {
    /// The place of a value, if it is on the axis.
    pub(super) fn at(&self, value: f64) -> Option<f64> {
        let share = (spread(self.scale, value) - self.least) / (self.most - self.least);
        // A value at an end may miss it by rounding.
        (-1e-9..=1.0 + 1e-9).contains(&share).then_some(self.from + share * (self.to - self.from))
    }

    /// The place of a value, or the end of the axis that is nearer to it.
    pub(super) fn near(&self, value: f64) -> f64 {
        let spread = if self.scale == Scale::Log && value <= 0.0 {
            f64::MIN
        } else {
            spread(self.scale, value)
        };
        let share = (spread.clamp(self.least, self.most) - self.least) / (self.most - self.least);
        self.from + share * (self.to - self.from)
    }

    /// Round numbers on the axis, each with its name; few enough to be told apart.
    pub(super) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let values = match self.scale {
            Scale::Linear => self.linear_ticks(most),
            Scale::Log => self.log_ticks(most),
        };
        values.into_iter().map(|value| (value, short(value))).collect()
    }

    fn linear_ticks(&self, most: usize) -> Vec<f64> {
        let rough = (self.most - self.least) / most as f64;
        let decade = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * decade);
        let step = step.into_iter().find(|&step| step >= rough).unwrap_or(rough);
        let first = (self.least / step - 1e-9).ceil() as i64;
        let last = (self.most / step + 1e-9).floor() as i64;
        // Rounded to the digits of the step, or 0.30000000000000004 would show.
        let places = 10_f64.powf((-step.log10().floor()).max(0.0) + 1.0);
        (first..=last).map(|tick| (tick as f64 * step * places).round() / places).collect()
    }

    fn log_ticks(&self, most: usize) -> Vec<f64> {
        let decades = self.least.floor() as i32..=self.most.ceil() as i32;
        let candidates = |digits: &[f64]| -> Vec<f64> {
            let values = decades
                .clone()
                .flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
            values.filter(|&value| self.at(value).is_some()).collect()
        };
        let sets: [&[f64]; 4] = [
            &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
            &[1.0, 2.0, 3.0, 5.0],
            &[1.0, 2.0, 5.0],
            &[1.0, 3.0],
        ];
        for digits in sets {
            let ticks = candidates(digits);
            if ticks.len() <= most {
                return ticks;
            }
        }
        let whole = candidates(&[1.0]);
        let skip = whole.len().div_ceil(most).max(1);
        whole.into_iter().step_by(skip).collect()
    }
}

/// A number as it stands at an axis: powers of ten where digits would be many.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-3..1e5).contains(&size) {
        // As many decimal places as it has, without zeros at the end.
        let text = format!("{value:.6}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let power = size.log10().floor() as i32;
    let digits = value / 10_f64.powi(power);
    let raised: String = power
        .to_string()
        .chars()
        .map(|sign| match sign {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            digit => char::from_u32(0x2070 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
        })
        .collect();
    if (digits - 1.0).abs() < 1e-9 {
        format!("10{raised}")
    } else {
        format!("{}·10{raised}", (digits * 100.0).round() / 100.0)
    }
}
