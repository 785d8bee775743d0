//! Unix: modes, owners, and locks that only those who ask for them notice.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

/// Stdin without the buffer of the standard library.
pub(crate) fn stdin() -> io::Result<File> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

/// Who may do what with a file.
pub(crate) fn mode(facts: &Metadata) -> u32 {
    facts.mode()
}

/// Creates a file that is not there, with `mode` as far as the umask allows.
pub(crate) fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Gives a new file the owner and the permissions of the old one, or `mode` if there is none.
/// Returns the mode that it has then.
pub(crate) fn inherit(file: &File, old: Option<&Metadata>, mode: u32) -> io::Result<u32> {
    if let Some(old) = old {
        // Only the superuser may give files away; for others the file belongs to the user who
        // wrote it.
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    let permissions = old.map_or(Permissions::from_mode(mode), Metadata::permissions);
    let mode = permissions.mode();
    file.set_permissions(permissions)?;
    Ok(mode)
}

/// What all names of a file have in common: its device and its number there.
type Identity = (u64, u64);

/// What all names of a file have in common. The file is not opened: a pipe would lose its writer.
pub(crate) fn identity(path: &Path) -> io::Result<Identity> {
    fs::metadata(path).map(|facts| (facts.dev(), facts.ino()))
}

/// As [`identity`], of an open file.
pub(crate) fn identity_of(file: &File) -> io::Result<Identity> {
    file.metadata().map(|facts| (facts.dev(), facts.ino()))
}

/// The file that is locked while `path` is changed: the file itself.
pub(crate) fn lock_of(path: &Path) -> io::Result<File> {
    // Network file systems lock exclusively only what is open for writing.
    OpenOptions::new().read(true).write(true).open(path).or_else(|_| File::open(path))
}

/// Whether a lock still protects `path`: another file may have been renamed to it meanwhile.
pub(crate) fn protects(lock: &File, path: &Path) -> io::Result<bool> {
    let locked = identity_of(lock)?;
    Ok(identity(path).is_ok_and(|now| now == locked))
}

/// Makes a renaming in this folder last through a crash of the machine.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
