//! The kernels as C++ for the processor: one thread a block, one block after the other.
#![allow(unsafe_code)] // Kernels work on addresses, and are loaded from a library.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use libloading::Library;
use tempfile::TempDir;

use crate::Error;
use crate::machine::{Machine, Work};

/// The processor of this machine, as if it were a GPU.
#[derive(Clone)]
pub(super) struct Emulated {
    /// Kernels that were compiled.
    folder: Arc<TempDir>,
    /// Allocations until one fails, and so do those after it.
    allocations: Arc<AtomicU64>,
}

pub(super) struct Program(Library);

/// A kernel. Those that take fewer arguments pass over the rest.
type Kernel = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64);

impl Emulated {
    /// All have the same folder: what is compiled once is there for every test.
    pub(super) fn new() -> Self {
        static FOLDER: LazyLock<Arc<TempDir>> = LazyLock::new(|| Arc::new(TempDir::new().unwrap()));
        Self { folder: FOLDER.clone(), allocations: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    /// From now on there is memory for `number` allocations.
    pub(super) fn allow(&self, number: u64) {
        self.allocations.store(number, Ordering::Relaxed);
    }

    fn path(&self, source: &str, extension: &str) -> PathBuf {
        let name = tamis::Hasher::default().digest(source).0;
        self.folder.path().join(format!("{name:x}.{extension}"))
    }
}

/// Numbers the programs that are compiled.
static COMPILED: AtomicU64 = AtomicU64::new(0);

/// One kernel runs at a time: all share the variables for the number of a block and its memory.
static RUNNING: Mutex<()> = Mutex::new(());

impl Machine for Emulated {
    type Buffer = Vec<u64>;
    type Program = Program;

    fn compile(&self, source: &str) -> Result<Program, Error> {
        let library = self.path(source, "so");
        if !library.exists() {
            // Another test may compile the same at the same time: it must not see half a file.
            let number = COMPILED.fetch_add(1, Ordering::Relaxed);
            let file = self.path(source, &format!("{number}.cpp"));
            let made = file.with_extension("so");
            std::fs::write(&file, format!("#define EMULATED\n{source}")).unwrap();
            let compiler = Command::new("c++")
                .args(["-std=c++17", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all"])
                .args(["-fsanitize-undefined-trap-on-error", "-fno-sanitize=alignment"])
                .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"])
                .args([
                    "-Wno-unused-const-variable",
                    "-Wno-unknown-pragmas",
                    "-shared",
                    "-fPIC",
                    "-o",
                ])
                .args([&made, &file])
                .output()
                .unwrap();
            assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
            std::fs::rename(&made, &library).unwrap();
        }
        // SAFETY: what was just compiled; loading it runs nothing.
        Ok(Program(unsafe { Library::new(&library) }.unwrap()))
    }

    /// Not zeroed, so that a kernel which reads what nothing wrote is noticed.
    fn allocate(&self, words: u64) -> Result<Vec<u64>, Error> {
        let one_less = |number: u64| number.checked_sub(1);
        if self.allocations.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err() {
            return Err(Error::OutOfMemory { bytes: 8 * words });
        }
        Ok(vec![0xdead_beef_dead_beef; words as usize])
    }

    fn clear(&self, buffer: &mut Vec<u64>) -> Result<(), Error> {
        buffer.fill(0);
        Ok(())
    }

    fn write(&self, buffer: &mut Vec<u64>, words: &[u64]) -> Result<(), Error> {
        buffer[..words.len()].copy_from_slice(words);
        Ok(())
    }

    fn read(&self, buffer: &Vec<u64>, words: u64) -> Result<Vec<u64>, Error> {
        Ok(buffer[..words as usize].to_vec())
    }

    fn copy(&self, from: &Vec<u64>, to: &mut Vec<u64>, words: u64) -> Result<(), Error> {
        to[..words as usize].copy_from_slice(&from[..words as usize]);
        Ok(())
    }

    fn words(&self, buffer: &Vec<u64>) -> u64 {
        buffer.len() as u64
    }

    fn address(&self, buffer: &Vec<u64>) -> u64 {
        buffer.as_ptr() as u64
    }

    unsafe fn launch(
        &self,
        program: &Program,
        kernel: &str,
        work: Work,
        _: [u64; 2],
        arguments: &[u64],
    ) -> Result<(), Error> {
        let blocks = match work {
            Work::Items { number, each } => number.div_ceil(each),
            Work::Groups(number) => number,
        };
        let mut all = [0; 11];
        all[..arguments.len()].copy_from_slice(arguments);
        let [a, b, c, d, e, f, g, h, i, j, k] = all;
        let _running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the caller keeps the contract of the kernel. The symbols are those of the
        // source.
        unsafe {
            let block = *program.0.get::<*mut u64>(b"emulated_block").unwrap();
            let kernel = program.0.get::<Kernel>(kernel.as_bytes()).unwrap();
            for number in 0..blocks {
                *block = number;
                kernel(a, b, c, d, e, f, g, h, i, j, k);
            }
        }
        Ok(())
    }
}
