//! The arithmetic behind a prediction, for people.

use alloc::string::String;
use core::fmt::{Display, Write};

/// Lines of a name and a formula.
#[derive(Debug)]
pub struct Lines(pub(crate) String);

/// Adds lines to an explanation: a name, and a formula with its values as for `format!`.
macro_rules! explain {
    ($out:expr; $($name:literal: $formula:literal $(, $value:expr)*;)*) => {
        $($out.add($name, format_args!($formula $(, $value)*));)*
    };
}
pub(crate) use explain;

impl Lines {
    pub(crate) fn add(&mut self, name: &str, formula: impl Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "  {name:<10} {formula}");
    }
}
