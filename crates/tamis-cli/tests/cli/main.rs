//! The command line as its users meet it.

mod errors;
mod exchange;
mod files;
#[cfg(feature = "gate")]
mod gate;
#[cfg(feature = "gate")]
mod http;
mod inputs;
mod keys;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_filters;
mod pipes;
mod plans;
#[cfg(feature = "reproduce")]
mod reports;
mod squid;
mod tool;
mod transfer;
mod verbs;
