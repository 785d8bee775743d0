//! The type of keys whose items expire, and what its commands ask of the server.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::{mem, ptr};

use valkey_module::raw::{
    self, RedisModuleCtx, RedisModuleDigest, RedisModuleIO, RedisModuleString, RedisModuleType,
    RedisModuleTypeMethods,
};

use super::{Call, ENCODING, OK, Stream, guarded};
use crate::aged::Aged;
use crate::memory::{self, NoMemory};
use crate::reply::Refusal;

/// The server's handle of our type.
static TYPE: AtomicPtr<RedisModuleType> = AtomicPtr::new(ptr::null_mut());

/// The time of the server's clock, in milliseconds.
pub(crate) fn now() -> u64 {
    u64::try_from(server!(RedisModule_Milliseconds())).unwrap_or(0)
}

impl<'a> Call<'a> {
    /// The filter that the first argument names, if the key exists.
    pub(crate) fn aged(&self) -> Result<Option<&'a Aged>, Refusal> {
        let value = self.aged_value(raw::REDISMODULE_READ)?;
        // SAFETY: the server keeps the value while a command runs that does not delete it, and
        // none of ours does; no other thread reaches it.
        Ok(value.map(|value| unsafe { &*value }))
    }

    /// As [`aged`](Self::aged), to change. A command calls this once, and reaches the key in no
    /// other way.
    pub(crate) fn aged_mut(&mut self) -> Result<Option<&'a mut Aged>, Refusal> {
        let value = self.aged_value(raw::REDISMODULE_READ | raw::REDISMODULE_WRITE)?;
        // SAFETY: as in `aged`; commands ask once, so this is the only reference.
        Ok(value.map(|value| unsafe { &mut *value }))
    }

    fn aged_value(&self, mode: u32) -> Result<Option<*mut Aged>, Refusal> {
        let Some(key) = self.open(1, mode) else { return Ok(None) };
        let kind = server!(RedisModule_ModuleTypeGetType(key.0));
        if !kind.is_null() && kind == TYPE.load(Relaxed) {
            return Ok(Some(server!(RedisModule_ModuleTypeGetValue(key.0)).cast()));
        }
        let is_empty =
            server!(RedisModule_KeyType(key.0)) == raw::REDISMODULE_KEYTYPE_EMPTY as c_int;
        if is_empty { Ok(None) } else { Err(Refusal::WrongType) }
    }

    /// Makes the key that the first argument names hold this.
    pub(crate) fn put_aged(&mut self, value: Aged) -> Result<(), Refusal> {
        let refusal = "ERR could not create filter";
        let key = self.open(1, raw::REDISMODULE_READ | raw::REDISMODULE_WRITE).ok_or(refusal)?;
        let value = Box::into_raw(Box::new(value));
        let kind = TYPE.load(Relaxed);
        if server!(RedisModule_ModuleTypeSetValue(key.0, kind, value.cast())) == OK {
            return Ok(());
        }
        // SAFETY: the server did not take it.
        drop(unsafe { Box::from_raw(value) });
        Err(refusal.into())
    }

    /// Sends `TAMIS.AT` to replicas and to the AOF: what was done with some arguments, and when.
    pub(crate) fn replicate_at(&self, now: u64, what: &CStr, items: Range<usize>) {
        let mut items = self.arguments[items].to_vec();
        server!(RedisModule_Replicate(
            self.ctx,
            c"TAMIS.AT".as_ptr(),
            c"slcv".as_ptr(),
            self.arguments[1],
            now as c_longlong,
            what.as_ptr(),
            items.as_mut_ptr(),
            items.len()
        ));
    }
}

unsafe extern "C" fn save(io: *mut RedisModuleIO, value: *mut c_void) {
    let stream = Stream(io);
    // SAFETY: the server hands us a value of our type.
    let saved = guarded(Err(NoMemory), || unsafe { &*value.cast::<Aged>() }.save(stream));
    if saved.is_err() {
        stream.fail();
    }
}

unsafe extern "C" fn load(io: *mut RedisModuleIO, encoding: c_int) -> *mut c_void {
    guarded(ptr::null_mut(), || {
        let loaded = (encoding == ENCODING).then(|| Aged::load(Stream(io))).flatten();
        loaded.map_or(ptr::null_mut(), |value| Box::into_raw(Box::new(value)).cast())
    })
}

/// Writes the command that makes a value anew.
unsafe extern "C" fn rewrite(
    io: *mut RedisModuleIO,
    key: *mut RedisModuleString,
    value: *mut c_void,
) {
    let written = guarded(Err(NoMemory), || {
        // SAFETY: the server hands us a value of our type.
        let bytes = unsafe { &*value.cast::<Aged>() }.encode()?;
        server!(RedisModule_EmitAOF(
            io,
            c"TAMIS.AGES".as_ptr(),
            c"sb".as_ptr(),
            key,
            bytes.as_ptr().cast::<c_char>(),
            bytes.len()
        ));
        Ok(())
    });
    if written.is_err() {
        Stream(io).fail();
    }
}

unsafe extern "C" fn memory_usage(value: *const c_void) -> usize {
    // SAFETY: the server hands us a value of our type.
    guarded(0, || unsafe { &*value.cast::<Aged>() }.memory() as usize)
}

unsafe extern "C" fn digest(digest: *mut RedisModuleDigest, value: *mut c_void) {
    guarded((), || {
        // SAFETY: the server hands us a value of our type.
        let id = unsafe { &*value.cast::<Aged>() }.filter.content_id().0.to_le_bytes();
        server!(RedisModule_DigestAddStringBuffer(digest, id.as_ptr().cast(), id.len()));
        server!(RedisModule_DigestEndSequence(digest));
    });
}

unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: the server owned the value, of our type, and gives it up.
    guarded((), || drop(unsafe { Box::from_raw(value.cast::<Aged>()) }));
}

unsafe extern "C" fn copy(
    _: *mut RedisModuleString,
    _: *mut RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    guarded(ptr::null_mut(), || {
        // SAFETY: the server hands us a value of our type.
        let value = unsafe { &*value.cast::<Aged>() };
        if memory::ask(value.memory()).is_err() {
            return ptr::null_mut();
        }
        Box::into_raw(Box::new(value.clone())).cast()
    })
}

/// Tells the server of the type.
pub(super) fn create_type(ctx: *mut RedisModuleCtx) -> bool {
    // SAFETY: all-zero is the documented "none" for every field.
    let mut methods: RedisModuleTypeMethods = unsafe { mem::zeroed() };
    methods.version = u64::from(raw::REDISMODULE_TYPE_METHOD_VERSION);
    methods.rdb_load = Some(load);
    methods.rdb_save = Some(save);
    methods.aof_rewrite = Some(rewrite);
    methods.mem_usage = Some(memory_usage);
    methods.digest = Some(digest);
    methods.free = Some(free);
    methods.copy = Some(copy);
    let (name, methods) = (c"tamis-ag-".as_ptr(), &raw mut methods);
    TYPE.store(server!(RedisModule_CreateDataType(ctx, name, ENCODING, methods)), Relaxed);
    !TYPE.load(Relaxed).is_null()
}
