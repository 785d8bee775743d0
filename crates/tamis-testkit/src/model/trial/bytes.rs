//! Filters through bytes and back, and deltas between them.

use std::fmt::Write as _;
use std::sync::Arc;

use tamis::{AnyFilter, Delta, Effort, Filter, Limits, SharedBytes};

use super::super::subject;
use super::{Checked, Held, Kept, Trial, broken, ensure};

impl Trial {
    /// Encodes the filter, and checks that decoding gives the same filter, which gives the same
    /// bytes. Goes on with the decoded filter.
    pub(super) fn encode(&mut self, packed: Option<Effort>) -> Checked {
        let write = |filter: &AnyFilter| match packed {
            Some(effort) => filter.pack(effort).to_vec(),
            None => filter.encode().to_vec(),
        };
        let name = if packed.is_some() { "pack" } else { "encode" };
        let bytes = self.timed(name, |trial| write(&trial.held.filter));
        let read =
            self.timed("decode", |_| Held::make(|| AnyFilter::decode(&bytes, Limits::default())));
        let read = read.or_else(|error| broken("what is written can be read", &error))?;
        self.same(&read.filter)?;
        let again = write(&read.filter);
        ensure(again == bytes, "equal bytes after reading back", || {
            let at = again.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
            let (now, then) = (read.filter.params().named(), self.held.filter.params().named());
            let mut detail = format!("{} and {} bytes, alike up to {at}", bytes.len(), again.len());
            if now != then {
                let _ = write!(detail, "; params {then:?} were read as {now:?}");
            }
            detail
        })?;
        self.held = read;
        Ok(())
    }

    fn same(&self, read: &AnyFilter) -> Checked {
        ensure(
            read.content_id() == self.held.filter.content_id(),
            "what is saved is loaded",
            || {
                let (now, then) = (read.entries(), self.held.filter.entries());
                let at = now.iter().zip(&then).take_while(|(a, b)| a == b).count();
                format!(
                    "another content: {} and {} entries, differing from {:?} and {:?} on",
                    then.len(),
                    now.len(),
                    then.get(at),
                    now.get(at)
                )
            },
        )?;
        ensure(read.label() == self.held.filter.label(), "what is saved is loaded", || {
            format!("label {:?}, not {:?}", read.label(), self.held.filter.label())
        })?;
        ensure(read == &self.held.filter, "what is saved is loaded", || "not equal".into())
    }

    pub(super) fn open(&mut self) -> Checked {
        let shared: SharedBytes = Arc::new(self.held.filter.encode().to_vec());
        let opened = self.timed("open", |_| Held::make(|| AnyFilter::open(&shared)));
        let opened = opened.or_else(|error| broken("what is written can be opened", &error))?;
        self.same(&opened.filter)?;
        self.held = opened;
        self.shared.push(shared);
        Ok(())
    }

    /// Keeps a copy of the filter, with the layout that its memory is predicted from.
    pub(super) fn keep(&mut self) {
        let (filter, planned) = (self.held.filter.clone(), self.planned);
        self.kept = Some(Kept { filter, planned, most: self.most, chosen: self.chosen });
    }

    /// Checks that a delta from the copy to the filter, encoded and decoded, turns the copy into
    /// the filter.
    pub(super) fn patch(&mut self) -> Checked {
        let Some(Kept { filter: kept, planned, most, chosen }) = self.kept.take() else {
            return Ok(());
        };
        if !self.kind.can_insert() {
            return Ok(());
        }
        let made = self.timed("diff", |trial| Delta::between(&kept, &trial.held.filter));
        let delta = match made {
            Ok(delta) => delta,
            // This may fail if identities have become shorter meanwhile.
            Err(_)
                if subject::universe(&kept.params())
                    != subject::universe(&self.held.filter.params()) =>
            {
                return Ok(());
            }
            Err(error) => return broken("versions have a delta", &error),
        };
        let bytes = delta.encode().to_vec();
        let read = match Delta::decode(&bytes, Limits::default()) {
            Ok(read) => read,
            Err(error) => return broken("what is written can be read", &error),
        };
        ensure(read.encode().to_vec() == bytes, "equal bytes after reading back", || {
            "of a delta".into()
        })?;
        let mut patched = Held::make(|| Ok::<_, String>(kept.clone()))
            .or_else(|error| broken("versions have a delta", &error))?;
        let mut refused = None;
        self.timed("patch", |_| {
            patched.change(|filter| {
                if let Err(error) = read.apply(filter) {
                    refused = Some(error);
                }
            });
        });
        if let Some(error) = refused {
            return broken("a patch applies to its base", &error);
        }
        self.same(&patched.filter)?;
        self.held = patched;
        // The result has the layout of the old filter.
        (self.planned, self.most) = (planned, self.most.max(most));
        self.chosen += chosen;
        Ok(())
    }
}
