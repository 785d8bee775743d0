//! Digests and addresses are frozen: these values must never change.

use std::hash::{DefaultHasher, Hasher as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tamis::internals::address::{BlockProbes, Sections, identity, probes, reduce};
use tamis::{Digest, HashId, Hasher, Key};

/// The buffer of the XXH3 specification's sanity checks.
fn sanity_buffer(len: usize) -> Vec<u8> {
    let mut generator = 2_654_435_761_u64;
    (0..len)
        .map(|_| {
            let byte = (generator >> 56) as u8;
            generator = generator.wrapping_mul(11_400_714_785_074_694_797);
            byte
        })
        .collect()
}

/// Length, seed and `XXH3_64bits_withSeed`, as the reference implementation has them.
const XXH3: [(usize, u64, u64); 22] = [
    (0, 0x0, 0x2d06800538d394c2),
    (1, 0x0, 0xc44bdff4074eecdb),
    (6, 0x0, 0x27b56a84cd2d7325),
    (12, 0x0, 0xa713daf0dfbb77e7),
    (24, 0x0, 0xa3fe70bf9d3510eb),
    (48, 0x0, 0x397da259ecba1f11),
    (80, 0x0, 0xbcdefbbb2c47c90a),
    (195, 0x0, 0xcd94217ee362ec3a),
    (403, 0x0, 0xcdeb804d65c6dea4),
    (512, 0x0, 0x617e49599013cb6b),
    (2048, 0x0, 0xdd59e2c3a5f038e0),
    (0, 0x9e3779b185ebca8d, 0xa8a6b918b2f0364a),
    (1, 0x9e3779b185ebca8d, 0x032be332dd766ef8),
    (6, 0x9e3779b185ebca8d, 0x84589c116ab59ab9),
    (12, 0x9e3779b185ebca8d, 0xe7303e1b2336de0e),
    (24, 0x9e3779b185ebca8d, 0x850e80fc35bdd690),
    (48, 0x9e3779b185ebca8d, 0xadc2cbaa44acc616),
    (80, 0x9e3779b185ebca8d, 0xc6dd0cb699532e73),
    (195, 0x9e3779b185ebca8d, 0xba68003d370cb3d9),
    (403, 0x9e3779b185ebca8d, 0x6259f6ecfd6443fd),
    (512, 0x9e3779b185ebca8d, 0x3ce457de14c27708),
    (2048, 0x9e3779b185ebca8d, 0x66f81670669ababc),
];

#[test]
fn xxh3_is_the_specifications() {
    for (len, seed, expected) in XXH3 {
        assert_eq!(
            Hasher::xxh3(seed).digest_bytes(&sanity_buffer(len)).0,
            expected,
            "{len} {seed}"
        );
    }
}

/// SipHash-1-3 of the bytes 0, 1, 2, ... under the key 0, 1, ..., 15.
const SIP13: [(u8, u64); 6] = [
    (0, 0xabac0158050fc4dc),
    (1, 0xc9f49bf37d57ca93),
    (7, 0xd3927d989bb11140),
    (8, 0x369095118d299a8e),
    (15, 0xd320d86d2a519956),
    (63, 0x9d199062b7bbb3a8),
];

#[test]
fn sip13_is_the_references() {
    let key = u128::from_le_bytes(std::array::from_fn(|i| i as u8));
    for (len, expected) in SIP13 {
        let bytes: Vec<u8> = (0..len).collect();
        assert_eq!(Hasher::sip13(key).digest_bytes(&bytes).0, expected, "{len}");
    }
    // The standard library's default hasher is SipHash-1-3 under the key 0, written independently.
    for len in 0..100 {
        let bytes = sanity_buffer(len);
        let mut reference = DefaultHasher::new();
        reference.write(&bytes);
        assert_eq!(Hasher::sip13(0).digest_bytes(&bytes).0, reference.finish());
    }
}

/// Length, seed and `XXH64`, as the reference implementation has them.
const XXH64: [(usize, u64, u64); 18] = [
    (0, 0x0, 0xef46db3751d8e999),
    (1, 0x0, 0xe934a84adb052768),
    (4, 0x0, 0x9136a0dca57457ee),
    (8, 0x0, 0xcdbcf538e71d1348),
    (14, 0x0, 0x8282dcc4994e35c8),
    (31, 0x0, 0x299b39a290e6d783),
    (32, 0x0, 0x18b216492bb44b70),
    (222, 0x0, 0xb641ae8cb691c174),
    (2048, 0x0, 0x5940f2752bc04387),
    (0, 0x9e3779b1, 0xac75fda2929b17ef),
    (1, 0x9e3779b1, 0x5014607643a9b4c3),
    (4, 0x9e3779b1, 0xcaab286bd8e9fdb5),
    (8, 0x9e3779b1, 0xfe0c047a5353cdac),
    (14, 0x9e3779b1, 0xc3bd6bf63deb6df0),
    (31, 0x9e3779b1, 0xda673d5feb5c1d79),
    (32, 0x9e3779b1, 0xb3f33bdf93ade409),
    (222, 0x9e3779b1, 0x20cb8ab7ae10c14a),
    (2048, 0x9e3779b1, 0xaa26f33c2898013b),
];

#[test]
fn xxh64_is_the_references() {
    for (len, seed, expected) in XXH64 {
        let digest = Hasher::xxh64(seed).digest_bytes(&sanity_buffer(len));
        assert_eq!(digest.0, expected, "{len} {seed}");
    }
}

#[test]
fn hashers_from_stored_parts() {
    assert_eq!(Hasher::from_parts(HashId::Xxh3, 7), Some(Hasher::xxh3(7)));
    assert_eq!(Hasher::from_parts(HashId::Xxh3, 1 << 64), None);
    assert_eq!(Hasher::from_parts(HashId::Sip13, 1 << 64), Some(Hasher::sip13(1 << 64)));
    assert_eq!(Hasher::from_parts(HashId::Xxh64, 7), Some(Hasher::xxh64(7)));
    assert_eq!(Hasher::from_parts(HashId::Xxh64, 1 << 64), None);
    for &id in HashId::ALL {
        assert_eq!(HashId::from_id(id as u8), Some(id));
    }
    assert_eq!([0, 4].map(HashId::from_id), [None; 2]);
}

fn bytes_of<K: Key>(key: K) -> Vec<u8> {
    key.with_bytes(<[u8]>::to_vec)
}

#[test]
fn keys_spell_themselves() {
    assert_eq!(bytes_of("aé"), "aé".as_bytes());
    assert_eq!(bytes_of(String::from("x")), b"x");
    assert_eq!(bytes_of([1_u8, 2]), [1, 2]);
    assert_eq!(bytes_of(vec![3_u8]), [3]);
    assert_eq!(bytes_of(&[9_u8][..]), [9]);
    assert_eq!(bytes_of(std::borrow::Cow::Borrowed("c")), b"c");
    assert_eq!(bytes_of(0x0102_u16), [2, 1]);
    assert_eq!(bytes_of(-2_i32), [0xfe, 0xff, 0xff, 0xff]);
    assert_eq!(bytes_of(1_u128).len(), 16);
    assert_eq!(bytes_of('é'), "é".as_bytes());
    let shared: std::sync::Arc<str> = "shared".into();
    assert_eq!(bytes_of(shared), b"shared");
    assert_eq!(bytes_of(Box::<[u8]>::from([7, 8])), [7, 8]);
    assert_eq!(bytes_of(std::borrow::Cow::Borrowed(&[5_u8, 6][..])), [5, 6]);
    assert_eq!(bytes_of([1_u32, 2]), [1, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(bytes_of(&[3_i16][..]), [3, 0]);
    assert_eq!(bytes_of(("a", 1_u8)), [1, 0, 0, 0, 0, 0, 0, 0, b'a', 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_ne!(bytes_of(("ab", "c", "")), bytes_of(("a", "bc", "")));
    // Longer than what is put together on the stack.
    let long = "x".repeat(300);
    let joined = bytes_of((long.as_str(), "y", &long, 'z'));
    assert_eq!(joined.len(), 4 * 8 + 602);
    assert_eq!(joined[8..308], *long.as_bytes());
    assert_eq!(bytes_of([9_u64; 40]).len(), 320);
    let four = Ipv4Addr::new(192, 0, 2, 1);
    assert_eq!(bytes_of(four), [192, 0, 2, 1]);
    assert_eq!(bytes_of(IpAddr::V4(four)), bytes_of(four));
    assert_eq!(bytes_of(Ipv6Addr::LOCALHOST)[15], 1);
    assert_eq!(bytes_of(IpAddr::V6(Ipv6Addr::LOCALHOST)), bytes_of(Ipv6Addr::LOCALHOST));
}

#[test]
fn addresses_are_frozen() {
    // Computed apart from this library, in integers of unlimited size.
    let digest = Digest(0x0123_4567_89ab_cdef);
    assert_eq!(reduce(u64::MAX, 10), 9);
    assert_eq!(reduce(0, 10), 0);
    assert_eq!(identity(digest, 1 << 20), 0x0123_4567_89ab_cdef >> 44);
    assert_eq!(digest.word(0), 0x8e39_8032_3f3d_ce39);
    assert_eq!(digest.word(1), 0xa33b_a70b_2933_3ab3);
    assert_eq!(probes(digest, 5, 1000).collect::<Vec<_>>(), [4, 679, 520, 510, 102]);
    assert_eq!(
        BlockProbes::new(digest, 8, 512).positions().collect::<Vec<_>>(),
        [198, 334, 325, 375, 110, 134, 263, 21]
    );
    assert_eq!(
        BlockProbes::new(digest, 4, 256).positions().collect::<Vec<_>>(),
        [99, 167, 162, 187]
    );
    let in_sections =
        |block, number| Sections { block, number }.positions(digest).collect::<Vec<_>>();
    assert_eq!(in_sections(256, 8), [18, 51, 94, 119, 132, 176, 204, 248]);
    assert_eq!(in_sections(512, 6), [50, 136, 253, 317, 353, 469]);
    assert_eq!(
        in_sections(512, 16),
        [18, 51, 94, 119, 132, 176, 204, 248, 259, 292, 343, 357, 408, 430, 464, 487]
    );
}

#[test]
fn doubling_the_universe_appends_a_bit() {
    for word in (0..1000).map(|index| Digest(7).word(index)) {
        let small = identity(Digest(word), 12_345 << 10);
        assert_eq!(identity(Digest(word), 12_345 << 11) >> 1, small);
    }
}

/// Chi-square of counts that should be equal, in standard deviations of its distribution.
fn chi_square_excess(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let chi: f64 = counts.iter().map(|&count| (count as f64 - mean).powi(2) / mean).sum();
    let freedom = counts.len() as f64 - 1.0;
    (chi - freedom) / (2.0 * freedom).sqrt()
}

#[test]
fn probes_are_uniform_and_pairwise_independent() {
    // Pairs of positions over all pairs of probes: the fault of double hashing would show here.
    let digests: Vec<Digest> = (0..200_000_u64).map(|i| Hasher::xxh3(5).digest(&i)).collect();
    for (first, second) in [(0, 1), (0, 2), (1, 3), (2, 7), (0, 7), (5, 6), (6, 8), (9, 15)] {
        let mut plain = vec![0_u64; 19 * 19];
        let mut block = vec![0_u64; 16 * 16];
        let mut section = vec![0_u64; 16 * 16];
        for &digest in &digests {
            let at: Vec<u64> = probes(digest, 16, 19).collect();
            plain[(at[first] * 19 + at[second]) as usize] += 1;
            let at: Vec<usize> = BlockProbes::new(digest, 16, 512).positions().collect();
            block[at[first] / 32 * 16 + at[second] / 32] += 1;
            let at: Vec<usize> = Sections { block: 512, number: 16 }.positions(digest).collect();
            section[at[first] % 32 / 2 * 16 + at[second] % 32 / 2] += 1;
        }
        assert!(chi_square_excess(&plain).abs() < 5.0, "probes {first} and {second}");
        assert!(chi_square_excess(&block).abs() < 5.0, "block probes {first} and {second}");
        assert!(chi_square_excess(&section).abs() < 5.0, "sections {first} and {second}");
    }
}
