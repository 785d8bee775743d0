//! DLPack: how packages hand arrays in the memory of a GPU to each other without a copy.
//!
//! The structs are those of the interface before it had versions, which every package speaks.
#![allow(unsafe_code)] // All that is read here is behind pointers.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::bad_batch;

/// The memory of a GPU with CUDA, and such that the host can read as well.
pub(crate) const CUDA: i32 = 2;
pub(crate) const CUDA_MANAGED: i32 = 13;

/// Types of items.
const INTEGER: u8 = 0;
const UNSIGNED: u8 = 1;
const BOOL: u8 = 6;

/// The name of a capsule that nobody has taken the array from.
const NAME: &CStr = c"dltensor";

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// Integers of 64 bits that lie one after the other.
pub(crate) struct Integers {
    pub(crate) address: u64,
    pub(crate) number: u64,
}

/// The integers that a capsule describes. They are there as long as the capsule is.
pub(crate) fn integers(capsule: &Bound<'_, PyCapsule>) -> PyResult<Integers> {
    let managed = capsule.pointer_checked(Some(NAME))?.cast::<Managed>();
    // SAFETY: a capsule of this name holds this struct.
    let tensor = unsafe { &managed.as_ref().tensor };
    if tensor.bits != 64 || tensor.lanes != 1 || !matches!(tensor.code, INTEGER | UNSIGNED) {
        return Err(bad_batch("an array of a GPU holds int64 or uint64; cast it first"));
    }
    if tensor.ndim != 1 {
        let text = format!("it has {} dimensions; give one, such as x[:, 0]", tensor.ndim);
        return Err(bad_batch(&text));
    }
    // SAFETY: there is a number for each dimension, which is one; strides may be missing.
    let (number, stride) =
        unsafe { (*tensor.shape, if tensor.strides.is_null() { 1 } else { *tensor.strides }) };
    if number > 1 && stride != 1 {
        return Err(bad_batch("its items do not follow each other; make it contiguous"));
    }
    let number = u64::try_from(number).map_err(|_| bad_batch("its length is negative"))?;
    Ok(Integers { address: (tensor.data as u64).wrapping_add(tensor.byte_offset), number })
}

/// What is handed out: an array, and its owner.
#[repr(C)]
struct HandedOut<T> {
    managed: Managed,
    shape: i64,
    stride: i64,
    owner: Arc<T>,
}

/// Frees what was handed out.
unsafe extern "C" fn delete<T>(managed: *mut Managed) {
    // SAFETY: it was made by `capsule`, which calls this once; the struct begins with this one.
    drop(unsafe { Box::from_raw(managed.cast::<HandedOut<T>>()) });
}

/// Frees what nobody has taken out of a capsule. (Those that do give it another name.)
unsafe extern "C" fn untaken<T>(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this with a capsule of ours.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete::<T>(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        }
    }
}

/// A capsule for `number` items of `bits` bits at `address` on a GPU, which are there as long as
/// `owner` is: truth values of a byte, or integers without a sign.
pub(crate) fn capsule<T: Send + Sync + 'static>(
    py: Python<'_>,
    (address, number, bits): (u64, u64, u8),
    gpu: usize,
    owner: Arc<T>,
) -> PyResult<Bound<'_, PyAny>> {
    let tensor = Tensor {
        data: ptr::with_exposed_provenance_mut(address as usize),
        device_type: CUDA,
        device_id: gpu as i32,
        ndim: 1,
        code: if bits == 8 { BOOL } else { UNSIGNED },
        bits,
        lanes: 1,
        shape: ptr::null(),
        strides: ptr::null(),
        byte_offset: 0,
    };
    let managed = Managed { tensor, context: ptr::null_mut(), deleter: Some(delete::<T>) };
    let made =
        Box::into_raw(Box::new(HandedOut { managed, shape: number as i64, stride: 1, owner }));
    // SAFETY: `made` is ours until the capsule has it, and lives until `delete` frees it.
    unsafe {
        (*made).managed.tensor.shape = &raw const (*made).shape;
        (*made).managed.tensor.strides = &raw const (*made).stride;
        let capsule = ffi::PyCapsule_New(made.cast(), NAME.as_ptr(), Some(untaken::<T>));
        if capsule.is_null() {
            delete::<T>(made.cast());
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// Lends integers of a GPU to `work`.
///
/// They must stay where they are until it returns, and it must wait for what it starts with them:
/// a Python object that says where its memory is keeps it while it is alive, and `work` is called
/// while it is. Of an object that lies the driver refuses what is not memory of the GPU.
pub(crate) fn lend<R>(
    gpu: &tamis_gpu::Gpu,
    integers: &Integers,
    work: impl FnOnce(&tamis_gpu::Buffer) -> Result<R, tamis_gpu::Error>,
) -> Result<R, tamis_gpu::Error> {
    gpu.wait_for_all()?;
    // SAFETY: see above.
    let memory = unsafe { gpu.borrow(integers.address, integers.number) }?;
    let done = work(&memory);
    // Also after an error: nothing may read what its owner frees.
    gpu.wait()?;
    done
}
