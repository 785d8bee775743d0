//! Verbs that this build was made without.

use std::ffi::OsString;

use anyhow::{Result, bail};
use clap::Args;

use super::Outcome;
use crate::keys::built_without;

#[derive(Args)]
pub(crate) struct Missing {
    /// Whatever the verb takes
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

impl Missing {
    /// Says how to build what has the verb.
    pub(crate) fn refuse(self, feature: &str) -> Result<Outcome> {
        drop(self.rest);
        bail!(built_without(feature))
    }
}
