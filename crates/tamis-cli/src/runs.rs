//! Digests that a filter is built from again: kept so that neighbours come together.

use std::fs::File;
use std::ops::Range;

use anyhow::Result;
use tamis::Digest;

use crate::spool::{IN_MEMORY, append, read_at};

/// Groups of digests, by their first bits. Filters place keys in the order of their digests, so
/// that the part of a filter that one group goes to fits into a cache where the filter does not.
const GROUPS: usize = 256;

/// Digests in runs of [`IN_MEMORY`], each in the order of its groups. All but the last run are in
/// a temporary file without a name.
#[derive(Default)]
pub(crate) struct Runs {
    file: Option<File>,
    /// Where each group ends, in every run of the file.
    ends: Vec<Ends>,
    /// What came last, as it came.
    recent: Vec<Digest>,
}

type Ends = Box<[usize; GROUPS]>;

impl Runs {
    /// Keeps one more digest.
    #[inline]
    pub(crate) fn push(&mut self, digest: Digest) -> Result<()> {
        self.recent.push(digest);
        if self.recent.len() == IN_MEMORY { self.write() } else { Ok(()) }
    }

    #[cold]
    fn write(&mut self) -> Result<()> {
        let (run, ends) = grouped(&self.recent);
        append(&mut self.file, &run)?;
        self.ends.push(ends);
        self.recent.clear();
        Ok(())
    }

    /// Hands all digests to `take`, at most a run at a time and group after group. More can be
    /// kept afterwards.
    pub(crate) fn read(&mut self, mut take: impl FnMut(&[Digest]) -> Result<()>) -> Result<()> {
        let (recent, recent_ends) = grouped(&self.recent);
        for group in 0..GROUPS {
            if let Some(file) = &mut self.file {
                for (run, ends) in self.ends.iter().enumerate() {
                    let range = range_of(group, ends);
                    take(&read_at(file, run * IN_MEMORY + range.start, range.len())?)?;
                }
            }
            take(&recent[range_of(group, &recent_ends)])?;
        }
        Ok(())
    }
}

/// Digests in the order of their groups, and where each group ends.
fn grouped(digests: &[Digest]) -> (Vec<Digest>, Ends) {
    let group = |digest: &Digest| (digest.0 / (u64::MAX / GROUPS as u64 + 1)) as usize;
    let mut ends = Box::new([0; GROUPS]);
    for digest in digests {
        ends[group(digest)] += 1;
    }
    let mut before = 0;
    for end in ends.iter_mut() {
        before += std::mem::replace(end, before);
    }
    let mut sorted = vec![Digest(0); digests.len()];
    for digest in digests {
        let place = &mut ends[group(digest)];
        sorted[*place] = *digest;
        *place += 1;
    }
    (sorted, ends)
}

/// Where a group stands in its run.
fn range_of(group: usize, ends: &Ends) -> Range<usize> {
    let start = if group == 0 { 0 } else { ends[group - 1] };
    start..ends[group]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digest_comes_back_with_its_neighbours() {
        // Many groups, and one alone: what an adversary would send.
        for mask in [u64::MAX, 0xff] {
            let (mut runs, mut all) = (Runs::default(), Vec::new());
            for round in 0..3_u64 {
                for i in 0..700_000 {
                    let digest = (round * 700_000 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask;
                    runs.push(Digest(digest)).unwrap();
                    all.push(digest);
                }
                let (mut read, mut groups) = (Vec::new(), Vec::new());
                runs.read(|some| {
                    assert!(some.len() <= IN_MEMORY);
                    read.extend(some.iter().map(|digest| digest.0));
                    groups.extend(some.first().map(|digest| digest.0 >> 56));
                    Ok(())
                })
                .unwrap();
                assert!(groups.is_sorted());
                read.sort_unstable();
                let mut sorted = all.clone();
                sorted.sort_unstable();
                assert!(read == sorted, "round {round}: {} of {}", read.len(), all.len());
            }
            assert!(runs.file.is_some());
        }
    }
}
