//! The command line as its users meet it.

mod errors;
mod exchange;
mod files;
mod gate;
mod http;
mod keys;
mod pipes;
mod plans;
mod reports;
mod tool;
mod verbs;
