//! Where filters are written: files are replaced all at once or not at all.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tamis::{AnyFilter, Encoded};

use crate::progress::PATIENCE;
use crate::show;
use crate::store::is_stdio;
use crate::system::{self, PUBLIC, SECRET};

/// What a mode says of everyone.
const EVERYONE_READS: u32 = 0o004;

/// Where a filter is to be written. It is made before the work starts, so that a file that cannot
/// be written is refused early, and before a filter is loaded, so that no other run changes the
/// file between loading and replacing it.
pub(crate) enum Target {
    /// Standard output.
    Stdout,
    /// A device or a pipe: written directly, because nothing may be renamed over it.
    Special(PathBuf),
    /// A regular file, there already or not; no symlink.
    File {
        path: PathBuf,
        /// The permissions that the folder and the umask give to new files.
        mode: u32,
        /// Held as long as the target is.
        _lock: Option<File>,
    },
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
        // Only writing tells for certain whether a folder can be written to. The file is deleted
        // at once, so that a run that is killed later leaves nothing behind.
        let trial = Temporary::beside(&path, PUBLIC).with_context(refused)?;
        let mode = system::mode(&trial.file.metadata().with_context(refused)?);
        let lock = lock(&path).with_context(refused)?;
        Ok(Self::File { path, mode, _lock: lock })
    }

    /// Writes a filter. A file that was there keeps its permissions; a new one gets none beyond
    /// `widest`.
    pub(crate) fn write(&self, filter: &AnyFilter, widest: u32) -> Result<()> {
        self.write_encoded(&filter.encode(), widest)
    }

    /// Writes what has been encoded already, such as a packed filter or a delta.
    pub(crate) fn write_encoded(&self, encoded: &Encoded, widest: u32) -> Result<()> {
        self.write_pieces(&encoded.pieces().collect::<Vec<_>>(), widest)
    }

    /// Writes bytes, piece by piece.
    pub(crate) fn write_pieces(&self, pieces: &[&[u8]], widest: u32) -> Result<()> {
        match self {
            Self::Stdout => {
                write_pieces(&mut io::stdout().lock(), pieces).context("cannot write stdout")
            }
            Self::Special(path) => write_special(path, pieces)
                .with_context(|| format!("cannot write {}", path.display())),
            Self::File { path, mode, .. } => replace(path, pieces, mode & widest, widest)
                .with_context(|| format!("cannot write {}", path.display())),
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

fn write_pieces(to: &mut dyn Write, pieces: &[&[u8]]) -> io::Result<()> {
    pieces.iter().try_for_each(|piece| to.write_all(piece))?;
    to.flush()
}

fn write_special(path: &Path, pieces: &[&[u8]]) -> Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    if file.is_terminal() {
        bail!("a filter is not for a terminal");
    }
    Ok(write_pieces(&mut file, pieces)?)
}

/// Replaces the content of a file. A reader finds the old content or the new one, even if the
/// machine stops meanwhile.
fn replace(path: &Path, pieces: &[&[u8]], mode: u32, widest: u32) -> io::Result<()> {
    // Nobody else reads it before it has the owner and the permissions that it is to have.
    let mut temporary = Temporary::beside(path, SECRET)?;
    write_pieces(&mut temporary.file, pieces)?;
    let old = fs::metadata(path).ok();
    let mode = system::inherit(&temporary.file, old.as_ref(), mode)?;
    let exposed = mode & !widest & EVERYONE_READS != 0;
    // Content before name: otherwise a crash could leave the new name on missing content.
    temporary.file.sync_all()?;
    temporary.rename(path)?;
    // From here on the new content is in place, whatever else fails.
    if let Err(error) = system::sync_folder(folder_of(path)) {
        show::note(&format_args!(
            "{} is written, but its folder cannot be synced ({error}): a crash of the machine may bring the old file back",
            path.display()
        ));
    }
    if exposed {
        show::note(&format_args!(
            "{0} keeps its permissions, so everyone can read the seed in it; if that is not meant: chmod 600 {0}",
            path.display()
        ));
    }
    Ok(())
}

/// Waits until no other run of the tool is changing this file, and keeps the others waiting as
/// long as the result lives. `None` if there is nothing to lock: no file, or one that we cannot
/// read and so cannot change either.
fn lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        let Ok(file) = system::lock_of(path) else { return Ok(None) };
        if let Err(error) = wait_for_lock(&file, path) {
            show::note(&format_args!(
                "{} cannot be locked ({error}): what others change meanwhile is lost",
                path.display()
            ));
            return Ok(Some(file));
        }
        // The run that held the lock may have renamed another file to this name: that is the one
        // to lock.
        if system::protects(&file, path)? {
            return Ok(Some(file));
        }
    }
}

fn wait_for_lock(file: &File, path: &Path) -> io::Result<()> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => thread::sleep(PATIENCE / 100),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    if io::stderr().is_terminal() {
        show::note(&format_args!("waiting for another tamis to finish with {}", path.display()));
    }
    file.lock()
}

/// A new file that goes away again unless it is renamed.
struct Temporary {
    path: PathBuf,
    file: File,
    renamed: bool,
}

impl Temporary {
    /// A file in the same folder, hence on the same file system, under a name that nobody has.
    fn beside(path: &Path, mode: u32) -> io::Result<Self> {
        /// Four bytes each at most: this leaves room for the rest in the 255 of a file name.
        const MOST_OF_NAME: usize = 50;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.chars().take(MOST_OF_NAME).collect();
        for number in 0.. {
            let hidden = format!(".{name}.tamis-{}-{number}", std::process::id());
            let path = folder_of(path).join(hidden);
            match system::create_new(&path, mode) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                file => return Ok(Self { path, file: file?, renamed: false }),
            }
        }
        unreachable!("some number is free")
    }

    fn rename(mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.path); // the first error is the one to report
        }
    }
}
