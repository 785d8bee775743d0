//! The server's allocator as ours.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::{mem, ptr};

use valkey_module::raw::{self, RedisModuleDefragCtx};

/// The server's allocator, which may refuse. (Unit tests have no server.)
#[cfg_attr(test, allow(dead_code))]
struct ServerMemory;

#[cfg(not(test))]
#[global_allocator]
static MEMORY: ServerMemory = ServerMemory;

/// What the server defragments with, while it does.
pub(super) static DEFRAG: AtomicPtr<RedisModuleDefragCtx> = AtomicPtr::new(ptr::null_mut());

/// A function that gives zeroed memory.
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;

/// The one that may refuse. Servers have it since Redis 7.4 and Valkey 8.
static TRY_CALLOC: OnceLock<Calloc> = OnceLock::new();

/// Asks the server for [`TRY_CALLOC`]: the bindings are older.
pub(super) fn find_try_calloc() {
    let mut found: *mut c_void = ptr::null_mut();
    server!(RedisModule_GetApi(c"RedisModule_TryCalloc".as_ptr(), (&raw mut found).cast()));
    if !found.is_null() {
        // SAFETY: the server has a function of this type under this name.
        let calloc = unsafe { mem::transmute::<*mut c_void, Calloc>(found) };
        let _ = TRY_CALLOC.set(calloc);
    }
}

/// A block of the server's memory; while the server defragments, in a better place if there is
/// one.
#[cfg_attr(test, allow(dead_code))]
unsafe fn block(size: usize) -> *mut u8 {
    // SAFETY: the functions are the server's; the block is ours, and nobody knows its address yet.
    unsafe {
        let Some(allocate) = raw::RedisModule_TryAlloc else { return ptr::null_mut() };
        let block = allocate(size);
        let context = DEFRAG.load(Relaxed);
        if context.is_null() || block.is_null() {
            return block.cast();
        }
        let Some(replace) = raw::RedisModule_DefragAlloc else { return block.cast() };
        let better = replace(context, block);
        if better.is_null() { block.cast() } else { better.cast() }
    }
}

/// Blocks from this size on are zeroed by the system, page by page when they are used: allocators
/// keep blocks of as many bytes apart.
#[cfg_attr(test, allow(dead_code))]
const LAZY: usize = 1 << 15;

/// What every allocator that the server may be built with aligns to.
#[cfg_attr(test, allow(dead_code))]
const ALIGNED: usize = 8;

/// The aligned address in a block that is larger by `align`, which is above [`ALIGNED`]; null if
/// there is no block. Its start, which is aligned to 8, is written into the 8 bytes before the
/// address, which lie inside the block.
#[expect(clippy::cast_ptr_alignment, reason = "addresses are aligned to 8 and to more")]
#[cfg_attr(test, allow(dead_code))]
unsafe fn aligned(block: *mut u8, align: usize) -> *mut u8 {
    if block.is_null() {
        return block;
    }
    // SAFETY: as above.
    unsafe {
        let aligned = block.add(align - block.addr() % align);
        aligned.cast::<*mut u8>().sub(1).write(block);
        aligned
    }
}

// SAFETY: memory comes from the server's allocator and goes back to it. Where more alignment is
// asked for than it promises, `aligned` says where the block begins.
#[expect(clippy::cast_ptr_alignment, reason = "addresses are aligned to 8 and to more")]
unsafe impl GlobalAlloc for ServerMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see above; a null pointer is how the allocator refuses.
        unsafe {
            let (size, align) = (layout.size(), layout.align());
            if align <= ALIGNED {
                return block(size);
            }
            let Some(padded) = size.checked_add(align) else { return ptr::null_mut() };
            aligned(block(padded), align)
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        let lazy = size >= LAZY && align > ALIGNED && DEFRAG.load(Relaxed).is_null();
        // SAFETY: see above; of a large block the server gets zeros from the system, which costs
        // nothing until they are written.
        unsafe {
            if let Some(calloc) = TRY_CALLOC.get().filter(|_| lazy) {
                let Some(padded) = size.checked_add(align) else { return ptr::null_mut() };
                return aligned(calloc(1, padded).cast(), align);
            }
            let address = self.alloc(layout);
            if address.is_null() {
                return address;
            }
            if let Some(calloc) = raw::RedisModule_Calloc.filter(|_| lazy) {
                // It may not refuse: but the server has just had this block, and has it again.
                self.dealloc(address, layout);
                return aligned(calloc(1, size + align).cast(), align);
            }
            address.write_bytes(0, size);
            address
        }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: the address came from `alloc` with this layout.
        unsafe {
            let Some(free) = raw::RedisModule_Free else { return };
            let block = if layout.align() <= ALIGNED {
                address
            } else {
                address.cast::<*mut u8>().sub(1).read()
            };
            free(block.cast());
        }
    }
}
