//! A set in a folder of this machine, from which a web server may serve it.

use std::any::Any;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Source, Store, Tagged, check_name, is_missing, is_object, tag_of};
use crate::error::Error;
use crate::file;

/// A set in a folder.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The set `name` in the folder `store`, which need not be there yet.
    pub fn new(store: &Path, name: &str) -> Result<Self, Error> {
        check_name(name)?;
        Ok(Self { path: store.join(name) })
    }

    fn objects(&self) -> PathBuf {
        self.path.join("objects")
    }

    fn manifest_path(&self) -> PathBuf {
        self.path.join("manifest")
    }
}

impl Source for Folder {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn manifest(&self, known: Option<&str>, most: u64) -> Result<Option<Tagged>, Error> {
        let path = self.manifest_path();
        let place = path.display();
        let file = File::open(&path).map_err(|error| {
            if is_missing(&error) {
                return Error::NoSet { place: place.to_string() };
            }
            Error::io(&place)(error)
        })?;
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes).map_err(Error::io(&place))?;
        let tag = tag_of(&bytes);
        Ok((known != Some(&tag)).then_some(Tagged { bytes, tag: Some(tag) }))
    }

    fn object(&self, name: &str, from: u64, _: u64) -> Result<(u64, Box<dyn Read>), Error> {
        let path = self.objects().join(name);
        let open = || -> io::Result<File> {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(from))?;
            Ok(file)
        };
        let file = open().map_err(Error::io(&path.display()))?;
        Ok((from, Box::new(file)))
    }
}

impl Store for Folder {
    fn lock(&self) -> Result<Option<Box<dyn Any>>, Error> {
        let path = self.path.join(".lock");
        let place = path.display();
        fs::create_dir_all(self.objects()).map_err(Error::io(&self.place()))?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(Error::io(&place))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(TryLockError::WouldBlock) => {
                let fault = io::Error::other("another publisher is at work; try again");
                Err(Error::io(&self.place())(fault))
            }
            Err(TryLockError::Error(error)) => Err(Error::io(&place)(error)),
        }
    }

    fn put_object(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.objects().join(name);
        if fs::metadata(&path).is_ok_and(|facts| facts.len() == bytes.len() as u64) {
            // It never changes; but its age must say that it is needed again.
            let touched = File::options().append(true).open(&path);
            return touched
                .and_then(|file| file.set_modified(SystemTime::now()))
                .map_err(Error::io(&path.display()));
        }
        file::replace(&path, &[bytes], None).map_err(Error::io(&path.display()))
    }

    fn put_manifest(&self, bytes: &[u8], expected: Option<&Tagged>) -> Result<bool, Error> {
        let path = self.manifest_path();
        let now = match fs::read(&path) {
            Ok(bytes) => Some(tag_of(&bytes)),
            Err(error) if is_missing(&error) => None,
            Err(error) => return Err(Error::io(&path.display())(error)),
        };
        if now.as_ref() != expected.and_then(|tagged| tagged.tag.as_ref()) {
            return Ok(false);
        }
        // Web servers make tags of whole seconds. So each manifest is at least one second younger
        // than the one before.
        let before = fs::metadata(&path).and_then(|facts| facts.modified()).ok();
        let next = before.map(|before| before + Duration::from_secs(1));
        let time = next.into_iter().chain([SystemTime::now()]).max();
        file::replace(&path, &[bytes], time).map_err(Error::io(&path.display()))?;
        Ok(true)
    }

    /// The lock keeps other publishers out, so what is not named by now will never be.
    fn clean(&self, keep: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        let clean = || -> io::Result<()> {
            for entry in fs::read_dir(self.objects())? {
                let name = entry?.file_name();
                let Some(name) = name.to_str() else { continue };
                // What a publisher left that was killed starts with a dot.
                if name.starts_with(file::TEMPORARY) || is_object(name) && !keep(name) {
                    fs::remove_file(self.objects().join(name))?;
                }
            }
            Ok(())
        };
        clean().map_err(Error::io(&self.place()))
    }
}
