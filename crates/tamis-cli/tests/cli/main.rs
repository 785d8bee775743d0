//! The command line as its users meet it.

mod errors;
mod exchange;
mod files;
mod inputs;
mod keys;
mod pipes;
mod plans;
mod reports;
mod tool;
mod verbs;
