//! `tamis plan --peers`: what peers should tell each other, and how often.

use anyhow::{Result, bail};
use clap::Args;
use tamis_report::peers::{Choice, Need, choose};

use crate::{numbers, show};

/// Peers that tell each other what they have.
#[derive(Args)]
#[command(next_help_heading = "Peers")]
pub(super) struct AmongPeers {
    /// Plan kind, rate and interval for this many peers that tell each other what they have, for
    /// the fewest bytes
    #[arg(
        long,
        value_name = "N",
        value_parser = numbers::count,
        requires_all = ["churn", "every"],
        conflicts_with_all = ["kind", "size", "params", "plot", "explain"]
    )]
    peers: Option<u64>,

    /// Time in which each peer replaces --churn of its keys, such as 5m
    #[arg(long, value_name = "TIME", value_parser = numbers::seconds, requires = "peers")]
    every: Option<u64>,

    /// Part of the hits at other peers that may be lost: because a key is too new for the last
    /// filter, or because a filter of another peer claims it wrongly
    #[arg(
        long,
        value_name = "SHARE",
        value_parser = numbers::share,
        default_value = "2%",
        requires = "peers"
    )]
    max_lost: f64,
}

impl AmongPeers {
    /// What is needed; `None` if the plan is for one filter.
    pub(super) fn need(&self, keys: u64, churn: Option<f64>) -> Result<Option<Need>> {
        let (Some(peers), Some(every), Some(churn)) = (self.peers, self.every, churn) else {
            return Ok(None);
        };
        if peers < 2 {
            bail!("--peers {peers}: there is nobody to tell; plan for two or more");
        }
        if every == 0 {
            bail!("--every 0: say the time in which --churn of the keys is replaced, such as 5m");
        }
        Ok(Some(Need { peers, keys, churn, every, max_lost: self.max_lost }))
    }
}

pub(super) fn print(need: &Need, json: bool) -> Result<()> {
    let choices = choose(need);
    if choices.is_empty() {
        bail!(
            "no filter keeps lost hits below {}, however often it is sent; allow more with \
             --max-lost, or ask all peers",
            show::rate(need.max_lost)
        );
    }
    if json {
        return show::print_json(&choices);
    }
    let mut table = show::table();
    table.set_header(["kind", "rate", "every", "sent", "bytes", "an hour", "lost"]);
    for Choice { kind, rate, every, lost, is_delta, update_bytes, bytes_an_hour } in &choices {
        table.add_row([
            (*kind).to_owned(),
            show::rate(*rate),
            format!("{every} s"),
            if *is_delta { "delta" } else { "snapshot" }.to_owned(),
            show::short_bytes(*update_bytes),
            show::short_bytes(*bytes_an_hour),
            show::rate(*lost),
        ]);
    }
    show::print_table(table, 1..7)?;
    show::print(
        &"(bytes of a message to one peer; an hour: of all peers to all others; lost: the part of\n\
          the hits at other peers that is lost at most)",
    )
}
