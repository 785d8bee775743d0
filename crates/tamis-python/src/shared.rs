//! A filter that threads share: one lock, which is never waited for with the interpreter held.
//!
//! A thread that waited for the lock while it held the interpreter would wait for ever for one
//! that holds the lock and wants the interpreter. So a short operation tries the lock, and lets
//! the interpreter go only where somebody else has it; a long one lets it go at once.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use pyo3::prelude::*;
use tamis::{AnyFilter, Filter as _, Hasher};

use crate::errors::{Refused, broken, closed};

/// A filter behind a lock.
pub(crate) struct Shared {
    /// It never changes, so that keys are hashed without the lock.
    hasher: Hasher,
    state: RwLock<State>,
}

struct State {
    /// `None` after `close`.
    filter: Option<AnyFilter>,
    /// Whether every byte was checked. Only the header is, where a file is mapped.
    checked: bool,
}

impl State {
    fn get(&self) -> PyResult<&AnyFilter> {
        self.filter.as_ref().ok_or_else(closed)
    }

    /// The filter, to be changed. One that was mapped is checked before: a change relies on what
    /// a question need not.
    fn get_mut(&mut self) -> PyResult<&mut AnyFilter> {
        let filter = self.filter.as_mut().ok_or_else(closed)?;
        if !self.checked {
            filter.validate().map_err(Refused::refused)?;
            self.checked = true;
        }
        Ok(filter)
    }
}

type Reading<'a> = RwLockReadGuard<'a, State>;
type Writing<'a> = RwLockWriteGuard<'a, State>;

impl Shared {
    pub(crate) fn new(filter: AnyFilter, checked: bool) -> Self {
        let hasher = filter.hasher();
        Self { hasher, state: RwLock::new(State { filter: Some(filter), checked }) }
    }

    pub(crate) fn hasher(&self) -> Hasher {
        self.hasher
    }

    fn wait_to_read(&self) -> PyResult<Reading<'_>> {
        self.state.read().map_err(|_| broken())
    }

    fn wait_to_write(&self) -> PyResult<Writing<'_>> {
        self.state.write().map_err(|_| broken())
    }

    /// A short question.
    #[inline]
    pub(crate) fn ask<R: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&AnyFilter) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        match self.state.try_read() {
            Ok(state) => ask(state.get()?),
            Err(TryLockError::Poisoned(_)) => Err(broken()),
            Err(TryLockError::WouldBlock) => self.ask_long(py, ask),
        }
    }

    /// A question that takes a while.
    pub(crate) fn ask_long<R: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&AnyFilter) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        py.detach(|| self.ask_detached(ask))
    }

    /// A question of a thread that does not hold the interpreter.
    pub(crate) fn ask_detached<R>(
        &self,
        ask: impl FnOnce(&AnyFilter) -> PyResult<R>,
    ) -> PyResult<R> {
        ask(self.wait_to_read()?.get()?)
    }

    /// A short change.
    #[inline]
    pub(crate) fn change<R: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut AnyFilter) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        match self.state.try_write() {
            Ok(mut state) => change(state.get_mut()?),
            Err(TryLockError::Poisoned(_)) => Err(broken()),
            Err(TryLockError::WouldBlock) => self.change_long(py, change),
        }
    }

    /// A change that takes a while.
    pub(crate) fn change_long<R: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut AnyFilter) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        py.detach(|| self.change_detached(change))
    }

    /// A change by a thread that does not hold the interpreter.
    pub(crate) fn change_detached<R>(
        &self,
        change: impl FnOnce(&mut AnyFilter) -> PyResult<R>,
    ) -> PyResult<R> {
        change(self.wait_to_write()?.get_mut()?)
    }

    /// Changes this filter with a look at another. Both locks are taken in the order of their
    /// addresses, so that two threads that do this the other way round cannot block each other.
    pub(crate) fn change_with<R: Send>(
        &self,
        py: Python<'_>,
        other: &Self,
        change: impl FnOnce(&mut AnyFilter, &AnyFilter) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        py.detach(|| {
            if std::ptr::eq(self, other) {
                let mut state = self.wait_to_write()?;
                let copy = state.get()?.clone();
                return change(state.get_mut()?, &copy);
            }
            let (mut mine, theirs);
            if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
                mine = self.wait_to_write()?;
                theirs = other.wait_to_read()?;
            } else {
                theirs = other.wait_to_read()?;
                mine = self.wait_to_write()?;
            }
            change(mine.get_mut()?, theirs.get()?)
        })
    }

    /// A question to two filters, with the same order of locks.
    pub(crate) fn ask_both<R: Send>(
        &self,
        py: Python<'_>,
        other: &Self,
        ask: impl FnOnce(&AnyFilter, &AnyFilter) -> PyResult<R> + Send,
    ) -> PyResult<R> {
        py.detach(|| {
            if std::ptr::eq(self, other) {
                let state = self.wait_to_read()?;
                return ask(state.get()?, state.get()?);
            }
            let (mine, theirs);
            if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
                mine = self.wait_to_read()?;
                theirs = other.wait_to_read()?;
            } else {
                theirs = other.wait_to_read()?;
                mine = self.wait_to_read()?;
            }
            ask(mine.get()?, theirs.get()?)
        })
    }

    /// A copy of its own.
    pub(crate) fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        py.detach(|| {
            let state = self.wait_to_read()?;
            Ok(Self::new(state.get()?.clone(), state.checked))
        })
    }

    /// Lets the filter go, and with it the file that it was mapped from.
    pub(crate) fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let mut state = self.state.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            state.filter = None;
        });
    }
}
