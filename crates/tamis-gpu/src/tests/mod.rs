//! The kernels beside the library, byte by byte, without a GPU.

mod emulated;

use tamis::blocked_rank::BlockedRankParams;
use tamis::{Count, Digest, Filter, Goal, Hasher, Insert, Params, Remove, Stored};

use self::emulated::Emulated;
use crate::machine::Machine;
use crate::{Blocked, BlockedRank, Error, Keys};

/// Params for `keys` keys in blocks of `block` bits at a rate.
fn planned(keys: u64, rate: f64, block: u64) -> BlockedRankParams {
    let mut goal = Goal::rate(keys, rate);
    goal.fixed.push(("block".into(), block));
    tamis::BlockedRank::least(&goal).unwrap()
}

/// Shapes of every size of block, from wide fingerprints to narrow ones.
fn shapes(keys: u64) -> Vec<BlockedRankParams> {
    let mut shapes = Vec::new();
    for block in [512, 1024, 2048, 16384] {
        for rate in [0.03, 0.0003] {
            shapes.push(planned(keys, rate, block));
        }
    }
    shapes
}

fn digests(from: u64, number: u64) -> Vec<Digest> {
    (from..from + number).map(|key| Hasher::default().digest(&key)).collect()
}

fn words(digests: &[Digest]) -> Vec<u64> {
    digests.iter().map(|digest| digest.0).collect()
}

/// Both filters have the same bytes.
fn assert_same(gpu: &BlockedRank<Emulated>, cpu: &tamis::BlockedRank) {
    let here = gpu.to_cpu().unwrap();
    assert_eq!(here.content_id(), cpu.content_id());
    assert_eq!(here.to_bytes(), cpu.to_bytes());
}

#[test]
fn integers_and_bytes_have_the_digests_of_the_library() {
    let machine = Emulated::new();
    let params = planned(100, 0.01, 512);
    for seed in [0, 1, 0xdead_beef_0123_4567] {
        let hasher = Hasher::xxh3(seed);
        let mut filter = BlockedRank::new(&machine, params, hasher).unwrap();
        let lengths = (0..=300).chain([511, 512, 1023, 1024, 1025, 2048, 5000]);
        let (mut bytes, mut offsets, mut wanted) = (Vec::new(), vec![0], Vec::new());
        for length in lengths {
            let key: Vec<u8> =
                (0..length).map(|at: u64| Digest(at ^ length).word(seed) as u8).collect();
            wanted.push(hasher.digest_bytes(&key).0);
            bytes.extend(key);
            offsets.push(bytes.len() as u64);
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let number = wanted.len() as u64;
        let packed: Vec<u64> =
            bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(filter.digests(&packed, &offsets, number).unwrap(), wanted);
        // Integers are hashed on the way.
        let keys: Vec<u64> = (0..100).map(|key| Digest(key).word(0)).collect();
        filter.insert(&Keys::Integers(&keys, 100)).unwrap();
        let cpu = filter.to_cpu().unwrap();
        assert!(keys.iter().all(|key| cpu.contains(key)));
        // Offsets that lead astray are refused.
        let past = [0, 8 * packed.len() as u64 + 1].to_vec();
        assert!(matches!(filter.digests(&packed, &past, 1), Err(Error::Offsets)));
        assert!(matches!(filter.digests(&packed, &vec![8, 4], 1), Err(Error::Offsets)));
        assert!(matches!(filter.digests(&packed, &vec![0], 1), Err(Error::Short { .. })));
    }
}

#[test]
fn what_is_built_has_the_bytes_of_the_library() {
    let machine = Emulated::new();
    for keys in [1, 20_000] {
        for params in shapes(keys) {
            let given = digests(0, keys);
            let mut cpu = tamis::BlockedRank::new(
                params,
                tamis::Label::planned(Hasher::default(), params.capacity()),
            )
            .unwrap();
            cpu.insert_many(&given).unwrap();
            let mut gpu = BlockedRank::new(&machine, params, Hasher::default()).unwrap();
            gpu.insert(&Keys::Digests(&words(&given), keys)).unwrap();
            assert_same(&gpu, &cpu);
        }
    }
}

/// Inserts and removes batches at random, keys that come often and absent ones among them.
#[test]
fn batches_that_come_and_go_leave_the_bytes_of_the_library() {
    let machine = Emulated::new();
    let keys = 6000;
    // Each size of block, with wide fingerprints and with narrow ones by turns.
    let chosen =
        shapes(keys).into_iter().enumerate().filter(|(number, _)| [0, 3, 4, 7].contains(number));
    for (number, params) in chosen {
        let mut random = Digest(number as u64);
        let mut next = |below: u64| {
            random = Digest(random.word(1));
            random.0 % below
        };
        let label = tamis::Label::planned(Hasher::default(), params.capacity());
        let mut cpu = tamis::BlockedRank::new(params, label).unwrap();
        let mut gpu = BlockedRank::new(&machine, params, Hasher::default()).unwrap();
        let mut inside: Vec<Digest> = Vec::new();
        for step in 0..24 {
            if inside.len() as u64 <= keys / 2 || (step % 3 != 2 && inside.len() as u64 <= keys) {
                let mut batch = digests(next(1 << 40), next(keys / 2));
                // One key several times: more than a block holds, every eighth time.
                let times = if step % 8 == 7 { 200 } else { next(5) };
                batch.extend(std::iter::repeat_n(Digest(next(u64::MAX)), times as usize));
                cpu.insert_many(&batch).unwrap();
                gpu.insert(&Keys::Digests(&words(&batch), batch.len() as u64)).unwrap();
                inside.extend(batch);
            } else {
                let mut batch = Vec::new();
                for _ in 0..next(inside.len() as u64 + 1) {
                    batch.push(inside.swap_remove(next(inside.len() as u64) as usize));
                }
                batch.extend(
                    digests(next(1 << 40), 100)
                        .iter()
                        .filter(|&&absent| !cpu.contains_digest(absent)),
                );
                let removed =
                    gpu.remove(&Keys::Digests(&words(&batch), batch.len() as u64)).unwrap();
                assert_eq!(removed, cpu.remove_many(&batch));
            }
            assert_same(&gpu, &cpu);
        }
        let asked = [&inside[..], &digests(1 << 50, 5000)].concat();
        let answers = gpu.contains(&Keys::Digests(&words(&asked), asked.len() as u64)).unwrap();
        let counts = gpu.count(&Keys::Digests(&words(&asked), asked.len() as u64)).unwrap();
        for ((&digest, answer), count) in asked.iter().zip(answers).zip(counts) {
            assert_eq!(answer, cpu.contains_digest(digest));
            assert_eq!(Some(count), cpu.count_digest(digest));
        }
        let contained = gpu.contained(&Keys::Digests(&words(&asked), asked.len() as u64)).unwrap();
        assert_eq!(contained, asked.iter().filter(|&&one| cpu.contains_digest(one)).count() as u64);
        // Merged with itself, from the library and back.
        let other = BlockedRank::from_cpu(&machine, &cpu).unwrap();
        gpu.merge(&other).unwrap();
        let twin = cpu.clone();
        cpu.merge(&twin).unwrap();
        assert_eq!(gpu.to_cpu().unwrap().content_id(), cpu.content_id());
    }
}

#[test]
fn a_filter_far_past_its_plan_grows() {
    let machine = Emulated::new();
    let params = planned(1000, 0.01, 512);
    let given = digests(0, 20_000);
    let mut gpu = BlockedRank::new(&machine, params, Hasher::default()).unwrap();
    let mut cpu = tamis::BlockedRank::new(
        params,
        tamis::Label::planned(Hasher::default(), params.capacity()),
    )
    .unwrap();
    for batch in given.chunks(3000) {
        gpu.insert(&Keys::Digests(&words(batch), batch.len() as u64)).unwrap();
        cpu.insert_many(batch).unwrap();
    }
    assert_eq!(gpu.to_cpu().unwrap().content_id(), cpu.content_id());
    assert!(gpu.params().blocks() > params.blocks());
}

#[test]
fn blocked_has_the_bits_of_the_library() {
    let machine = Emulated::new();
    for rate in [0.3, 0.01, 0.0003] {
        let mut cpu = tamis::BlockedBloom::with_rate(3000, rate).unwrap();
        let given = digests(0, 3000);
        cpu.insert_many(&given).unwrap();
        let mut gpu = Blocked::new(&machine, cpu.params(), Hasher::default()).unwrap();
        let keys: Vec<u64> = (0..3000).collect();
        gpu.insert(&Keys::Integers(&keys, 3000)).unwrap();
        assert_eq!(gpu.words().unwrap(), cpu.blocks().flatten().copied().collect::<Vec<_>>());
        let same = gpu.to_cpu().unwrap();
        assert_eq!((same.content_id(), gpu.keys()), (cpu.content_id(), 3000));
        let gpu = Blocked::from_cpu(&machine, &cpu).unwrap();
        assert_eq!(gpu.to_cpu().unwrap().to_bytes(), cpu.to_bytes());
        let asked = digests(1000, 10_000);
        let mut answers = machine.allocate(1250).unwrap();
        gpu.contains_into(&Keys::Digests(&words(&asked), 10_000), &mut answers).unwrap();
        let answers = answers.iter().flat_map(|word| word.to_le_bytes());
        for (answer, &digest) in answers.zip(&asked) {
            assert_eq!(answer != 0, cpu.contains_digest(digest));
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let machine = Emulated::new();
    let params = planned(100, 0.01, 512);
    let mut filter = BlockedRank::new(&machine, params, Hasher::sip13(1)).unwrap();
    let keys = vec![1, 2, 3];
    assert!(matches!(filter.insert(&Keys::Integers(&keys, 3)), Err(Error::Hash)));
    assert!(matches!(filter.insert(&Keys::Digests(&keys, 4)), Err(Error::Short { .. })));
    assert!(matches!(
        filter.contains_into(&Keys::Digests(&keys, 3), &mut Vec::new()),
        Err(Error::Short { .. })
    ));
    let other = BlockedRank::new(&machine, params, Hasher::default()).unwrap();
    assert!(matches!(filter.merge(&other), Err(Error::Mismatch)));
    assert_eq!(filter.keys(), 0);
    assert_eq!(params.values().len(), BlockedRankParams::NAMES.len());
}

/// Whichever allocation fails, a batch is in, or it is not, or the filter refuses everything.
#[test]
fn without_memory_no_key_is_lost_silently() {
    let machine = Emulated::new();
    let keys = 3000;
    // Narrow blocks and more keys than planned: a lot goes behind, into every level and the list.
    let params = planned(keys / 2, 0.03, 512);
    let (first, second) = (digests(0, keys), digests(1 << 30, keys));
    let [mut refused, mut damaged] = [0; 2];
    for removes in [false, true] {
        for allowed in 0.. {
            machine.allow(u64::MAX);
            let mut gpu = BlockedRank::new(&machine, params, Hasher::default()).unwrap();
            gpu.insert(&Keys::Digests(&words(&first), keys)).unwrap();
            let before = gpu.to_cpu().unwrap();
            machine.allow(allowed);
            let batch = words(if removes { &first } else { &second });
            let outcome = if removes {
                gpu.remove(&Keys::Digests(&batch, keys)).map(drop)
            } else {
                gpu.insert(&Keys::Digests(&batch, keys))
            };
            machine.allow(u64::MAX);
            match (outcome, gpu.to_cpu()) {
                (Err(Error::OutOfMemory { .. }), Ok(same)) => {
                    assert_eq!(same.to_bytes(), before.to_bytes());
                    refused += 1;
                }
                (Err(Error::OutOfMemory { .. }), Err(Error::HalfDone)) => {
                    let asked = Keys::Digests(&batch, keys);
                    assert!(matches!(gpu.contains(&asked), Err(Error::HalfDone)));
                    assert!(matches!(gpu.count(&asked), Err(Error::HalfDone)));
                    assert!(matches!(gpu.insert(&asked), Err(Error::HalfDone)));
                    assert!(matches!(gpu.remove(&asked), Err(Error::HalfDone)));
                    let mut other =
                        BlockedRank::new(&machine, *gpu.params(), Hasher::default()).unwrap();
                    assert!(matches!(other.merge(&gpu), Err(Error::HalfDone)));
                    damaged += 1;
                }
                (Ok(()), Ok(changed)) => {
                    let mut cpu = before.clone();
                    if removes {
                        cpu.remove_many(&first);
                    } else {
                        cpu.insert_many(&second).unwrap();
                    }
                    assert_eq!(changed.content_id(), cpu.content_id());
                    // (One that may have been too large to grow is inserted all the same.)
                    if gpu.params() == &cpu.params() {
                        break;
                    }
                }
                (outcome, _) => panic!("{outcome:?}"),
            }
        }
    }
    assert!(refused > 8 && damaged > 8, "{refused} refused, {damaged} damaged");
}

/// A damaged file that is opened in place, where nothing is checked, goes to no GPU.
#[test]
fn a_damaged_filter_is_refused() {
    let machine = Emulated::new();
    let mut filter = tamis::BlockedRank::with_rate(1000, 0.01).unwrap();
    filter.insert_many(&digests(0, 1000)).unwrap();
    let good = filter.to_bytes();
    let (mut refused, mut opened) = (0, 0);
    for at in (good.len() / 2..good.len()).step_by(61) {
        let mut bad = good.clone();
        bad[at] ^= 0x5a;
        let bytes: tamis::SharedBytes = std::sync::Arc::new(bad);
        let Ok(damaged) = tamis::BlockedRank::open(&bytes) else { continue };
        opened += 1;
        match BlockedRank::from_cpu(&machine, &damaged) {
            Err(Error::Invalid(_)) => refused += 1,
            // (What is left is a filter: of other keys, or damaged beside its blocks.)
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(opened > 5 && refused * 2 > opened, "{refused} of {opened}");
}
