//! The arithmetic behind a plan, with the symbols of the papers.
//!
//! Every number is computed by the model that made the prediction; the symbols are those of its
//! symbol table.

use alloc::format;
use alloc::string::String;

use super::Plan;
use crate::spec::{Bytes, Lines, Prediction, explain};

impl Plan {
    /// How the predictions for `keys` keys come about, line by line, with the symbols of the
    /// papers.
    pub fn explain(&self, keys: u64) -> String {
        let mut out = Lines(format!("{}: {}\n", self.params.kind().name(), self.reason));
        self.params.explain(keys, &self.predicted, &mut out);
        self.totals(&mut out, keys);
        out.0
    }

    /// What all kinds have in common.
    fn totals(&self, out: &mut Lines, keys: u64) {
        let Prediction { rate, bits_per_key: bits, .. } = self.predicted;
        let bound = -libm::log2(rate);
        if rate > 0.0 && rate < 1.0 {
            explain! { out;
                "in all": "{bits:.3} bits per key for f = {rate:.3e}: {:.2} times the bound \
                    log2(1/f) = {bound:.3}", bits / bound;
            }
        }
        let Prediction { blocks_per_insert, blocks_per_hit, blocks_per_miss, .. } = self.predicted;
        explain! { out;
            "blocks": "{blocks_per_insert:.3} an insert, {blocks_per_hit:.3} a hit, \
                {blocks_per_miss:.3} a miss";
        }
        let sent = |bytes: Bytes| {
            let each = bytes.mean * 8.0 / keys.max(1) as f64;
            format!("{:.0} bytes, {each:.3} bits per key; {:.0} at most", bytes.mean, bytes.most())
        };
        out.add("snapshot", sent(self.traffic.snapshot));
        if let Some(delta) = self.traffic.delta {
            out.add("delta", sent(delta));
        }
    }
}
