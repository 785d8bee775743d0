//! Windows: no modes, and locks that keep everybody from reading.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::io::AsHandle;
use std::path::Path;

use same_file::Handle;

use super::PUBLIC;

/// Stdin without the buffer of the standard library.
pub(crate) fn stdin() -> io::Result<File> {
    Ok(io::stdin().as_handle().try_clone_to_owned()?.into())
}

/// Who may do what with a file: the folder decides.
pub(crate) fn mode(_: &Metadata) -> u32 {
    PUBLIC
}

/// Creates a file that is not there.
pub(crate) fn create_new(path: &Path, _: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// New files have the permissions of their folder.
pub(crate) fn inherit(_: &File, _: Option<&Metadata>, _: u32) -> io::Result<u32> {
    Ok(0)
}

/// What all names of a file have in common.
pub(crate) fn identity(path: &Path) -> io::Result<Handle> {
    Handle::from_path(path)
}

/// As [`identity`], of an open file.
pub(crate) fn identity_of(file: &File) -> io::Result<Handle> {
    Handle::from_file(file.try_clone()?)
}

/// The file that is locked while `path` is changed: one beside it, which stays. A locked file
/// could not be read.
pub(crate) fn lock_of(path: &Path) -> io::Result<File> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".tamis-lock");
    OpenOptions::new().write(true).create(true).truncate(false).open(path.with_file_name(name))
}

/// Nothing is ever renamed to the name of a lock.
pub(crate) fn protects(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Folders cannot be synced here.
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
