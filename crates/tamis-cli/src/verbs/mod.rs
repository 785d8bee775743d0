//! The verbs, one file each. A new verb is a file here, a variant of [`Verb`] and an arm of
//! [`Cli::run`].

mod add;
mod bench;
mod build;
mod check;
mod completions;
mod count;
mod demo;
mod diff;
mod digest;
mod follow;
#[cfg(feature = "gate")]
mod gate;
mod info;
mod inspect;
mod man;
mod map;
mod merge;
mod pack;
#[cfg(feature = "parquet")]
mod parquet;
mod plan;
mod publish;
mod remove;
#[cfg(feature = "reproduce")]
mod reproduce;
mod server;
mod uniq;
mod verify;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{numbers, store};

/// Is this key in the set? Filters that answer in a few bits per key.
///
/// A "no" is always right, as long as only keys that are in were removed. A "yes" is wrong with a
/// small probability that you choose: the rate. Keys are lines of bytes. Filters are files that
/// mean the same on every machine.
#[derive(Parser)]
#[command(
    name = "tamis",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  tamis demo
  tamis build --rate 0.1% -o words.tamis /usr/share/dict/words
  echo tamis | tamis check words.tamis

Exit status: 0 if all went well, 1 if nothing matched or a key was absent, 2 on an error.
`tamis VERB --help` has the options and examples of a verb."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,

    /// Most memory that reading a filter may take [default: 1GiB, or three times the file's size]
    ///
    /// A few bytes may decode into a large filter. A file that would take more memory than this is
    /// refused before it is read. Raise the limit for large packed files that you trust.
    #[arg(long, global = true, value_name = "BYTES", value_parser = numbers::bytes)]
    limit: Option<u64>,
}

#[derive(Subcommand)]
enum Verb {
    Build(build::Build),
    Add(add::Add),
    Remove(remove::Remove),
    Check(check::Check),
    Count(count::Count),
    Map(map::Map),
    Uniq(uniq::Uniq),
    Info(info::Info),
    Inspect(inspect::Inspect),
    Merge(merge::Merge),
    Pack(pack::Pack),
    Unpack(pack::Unpack),
    Diff(diff::Diff),
    Patch(diff::Patch),
    Keygen(publish::Keygen),
    Publish(publish::Publish),
    Follow(follow::Follow),
    #[cfg(feature = "gate")]
    Gate(gate::Gate),
    Digest(digest::Digest),
    #[cfg(feature = "parquet")]
    Parquet(parquet::Parquet),
    Server(server::Server),
    Verify(verify::Verify),
    Plan(plan::Plan),
    Bench(bench::Bench),
    Demo(demo::Demo),
    #[cfg(feature = "reproduce")]
    Reproduce(reproduce::Reproduce),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Cli {
    /// Does what was asked.
    pub(crate) fn run(self) -> Result<Outcome> {
        store::set_limit(self.limit);
        match self.verb {
            Verb::Build(verb) => verb.run(),
            Verb::Add(verb) => verb.run(),
            Verb::Remove(verb) => verb.run(),
            Verb::Check(verb) => verb.run(),
            Verb::Count(verb) => verb.run(),
            Verb::Map(verb) => verb.run(),
            Verb::Uniq(verb) => verb.run(),
            Verb::Info(verb) => verb.run(),
            Verb::Inspect(verb) => verb.run(),
            Verb::Merge(verb) => verb.run(),
            Verb::Pack(verb) => verb.run(),
            Verb::Unpack(verb) => verb.run(),
            Verb::Diff(verb) => verb.run(),
            Verb::Patch(verb) => verb.run(),
            Verb::Keygen(verb) => verb.run(),
            Verb::Publish(verb) => verb.run(),
            Verb::Follow(verb) => verb.run(),
            #[cfg(feature = "gate")]
            Verb::Gate(verb) => verb.run(),
            Verb::Digest(verb) => verb.run(),
            #[cfg(feature = "parquet")]
            Verb::Parquet(verb) => verb.run(),
            Verb::Server(verb) => verb.run(),
            Verb::Verify(verb) => verb.run(),
            Verb::Plan(verb) => verb.run(),
            Verb::Bench(verb) => verb.run(),
            Verb::Demo(verb) => verb.run(),
            #[cfg(feature = "reproduce")]
            Verb::Reproduce(verb) => verb.run(),
            Verb::Completions(verb) => verb.run(),
            Verb::Man(verb) => verb.run(),
        }
    }
}

/// How a verb ended, if it did not return an error.
pub(crate) enum Outcome {
    /// All went well; something matched.
    Fine,
    /// Nothing matched, or a key was absent.
    Nothing,
    /// Something was wrong, and has been reported.
    Wrong,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => Self::SUCCESS,
            Outcome::Nothing => Self::from(1),
            Outcome::Wrong => Self::from(2),
        }
    }
}
