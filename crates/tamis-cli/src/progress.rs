//! A bar on stderr for work that takes longer than a second, when a person is watching.

use std::io::{IsTerminal, stderr, stdout};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows nothing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// What turns does so this often.
const TURN: Duration = Duration::from_millis(200);

/// A log gets a line this often.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Parts that work without bytes is cut into.
const WHOLE: u64 = 1000;

/// How many bytes of input have been worked through.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// When the bar comes out of hiding, unless it never will or has already.
    show_at: Option<Instant>,
    started: Instant,
    /// When a line was last written for a log, where there is no terminal.
    said_at: Instant,
}

impl Progress {
    /// Progress of work that leaves stdout alone while it runs; `total` are the bytes of all
    /// inputs, if known.
    pub(crate) fn quiet(what: &'static str, total: Option<u64>) -> Self {
        Self::new(
            what,
            total,
            match total {
                Some(_) => "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
                None => "{msg} {spinner} {bytes} {bytes_per_sec}",
            },
        )
    }

    /// Progress of work that is not made of bytes; see [`reach`](Self::reach).
    pub(crate) fn share(what: &'static str) -> Self {
        Self::new(what, Some(WHOLE), "{msg} {wide_bar} {percent}% {eta}")
    }

    /// Progress of work that does not tell how far it is: at a terminal something turns until this
    /// is dropped.
    pub(crate) fn spinner(what: &'static str) -> Self {
        let progress = Self::new(what, None, "{msg} {spinner} {elapsed}");
        if progress.show_at.is_some() {
            progress.bar.set_draw_target(ProgressDrawTarget::stderr());
            progress.bar.enable_steady_tick(TURN);
        }
        progress
    }

    fn new(what: &'static str, total: Option<u64>, template: &str) -> Self {
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        Self {
            bar: bar.with_style(style).with_message(what),
            show_at: stderr().is_terminal().then(|| Instant::now() + PATIENCE),
            started: Instant::now(),
            said_at: Instant::now(),
        }
    }

    /// Progress of work that prints lines meanwhile: on a terminal these are progress enough, and
    /// a bar would run through them.
    pub(crate) fn printing(what: &'static str, total: Option<u64>) -> Self {
        let mut progress = Self::quiet(what, total);
        if stdout().is_terminal() {
            progress.show_at = None;
        }
        progress
    }

    /// `bytes` more bytes are done.
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.bar.inc(bytes);
        self.show_when_long();
    }

    /// This share of the work is done.
    pub(crate) fn reach(&mut self, share: f64) {
        self.bar.set_position((share * WHOLE as f64) as u64);
        self.show_when_long();
        if self.said_at.elapsed() > BETWEEN_LINES && !stderr().is_terminal() {
            self.said_at = Instant::now();
            // Not by the bar, which forgets how it went before: work that takes an hour goes at an
            // even pace.
            let left = self.started.elapsed().as_secs_f64() * (1.0 / share - 1.0);
            let (percent, minutes) = (100.0 * share, left / 60.0);
            eprintln!("{}: {percent:.0}% done, {minutes:.0} min left", self.bar.message());
        }
    }

    fn show_when_long(&mut self) {
        if self.show_at.is_some_and(|at| Instant::now() > at) {
            self.show_at = None;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
