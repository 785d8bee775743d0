//! Round trips, sizes against the paper and against `constriction`, and hostile bytes.

use constriction::stream::{Encode, model::UniformModel, queue::DefaultRangeEncoder};
use proptest::prelude::*;

use tamis::internals::coder::gaps::{Sorted, encode_sorted};
use tamis::internals::coder::range::{self, Adaptive, Static};
use tamis::internals::coder::{
    BITS_PER_BYTE, Coder, CoderError, Effort, FLIPPED, PieceReader, check, choose, decode_into,
    encode, encode_pieces, entropy_bits, numbers, pieces, predicted_bits,
};
use tamis::internals::compressed::model::{Message, Shape};

const CODERS: [Coder; 5] = [Coder::Plain, Coder::Static, Coder::Adaptive, Coder::Rans, Coder::Gaps];

fn encode_as(coder: Coder, words: &[u64], bits: u64) -> Vec<u8> {
    tamis::internals::coder::encode_as(coder, words, bits, count_ones(words))
}

/// Decodes a frame as readers of files do: it is checked before memory is allocated.
fn decode(frame: &[u8], bits: u64) -> Result<Vec<u64>, CoderError> {
    check(frame, bits)?;
    let mut words = vec![0; bits.div_ceil(64) as usize];
    decode_into(frame, bits, &mut words)?;
    Ok(words)
}

/// The `count` numbers that [`encode_sorted`] coded.
fn decode_sorted(bytes: &[u8], count: u64, universe: u64) -> Result<Vec<u64>, CoderError> {
    let mut sorted = Sorted::new(bytes, count, universe)?;
    let mut values = Vec::new();
    while let Some(value) = sorted.read_next()? {
        values.push(value);
    }
    Ok(values)
}

fn count_ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Whether no bit behind the last is set.
fn padding_is_zero(words: &[u64], bits: u64) -> bool {
    (bits..words.len() as u64 * 64).all(|at| words[(at / 64) as usize] >> (at % 64) & 1 == 0)
}

/// Exchanges zeros and ones, and leaves the bits behind the last alone.
fn flip(words: &mut [u64], bits: u64) {
    for position in 0..bits {
        words[(position / 64) as usize] ^= 1 << (position % 64);
    }
}

/// A small generator with a fixed sequence.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d049bb133111eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    fn array(&mut self, bits: u64, density: f64) -> Vec<u64> {
        let threshold = (density * 18446744073709551616.0) as u64;
        let mut words = vec![0; bits.div_ceil(64) as usize];
        for position in 0..bits {
            let one = density >= 1.0 || self.next() < threshold;
            words[(position / 64) as usize] |= u64::from(one) << (position % 64);
        }
        words
    }
}

/// Sets the bits of `keys` keys in the array of a Bloom filter.
fn insert(words: &mut [u64], bits: u64, keys: u64, hashes: u64, random: &mut Random) {
    for _ in 0..keys * hashes {
        let position = random.below(bits);
        words[(position / 64) as usize] |= 1 << (position % 64);
    }
}

/// Checks the round trip with every coder and effort, whole and in pieces.
fn round_trip(words: &[u64], bits: u64) {
    let most = 1 + bits.div_ceil(8) as usize;
    for coder in CODERS {
        let frame = encode_as(coder, words, bits);
        assert!(frame.len() <= most);
        assert_eq!(decode(&frame, bits).as_deref(), Ok(words), "{coder:?} {bits}");
    }
    for effort in [Effort::Fast, Effort::Best] {
        let frame = encode(words, bits, effort);
        assert!(frame.len() <= most);
        assert_eq!(decode(&frame, bits).as_deref(), Ok(words));
        let frame = encode_pieces(words, bits, 256, effort);
        assert_eq!(decode(&frame, bits).as_deref(), Ok(words));
        let reader = PieceReader::new(&frame, bits).unwrap();
        for position in (0..bits).step_by(37) {
            let bit = words[(position / 64) as usize] >> (position % 64) & 1 == 1;
            assert_eq!(reader.bit(position), Ok(bit));
        }
        assert_eq!(reader.bit(bits), Err(CoderError::Position(bits)));
        assert!(reader.piece(reader.pieces()).is_err());
    }
}

#[test]
fn every_length_and_density() {
    let mut random = Random(1);
    let lengths = (0..=130).chain([191, 192, 193, 1000, 4095, 4096, 4097, 20_011]);
    for bits in lengths {
        for density in [0.0, 0.001, 0.02, 0.13, 0.3, 0.5, 0.77, 0.99, 1.0] {
            round_trip(&random.array(bits, density), bits);
        }
    }
}

#[test]
fn one_bit_far_away() {
    for bits in [1, 64, 65, 100_000, 1_u64 << 20] {
        for position in [0, bits / 3, bits - 1] {
            let mut words = vec![0; bits.div_ceil(64) as usize];
            words[(position / 64) as usize] = 1 << (position % 64);
            round_trip(&words, bits);
            flip(&mut words, bits);
            round_trip(&words, bits);
        }
    }
    // All ones in front: the model is as wrong as it can be, and the frame falls back to plain
    // bytes.
    let mut words = vec![0; 4096];
    words[..1024].fill(u64::MAX);
    round_trip(&words, 4096 * 64);
}

#[test]
fn only_zeros_or_only_ones_take_two_bytes() {
    for bits in [64, 1000, 1_u64 << 22] {
        let mut words = vec![0; bits.div_ceil(64) as usize];
        for effort in [Effort::Fast, Effort::Best] {
            assert_eq!(encode(&words, bits, effort).len(), 2);
            flip(&mut words, bits);
            assert_eq!(encode(&words, bits, effort).len(), 2);
            flip(&mut words, bits);
        }
    }
}

/// Section 2.1: the paper's own experiments, before the frame's header.
#[test]
fn sizes_of_the_paper() {
    let mut random = Random(4);
    let [mut fixed, mut adaptive, mut delta, mut adaptive_delta, mut counted_delta] = [0; 5];
    for _ in 0..300 {
        let bits = 140_000_u64;
        let mut words = vec![0; bits.div_ceil(64) as usize];
        insert(&mut words, bits, 10_000, 2, &mut random);
        // Known from n, m and k, as in the paper, not from the count.
        let expected = (bits as f64 * (1.0 - libm::exp(-1.0 / 7.0))) as u64;
        let payload = range::encode(&words, bits, Static::new(bits, expected));
        assert!(payload.len() <= 10_000);
        fixed += payload.len();
        let payload = range::encode(&words, bits, Adaptive::default());
        assert!(payload.len() <= 10_000);
        adaptive += payload.len();
        let mut decoded = vec![0; words.len()];
        range::decode(&payload, &mut decoded, bits, Adaptive::default()).unwrap();
        assert_eq!(decoded, words);

        let bits = 320_000;
        let mut common = vec![0; bits as usize / 64];
        insert(&mut common, bits, 9_500, 2, &mut random);
        let (mut old, mut new) = (common.clone(), common);
        insert(&mut old, bits, 500, 2, &mut random);
        insert(&mut new, bits, 500, 2, &mut random);
        let change: Vec<u64> = old.iter().zip(&new).map(|(a, b)| a ^ b).collect();
        // q = 2 p (1 - p^c) with p = exp(-kn/m) and c = 500 / 10000.
        let expected = bits as f64 * 2.0 * libm::exp(-0.0625) * (1.0 - libm::exp(-0.0625 * 0.05));
        delta += range::encode(&change, bits, Static::new(bits, expected as u64)).len();
        adaptive_delta += range::encode(&change, bits, Adaptive::default()).len();
        let ones = count_ones(&change);
        counted_delta += range::encode(&change, bits, Static::new(bits, ones)).len();
    }
    let [fixed, adaptive, delta, adaptive_delta, counted_delta] =
        [fixed, adaptive, delta, adaptive_delta, counted_delta].map(|sum| sum as f64 / 300.0);
    println!("static {fixed:.2}, adaptive {adaptive:.2}");
    println!(
        "delta: static {delta:.2}, adaptive {adaptive_delta:.2}, from the count {counted_delta:.2}"
    );
    assert!((fixed - 9904.8).abs() < 2.0, "{fixed}");
    assert!((adaptive - 9905.8).abs() < 2.0, "{adaptive}");
    assert!((adaptive_delta - 2078.0).abs() < 2.0, "{adaptive_delta}");
    // The notes have 2078 for the static coder too; ours takes the entropy and half a byte at the
    // end. Three standard deviations of the mean of 300.
    let shape = Shape { positions: 320_000, hashes: 2, keys: 10_000 };
    let message = Message::Delta { changed: 0.05 };
    let ideal = shape.entropy_bits(message) / 8.0 + 0.5;
    let deviation = shape.deviation_bits(message) / 8.0 / libm::sqrt(300.0);
    assert!((delta - ideal).abs() < 3.0 * deviation, "{delta} for {ideal} +- {deviation}");
    // To know the count, which is in the frame, saves less than a byte.
    assert!((counted_delta - delta).abs() < 1.0, "{counted_delta}");
}

/// The same static model in another implementation: its range coder flushes whole 32-bit words.
#[test]
fn sizes_of_constriction() {
    use constriction::stream::model::DefaultContiguousCategoricalEntropyModel as Model;
    let mut random = Random(9);
    for density in [0.006, 0.05, 0.13, 0.3, 0.5] {
        let bits = 100_000;
        let words = random.array(bits, density);
        let ones = count_ones(&words);
        let one = ones as f64 / bits as f64;
        let model = Model::from_floating_point_probabilities_fast(&[1.0 - one, one], None).unwrap();
        let mut theirs = DefaultRangeEncoder::new();
        for position in 0..bits {
            let bit = words[(position / 64) as usize] >> (position % 64) & 1;
            theirs.encode_symbol(bit as usize, model.clone()).unwrap();
        }
        let theirs = theirs.get_compressed().len() * 4;
        let ours = range::encode(&words, bits, Static::new(bits, ones)).len();
        assert!(ours <= theirs && theirs <= ours + 8, "{density}: {ours} {theirs}");
        let bound = entropy_bits(bits, ones) / 8.0;
        assert!(ours as f64 >= bound.floor() && ours as f64 <= bound + 1.5, "{ours} {bound}");
    }
    // There is one possible symbol: both coders write nothing.
    let mut nothing = DefaultRangeEncoder::new();
    nothing.encode_symbol(0, UniformModel::<u32, 24>::new(2)).unwrap();
    assert!(nothing.get_compressed().len() <= 1);
}

/// `Fast` has a fast coder within 0.6% at every density, and the model predicts the sizes.
#[test]
fn a_quick_coder_is_always_close() {
    let bits = 1 << 27;
    for step in 1..=5000 {
        let ones = bits / 10_000 * step;
        let coder = choose(bits, ones, Effort::Fast);
        let above = predicted_bits(coder, bits, ones).unwrap() / entropy_bits(bits, ones);
        assert!(above <= 1.006 + 1e-5, "{coder:?} at {}: {above}", step as f64 / 1e4);
        assert!(!matches!(coder, Coder::Static | Coder::Adaptive), "slow at {step}");
    }
    let mut random = Random(5);
    for density in [0.003, 0.02, 0.07, 0.13, 0.3, 0.45] {
        let bits = 2_000_000;
        let words = random.array(bits, density);
        for coder in CODERS {
            let size = encode_as(coder, &words, bits).len() as f64 * 8.0;
            let predicted = predicted_bits(coder, bits, count_ones(&words)).unwrap();
            let most = predicted_bits(Coder::Plain, bits, 1).unwrap();
            assert!((size / predicted.min(most) - 1.0).abs() < 0.003, "{coder:?} {density}");
        }
    }
}

/// Sparse arrays are not given to coders that go bit by bit: a decoder would refuse them.
#[test]
fn range_coders_keep_to_the_bits_a_byte_and_sizes_stay_close() {
    let mut random = Random(11);
    for bits in [1, 64, 1000, 70_001, 3_000_000] {
        for density in [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 0.002, 0.003, 0.0035, 0.01, 0.1, 0.9999, 1.0] {
            let words = random.array(bits, density);
            let ones = count_ones(&words);
            let frames = CODERS.map(|coder| encode_as(coder, &words, bits));
            let best = encode(&words, bits, Effort::Best);
            let bound = entropy_bits(bits, ones.min(bits - ones)) * 1.006 / 8.0 + 8.0;
            assert!(best.len() as f64 <= bound, "{bits} {density}: {} {bound}", best.len());
            for frame in frames.iter().chain([&best]) {
                let slow = matches!(frame[0] & !FLIPPED, 1 | 2);
                assert!(!slow || bits <= BITS_PER_BYTE * frame.len() as u64, "{bits} {density}");
                assert_eq!(decode(frame, bits).as_deref(), Ok(words.as_slice()));
            }
        }
    }
    assert_eq!(decode(&[1, 0], 513), Err(CoderError::Expansion));
    assert_eq!(decode(&[2, 0x80], 1 << 40), Err(CoderError::Expansion));
    assert_eq!(decode(&[4, 0xff, 0xff, 3], 1 << 40), Err(CoderError::Truncated));
}

#[test]
fn hostile_bytes_never_panic() {
    let is_range = |frame: &[u8]| matches!(frame[0] & !FLIPPED, 1 | 2);
    let mut random = Random(7);
    for (bits, density) in [(300, 0.1), (700, 0.02), (2000, 0.13), (1900, 0.8), (64, 0.5)] {
        let words = random.array(bits, density);
        let frames = CODERS
            .map(|coder| encode_as(coder, &words, bits))
            .into_iter()
            .chain([encode_pieces(&words, bits, 256, Effort::Fast)]);
        for frame in frames {
            for end in 0..frame.len() {
                // A shorter payload may be that of another array; the other coders notice that
                // something is missing.
                let decoded = decode(&frame[..end], bits);
                assert!(decoded.is_err() || is_range(&frame), "{} {end}", frame[0]);
                assert_ne!(decoded.as_ref(), Ok(&words));
            }
            for extra in [0, 1, 0xff] {
                let longer = [&frame[..], &[extra]].concat();
                let decoded = decode(&longer, bits);
                assert!(decoded.is_err() || is_range(&frame), "{} {extra}", frame[0]);
                assert_ne!(decoded.as_ref(), Ok(&words));
            }
            for index in 0..frame.len() {
                for change in 1..=255 {
                    let mut damaged = frame.clone();
                    damaged[index] ^= change;
                    if let Ok(other) = decode(&damaged, bits) {
                        // An array has one frame for each coder and cut, so other bytes are
                        // another array.
                        let cut = frame[0] == pieces::ID && index == 1;
                        assert!(cut || other != words, "{} {index} {change}", frame[0]);
                        assert_eq!(other.len(), words.len());
                        assert!(padding_is_zero(&other, bits));
                    }
                }
            }
            for wrong in [0, 1, bits - 1, bits + 1, bits * 2, 100_000] {
                let _ = decode(&frame, wrong);
            }
        }
    }
}

#[test]
fn sorted_numbers() {
    let mut random = Random(3);
    for universe in [1, 2, 1000, 1 << 40, 1 << 63, u64::MAX] {
        for count in [0, 1, 2, 100, 3000] {
            let mut values: Vec<u64> = (0..count).map(|_| random.below(universe)).collect();
            values.sort_unstable();
            let bytes = encode_sorted(values.len() as u64, values.iter().copied(), universe);
            assert_eq!(decode_sorted(&bytes, count, universe).as_ref(), Ok(&values));
            assert!(decode_sorted(&[&bytes[..], &[0]].concat(), count, universe).is_err());
            assert!(decode_sorted(&bytes, u64::MAX, universe).is_err());
            for end in 0..bytes.len().min(50) {
                assert!(decode_sorted(&bytes[..end], count, universe).is_err());
            }
            if count == 3000 && universe == 1 << 40 {
                // log2 C(n + U - 1, n) is n (log2(U / n) + 1.4427) to many digits.
                let bound = 3000.0 * (40.0 - libm::log2(3000.0) + std::f64::consts::LOG2_E);
                let above = bytes.len() as f64 * 8.0 / bound;
                assert!((0.999..1.006).contains(&above), "{above}");
            }
        }
    }
    // All in one place, at either end.
    for value in [0, u64::MAX - 1] {
        let values = [value; 9];
        let bytes = encode_sorted(values.len() as u64, values.iter().copied(), u64::MAX);
        assert_eq!(decode_sorted(&bytes, 9, u64::MAX).as_deref(), Ok(&values[..]));
    }
}

#[test]
fn counts_have_one_form() {
    for count in [0, 1, 127, 128, 16_383, 16_384, u64::MAX] {
        let mut bytes = Vec::new();
        numbers::put(&mut bytes, count);
        assert_eq!(numbers::take(&mut bytes.as_slice()), Some(count));
    }
    assert_eq!(numbers::take(&mut [0x80, 0].as_slice()), None);
    assert_eq!(numbers::take(&mut [0xff; 12].as_slice()), None);
    assert_eq!(numbers::take(&mut [0x80].as_slice()), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_array_comes_back(bits in 0..6000_u64, density in 0.0..=1.0_f64, seed: u64) {
        round_trip(&Random(seed).array(bits, density), bits);
    }

    #[test]
    fn any_words_come_back(words in proptest::collection::vec(any::<u64>(), 0..40), cut in 0..64_u64) {
        let mut words = words;
        let bits = (words.len() as u64 * 64).saturating_sub(cut);
        if let (Some(last), true) = (words.last_mut(), bits % 64 != 0) {
            *last &= (1 << (bits % 64)) - 1;
        }
        round_trip(&words, bits);
    }

    #[test]
    fn any_bytes_are_safe(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        id in 0..6_u8,
        flag: bool,
        bits in 0..5000_u64,
        count in 0..2000_u64,
        universe: u64,
    ) {
        let _ = decode_sorted(&bytes, count, universe);
        if let Some(first) = bytes.first_mut() {
            *first = id | if flag { FLIPPED } else { 0 };
        }
        let _ = decode(&bytes, bits);
    }
}
