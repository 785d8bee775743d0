//! The types of our keys, and what the server calls to save, load, copy and free what they hold.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};
use std::{mem, ptr, slice};

use valkey_module::raw::{
    self, RedisModuleCtx, RedisModuleDefragCtx, RedisModuleDigest, RedisModuleEvent, RedisModuleIO,
    RedisModuleString, RedisModuleType, RedisModuleTypeMethods,
};

use super::allocator::DEFRAG;
use super::{guarded, room_left};
use crate::memory::{self, NoMemory};
use crate::settings;

/// The version of what RDB files hold.
const ENCODING: c_int = 2;
/// Filters up to this size are moved when the server defragments: larger arrays do not share pages
/// with others.
const MOVED: u64 = 1 << 14;
/// Bytes that take as long to free as one of the server's small objects.
const PAGE: u64 = 1 << 12;

/// A type of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeId {
    Bloom,
    Cuckoo,
    Aging,
}

/// The server's handles of our types.
static TYPES: [AtomicPtr<RedisModuleType>; 3] = [const { AtomicPtr::new(ptr::null_mut()) }; 3];

impl TypeId {
    /// The server's handle of it.
    pub(super) fn handle(self) -> *mut RedisModuleType {
        TYPES[self as usize].load(Relaxed)
    }
}

/// What a key of ours holds.
pub(crate) trait Held: Clone {
    /// The type of a key that holds it.
    fn type_id(&self) -> TypeId;
    /// Bytes of memory.
    fn memory(&self) -> u64;
    /// Names of all that is in: what `DEBUG DIGEST` compares primaries and replicas by.
    fn content(&self) -> Vec<u128>;
    /// Saves it into an RDB file, or for DUMP.
    fn save(&self, to: Stream) -> Result<(), NoMemory>;
    /// Loads it from an RDB file, or from the payload of RESTORE, which may be forged; `None` if
    /// the bytes are not one, or if there is no memory for it.
    fn load(from: Stream) -> Option<Self>;
    /// Writes the commands that make it anew.
    fn rewrite(&self, to: Log) -> Result<(), NoMemory>;
}

/// The bytes that a value may take which is being loaded: any number if it comes from a file or
/// from a primary, which have made it already.
pub(crate) fn limit_on_loading() -> u64 {
    let flags = server!(RedisModule_GetContextFlags(ptr::null_mut())) as c_uint;
    let made = raw::REDISMODULE_CTX_FLAGS_LOADING
        | raw::REDISMODULE_CTX_FLAGS_ASYNC_LOADING
        | raw::REDISMODULE_CTX_FLAGS_SLAVE;
    if flags & made != 0 { u64::MAX } else { settings::FILTER_BYTES.get().min(room_left()) }
}

static SAVES_ALL: AtomicBool = AtomicBool::new(false);

/// Whether the server is writing a whole file, to the disk or to a replica, in this process. If
/// not, what is saved is one value, for DUMP.
pub(crate) fn saves_all() -> bool {
    SAVES_ALL.load(Relaxed)
}

pub(super) const PERSISTENCE: RedisModuleEvent =
    RedisModuleEvent { id: raw::REDISMODULE_EVENT_PERSISTENCE, dataver: 1 };

/// Is told when such writing begins and ends.
pub(super) unsafe extern "C" fn persistence(
    _: *mut RedisModuleCtx,
    _: RedisModuleEvent,
    what: u64,
    _: *mut c_void,
) {
    let over =
        [raw::REDISMODULE_SUBEVENT_PERSISTENCE_ENDED, raw::REDISMODULE_SUBEVENT_PERSISTENCE_FAILED];
    SAVES_ALL.store(!over.contains(&what), Relaxed);
}

/// What the server writes a value to or reads it from: an RDB file, a log, the payload of DUMP and
/// RESTORE.
#[derive(Clone, Copy)]
pub(crate) struct Stream(*mut RedisModuleIO);

impl Stream {
    /// Writes a number.
    pub(crate) fn put_number(self, number: u64) {
        server!(RedisModule_SaveUnsigned(self.0, number));
    }

    /// Writes a string.
    pub(crate) fn put(self, bytes: &[u8]) {
        server!(RedisModule_SaveStringBuffer(self.0, bytes.as_ptr().cast(), bytes.len()));
    }

    /// The next number; 0 if there is none.
    pub(crate) fn take_number(self) -> u64 {
        server!(RedisModule_LoadUnsigned(self.0))
    }

    /// The next string, if there is one, and memory for it.
    pub(crate) fn take(self) -> Option<Loaded> {
        if self.is_broken() {
            return None;
        }
        let mut len = 0;
        let data = server!(RedisModule_LoadStringBuffer(self.0, &raw mut len));
        (!data.is_null()).then_some(Loaded { data, len })
    }

    /// Whether reading has failed.
    pub(crate) fn is_broken(self) -> bool {
        server!(RedisModule_IsIOError(self.0)) != 0
    }

    /// Makes what the server is writing fail. Modules have no call for this. But writing a command
    /// that does not exist is an error of the stream, in files of both forms, and writes nothing.
    fn fail(self) {
        let reason = c"none: no memory to save a filter";
        server!(RedisModule_EmitAOF(self.0, reason.as_ptr(), c"".as_ptr()));
    }
}

/// A string that was read, given back when done with.
pub(crate) struct Loaded {
    data: *mut c_char,
    len: usize,
}

impl Loaded {
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the server allocated `len` bytes, which are ours until freed.
        unsafe { slice::from_raw_parts(self.data.cast(), self.len) }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        server!(RedisModule_Free(self.data.cast()));
    }
}

/// Where commands are written that make a key anew.
#[derive(Clone, Copy)]
pub(crate) struct Log {
    io: *mut RedisModuleIO,
    key: *mut RedisModuleString,
}

impl Log {
    /// Writes a command: its name, the key, an iterator if it has one, and bytes.
    pub(crate) fn put(self, command: &CStr, iterator: Option<u64>, bytes: &[u8]) {
        let (data, len) = (bytes.as_ptr().cast::<c_char>(), bytes.len());
        let (io, key, command) = (self.io, self.key, command.as_ptr());
        if let Some(iterator) = iterator {
            let iterator = iterator as c_longlong;
            server!(RedisModule_EmitAOF(io, command, c"slb".as_ptr(), key, iterator, data, len));
        } else {
            server!(RedisModule_EmitAOF(io, command, c"sb".as_ptr(), key, data, len));
        }
    }
}

/// The value that the server hands to one of the functions below.
unsafe fn held<'a, T: Held>(value: *const c_void) -> &'a T {
    // SAFETY: these functions were registered for keys that hold a `T`; the server keeps it
    // while they run.
    unsafe { &*value.cast::<T>() }
}

fn owned<T>(value: T) -> *mut c_void {
    Box::into_raw(Box::new(value)).cast()
}

unsafe extern "C" fn save<T: Held>(io: *mut RedisModuleIO, value: *mut c_void) {
    let stream = Stream(io);
    // SAFETY: see `held`.
    let saved = guarded(Err(NoMemory), || unsafe { held::<T>(value) }.save(stream));
    if saved.is_err() {
        stream.fail();
    }
}

unsafe extern "C" fn load<T: Held, const TYPE: usize>(
    io: *mut RedisModuleIO,
    encoding: c_int,
) -> *mut c_void {
    guarded(ptr::null_mut(), || {
        let loaded = (encoding == ENCODING).then(|| T::load(Stream(io))).flatten();
        let loaded = loaded.filter(|value| value.type_id() as usize == TYPE);
        loaded.map_or(ptr::null_mut(), owned)
    })
}

unsafe extern "C" fn rewrite<T: Held>(
    io: *mut RedisModuleIO,
    key: *mut RedisModuleString,
    value: *mut c_void,
) {
    // SAFETY: see `held`.
    let written = guarded(Err(NoMemory), || unsafe { held::<T>(value) }.rewrite(Log { io, key }));
    if written.is_err() {
        Stream(io).fail();
    }
}

unsafe extern "C" fn memory_usage<T: Held>(value: *const c_void) -> usize {
    // SAFETY: see `held`.
    guarded(0, || unsafe { held::<T>(value) }.memory() as usize)
}

/// What freeing costs: from 64 on, UNLINK leaves it to a thread.
unsafe extern "C" fn free_effort<T: Held>(
    _: *mut RedisModuleString,
    value: *const c_void,
) -> usize {
    // SAFETY: see `held`.
    guarded(1, || (unsafe { held::<T>(value) }.memory() / PAGE) as usize + 1)
}

unsafe extern "C" fn digest<T: Held>(digest: *mut RedisModuleDigest, value: *mut c_void) {
    guarded((), || {
        // SAFETY: see `held`.
        for id in unsafe { held::<T>(value) }.content() {
            let id = id.to_le_bytes();
            let (data, len) = (id.as_ptr().cast(), id.len());
            server!(RedisModule_DigestAddStringBuffer(digest, data, len));
        }
        server!(RedisModule_DigestEndSequence(digest));
    });
}

unsafe extern "C" fn free<T: Held>(value: *mut c_void) {
    // SAFETY: the server owned the value, of our type, and gives it up. (A thread may do this;
    // nobody else has the value then.)
    guarded((), || drop(unsafe { Box::from_raw(value.cast::<T>()) }));
}

unsafe extern "C" fn copy<T: Held>(
    _: *mut RedisModuleString,
    _: *mut RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    guarded(ptr::null_mut(), || {
        // SAFETY: see `held`.
        let value = unsafe { held::<T>(value) };
        if memory::ask(value.memory()).is_err() {
            return ptr::null_mut();
        }
        owned(value.clone())
    })
}

/// Moves a small value to where the server wants it; a large array is a mapping of its own, and
/// has no neighbours to make room for.
unsafe extern "C" fn defrag<T: Held>(
    context: *mut RedisModuleDefragCtx,
    _: *mut RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    guarded((), || {
        // SAFETY: the server hands us the place where it keeps a value of our type, and takes
        // what stands there afterwards; nobody else has the old value.
        unsafe {
            let old = *value;
            if held::<T>(old).memory() > MOVED {
                return;
            }
            DEFRAG.store(context, Relaxed);
            *value = owned(held::<T>(old).clone());
            drop(Box::from_raw(old.cast::<T>()));
        }
    });
    DEFRAG.store(ptr::null_mut(), Relaxed);
    0
}

/// Tells the server of a type, whose keys hold a `T`.
pub(super) fn create<T: Held, const TYPE: usize>(ctx: *mut RedisModuleCtx, name: &CStr) -> bool {
    // SAFETY: all-zero is the documented "none" for every field.
    let mut methods: RedisModuleTypeMethods = unsafe { mem::zeroed() };
    methods.version = u64::from(raw::REDISMODULE_TYPE_METHOD_VERSION);
    methods.rdb_load = Some(load::<T, TYPE>);
    methods.rdb_save = Some(save::<T>);
    methods.aof_rewrite = Some(rewrite::<T>);
    methods.mem_usage = Some(memory_usage::<T>);
    methods.digest = Some(digest::<T>);
    methods.free = Some(free::<T>);
    methods.free_effort = Some(free_effort::<T>);
    methods.copy = Some(copy::<T>);
    methods.defrag = Some(defrag::<T>);
    let (name, methods) = (name.as_ptr(), &raw mut methods);
    let kind = server!(RedisModule_CreateDataType(ctx, name, ENCODING, methods));
    TYPES[TYPE].store(kind, Relaxed);
    !kind.is_null()
}
