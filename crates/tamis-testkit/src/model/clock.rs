//! How long operations take: by the wall clock first, and by processor time if that is too long.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The most that an operation may take.
pub(super) const MOST: Duration = Duration::from_millis(50);

/// How times are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    /// Calls, and runs of single operations, by the wall clock: cheap, but wrong on a busy
    /// machine.
    Runs,
    /// Every single operation, by the processor time of this thread.
    Each,
}

/// A point in time, as a watch reads it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    Wall(Instant),
    Processor(Duration),
}

impl Watch {
    pub(super) fn start(self) -> Start {
        match self {
            Self::Runs => Start::Wall(Instant::now()),
            Self::Each => Start::Processor(processor_time()),
        }
    }

    /// How many single operations are timed together.
    pub(super) fn run(self) -> usize {
        match self {
            Self::Runs => 256,
            Self::Each => 1,
        }
    }
}

impl Start {
    pub(super) fn elapsed(self) -> Duration {
        match self {
            Self::Wall(start) => start.elapsed(),
            Self::Processor(start) => processor_time().saturating_sub(start),
        }
    }
}

/// Processor time of this thread.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
