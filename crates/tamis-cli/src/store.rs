//! Filter files: loaded and checked, mapped in place, replaced all at once or not at all.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tamis::wire::{self, ReadSource};
use tamis::{AnyFilter, Encoded, Limits, SharedBytes};

use crate::keys::Keys;

/// Whether a path stands for stdin or stdout.
pub(crate) fn is_stdio(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A filter from a file.
pub(crate) struct Loaded {
    /// The filter, everything checked.
    pub(crate) filter: AnyFilter,
    /// Bytes in the file.
    pub(crate) file_bytes: u64,
}

/// Reads a filter and checks everything.
pub(crate) fn load(path: &Path) -> Result<Loaded> {
    read(path).with_context(|| path.display().to_string())
}

fn read(path: &Path) -> Result<Loaded> {
    if !is_stdio(path) {
        let file = File::open(path)?;
        let facts = file.metadata()?;
        if facts.is_file() {
            let mut source = ReadSource::new(file, facts.len());
            return Ok(Loaded {
                filter: AnyFilter::read(&mut source, limits(facts.len()))?,
                file_bytes: facts.len(),
            });
        }
    }
    let bytes = read_stream(path)?;
    let file_bytes = bytes.len() as u64;
    Ok(Loaded { filter: AnyFilter::decode(&bytes, limits(file_bytes))?, file_bytes })
}

/// Maps a filter and answers from the file in place; only its header is checked.
pub(crate) fn open_in_place(path: &Path) -> Result<AnyFilter> {
    let open = || -> Result<_> { Ok(AnyFilter::open(&wire::map(&File::open(path)?)?)?) };
    if is_stdio(path) {
        bail!("--mmap needs a file; stdin cannot be mapped");
    }
    open().with_context(|| path.display().to_string())
}

/// The bytes of a filter file: mapped, or read if they come through a pipe.
pub(crate) fn bytes(path: &Path) -> Result<SharedBytes> {
    let bytes = || -> Result<SharedBytes> {
        if !is_stdio(path) {
            let file = File::open(path)?;
            if file.metadata()?.is_file() {
                return Ok(wire::map(&file)?);
            }
        }
        Ok(Arc::new(read_stream(path)?))
    };
    bytes().with_context(|| path.display().to_string())
}

/// A filter from stdin leaves no stdin for keys.
pub(crate) fn one_stdin(filter: &Path, keys: &Keys) -> Result<()> {
    if is_stdio(filter) && keys.use_stdin() {
        bail!("the filter comes from stdin, so the keys cannot; name files of keys");
    }
    Ok(())
}

/// What a file of this length may take: its own size, however large it is. A small file that claims to decode into
/// much must still stay below the default.
pub(crate) fn limits(file_bytes: u64) -> Limits {
    Limits { memory: Limits::default().memory.max(file_bytes) }
}

/// A pipe does not say how long it is, and nothing is decoded before that is known.
fn read_stream(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if is_stdio(path) {
        io::stdin().lock().read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

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
