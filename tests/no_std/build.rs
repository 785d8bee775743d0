//! Links libc, which Rust does only for programs with the standard library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-bins=-lc");
}
