//! The distribution of the number X of occupied bins after balls fell uniformly and independently
//! into m bins. The library has its moments, and the expectation of (X / m)^k.

/// Probabilities below this are dropped: denormal numbers would make the program ten times slower
/// and change nothing.
const NEGLIGIBLE: f64 = 1e-300;

/// The exact distribution of X, advanced ball by ball. Each ball costs a pass over the counts that
/// are still possible, at most m + 1 of them. Meant for m up to some thousands.
#[derive(Debug, Clone)]
pub struct Occupancy {
    probabilities: Vec<f64>,
    /// The counts in `low..=high` are those with a probability worth keeping.
    low: usize,
    high: usize,
}

impl Occupancy {
    /// `m` empty bins. Takes 8 (m + 1) bytes.
    pub fn new(m: usize) -> Self {
        let mut probabilities = vec![0.0; m.saturating_add(1)];
        probabilities[0] = 1.0;
        Self { probabilities, low: 0, high: 0 }
    }

    /// Throws `t` more balls. Returns early once the chance that any bin is empty is below 1e-300.
    pub fn throw_balls(&mut self, t: u64) {
        let m = self.probabilities.len() - 1;
        let share = 1.0 / m as f64;
        for _ in 0..t {
            if self.low == m {
                return;
            }
            if self.high < m {
                let rise = self.probabilities[self.high] * (m - self.high) as f64 * share;
                if rise > NEGLIGIBLE {
                    self.high += 1;
                }
            }
            for x in (self.low + 1..=self.high).rev() {
                let stay = self.probabilities[x] * x as f64;
                let rise = self.probabilities[x - 1] * (m - (x - 1)) as f64;
                self.probabilities[x] = (stay + rise) * share;
            }
            self.probabilities[self.low] *= self.low as f64 * share;
            while self.low < self.high && self.probabilities[self.low] < NEGLIGIBLE {
                self.probabilities[self.low] = 0.0;
                self.low += 1;
            }
        }
    }

    /// `E[f(X)]`.
    pub fn expect(&self, f: impl Fn(usize) -> f64) -> f64 {
        (self.low..=self.high).map(|x| self.probabilities[x] * f(x)).sum()
    }
}
