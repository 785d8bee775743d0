//! What differs between systems: permissions, locks, and when two names stand for one file.

#[cfg(unix)]
#[path = "unix.rs"]
mod this;
#[cfg(windows)]
#[path = "windows.rs"]
mod this;

pub(crate) use this::{
    create_new, identity, identity_of, inherit, lock_of, mode, protects, stdin, sync_folder,
};

/// Permissions of a file that others may read.
pub(crate) const PUBLIC: u32 = 0o666;
/// Permissions of a file for its owner alone.
pub(crate) const SECRET: u32 = 0o600;
