//! Permutations of identities: products, multipliers, and the relations that they must not have.

use tamis::internals::permutation::{
    Permutation, SHORTEST_RELATION, SMALL_UNIVERSE_SHARE, multipliers, relation,
};

const UNIVERSES: [u64; 9] =
    [2, 14, 24, 31 << 9, 2000 << 14, 1 << 25, 12_345_679 << 30, 7 << 40, (1 << 62) - 2];

#[test]
fn products_need_no_division() {
    for universe in UNIVERSES {
        for factor in [1, universe / 2, universe - 1] {
            for number in [0, 1, universe / 3, universe - 1] {
                let plain = u128::from(factor) * u128::from(number) % u128::from(universe);
                let permuted = Permutation::new(factor, universe).apply(number, universe);
                assert_eq!(u128::from(permuted), plain);
            }
        }
    }
}

/// The sets that the notes found bad (3.4, item 4) have short relations; the chosen ones have
/// none.
#[test]
fn multipliers_have_no_short_relation() {
    let universe = 1 << 25;
    assert_eq!(relation(12_345, 12_345, universe), 2);
    assert_eq!(relation(1, 1 + (1 << 24), universe), 8);
    assert_eq!(relation(1, 3, universe), 10);
    assert_eq!(relation(5, 7, universe), 74);
    for universe in UNIVERSES {
        let least = universe / (SMALL_UNIVERSE_SHARE * SMALL_UNIVERSE_SHARE);
        let least = least.min(SHORTEST_RELATION * SHORTEST_RELATION);
        let chosen = multipliers::<4>(4, universe);
        if universe < 1000 {
            continue; // There are so few multipliers that the best is taken.
        }
        for (at, &one) in chosen.iter().enumerate() {
            assert!(relation(1, one, universe) >= least, "{universe}");
            for &other in &chosen[..at] {
                assert!(relation(other, one, universe) >= least, "{universe}: {other}, {one}");
            }
        }
    }
}

/// Lagrange's reduction finds what trying all pairs finds.
#[test]
fn relations_are_the_shortest() {
    for (a, b, universe) in [(3, 20, 77), (1, 19, 64), (5, 8, 1001), (17, 401, 4096), (9, 2, 35)] {
        let all = (-64..=64_i64).flat_map(|c| (-64..=64_i64).map(move |d| (c, d)));
        let relations = all.filter(|&(c, d)| {
            (c, d) != (0, 0) && (c * a as i64 + d * b as i64).rem_euclid(universe as i64) == 0
        });
        let shortest = relations.map(|(c, d)| (c * c + d * d) as u64).min();
        assert_eq!(Some(relation(a, b, universe)), shortest, "{a} {b} mod {universe}");
    }
}
