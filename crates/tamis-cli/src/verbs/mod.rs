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
#[cfg(not(all(feature = "gate", feature = "parquet", feature = "reproduce")))]
mod missing;
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
use clap::{Args, Parser, Subcommand};

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
}

// What reads filters or deltas. (A comment for the code alone: help is that of the verb.)
#[derive(Args)]
struct Reads<V: Args> {
    #[command(flatten)]
    verb: V,

    /// Most memory that reading a filter may take [default: 1GiB, or three times the file's size]
    ///
    /// A few bytes may decode into a large filter. A file that would take more memory than this is
    /// refused before it is read. Raise the limit for large packed files that you trust.
    #[arg(long, global = true, value_name = "BYTES", value_parser = numbers::bytes)]
    limit: Option<u64>,
}

impl<V: Args> Reads<V> {
    /// The verb, after the limit has been set.
    fn limited(self) -> V {
        store::set_limit(self.limit);
        self.verb
    }
}

#[derive(Subcommand)]
enum Verb {
    Build(build::Build),
    Add(Reads<add::Add>),
    Remove(Reads<remove::Remove>),
    Check(Reads<check::Check>),
    Count(Reads<count::Count>),
    Map(Reads<map::Map>),
    Uniq(Reads<uniq::Uniq>),
    Info(Reads<info::Info>),
    Inspect(Reads<inspect::Inspect>),
    Merge(Reads<merge::Merge>),
    Pack(Reads<pack::Pack>),
    Unpack(Reads<pack::Unpack>),
    Diff(Reads<diff::Diff>),
    Patch(Reads<diff::Patch>),
    Keygen(publish::Keygen),
    Publish(Reads<publish::Publish>),
    Follow(Reads<follow::Follow>),
    #[cfg(feature = "gate")]
    Gate(Reads<gate::Gate>),
    #[cfg(not(feature = "gate"))]
    #[command(hide = true, disable_help_flag = true)]
    Gate(missing::Missing),
    Digest(digest::Digest),
    #[cfg(feature = "parquet")]
    Parquet(Reads<parquet::Parquet>),
    #[cfg(not(feature = "parquet"))]
    #[command(hide = true, disable_help_flag = true)]
    Parquet(missing::Missing),
    Server(server::Server),
    Verify(Reads<verify::Verify>),
    Plan(plan::Plan),
    Bench(bench::Bench),
    Demo(demo::Demo),
    #[cfg(feature = "reproduce")]
    Reproduce(reproduce::Reproduce),
    #[cfg(not(feature = "reproduce"))]
    #[command(hide = true, disable_help_flag = true)]
    Reproduce(missing::Missing),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Cli {
    /// Does what was asked.
    pub(crate) fn run(self) -> Result<Outcome> {
        match self.verb {
            Verb::Build(verb) => verb.run(),
            Verb::Add(verb) => verb.limited().run(),
            Verb::Remove(verb) => verb.limited().run(),
            Verb::Check(verb) => verb.limited().run(),
            Verb::Count(verb) => verb.limited().run(),
            Verb::Map(verb) => verb.limited().run(),
            Verb::Uniq(verb) => verb.limited().run(),
            Verb::Info(verb) => verb.limited().run(),
            Verb::Inspect(verb) => verb.limited().run(),
            Verb::Merge(verb) => verb.limited().run(),
            Verb::Pack(verb) => verb.limited().run(),
            Verb::Unpack(verb) => verb.limited().run(),
            Verb::Diff(verb) => verb.limited().run(),
            Verb::Patch(verb) => verb.limited().run(),
            Verb::Keygen(verb) => verb.run(),
            Verb::Publish(verb) => verb.limited().run(),
            Verb::Follow(verb) => verb.limited().run(),
            #[cfg(feature = "gate")]
            Verb::Gate(verb) => verb.limited().run(),
            #[cfg(not(feature = "gate"))]
            Verb::Gate(verb) => verb.refuse("gate"),
            Verb::Digest(verb) => verb.run(),
            #[cfg(feature = "parquet")]
            Verb::Parquet(verb) => verb.limited().run(),
            #[cfg(not(feature = "parquet"))]
            Verb::Parquet(verb) => verb.refuse("parquet"),
            Verb::Server(verb) => verb.run(),
            Verb::Verify(verb) => verb.limited().run(),
            Verb::Plan(verb) => verb.run(),
            Verb::Bench(verb) => verb.run(),
            Verb::Demo(verb) => verb.run(),
            #[cfg(feature = "reproduce")]
            Verb::Reproduce(verb) => verb.run(),
            #[cfg(not(feature = "reproduce"))]
            Verb::Reproduce(verb) => verb.refuse("reproduce"),
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
