//! A GPU with CUDA. The driver and the compiler for kernels are found at run time.
#![allow(unsafe_code)] // Kernels work on addresses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::result;
use cudarc::driver::sys::{CUdevice_attribute, CUfunction_attribute, CUmemPool_attribute};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr, DeviceRepr,
    LaunchConfig, PinnedHostSlice, PushKernelArg, ValidAsZeroBits,
};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};

use crate::Error;
use crate::machine::{Machine, Work};

/// Threads of a block.
const THREADS: u32 = 256;

/// A GPU.
#[derive(Clone, Debug)]
pub struct Gpu {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    architecture: &'static str,
    /// What was compiled, by source: filters of one shape share their kernels.
    programs: Arc<Mutex<HashMap<String, Arc<Program>>>>,
}

/// Memory of a GPU, in words of 64 bits.
#[derive(Debug)]
pub struct Buffer(pub(crate) CudaSlice<u64>);

impl Buffer {
    /// How many words it has.
    pub fn words(&self) -> u64 {
        self.0.len() as u64
    }
}

impl From<CudaSlice<u64>> for Buffer {
    fn from(memory: CudaSlice<u64>) -> Self {
        Self(memory)
    }
}

/// Memory of the host that a GPU reads and writes by itself.
#[derive(Debug)]
pub struct Pinned<T>(PinnedHostSlice<T>);

impl<T: ValidAsZeroBits> Pinned<T> {
    /// What it holds.
    pub fn as_slice(&self) -> Result<&[T], Error> {
        Ok(self.0.as_slice()?)
    }

    /// What it holds, to be written.
    pub fn as_mut_slice(&mut self) -> Result<&mut [T], Error> {
        Ok(self.0.as_mut_slice()?)
    }
}

/// Kernels that were compiled.
#[derive(Debug)]
pub struct Program {
    module: Arc<CudaModule>,
    /// Those that were used, by name.
    kernels: Mutex<Vec<(String, CudaFunction)>>,
}

impl Gpu {
    /// GPU number `number` of this machine.
    pub fn new(number: usize) -> Result<Self, Error> {
        // SAFETY: these load a library of the system, if there is one.
        let (has_driver, has_compiler) = unsafe {
            (cudarc::driver::sys::is_culib_present(), cudarc::nvrtc::sys::is_culib_present())
        };
        if !has_driver {
            return Err(Error::NoDriver);
        }
        if !has_compiler {
            return Err(Error::NoCompiler);
        }
        let devices = CudaContext::device_count().unwrap_or(0);
        if number as u64 >= devices.max(0) as u64 {
            return Err(Error::NoDevice(number));
        }
        let context = CudaContext::new(number)?;
        let (major, minor) = context.compute_capability()?;
        keep_memory(&context)?;
        let architecture = format!("compute_{major}{minor}").leak();
        // All is done on one stream, in order.
        let stream = context.default_stream();
        Ok(Self { context, stream, architecture, programs: Arc::default() })
    }

    /// The name of the device.
    pub fn name(&self) -> Result<String, Error> {
        Ok(self.context.name()?)
    }

    /// The stream on which all is done.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Waits until all that was started has ended.
    pub fn wait(&self) -> Result<(), Error> {
        Ok(self.stream.synchronize()?)
    }

    /// Memory with these words.
    pub fn upload(&self, words: &[u64]) -> Result<Buffer, Error> {
        Machine::upload(self, words)
    }

    /// The words of some memory.
    pub fn download(&self, buffer: &Buffer) -> Result<Vec<u64>, Error> {
        self.read(buffer, buffer.words())
    }

    /// The same GPU, whose work goes on beside this one's.
    pub(crate) fn beside(&self) -> Result<Self, Error> {
        self.wait()?;
        Ok(Self { stream: self.context.new_stream()?, ..self.clone() })
    }

    /// Memory of the host that is copied quickly, with `len` times the default of `T`.
    pub fn pinned<T>(&self, len: usize) -> Result<Pinned<T>, Error>
    where
        T: DeviceRepr + ValidAsZeroBits + Default + Clone,
    {
        // SAFETY: all of it is written before it is read.
        let mut memory = unsafe { self.context.alloc_pinned(len.max(1)) }?;
        memory.as_mut_slice()?.fill(T::default());
        Ok(Pinned(memory))
    }

    /// Copies all words of the host's memory.
    pub fn copy_from_host(&self, from: &Pinned<u64>, to: &mut Buffer) -> Result<(), Error> {
        let words = from.as_slice()?;
        self.given(to, words.len() as u64)?;
        self.write(to, words)
    }

    /// Reads answers, a byte each.
    pub(crate) fn read_answers(&self, from: &Buffer, to: &mut [bool]) -> Result<(), Error> {
        // SAFETY: kernels write 0 or 1 into each byte.
        let bytes = unsafe { from.0.transmute::<bool>(8 * from.0.len()) };
        let Some(bytes) = bytes else { return Ok(()) };
        Ok(self.stream.memcpy_dtoh(&bytes.slice(..to.len()), to)?)
    }

    /// The most bytes of shared memory that a block of threads may have.
    fn most_shared(&self) -> Result<u32, Error> {
        let most = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        Ok(self.context.attribute(most)?.max(0) as u32)
    }
}

/// Keeps memory that was given back for the next batch, instead of returning it to the driver.
fn keep_memory(context: &CudaContext) -> Result<(), Error> {
    if !context.has_async_alloc() {
        return Ok(());
    }
    let mut threshold = u64::MAX;
    let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the pool is the device's own, and the attribute is a number of 64 bits.
    unsafe {
        let pool = result::device::get_default_mem_pool(context.cu_device())?;
        result::mem_pool::set_attribute(pool, attribute, (&raw mut threshold).cast())?;
    }
    Ok(())
}

impl Machine for Gpu {
    type Buffer = Buffer;
    type Program = Arc<Program>;

    fn compile(&self, source: &str) -> Result<Arc<Program>, Error> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = programs.get(source) {
            return Ok(program.clone());
        }
        let options = CompileOptions { arch: Some(self.architecture), ..CompileOptions::default() };
        let code = compile_ptx_with_opts(source, options)
            .map_err(|error| Error::Compile(format!("{error:?}")))?;
        let module = self.context.load_module(code)?;
        let program = Arc::new(Program { module, kernels: Mutex::default() });
        programs.insert(source.to_owned(), program.clone());
        Ok(program)
    }

    fn allocate(&self, words: u64) -> Result<Buffer, Error> {
        // (A buffer of no words has no address.)
        let words = words.max(1);
        let failed = |error| Error::of_allocation(error, 8 * words);
        // SAFETY: any words are words, and what reads them was written before.
        unsafe { self.stream.alloc(words as usize) }.map(Buffer).map_err(failed)
    }

    fn clear(&self, buffer: &mut Buffer) -> Result<(), Error> {
        Ok(self.stream.memset_zeros(&mut buffer.0)?)
    }

    fn write(&self, buffer: &mut Buffer, words: &[u64]) -> Result<(), Error> {
        if words.is_empty() {
            return Ok(());
        }
        Ok(self.stream.memcpy_htod(words, &mut buffer.0.slice_mut(..words.len()))?)
    }

    fn read(&self, buffer: &Buffer, words: u64) -> Result<Vec<u64>, Error> {
        if words == 0 {
            return Ok(Vec::new());
        }
        Ok(self.stream.clone_dtoh(&buffer.0.slice(..words as usize))?)
    }

    fn copy(&self, from: &Buffer, to: &mut Buffer, words: u64) -> Result<(), Error> {
        let words = words as usize;
        Ok(self.stream.memcpy_dtod(&from.0.slice(..words), &mut to.0.slice_mut(..words))?)
    }

    fn words(&self, buffer: &Buffer) -> u64 {
        buffer.words()
    }

    fn address(&self, buffer: &Buffer) -> u64 {
        // (Nothing has to be waited for: there is one stream.)
        buffer.0.device_ptr(&self.stream).0
    }

    unsafe fn launch(
        &self,
        program: &Arc<Program>,
        kernel: &str,
        work: Work,
        [shared, for_each]: [u64; 2],
        arguments: &[u64],
    ) -> Result<(), Error> {
        let blocks = match work {
            Work::Items { number, each } => number.div_ceil(u64::from(THREADS) * each),
            Work::Groups(number) => number,
        };
        if blocks == 0 {
            return Ok(());
        }
        let shared = 8 * (shared + for_each * u64::from(THREADS)) as u32;
        let mut kernels = program.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kernels.iter().position(|(name, _)| name == kernel);
        let at = known.map_or_else(
            || {
                let function = program.module.load_function(kernel)?;
                if shared > 48 << 10 {
                    let most = self.most_shared()?;
                    function.set_attribute(
                        CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                        most as i32,
                    )?;
                }
                kernels.push((kernel.to_owned(), function));
                Ok::<_, Error>(kernels.len() - 1)
            },
            Ok,
        )?;
        let mut launch = self.stream.launch_builder(&kernels[at].1);
        for argument in arguments {
            launch.arg(argument);
        }
        let config = LaunchConfig {
            grid_dim: (blocks as u32, 1, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: shared,
        };
        // SAFETY: the caller keeps the contract of the kernel.
        unsafe { launch.launch(config) }?;
        Ok(())
    }
}
