//! A GPU with CUDA. The driver and the compiler for kernels are found at run time.
#![allow(unsafe_code)] // Kernels work on addresses.

use std::collections::HashMap;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::result;
use cudarc::driver::sys::{
    self, CUdevice_attribute, CUfunction_attribute, CUmemPool_attribute, CUmemorytype,
    CUpointer_attribute,
};
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

/// Memory of a GPU that others own: it is used as a [`Buffer`], and not freed.
#[derive(Debug)]
pub struct Borrowed<'a> {
    memory: ManuallyDrop<Buffer>,
    owner: PhantomData<&'a Buffer>,
}

impl Deref for Borrowed<'_> {
    type Target = Buffer;

    fn deref(&self) -> &Buffer {
        &self.memory
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        // SAFETY: it is taken once, here.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        // Frees what is ours beside the memory.
        memory.0.leak();
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

    /// Its number.
    pub fn number(&self) -> usize {
        self.context.ordinal()
    }

    /// The stream on which all is done.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Waits until all that was started has ended.
    pub fn wait(&self) -> Result<(), Error> {
        Ok(self.stream.synchronize()?)
    }

    /// Waits until all has ended that any library of this process has started on this GPU.
    pub fn wait_for_all(&self) -> Result<(), Error> {
        Ok(self.context.synchronize()?)
    }

    /// Runs `work`, and leaves the thread the context that it had: other libraries of the process
    /// may work on another GPU.
    pub fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        let before = result::ctx::get_current().ok().flatten();
        let done = work();
        if let Some(before) = before.filter(|&before| before != self.context.cu_ctx()) {
            // SAFETY: the thread had this context when `work` began. (An error leaves it ours.)
            let _ = unsafe { result::ctx::set_current(before) };
        }
        done
    }

    /// Bytes of memory that are free, and all.
    pub fn memory(&self) -> Result<(u64, u64), Error> {
        let (free, all) = self.context.mem_get_info()?;
        Ok((free as u64, all as u64))
    }

    /// Gives memory back to the driver that was kept for the next batch.
    pub fn give_back(&self) -> Result<(), Error> {
        if !self.context.has_async_alloc() {
            return Ok(());
        }
        self.wait()?;
        // SAFETY: the pool is the device's own.
        unsafe {
            let pool = result::device::get_default_mem_pool(self.context.cu_device())?;
            result::mem_pool::trim_to(pool, 0)?;
        }
        Ok(())
    }

    /// Memory for `words` words, with anything in it.
    pub fn allocate(&self, words: u64) -> Result<Buffer, Error> {
        Machine::allocate(self, words)
    }

    /// Where memory is.
    pub fn address(&self, buffer: &Buffer) -> u64 {
        Machine::address(self, buffer)
    }

    /// Memory of this GPU that another library of this process has allocated, `words` words from
    /// `address` on. What the driver does not know as such is refused.
    ///
    /// # Safety
    ///
    /// The memory must stay allocated as long as it is borrowed, all that writes it must have
    /// ended, and it must not be freed before what this GPU was asked to do with it has ended
    /// ([`wait`](Self::wait)).
    pub unsafe fn borrow<'a>(&self, address: u64, words: u64) -> Result<Borrowed<'a>, Error> {
        self.check_memory(address, words)?;
        // SAFETY: it is memory of this GPU; see above. `Borrowed` does not free it.
        let memory = unsafe { self.stream.upgrade_device_ptr(address, words as usize) };
        Ok(Borrowed { memory: ManuallyDrop::new(Buffer(memory)), owner: PhantomData })
    }

    /// Whether the driver knows this memory as that of this GPU.
    fn check_memory(&self, address: u64, words: u64) -> Result<(), Error> {
        let refuse = |why| Err(Error::NotOurs { address, why });
        if words == 0 {
            return Ok(());
        }
        if !address.is_multiple_of(8) {
            return refuse("it does not begin at a multiple of 8 bytes");
        }
        let end = words.checked_mul(8).and_then(|bytes| address.checked_add(bytes));
        let Some(end) = end else { return refuse("it is too long") };
        self.context.bind_to_thread()?;
        // An array may lie in several allocations whose addresses follow each other.
        let mut at = address;
        while at < end {
            let mut kind = 0_u32;
            let mut device = 0_i32;
            let (mut start, mut size) = (0_u64, 0_u64);
            // SAFETY: each attribute has the type that it is written to.
            let known = unsafe {
                use CUpointer_attribute as Attribute;
                ask((&raw mut kind).cast(), Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at)
                    && ask(
                        (&raw mut device).cast(),
                        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                        at,
                    )
                    && ask(
                        (&raw mut start).cast(),
                        Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                        at,
                    )
                    && ask((&raw mut size).cast(), Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE, at)
            };
            if !known {
                return refuse("the driver knows no such memory, or not all of it");
            }
            if kind != CUmemorytype::CU_MEMORYTYPE_DEVICE as u32 {
                return refuse("it is memory of the host");
            }
            if usize::try_from(device) != Ok(self.number()) {
                return refuse("it is memory of another GPU");
            }
            let next = start.saturating_add(size);
            if next <= at {
                return refuse("the driver does not say how long it is");
            }
            at = next;
        }
        Ok(())
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

/// Writes what the driver knows of an address to `to`. False if it knows nothing.
///
/// # Safety
///
/// `to` must have the type of the attribute.
unsafe fn ask(to: *mut c_void, attribute: CUpointer_attribute, address: u64) -> bool {
    // SAFETY: the caller gave the place for the answer; any number may be asked for.
    unsafe { sys::cuPointerGetAttribute(to, attribute, address) }.result().is_ok()
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
