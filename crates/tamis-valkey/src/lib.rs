//! Filters inside Redis and Valkey: a loadable module that speaks BF.*, CF.* and TAMIS.*.
//!
//! ```text
//! command -> commands/ -> Scaling (layers of tamis filters) -> reply
//! Scaling -> dump -> files (RDB, AOF), SCANDUMP -> dump -> Scaling
//! ```
//!
//! `ffi.rs` alone knows the server's C interface; all else is safe code that sees arguments as
//! bytes, gives a `Reply` and asks for keys through a `Call`. `docs/redis-valkey.md` says what
//! every command does.

mod aged;
mod arguments;
mod commands;
mod dump;
mod ffi;
mod files;
mod memory;
mod plans;
mod remembered;
mod reply;
mod scaling;
mod settings;
mod syntax;
mod value;
