//! Random layouts and histories of every kind beside an exact multiset; see
//! `tamis_testkit::model`.

use tamis::blocked_rank::BlockedRankParams;
use tamis::rank_indexed::RankParams;
use tamis::{Effort, Kind, Params};
use tamis_testkit::model::{self, Keys, Partner, Shape, Step, replay};

/// About a minute of one core. `scripts/long` asks for more.
const OPERATIONS: u64 = 60_000_000;

#[test]
fn every_kind_agrees_with_an_exact_multiset() {
    let number = |name: &str, or: u64| {
        std::env::var(name).map_or(or, |text| text.parse().expect("a whole number"))
    };
    let operations = number("TAMIS_MODEL_OPERATIONS", OPERATIONS);
    let start = std::time::Instant::now();
    match model::run(number("TAMIS_MODEL_FIRST", 0), operations) {
        Ok(ran) => println!("{ran:?} in {:.0?}", start.elapsed()),
        Err(failure) => panic!("{failure}"),
    }
}

fn keys(shape: Shape, number: u64) -> Keys {
    Keys { shape, seed: 1, number }
}

fn fresh(number: u64) -> Step {
    Step::Insert(keys(Shape::Fresh, number), 0)
}

fn alike(bits: u32, number: u64) -> Step {
    Step::Insert(keys(Shape::Alike(bits), number), 0)
}

/// Runs `steps` on a table with these buckets, locations, fingerprint, extra, capacity and groups,
/// and with the levels that a plan would choose.
fn rank(kind: Kind, frame: [u64; 6], steps: &[Step]) {
    let [buckets, locations, fingerprint, extra, capacity, groups] = frame;
    let [locations, fingerprint, extra] = [locations, fingerprint, extra].map(|value| value as u32);
    let params = RankParams::new(buckets, locations, fingerprint, extra, capacity, groups).unwrap();
    replay(kind, &params.values(), 1, steps);
}

/// Runs `steps` on a filter with these blocks, locations, cells, fingerprint and capacity, and
/// with the back table that a plan would choose.
fn blocked_rank(front: [u64; 5], steps: &[Step]) {
    let [blocks, locations, cells, fingerprint, capacity] = front;
    let [locations, cells, fingerprint] = [locations, cells, fingerprint].map(|value| value as u32);
    let params =
        BlockedRankParams::new(512, blocks, locations, cells, fingerprint, capacity).unwrap();
    replay(Kind::BlockedRank, &params.values(), 1, steps);
}

#[test]
fn tables_far_past_their_plan_are_read_back() {
    rank(Kind::RankSet, [6, 1, 14, 0, 9, 6], &[Step::Coarsen(2), alike(5, 26), Step::Encode]);
    rank(Kind::RankMap, [6, 1, 1, 2, 10, 6], &[alike(41, 17), Step::Shrink, Step::Encode]);
}

/// Merging with a coarser filter leaves identities for which no layout has room, and the overflow
/// takes the rest.
#[test]
fn what_outgrows_every_layout_takes_the_memory_that_is_predicted() {
    let values = [17, 61, 2, 8, 1129, 1, 83, 13, 31, 8, 3];
    let steps = [
        Step::Merge(Keys { shape: Shape::Fresh, seed: 466_883_065, number: 0 }, Partner::Coarser),
        Step::Insert(
            Keys { shape: Shape::Fresh, seed: 13_838_298_159_639_243_608, number: 5418 },
            0,
        ),
    ];
    replay(Kind::RankMap, &values, 3360, &steps);
}

/// With one block the list of a balanced filter is all or nothing; its mean says little.
#[test]
fn one_full_block_lists_most_keys() {
    let fresh = |seed, number| Step::Insert(Keys { shape: Shape::Fresh, seed, number }, 0);
    let values = [1, 256, 31, 1, 0, 31, 4_294_967_296, 35, 0];
    let steps = [fresh(13_478_012_970_629_962_874, 284), fresh(135_189_864, 4)];
    replay(Kind::BalancedSingle, &values, 1, &steps);
}

/// Keys that come block by block fill the back table of the first blocks long before there are
/// enough of them to fill all blocks.
#[test]
fn what_grows_by_a_delta_takes_the_memory_of_what_grows_by_keys() {
    let keys = Keys { shape: Shape::Fresh, seed: 17_591_056_986_736_377_575, number: 7300 };
    let steps = [Step::Keep, Step::Insert(keys, 0), Step::Patch];
    blocked_rank([174, 29, 28, 16, 1255], &steps);
}

/// Half of the keys go to the overflow at once.
#[test]
fn shrinking_far_below_the_keys_takes_no_longer_than_other_changes() {
    let keys = Keys { shape: Shape::Fresh, seed: 447_743_188_290_981_846, number: 268_062 };
    let steps = [Step::Insert(keys, 1), Step::RemoveValues(2_787_642_398, 3), Step::Shrink];
    replay(Kind::DLeft, &[4, 1193, 8, 14, 0], 1167, &steps);
}

/// The length of the trimmed form depends on where identities are, which the packed form does not
/// say.
#[test]
fn the_shorter_form_is_the_shorter_one_when_read_back() {
    let ends = Step::Insert(Keys { shape: Shape::Ends, seed: 1144166881, number: 1 }, 0);
    let values = Step::InsertValues(Keys { shape: Shape::Fresh, seed: 764332920, number: 6 });
    let steps =
        [ends, values, Step::Remove(1131289679, 4, 0), Step::Shrink, Step::Pack(Effort::Fast)];
    replay(Kind::DLeft, &[2, 2, 1, 3, 0], 4520, &steps);
}

#[test]
fn keys_of_one_bucket_do_not_make_a_table_grow() {
    rank(Kind::RankSet, [15, 4, 56, 0, 39, 1], &[alike(22, 53)]);
    rank(Kind::RankIndexed, [15, 4, 40, 0, 39, 1], &[alike(22, 2000), Step::Encode]);
    blocked_rank([5, 64, 18, 15, 223], &[alike(10, 183), Step::Encode]);
    blocked_rank([17, 64, 25, 16, 683], &[fresh(300), alike(12, 300), Step::Encode]);
    blocked_rank([1000, 30, 30, 10, 1], &[alike(40, 400)]);
    blocked_rank([1, 28, 26, 10, 256], &[fresh(79), alike(46, 51)]);
}

#[test]
fn memory_past_every_layout_is_as_predicted() {
    rank(Kind::RankMap, [2, 1, 9, 8, 2, 1], &[fresh(1735)]);
    rank(Kind::RankIndexed, [10, 28, 1, 0, 33, 10], &[fresh(1708)]);
    rank(Kind::RankCounting, [222, 8, 1, 2, 998, 1], &[Step::Resize(47), fresh(6623)]);
}

#[test]
fn merging_grows_as_inserting_does() {
    let merge = |number| Step::Merge(keys(Shape::Fresh, number), Partner::Alike);
    blocked_rank([40, 7, 38, 9, 16], &[merge(33)]);
    blocked_rank([9, 15, 5, 11, 3], &[fresh(7), merge(0)]);
    // The back table grows from room for one key to room for hundreds, while the blocks grow no
    // more.
    blocked_rank([1, 24, 18, 8, 6], &[fresh(2865), merge(12)]);
    blocked_rank([1, 54, 21, 4, 4], &[fresh(186), Step::Shards(keys(Shape::Fresh, 85), 1)]);
}

#[test]
fn identities_that_come_often_are_part_of_a_prediction() {
    replay(Kind::DLeft, &[1, 448, 8, 2, 0], 1, &[fresh(2973)]);
    replay(Kind::DLeft, &[2, 29, 7, 3, 0], 1, &[fresh(566)]);
    replay(Kind::DLeft, &[5, 1, 8, 11, 0], 1, &[fresh(4195)]);
    replay(Kind::DLeft, &[1, 3000, 1, 20, 0], 1, &[fresh(2900)]);
}

#[test]
fn removing_whatever_value_takes_the_smallest() {
    let values = |number| Step::InsertValues(keys(Shape::Fresh, number));
    rank(Kind::RankMap, [1, 1, 1, 1, 1, 1], &[values(40), Step::Remove(1, 39, 0)]);
    replay(Kind::DLeft, &[1, 2, 3, 1, 2], 1, &[values(40), Step::Remove(1, 39, 0)]);
}

/// What is taken from behind a block of the back table may leave a shorter run there, which fits.
/// (A file that was written then was refused.)
#[test]
fn what_fits_again_behind_comes_back() {
    let fresh = |seed, number| Step::Insert(Keys { shape: Shape::Fresh, seed, number }, 0);
    replay(
        Kind::BlockedRank,
        &[512, 4, 24, 13, 20, 165, 2048, 3, 32, 95, 20, 0, 0, 0, 0, 0],
        1,
        &[
            fresh(4005173954, 1380),
            Step::Churn(1123325155, 175),
            fresh(2068653243, 144),
            Step::Encode,
            Step::Churn(3501716309, 1),
        ],
    );
}
