//! Files that are replaced in whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

/// How the names of files begin that are not complete yet.
pub(crate) const TEMPORARY: &str = ".tamis-";

/// Replaces the content of a file by `pieces`. A reader finds the old content or the new one,
/// even if the machine stops meanwhile. A file that was there keeps its permissions.
pub(crate) fn replace(path: &Path, pieces: &[&[u8]], time: Option<SystemTime>) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    #[cfg(unix)]
    {
        use std::fs::Permissions;
        use std::os::unix::fs::PermissionsExt;
        // Others may read it, as far as the umask allows.
        builder.permissions(Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder)?;
    for piece in pieces {
        file.write_all(piece)?;
    }
    if let Ok(old) = fs::metadata(path) {
        file.as_file().set_permissions(old.permissions())?;
    }
    if let Some(time) = time {
        file.as_file().set_modified(time)?;
    }
    // Content before name: otherwise a crash could leave the new name on missing content.
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // Not all systems can do this, and the new content is in place whatever comes of it.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}
