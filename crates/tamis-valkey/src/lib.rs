//! Filters inside Redis and Valkey: a loadable module that speaks BF.*, CF.* and TAMIS.*.
//!
//! ```text
//! command -> commands/ -> Filter (scaling.rs for sets, multiset/ for multisets) -> reply
//! Filter -> header and chunks (dump.rs, incoming.rs) -> RDB, AOF, SCANDUMP -> Filter
//! ```
//!
//! `ffi.rs` alone knows the server's C interface; all else is safe code that sees arguments as
//! bytes, gives a `Reply` and asks for keys through a `Call`. `docs/redis-valkey.md` says what
//! every command does.

mod aged;
mod arguments;
mod asked;
mod commands;
mod dump;
mod ffi;
mod files;
mod incoming;
mod library;
mod memory;
mod multiset;
mod plans;
mod remembered;
mod reply;
mod scaling;
mod settings;
mod syntax;
mod value;
