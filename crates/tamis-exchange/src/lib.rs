//! Filters that many machines keep current.
//!
//! One publisher changes a set; many machines keep a copy of its filter. The publisher puts
//! versions of the filter into a store of plain files, which any web server can serve. Followers
//! fetch a signed manifest of about two hundred bytes, and then the deltas that lead from what
//! they hold to the newest version, or a snapshot if that is smaller. What a follower has made is
//! compared with what was signed before anyone sees it.
//!
//! ```text
//! publisher   filter -> snapshot + deltas -> objects -> manifest (signed, last)
//! follower    manifest -> cheapest path -> objects -> apply -> content id == signed? -> swap
//! ```
//!
//! `docs/exchange.md` has every byte of the files, what is safe from whom, and how to run it.

mod error;
mod file;
mod follow;
#[cfg(feature = "gate")]
pub mod gate;
mod hex;
mod key;
mod live;
mod manifest;
mod object;
mod publish;
pub mod squid;
mod state;
mod store;
mod table;

pub use error::Error;
pub use follow::{Follower, Step, Totals};
pub use key::{PublicKey, SecretKey};
pub use live::{Current, Live};
pub use manifest::Manifest;
pub use publish::{Published, Publisher};
#[cfg(feature = "bucket")]
pub use store::Bucket;
#[cfg(feature = "http")]
pub use store::Http;
pub use store::{Folder, Source, Store, Tagged, check_name, source, store};
