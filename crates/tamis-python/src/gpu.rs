//! `tamis.gpu`: filters in the memory of a GPU, for arrays that are there too.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use pyo3::create_exception;
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyCapsule, PyDict};
use tamis::{AnyFilter, AnyParams, Hasher, Kind, Label, Operation};
use tamis_gpu::{Blocked, BlockedRank, Buffer, Gpu, Keys};

use crate::batch::Batch;
use crate::dlpack::{self, Integers};
use crate::errors::{Error, FormatError, MismatchError, Refused, bad_batch, broken, cannot};
use crate::filter::Filter;
use crate::goal::{self, Wish};

create_exception!(
    tamis,
    DeviceError,
    PyRuntimeError,
    "There is no GPU, or it failed; the text says what is missing."
);

impl Refused for tamis_gpu::Error {
    fn refused(self) -> PyErr {
        use tamis_gpu::Error as Gpu;
        let text = self.to_string();
        match self {
            Gpu::OutOfMemory { .. } => PyMemoryError::new_err(text),
            Gpu::NotOurs { .. } | Gpu::Short { .. } | Gpu::Offsets => PyValueError::new_err(text),
            Gpu::Hash | Gpu::HalfDone => Error::new_err(text),
            Gpu::Mismatch => MismatchError::new_err(text),
            Gpu::Invalid(_) => FormatError::new_err(text),
            Gpu::Full(error) => error.refused(),
            _ => DeviceError::new_err(text),
        }
    }
}

/// GPU number `number`, once for the whole process: filters of one shape share their kernels.
fn gpu(py: Python<'_>, number: usize) -> PyResult<Gpu> {
    static GPUS: Mutex<BTreeMap<usize, Gpu>> = Mutex::new(BTreeMap::new());
    py.detach(|| {
        let mut gpus = GPUS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gpu) = gpus.get(&number) {
            return Ok(gpu.clone());
        }
        let gpu = Gpu::new(number).map_err(Refused::refused)?;
        gpus.insert(number, gpu.clone());
        Ok(gpu)
    })
}

/// A batch of keys.
enum Given<'py> {
    /// On the GPU, with what keeps it there.
    Device(Integers, #[allow(dead_code, reason = "it is kept alive")] Bound<'py, PyAny>),
    /// Digests of keys that were on the host.
    Host(Vec<u64>),
}

impl<'py> Given<'py> {
    fn new(keys: &Bound<'py, PyAny>, gpu: &Gpu, hasher: Hasher) -> PyResult<Self> {
        let py = keys.py();
        if let Some(device) = keys.getattr_opt(pyo3::intern!(py, "__dlpack_device__"))? {
            let (kind, number): (i32, i32) = device.call0()?.extract()?;
            if kind == dlpack::CUDA || kind == dlpack::CUDA_MANAGED {
                if usize::try_from(number) != Ok(gpu.number()) {
                    let text = format!("it is on GPU {number}, and the filter on {}", gpu.number());
                    return Err(bad_batch(&text));
                }
                // Stream 1 is the one that all is done on.
                let named = PyDict::new(py);
                named.set_item("stream", 1)?;
                let capsule = keys.call_method("__dlpack__", (), Some(&named))?;
                let integers = dlpack::integers(capsule.cast::<PyCapsule>()?)?;
                return Ok(Self::Device(integers, capsule));
            }
        } else if let Some(interface) =
            keys.getattr_opt(pyo3::intern!(py, "__cuda_array_interface__"))?
        {
            let integers = described(interface.cast::<PyDict>()?)?;
            return Ok(Self::Device(integers, keys.clone()));
        }
        let mut digests = Vec::new();
        Batch::new(hasher, keys)?.each_piece(
            py,
            hasher,
            |_| Ok(()),
            |piece| {
                if piece.nulls.is_some_and(|nulls| nulls.contains(&true)) {
                    return Err(bad_batch("a batch for a GPU has no nulls; drop them first"));
                }
                digests.extend(piece.digests.iter().map(|digest| digest.0));
                Ok(ControlFlow::Continue(()))
            },
        )?;
        Ok(Self::Host(digests))
    }

    fn number(&self) -> u64 {
        match self {
            Self::Device(integers, _) => integers.number,
            Self::Host(digests) => digests.len() as u64,
        }
    }

    /// Calls `work` with the keys, without the interpreter's lock, and waits for what it started.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        gpu: &Gpu,
        work: impl FnOnce(&Keys<'_>) -> Result<R, tamis_gpu::Error> + Send,
    ) -> PyResult<R> {
        let done = match self {
            Self::Device(integers, _) => py.detach(|| {
                gpu.within(|| {
                    dlpack::lend(gpu, integers, |memory| {
                        work(&Keys::Integers(memory, integers.number))
                    })
                })
            }),
            Self::Host(digests) => py.detach(|| {
                gpu.within(|| {
                    let memory = gpu.upload(digests)?;
                    let done = work(&Keys::Digests(&memory, digests.len() as u64))?;
                    gpu.wait()?;
                    Ok(done)
                })
            }),
        };
        done.map_err(Refused::refused)
    }
}

/// The integers that a `__cuda_array_interface__` describes.
fn described(interface: &Bound<'_, PyDict>) -> PyResult<Integers> {
    let item = |name: &str| {
        let item = interface.get_item(name)?;
        Ok::<_, PyErr>(item.filter(|item| !item.is_none()))
    };
    let needed = |name: &str| {
        item(name)?.ok_or_else(|| bad_batch(&format!("its __cuda_array_interface__ has no {name}")))
    };
    let items: String = needed("typestr")?.extract()?;
    if !matches!(items.as_str(), "<i8" | "<u8") {
        let text = format!("an array of a GPU holds int64 or uint64, not {items}; cast it first");
        return Err(bad_batch(&text));
    }
    let shape: Vec<u64> = needed("shape")?.extract()?;
    let &[number] = &shape[..] else {
        let text = format!("it has {} dimensions; give one, such as x[:, 0]", shape.len());
        return Err(bad_batch(&text));
    };
    if let Some(strides) = item("strides")? {
        let strides: Vec<i64> = strides.extract()?;
        if number > 1 && strides != [8] {
            return Err(bad_batch("its items do not follow each other; make it contiguous"));
        }
    }
    if item("mask")?.is_some() {
        return Err(bad_batch("it has a mask; take the items that count first"));
    }
    let (address, _): (u64, bool) = needed("data")?.extract()?;
    Ok(Integers { address, number })
}

/// Memory of a GPU, given back with the GPU's own context.
struct Memory {
    gpu: Gpu,
    buffer: Option<Buffer>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        let buffer = self.buffer.take();
        self.gpu.within(|| drop(buffer));
    }
}

/// Answers in the memory of a GPU. CuPy, PyTorch, JAX and Numba take it without a copy, through
/// `__cuda_array_interface__` or `__dlpack__`; `numpy.asarray` copies it to the host.
///
/// It is freed when neither it nor any array that was made of it is left.
#[pyclass(frozen, module = "tamis.gpu")]
pub(crate) struct GpuArray {
    memory: Arc<Memory>,
    address: u64,
    number: u64,
    /// Bits of an item: 8 for truth values, 64 for counts.
    bits: u8,
}

impl GpuArray {
    fn new(gpu: &Gpu, buffer: Buffer, number: u64, bits: u8) -> Self {
        let address = gpu.address(&buffer);
        let memory = Arc::new(Memory { gpu: gpu.clone(), buffer: Some(buffer) });
        Self { memory, address, number, bits }
    }
}

#[pymethods]
impl GpuArray {
    fn __len__(&self) -> usize {
        self.number as usize
    }

    fn __repr__(&self) -> String {
        let (number, gpu) = (self.number, self.memory.gpu.number());
        format!("<tamis.gpu.Array: {number} of {} on GPU {gpu}>", self.dtype())
    }

    /// The type of the items: "bool" or "uint64".
    #[getter]
    fn dtype(&self) -> &'static str {
        if self.bits == 8 { "bool" } else { "uint64" }
    }

    /// How CuPy, PyTorch and Numba find the memory. All is written when they do, so that there is
    /// no stream to wait for.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("shape", (self.number,))?;
        interface.set_item("typestr", if self.bits == 8 { "|b1" } else { "<u8" })?;
        interface.set_item("data", (self.address, false))?;
        interface.set_item("strides", py.None())?;
        interface.set_item("stream", py.None())?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }

    /// DLPack's number for CUDA, and the number of the GPU.
    fn __dlpack_device__(&self) -> (i32, usize) {
        (dlpack::CUDA, self.memory.gpu.number())
    }

    /// How JAX, PyTorch and CuPy take the memory.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<Bound<'py, PyAny>>,
        dl_device: Option<(i32, usize)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // All is written, on any stream; and the oldest version suits every consumer.
        let _ = (stream, max_version);
        if dl_device.is_some_and(|device| device != self.__dlpack_device__()) || copy == Some(true)
        {
            return Err(PyBufferError::new_err("the array is not copied; numpy.asarray does that"));
        }
        let gpu = self.memory.gpu.number();
        dlpack::capsule(py, (self.address, self.number, self.bits), gpu, self.memory.clone())
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err("memory of a GPU must be copied to the host"));
        }
        let Memory { gpu, buffer } = &*self.memory;
        let words = py.detach(|| match buffer {
            Some(buffer) => gpu.within(|| gpu.download(buffer)),
            None => Ok(Vec::new()),
        });
        let words = words.map_err(Refused::refused)?;
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        let bytes: Vec<u8> =
            bytes.take(self.number as usize * usize::from(self.bits / 8)).collect();
        let numpy = py.import("numpy")?;
        let array =
            numpy.call_method1("frombuffer", (PyByteArray::new(py, &bytes), self.dtype()))?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }
}

enum Held {
    BlockedRank(BlockedRank),
    Blocked(Blocked),
}

/// A set of keys in the memory of a GPU: the same bytes and answers as a `tamis.Filter`.
///
/// All calls take batches: an array of int64 or uint64 that is on the GPU (CuPy, PyTorch, JAX,
/// Numba), in one dimension and in one piece, which is not copied; or what `tamis.Filter` takes,
/// which is hashed here and copied there. Every call waits for all that was started on the GPU
/// before, on any stream, and ends when its answers are written.
///
/// Args:
///     keys: how many keys to plan for; or the keys themselves, to plan for them and add them.
///     rate: the share of absent keys that are answered yes, 0.01 unless you say otherwise.
///     kind: "blocked-rank", which can remove, count and merge, or "blocked".
///     params: a dict of params to fix, such as {"block": 1024}.
///     seed: filters can be merged only if their seeds are equal.
///     device: the number of the GPU.
///
/// Raises:
///     DeviceError: there is no GPU, no driver or no compiler for kernels.
///     MemoryError: the GPU has not enough memory left.
#[pyclass(frozen, weakref, module = "tamis.gpu")]
pub(crate) struct GpuFilter {
    gpu: Gpu,
    hasher: Hasher,
    /// `None` only while it is dropped.
    held: RwLock<Option<Held>>,
}

impl Drop for GpuFilter {
    fn drop(&mut self) {
        let held = self.held.get_mut().map(Option::take);
        self.gpu.within(|| drop(held));
    }
}

type Done<R> = Result<R, tamis_gpu::Error>;

impl GpuFilter {
    fn holding(gpu: Gpu, held: Held) -> Self {
        let hasher = match &held {
            Held::BlockedRank(filter) => filter.hasher(),
            Held::Blocked(filter) => filter.hasher(),
        };
        Self { gpu, hasher, held: RwLock::new(Some(held)) }
    }

    /// Asks the filter. The lock is waited for without the interpreter's.
    fn ask<R>(&self, ask: impl FnOnce(&Held) -> Done<R>) -> Done<PyResult<R>> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map_or_else(|| Ok(Err(broken())), |held| ask(held).map(Ok))
    }

    fn change<R>(&self, change: impl FnOnce(&mut Held) -> Done<R>) -> Done<PyResult<R>> {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        held.as_mut().map_or_else(|| Ok(Err(broken())), |held| change(held).map(Ok))
    }

    /// Asks without keys.
    fn ask_alone<R: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&Held) -> Done<R> + Send,
    ) -> PyResult<R> {
        py.detach(|| self.gpu.within(|| self.ask(ask))).map_err(Refused::refused)?
    }

    fn kind_of(&self, py: Python<'_>) -> PyResult<Kind> {
        self.ask_alone(py, |held| {
            Ok(match held {
                Held::BlockedRank(_) => Kind::BlockedRank,
                Held::Blocked(_) => Kind::Blocked,
            })
        })
    }

    /// Refuses what the kind cannot do.
    fn require(&self, py: Python<'_>, what: &str, operation: Operation) -> PyResult<()> {
        let kind = self.kind_of(py)?;
        if kind.can(operation) {
            return Ok(());
        }
        Err(cannot(kind, what, |kind| on_gpu(kind) && kind.can(operation)))
    }
}

/// Whether a kind is for GPUs.
fn on_gpu(kind: Kind) -> bool {
    matches!(kind, Kind::BlockedRank | Kind::Blocked)
}

fn not_on_gpu(kind: Kind) -> PyErr {
    cannot(kind, "be on a GPU", on_gpu)
}

#[pymethods]
impl GpuFilter {
    #[new]
    #[pyo3(signature = (keys, rate=None, kind="blocked-rank", *, params=None, seed=0, device=0))]
    fn new<'py>(
        keys: &Bound<'py, PyAny>,
        rate: Option<f64>,
        kind: &'py str,
        params: Option<Bound<'py, PyDict>>,
        seed: u64,
        device: usize,
    ) -> PyResult<Self> {
        let py = keys.py();
        let wish = Wish {
            rate,
            bits_per_key: None,
            memory: None,
            kind,
            ops: None,
            params,
            minimise: None,
        };
        let hasher = Hasher::xxh3(seed);
        let gpu = gpu(py, device)?;
        let (planned, given) = if let Some(planned) = goal::count(keys)? {
            (planned, None)
        } else {
            let given = Given::new(keys, &gpu, hasher)?;
            (given.number(), Some(given))
        };
        let params = wish.params(py, planned)?;
        let label = Label::planned(hasher, planned.max(1));
        let held = py.detach(|| {
            gpu.within(|| match params {
                AnyParams::BlockedRank(params) => {
                    BlockedRank::with_label(&gpu, params, label).map(Held::BlockedRank).map(Ok)
                }
                AnyParams::Blocked(params) => {
                    Blocked::with_label(&gpu, params, label).map(Held::Blocked).map(Ok)
                }
                other => Ok(Err(not_on_gpu(other.kind()))),
            })
        });
        let filter = Self::holding(gpu, held.map_err(Refused::refused)??);
        if let Some(given) = given {
            filter.insert(py, &given)?;
        }
        Ok(filter)
    }

    /// A filter of the library, copied to a GPU. Its kind must be "blocked-rank" or "blocked".
    /// It is checked before, as a file is.
    #[staticmethod]
    #[pyo3(signature = (filter, *, device=0))]
    fn from_cpu(filter: &Bound<'_, Filter>, device: usize) -> PyResult<Self> {
        let py = filter.py();
        let gpu = gpu(py, device)?;
        let held = filter.get().shared.ask_long(py, |filter| {
            let held = gpu.within(|| match filter {
                AnyFilter::BlockedRank(filter) => {
                    BlockedRank::from_cpu(&gpu, filter).map(Held::BlockedRank).map(Ok)
                }
                AnyFilter::Blocked(filter) => {
                    Blocked::from_cpu(&gpu, filter).map(Held::Blocked).map(Ok)
                }
                other => Ok(Err(not_on_gpu(other.kind()))),
            });
            held.map_err(Refused::refused)?
        })?;
        Ok(Self::holding(gpu, held))
    }

    /// The `tamis.Filter` with this content: the same content id and the same bytes.
    fn to_cpu(&self, py: Python<'_>) -> PyResult<Filter> {
        let filter = self.ask_alone(py, |held| {
            Ok(match held {
                Held::BlockedRank(filter) => AnyFilter::BlockedRank(filter.to_cpu()?),
                Held::Blocked(filter) => AnyFilter::Blocked(filter.to_cpu()?),
            })
        })?;
        Ok(Filter::from_any(filter))
    }

    /// Adds all keys of a batch.
    fn update(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        self.insert(keys.py(), &Given::new(keys, &self.gpu, self.hasher)?)
    }

    /// Whether each key of a batch may be in: an `Array` of bool on the GPU.
    fn contains(&self, keys: &Bound<'_, PyAny>) -> PyResult<GpuArray> {
        let py = keys.py();
        let given = Given::new(keys, &self.gpu, self.hasher)?;
        let answers = given.with(py, &self.gpu, |keys| {
            let mut answers = self.gpu.allocate(keys.number().div_ceil(8))?;
            let done = self.ask(|held| match held {
                Held::BlockedRank(filter) => filter.contains_into(keys, &mut answers),
                Held::Blocked(filter) => filter.contains_into(keys, &mut answers),
            })?;
            Ok(done.map(|()| answers))
        })??;
        Ok(GpuArray::new(&self.gpu, answers, given.number(), 8))
    }

    /// Removes one occurrence of each key of a batch, and returns how many were removed. Those
    /// that are not in are passed over. Remove only keys that are in.
    fn remove_many(&self, keys: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = keys.py();
        self.require(py, "remove keys", Operation::Remove)?;
        let given = Given::new(keys, &self.gpu, self.hasher)?;
        given.with(py, &self.gpu, |keys| {
            self.change(|held| match held {
                Held::BlockedRank(filter) => filter.remove(keys),
                Held::Blocked(_) => Ok(0),
            })
        })?
    }

    /// How often each key of a batch is in, never too low: an `Array` of uint64 on the GPU.
    fn count_many(&self, keys: &Bound<'_, PyAny>) -> PyResult<GpuArray> {
        let py = keys.py();
        self.require(py, "count", Operation::Count)?;
        let given = Given::new(keys, &self.gpu, self.hasher)?;
        let counts = given.with(py, &self.gpu, |keys| {
            let mut counts = self.gpu.allocate(keys.number())?;
            let done = self.ask(|held| match held {
                Held::BlockedRank(filter) => filter.count_into(keys, &mut counts),
                Held::Blocked(_) => Ok(()),
            })?;
            Ok(done.map(|()| counts))
        })??;
        Ok(GpuArray::new(&self.gpu, counts, given.number(), 64))
    }

    /// Adds the keys of another filter on the same GPU, which must have the same params and seed.
    fn merge(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        let py = other.py();
        self.require(py, "be merged on a GPU", Operation::Remove)?;
        // By way of a copy, so that a filter may be merged with itself, and no two locks are held.
        let copy = other.get().to_cpu(py)?;
        let copy = Py::new(py, copy)?;
        let copy = Self::from_cpu(copy.bind(py), self.gpu.number())?;
        let theirs = copy.held.read().unwrap_or_else(PoisonError::into_inner);
        let merged = py.detach(|| {
            self.gpu.within(|| {
                let merged = self.change(|held| match (held, theirs.as_ref()) {
                    (Held::BlockedRank(mine), Some(Held::BlockedRank(theirs))) => {
                        mine.merge(theirs)
                    }
                    _ => Err(tamis_gpu::Error::Mismatch),
                })?;
                self.gpu.wait()?;
                Ok::<_, tamis_gpu::Error>(merged)
            })
        });
        merged.map_err(Refused::refused)?
    }

    /// A name for what the filter holds: that of `to_cpu()`.
    fn content_id(&self, py: Python<'_>) -> PyResult<String> {
        let filter = self.to_cpu(py)?;
        filter.shared.ask_long(py, |filter| Ok(filter.content_id().to_string()))
    }

    /// The kind, such as "blocked-rank".
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.kind_of(py)?.name())
    }

    /// The number of the GPU.
    #[getter]
    fn device(&self) -> usize {
        self.gpu.number()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let keys = self.ask_alone(py, |held| {
            Ok(match held {
                Held::BlockedRank(filter) => filter.keys(),
                Held::Blocked(filter) => filter.keys(),
            })
        })?;
        Ok(usize::try_from(keys).unwrap_or(usize::MAX))
    }
}

impl GpuFilter {
    fn insert(&self, py: Python<'_>, given: &Given<'_>) -> PyResult<()> {
        given.with(py, &self.gpu, |keys| {
            self.change(|held| match held {
                Held::BlockedRank(filter) => filter.insert(keys),
                Held::Blocked(filter) => filter.insert(keys),
            })
        })?
    }
}

/// Gives memory back to the driver that filters have used and keep for the next batch, so that
/// other packages can have it.
#[pyfunction]
#[pyo3(signature = (device=0))]
pub(crate) fn _give_back(py: Python<'_>, device: usize) -> PyResult<()> {
    let gpu = gpu(py, device)?;
    py.detach(|| gpu.within(|| gpu.give_back())).map_err(Refused::refused)
}
