//! Where filters are written: files are replaced all at once or not at all.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tamis::{AnyFilter, Encoded};

use crate::store::is_stdio;

/// Where a filter is to be written. Made before the work starts, so that what cannot be written is refused early.
pub(crate) enum Target {
    /// Standard output.
    Stdout,
    /// A device or a pipe: written to as it is, for nothing may be renamed over it.
    Special(PathBuf),
    /// A regular file, there already or not; no symlink.
    File(PathBuf),
}

impl Target {
    /// The target that `-o` names.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        if is_stdio(path) {
            if io::stdout().is_terminal() {
                bail!("a filter is not for a terminal; write it to a file with -o, or into a pipe");
            }
            return Ok(Self::Stdout);
        }
        let refused = || format!("cannot write {}", path.display());
        match fs::metadata(path) {
            Ok(facts) if facts.is_dir() => bail!("{}: it is a directory", refused()),
            Ok(facts) if !facts.is_file() => return Ok(Self::Special(path.to_owned())),
            _ => {}
        }
        let path = follow(path).with_context(refused)?;
        let folder = folder_of(&path);
        if !folder.is_dir() {
            bail!("{}: there is no folder {}", refused(), folder.display());
        }
        Ok(Self::File(path))
    }

    /// Writes a filter.
    pub(crate) fn write(&self, filter: &AnyFilter) -> Result<()> {
        let encoded = filter.encode();
        match self {
            Self::Stdout => Ok(write_pieces(&mut io::stdout().lock(), &encoded)?),
            Self::Special(path) => write_special(path, &encoded)
                .with_context(|| format!("cannot write {}", path.display())),
            Self::File(path) => {
                replace(path, &encoded).with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }
}

/// What a symlink points to in the end, whether that exists or not.
fn follow(path: &Path) -> io::Result<PathBuf> {
    const MOST_LINKS: usize = 40; // as in Linux
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if !path.is_symlink() {
            return Ok(path);
        }
        path = folder_of(&path).join(fs::read_link(&path)?);
    }
    Err(io::Error::other("too many symbolic links"))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn write_pieces(to: &mut dyn Write, encoded: &Encoded) -> io::Result<()> {
    encoded.pieces().try_for_each(|piece| to.write_all(piece))?;
    to.flush()
}

fn write_special(path: &Path, encoded: &Encoded) -> Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    if file.is_terminal() {
        bail!("a filter is not for a terminal");
    }
    Ok(write_pieces(&mut file, encoded)?)
}

/// Puts the new content in the place of a file: whoever opens it, and whenever the machine stops, finds the old content
/// or the new one.
fn replace(path: &Path, encoded: &Encoded) -> io::Result<()> {
    let (temporary, mut file) = create_beside(path)?;
    let mut put = || -> io::Result<()> {
        write_pieces(&mut file, encoded)?;
        if let Ok(old) = fs::metadata(path) {
            // Only the superuser may give files away; for others the owner stays who wrote it.
            let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
            file.set_permissions(old.permissions())?;
        }
        // Content before name: otherwise a crash could leave the new name on missing content.
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    put().inspect_err(|_| {
        let _ = fs::remove_file(&temporary); // the first error is the one to tell
    })?;
    File::open(folder_of(path))?.sync_all()
}

/// A new file in the same folder, hence on the same file system, under a name that nobody has.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    /// Leaves room for the rest in the 255 bytes of a file name.
    const MOST_OF_NAME: usize = 200;
    let name = path.file_name().unwrap_or_default().as_bytes();
    let name = &name[..name.len().min(MOST_OF_NAME)];
    for number in 0.. {
        let mut hidden = OsStr::from_bytes(b".").to_owned();
        hidden.push(OsStr::from_bytes(name));
        hidden.push(format!(".tamis-{}-{number}", std::process::id()));
        let temporary = folder_of(path).join(hidden);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => return Ok((temporary, file?)),
        }
    }
    unreachable!("some number is free")
}
