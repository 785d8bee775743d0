//! The golden files and nothing else of `tamis-testkit`, to read them on other machines.

#[path = "../../../crates/tamis-testkit/src/golden.rs"]
pub mod golden;
