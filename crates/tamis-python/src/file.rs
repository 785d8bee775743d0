//! Files that are replaced in whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tamis::Encoded;

/// Replaces the content of a file. A reader finds the old content or the new one, even if the
/// machine stops meanwhile, and those who have mapped it keep the old one. A file that was there
/// keeps its permissions.
pub(crate) fn replace(path: &Path, encoded: &Encoded<'_>) -> io::Result<()> {
    // A name of the file itself, so that a link stays a link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (file, temporary) = beside(path)?;
    let written = write(&file, path, encoded).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary); // the first error is the one to report
    }
    written
}

fn write(mut file: &File, path: &Path, encoded: &Encoded<'_>) -> io::Result<()> {
    encoded.pieces().try_for_each(|piece| file.write_all(piece))?;
    if let Ok(old) = fs::metadata(path) {
        file.set_permissions(old.permissions())?;
    }
    // Content before name: otherwise a crash could leave the new name on missing content.
    file.sync_all()
}

/// A new file in the same folder, hence on the same file system, under a name that nobody has.
fn beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    for number in 0.. {
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".tamis-{}-{number}", std::process::id()));
        let temporary = path.with_file_name(hidden);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => return Ok((file?, temporary)),
        }
    }
    unreachable!("some number is free")
}
