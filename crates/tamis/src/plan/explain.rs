//! The arithmetic behind a plan, with the symbols of the papers.
//!
//! Every number is computed by the model that made the prediction; the symbols are those of its symbol table.

use alloc::format;
use alloc::string::String;
use core::fmt::{Display, Write};

use super::Plan;
use crate::any::AnyParams;
use crate::balanced::{BalancedParams, Scheme};
use crate::blocked_rank::{self, BlockedRankParams};
use crate::bloom::{self, BlockedParams};
use crate::compressed::{CompressedParams, model::Shape};
use crate::dleft::{self, DLeftParams};
use crate::math::occupancy::mean_occupied;
use crate::partitioned::{self, Family, Partition, PartitionedParams};
use crate::rank_indexed::{self, RankParams};
use crate::spec::{Bytes, Prediction};

/// Lines of a name and a formula.
struct Lines(String);

impl Lines {
    fn add(&mut self, name: &str, formula: impl Display) {
        // A string takes whatever is written.
        let _ = writeln!(self.0, "  {name:<10} {formula}");
    }
}

impl Plan {
    /// How the predictions for so many keys come about, line by line, with the symbols of the papers.
    pub fn explain(&self, keys: u64) -> String {
        let mut lines = Lines(format!("{}: {}\n", self.params.kind().name(), self.reason));
        let out = &mut lines;
        match &self.params {
            AnyParams::Bloom(params) => {
                positions(out, params.bits(), params.hashes(), keys);
                out.add("memory", format_args!("m = {} bits, in whole cache lines", params.bits()));
            }
            AnyParams::Counting(params) => {
                let (m, c) = (params.counters(), params.width());
                positions(out, m, params.hashes(), keys);
                out.add("memory", format_args!("{c} m = {} bits", params.bits()));
            }
            AnyParams::Blocked(params) => blocked(out, params, keys),
            AnyParams::RankIndexed(params)
            | AnyParams::RankSet(params)
            | AnyParams::RankCounting(params)
            | AnyParams::RankMap(params) => rank_indexed(out, params, keys),
            AnyParams::BlockedRank(params) => blocked_rank(out, params, keys),
            AnyParams::DLeft(params) => dleft(out, params, keys),
            AnyParams::Partitioned(params) => partitioned(out, params, keys),
            AnyParams::Compressed(params) => compressed(out, params, keys),
            AnyParams::BalancedSingle(params) => balanced(out, params, keys, &self.predicted),
            AnyParams::BalancedSequential(params) => balanced(out, params, keys, &self.predicted),
            AnyParams::BalancedMht(params) => balanced(out, params, keys, &self.predicted),
            AnyParams::BalancedPopcount(params) => balanced(out, params, keys, &self.predicted),
            AnyParams::BalancedTwoChoice(params) => balanced(out, params, keys, &self.predicted),
        }
        self.totals(out, keys);
        lines.0
    }

    /// What all kinds have in common.
    fn totals(&self, out: &mut Lines, keys: u64) {
        let Prediction { rate, bits_per_key: bits, .. } = self.predicted;
        let bound = -libm::log2(rate);
        if rate > 0.0 && rate < 1.0 {
            out.add(
                "in all",
                format_args!(
                    "{bits:.3} bits per key for f = {rate:.3e}: {:.2} times the bound log2(1/f) = {bound:.3}",
                    bits / bound
                ),
            );
        }
        let Prediction { blocks_per_insert, blocks_per_hit, blocks_per_miss, .. } = self.predicted;
        out.add(
            "blocks",
            format_args!("{blocks_per_insert:.3} an insert, {blocks_per_hit:.3} a hit, {blocks_per_miss:.3} a miss"),
        );
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

/// Paper 004, section II-A, and the baselines.
fn positions(out: &mut Lines, m: u64, k: u32, n: u64) {
    let shape = Shape { positions: m, hashes: k, keys: n };
    out.add("symbols", format_args!("n = {n} keys, m = {m} positions, k = {k} of them a key"));
    out.add("load", format_args!("x = k n / m = {:.5}", shape.load()));
    out.add("zeros", format_args!("p = (1 - 1/m)^(k n) = {:.5}", shape.exact_zeros()));
    out.add(
        "rate",
        format_args!(
            "f = E[(X/m)^k] + n / 2^64 = {:.4e}; in the limit (1 - p)^k = {:.4e}",
            bloom::model::rate(m, k, n),
            shape.limit_rate()
        ),
    );
}

fn blocked(out: &mut Lines, params: &BlockedParams, n: u64) {
    let (b, size, k) = (params.blocks(), params.block(), params.hashes());
    out.add("symbols", format_args!("n = {n} keys, b = {b} blocks of B = {size} bits, k = {k}"));
    out.add("load", format_args!("j ~ binomial(n, 1/b), n / b = {:.3}", n as f64 / b as f64));
    out.add(
        "rate",
        format_args!(
            "f = sum over j of P(j) E[(X/B)^k] + n / 2^64 = {:.4e}, X bits set by j k throws",
            bloom::model::blocked_rate(params, n)
        ),
    );
    out.add("memory", format_args!("b B = {} bits", params.bits()));
}

/// Paper 000.
fn rank_indexed(out: &mut Lines, params: &RankParams, n: u64) {
    let layout = params.layout();
    let rank_indexed::model::Layout { buckets: b, locations: l, fingerprint: r, extra, .. } =
        layout;
    out.add(
        "symbols",
        format_args!("n = {n} keys, B = {b} buckets, L = {l} locations, r = {r} bits"),
    );
    out.add("universe", format_args!("U = B L 2^r = {}", params.universe()));
    out.add("chains", format_args!("lambda = n / (B L) = {:.4}", layout.lambda(n)));
    out.add(
        "rate",
        format_args!(
            "f = 1 - (1 - 1/U)^n = {:.4e}; the paper's bound lambda 2^-r = {:.4e}",
            rank_indexed::model::rate(&layout, n),
            rank_indexed::model::rate_bound(&layout, n)
        ),
    );
    let pointer = rank_indexed::model::pointer_bits(layout.second);
    out.add(
        "bucket",
        format_args!(
            "S1 = L + Z1 c + 1 + ceil(log2 J2) = {l} + {} * {} + 1 + {pointer} = {} bits",
            layout.level1,
            1 + r + extra,
            layout.bucket_bits()
        ),
    );
    out.add(
        "levels",
        format_args!(
            "J2 = {} of S2 = {} bits, J3 = {} of S3 = {} bits, in each of S = {} groups",
            layout.second,
            layout.second_bits(),
            layout.third,
            layout.third_bits(),
            layout.groups
        ),
    );
    out.add("memory", format_args!("B S1 + S (J2 S2 + J3 S3) = {} bits", layout.bits()));
    let overflow = rank_indexed::model::overflow_bound(&layout, n);
    out.add("overflow", format_args!("a key finds no cell with chance Po <= {overflow:.1e}"));
}

/// Papers 000 and 001 in one.
fn blocked_rank(out: &mut Lines, params: &BlockedRankParams, n: u64) {
    let (m, l, z) = (params.blocks(), params.locations(), params.cells());
    let r = params.fingerprint();
    let lambda = n as f64 / m as f64;
    out.add(
        "symbols",
        format_args!(
            "n = {n} keys, m = {m} blocks of L = {l} locations, Z = {z} cells, r = {r} bits"
        ),
    );
    out.add("universe", format_args!("U = m L 2^r = {}", params.universe()));
    out.add("load", format_args!("lambda = n / m = {lambda:.3} keys a block"));
    let f = rank_indexed::model::rate_of(params.universe() as f64, n);
    out.add("rate", format_args!("f = 1 - (1 - 1/U)^n = {f:.4e}"));
    let share = blocked_rank::model::spilled_keys(lambda, l, z);
    out.add(
        "back table",
        format_args!("mean over l of P(Poisson(lambda (l+1)/L) >= Z) = {share:.5} of the keys"),
    );
    let back = params.back_bits();
    out.add("memory", format_args!("512 m = {} bits, and {back} of the back table", params.bits()));
}

/// Paper 003.
fn dleft(out: &mut Lines, params: &DLeftParams, n: u64) {
    let (d, b, c) = (params.subtables(), params.buckets(), params.cells());
    let r = params.remainder();
    let u = params.universe() as f64;
    out.add(
        "symbols",
        format_args!(
            "n = {n} keys, d = {d} subtables of B = {b} buckets of c = {c} cells, r = {r} bits"
        ),
    );
    out.add("universe", format_args!("U = B 2^r = {}", params.universe()));
    let load = dleft::model::effective_load(u, n, u64::from(d) * b);
    out.add("load", format_args!("L = U (1 - (1 - 1/U)^n) / (d B) = {load:.4} cells a bucket"));
    let full = dleft::model::full_chance(d as usize, c as usize, load);
    out.add("full", format_args!("all d choices of a key are full with chance F = {full:.2e}"));
    let rate = dleft::model::rate(u, n);
    out.add("rate", format_args!("f = 1 - (1 - 1/U)^n = {rate:.4e}"));
    out.add(
        "memory",
        format_args!(
            "d B c (r + counter + value) = {d} * {b} * {c} * {} = {} bits",
            params.cell_bits(),
            params.bits()
        ),
    );
}

/// Paper 002.
fn partitioned(out: &mut Lines, params: &PartitionedParams, n: u64) {
    let (m, g, k) = (params.bits(), params.groups(), params.hashes());
    let h = params.candidates();
    out.add("symbols", format_args!("n = {n} keys, m = {m} bits in {} segments, g = {g} groups, k = {k} of H = {h} functions", params.segments()));
    let groups = match params.partition() {
        Partition::Top => "by the top of the digest",
        Partition::Rs => "by RS of the digest",
    };
    out.add("groups", format_args!("{groups}, n / g = {:.2} keys", n as f64 / g as f64));
    let (candidates, floor) = match params.family() {
        Family::Mixers => ("a mixer for each", "n / 2^64"),
        Family::Crc => ("CRC-32 of the digest and a number", "n / 2^64 + n / (g 2^32)"),
    };
    out.add("functions", candidates);
    let fill = partitioned::model::expected_fill(params, n);
    let plain = mean_occupied(m, n.saturating_mul(k.into())) / m as f64;
    out.add("fill", format_args!("1 - z = {fill:.5}, where a plain filter has {plain:.5}"));
    let rate = partitioned::model::rate(params, n);
    out.add("rate", format_args!("f = (1 - z)^k (1 - empty groups) + {floor} = {rate:.4e}"));
    out.add(
        "memory",
        format_args!(
            "m + g k ceil(log2(H + 1)) = {m} + {} bits, in whole cache lines",
            params.choice_bits()
        ),
    );
}

/// Paper 004, answered from the compressed form.
fn compressed(out: &mut Lines, params: &CompressedParams, n: u64) {
    let (m, k) = (params.positions(), params.hashes());
    positions(out, m, k, n);
    let ones = mean_occupied(m, n.saturating_mul(k.into()));
    let shape = Shape { positions: m, hashes: k, keys: n };
    let entropy = shape.entropy_bits(crate::compressed::model::Message::Snapshot);
    out.add("message", format_args!("z = m H(p) = {entropy:.0} bits, the entropy"));
    out.add(
        "memory",
        format_args!(
            "Elias-Fano positions: about (2 + log2(m / X)) X = {:.0} bits, X = {ones:.0}",
            ones * (2.0 + libm::log2(m as f64 / ones.max(1.0)))
        ),
    );
}

/// Paper 001.
fn balanced<S: Scheme>(
    out: &mut Lines,
    params: &BalancedParams<S>,
    n: u64,
    predicted: &Prediction,
) {
    let layout = params.layout();
    let (m, k, d) = (layout.blocks, layout.hashes, layout.choices);
    out.add(
        "symbols",
        format_args!(
            "n = {n} keys, m = {m} blocks of {} bits, k = {k}, d = {d} choices",
            layout.block
        ),
    );
    out.add("load", format_args!("r = n / m = {:.3} keys a block", n as f64 / m as f64));
    if layout.threshold > 0 {
        let what = if layout.counter_bits() > 0 { "keys" } else { "set bits" };
        let p = layout.coin as f64 / 4_294_967_296.0;
        out.add(
            "threshold",
            format_args!(
                "h = {} {what}, p = {p:.4}; counter of {} bits",
                layout.threshold,
                layout.counter_bits()
            ),
        );
    }
    out.add("looks", format_args!("a = {:.4} blocks an insert", predicted.blocks_per_insert));
    if let Some(listed) = predicted.overflow {
        let gamma = listed / n.max(1) as f64;
        out.add(
            "overflow",
            format_args!("gamma = {gamma:.3e} of the keys in a list for {}", layout.list),
        );
    }
    let formula = if layout.threshold > 0 { "A (1 + rho + ... + rho^(d-1))" } else { "A (2 - A)" };
    out.add("rate", format_args!("f = {formula} + n / 2^64 = {:.4e}", predicted.rate));
    out.add(
        "memory",
        format_args!("{} m = {} bits, and 64 a slot of the list", layout.block, params.bits()),
    );
}
