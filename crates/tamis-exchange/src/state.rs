//! What a follower remembers beside its file: how far it has seen, and which version the file is.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tamis::ContentId;

use crate::error::Error;
use crate::manifest::Manifest;
use crate::{file, hex};

/// A version and its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    epoch: u32,
    version: u64,
    content: String,
}

/// What is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The set, so that a file is not taken for another set's.
    name: String,
    /// The publisher's key; nothing if the set is not signed.
    key: String,
    /// The newest version and time that were signed. Nothing older is taken.
    version: u64,
    time: u64,
    /// What the file may hold: it is written after this is.
    held: Vec<Held>,
}

impl State {
    pub(crate) fn new(name: &str, key: Option<&crate::PublicKey>) -> Self {
        let key = key.map(|key| hex::encode(&key.id())).unwrap_or_default();
        Self { name: name.to_owned(), key, ..Self::default() }
    }

    /// What is remembered beside `file`; the same as before if there is nothing.
    pub(crate) fn read(self, file: &Path) -> Result<Self, Error> {
        let path = beside(file);
        let place = path.display();
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(self),
            text => text.map_err(Error::io(&place))?,
        };
        let Ok(read) = serde_json::from_str::<Self>(&text) else {
            let fault = format!("{place} is damaged; delete it to start anew");
            return Err(Error::format("state", fault));
        };
        if (&read.name, &read.key) != (&self.name, &self.key) {
            let fault = format!(
                "{} follows the set {:?} with another key or name; write to another file, or delete {place}",
                file.display(),
                read.name
            );
            return Err(Error::format("state", fault));
        }
        Ok(read)
    }

    pub(crate) fn write(&self, file: &Path) -> Result<(), Error> {
        let path = beside(file);
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        file::replace(&path, &[text.as_bytes(), b"\n"], None).map_err(Error::io(&path.display()))
    }

    /// Refuses a manifest that is older than one that was seen.
    pub(crate) fn check(&self, manifest: &Manifest) -> Result<(), Error> {
        let Manifest { version, time, .. } = *manifest;
        if version < self.version || version == self.version && time < self.time {
            return Err(Error::Rollback { offered: version, seen: self.version });
        }
        Ok(())
    }

    /// Remembers a manifest, before the file is written: so a stop in between cannot make an
    /// older version acceptable.
    pub(crate) fn see(&mut self, manifest: &Manifest) {
        let content = manifest.content.to_string();
        let held = Held { epoch: manifest.epoch, version: manifest.version, content };
        (self.version, self.time) = (manifest.version, manifest.time);
        // The file still holds the one before, until it is written.
        self.held.retain(|other| *other != held);
        self.held.push(held);
        self.held.drain(..self.held.len().saturating_sub(2));
    }

    /// The version that has this content, if it is of this epoch.
    pub(crate) fn version_of(&self, content: ContentId, epoch: u32) -> Option<u64> {
        let content = content.to_string();
        let is_it = |held: &&Held| held.content == content && held.epoch == epoch;
        self.held.iter().rev().find(is_it).map(|held| held.version)
    }
}

/// Where the state of a file is kept.
fn beside(file: &Path) -> PathBuf {
    let mut path = file.to_owned().into_os_string();
    path.push(".follow");
    path.into()
}
