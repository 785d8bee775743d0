//! Sizes and speeds of the coders on random arrays of 16 MB, next to zstd and constriction, in one
//! run.
//!
//! `cargo run --release -p tamis-bench --bin coders [rounds]`: every round verifies the array;
//! best of five by default.

use std::time::Instant;

use constriction::stream::model::DefaultContiguousCategoricalEntropyModel as Model;
use constriction::stream::queue::{DefaultRangeDecoder, DefaultRangeEncoder};
use constriction::stream::stack::DefaultAnsCoder;
use constriction::stream::{Decode, Encode};
use tamis::internals::coder::{
    Coder, Effort, choose, decode_into, encode, encode_as, encode_pieces, entropy_bits,
};

const BITS: u64 = 1 << 27;

fn main() {
    let rounds =
        std::env::args().nth(1).map_or(5, |text| text.parse().expect("a number of rounds"));
    println!("| coder | density | size over entropy | encode MB/s | decode MB/s |");
    println!("|---|---|---|---|---|");
    for density in [0.005, 0.006, 0.01, 0.02, 0.05, 0.08, 0.13, 0.25, 0.5] {
        let words = array(density);
        let ones = words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        let row = Row { words: &words, density, ones, rounds };
        let (fast, best) = (choose(BITS, ones, Effort::Fast), choose(BITS, ones, Effort::Best));
        let frame = |bytes: &Vec<u8>| {
            let mut words = vec![0; BITS as usize / 64];
            decode_into(bytes, BITS, &mut words).expect("a valid frame");
            words
        };
        row.print(&format!("Fast ({fast:?})"), rounds, |w| encode(w, BITS, Effort::Fast), frame);
        row.print(&format!("Best ({best:?})"), rounds, |w| encode(w, BITS, Effort::Best), frame);
        if density == 0.13 {
            row.print("adaptive", 1, |w| encode_as(Coder::Adaptive, w, BITS, ones), frame);
            for log in [12, 16, 20] {
                let encode = |w: &[u64]| encode_pieces(w, BITS, 1 << log, Effort::Fast);
                row.print(&format!("Fast, pieces of 2^{log} bits"), rounds, encode, frame);
            }
        }
        if [0.006, 0.13].contains(&density) {
            row.rivals();
        }
    }
}

/// One density.
struct Row<'a> {
    words: &'a [u64],
    density: f64,
    ones: u64,
    rounds: u32,
}

impl Row<'_> {
    /// Verifies and times one coder.
    fn print<T: AsRef<[U]>, U>(
        &self,
        name: &str,
        rounds: u32,
        encode: impl Fn(&[u64]) -> T,
        decode: impl Fn(&T) -> Vec<u64>,
    ) {
        let (mut writing, mut reading, mut size) = (f64::MAX, f64::MAX, 0);
        for _ in 0..rounds {
            let start = Instant::now();
            let coded = encode(self.words);
            writing = writing.min(start.elapsed().as_secs_f64());
            size = size_of_val(coded.as_ref());
            let start = Instant::now();
            let decoded = decode(&coded);
            reading = reading.min(start.elapsed().as_secs_f64());
            assert!(decoded == self.words, "{name} does not come back");
        }
        let over = size as f64 * 8.0 / entropy_bits(BITS, self.ones) * 100.0 - 100.0;
        let speed = |seconds: f64| BITS as f64 / 8e6 / seconds;
        let density = self.density * 100.0;
        println!(
            "| {name} | {density}% | +{over:.4}% | {:.0} | {:.0} |",
            speed(writing),
            speed(reading)
        );
    }

    /// zstd on the bytes, constriction on the bits with the same static model.
    fn rivals(&self) {
        for (level, rounds) in [(3, self.rounds), (19, 1)] {
            let encode = |words: &[u64]| {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                zstd::bulk::compress(&bytes, level).expect("zstd")
            };
            let decode = |coded: &Vec<u8>| {
                let bytes = zstd::bulk::decompress(coded, BITS as usize / 8).expect("zstd");
                bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
            };
            self.print(&format!("zstd {level}"), rounds, encode, decode);
        }
        let one = self.ones as f64 / BITS as f64;
        let model = Model::from_floating_point_probabilities_fast(&[1.0 - one, one], None)
            .expect("a model");
        let bit = |words: &[u64], at: u64| (words[at as usize / 64] >> (at % 64) & 1) as usize;
        let encode = |words: &[u64]| {
            let mut coder = DefaultRangeEncoder::new();
            coder
                .encode_iid_symbols((0..BITS).map(|at| bit(words, at)), &model)
                .expect("constriction");
            coder.into_compressed().expect("constriction")
        };
        let decode = |coded: &Vec<u32>| {
            let mut coder = DefaultRangeDecoder::from_compressed(&coded[..]).expect("constriction");
            pack(coder.decode_iid_symbols(BITS as usize, &model).map(|bit| bit.expect("a bit")))
        };
        self.print("constriction range", 1, encode, decode);
        let encode = |words: &[u64]| {
            let mut coder = DefaultAnsCoder::new();
            coder
                .encode_iid_symbols_reverse((0..BITS).map(|at| bit(words, at)), &model)
                .expect("constriction");
            coder.into_compressed().expect("constriction")
        };
        let decode = |coded: &Vec<u32>| {
            let mut coder = DefaultAnsCoder::from_compressed(coded.clone()).expect("constriction");
            pack(coder.decode_iid_symbols(BITS as usize, &model).map(|bit| bit.expect("a bit")))
        };
        self.print("constriction ANS", 1, encode, decode);
    }
}

fn pack(bits: impl Iterator<Item = usize>) -> Vec<u64> {
    let mut words = vec![0; BITS as usize / 64];
    for (at, bit) in bits.enumerate() {
        words[at / 64] |= (bit as u64) << (at % 64);
    }
    words
}

/// Random bits of a density, from a fixed seed.
fn array(density: f64) -> Vec<u64> {
    let mut state = 42_u64;
    let threshold = (density * 4294967296.0) as u64;
    let mut next = || {
        state = state.wrapping_add(0x9e3779b97f4a7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        z ^ (z >> 31)
    };
    let word = |_| {
        (0..32).fold(0, |word, at| {
            let random = next();
            let low = u64::from(random & 0xffffffff < threshold);
            let high = u64::from(random >> 32 < threshold);
            word | low << at | high << (at + 32)
        })
    };
    (0..BITS / 64).map(word).collect()
}
