//! All that touches the server's C interface, and the only unsafe code of the module.
//!
//! Three rules keep the server alive. No panic leaves a function that the server calls: each runs
//! under [`guarded`]. Memory comes from the server's allocator that may refuse, so that a filter
//! that does not fit is an error and not the end of the process. And what a key holds is reached
//! only by the thread that runs commands.
#![allow(unsafe_code)] // Calls into the server; each block says what it relies on.
// The server's functions are in mutable statics, which it fills before any of our code runs and
// never again.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::{mem, ptr, slice};

use valkey_module::raw::{
    self, RedisModuleCommandArg, RedisModuleCommandInfo, RedisModuleCommandKeySpec, RedisModuleCtx,
    RedisModuleDefragCtx, RedisModuleDigest, RedisModuleEvent, RedisModuleIO, RedisModuleInfoCtx,
    RedisModuleKey, RedisModuleString, RedisModuleType, RedisModuleTypeMethods,
};

use crate::asked::Family;
use crate::commands::{COMMANDS, Command};
use crate::memory::{self, NoMemory};
use crate::reply::{Answer, Refusal, Reply};
use crate::settings::{self, Number, Rate};
use crate::syntax::{self, Type};
use crate::value::{ALIVE, Filter, Value};
use crate::{aged, files};

/// The name and the version that clients look for before they use these commands: those of
/// RedisBloom.
const NAME: &CStr = c"bf";
const VERSION: c_int = 80000;
/// The version of what RDB files hold.
const ENCODING: c_int = 2;
/// Filters up to this size are moved when the server defragments: larger arrays do not share pages
/// with others.
const MOVED: u64 = 1 << 14;

const OK: c_int = raw::REDISMODULE_OK as c_int;
const ERR: c_int = raw::REDISMODULE_ERR as c_int;

/// Panics that were caught: for INFO.
static PANICS: AtomicU64 = AtomicU64::new(0);
/// The server's handles of our two types, by family.
static TYPES: [AtomicPtr<RedisModuleType>; 2] =
    [AtomicPtr::new(ptr::null_mut()), AtomicPtr::new(ptr::null_mut())];
/// The texts of the settings that are probabilities.
static TEXTS: [AtomicPtr<RedisModuleString>; 2] =
    [AtomicPtr::new(ptr::null_mut()), AtomicPtr::new(ptr::null_mut())];

/// Calls a function of the server; one that it does not have panics, and the panic is caught at
/// the boundary.
macro_rules! server {
    ($name:ident ( $($argument:expr),* $(,)? )) => {{
        // SAFETY: the server filled in the pointer before it called us, and every caller passes
        // what the function is documented to take.
        unsafe { raw::$name.expect("the server has the function")($($argument),*) }
    }};
}

mod aging; // After the macro, which it uses.
pub(crate) use aging::now;

/// Runs what the server called; a panic becomes `otherwise`.
fn guarded<T>(otherwise: T, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        PANICS.fetch_add(1, Relaxed);
        otherwise
    })
}

/// The server's allocator, which may refuse. (Unit tests have no server.)
#[cfg_attr(test, allow(dead_code))]
struct ServerMemory;

#[cfg(not(test))]
#[global_allocator]
static MEMORY: ServerMemory = ServerMemory;

/// What the server defragments with, while it does.
static DEFRAG: AtomicPtr<RedisModuleDefragCtx> = AtomicPtr::new(ptr::null_mut());

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

/// Blocks from this size on are zeroed by the system, page by page when they are used.
#[cfg_attr(test, allow(dead_code))]
const LAZY: usize = 1 << 20;

/// What every allocator that the server may be built with aligns to.
#[cfg_attr(test, allow(dead_code))]
const ALIGNED: usize = 8;

// SAFETY: memory comes from the server's allocator and goes back to it. Where more alignment is
// asked for than it promises, the block is larger by as much; its start, which is aligned to 8, is
// then written into the 8 bytes before the address that is handed out, which lie inside the block.
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
            let block = block(padded);
            if block.is_null() {
                return block;
            }
            let aligned = block.add(align - block.addr() % align);
            aligned.cast::<*mut u8>().sub(1).write(block);
            aligned
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`. Of a large block that the server has just had, and has again, it
        // gets zeros from the system, which costs nothing until they are written.
        unsafe {
            let address = self.alloc(layout);
            if address.is_null() {
                return address;
            }
            let (size, align) = (layout.size(), layout.align());
            let lazy = size >= LAZY && align > ALIGNED && DEFRAG.load(Relaxed).is_null();
            if let Some(calloc) = raw::RedisModule_Calloc.filter(|_| lazy) {
                self.dealloc(address, layout);
                let block: *mut u8 = calloc(1, size + align).cast();
                let aligned = block.add(align - block.addr() % align);
                aligned.cast::<*mut u8>().sub(1).write(block);
                return aligned;
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

/// A command that the server asks us to run.
pub(crate) struct Call<'a> {
    ctx: *mut RedisModuleCtx,
    arguments: &'a [*mut RedisModuleString],
}

impl<'a> Call<'a> {
    /// How many arguments there are, the name of the command included.
    pub(crate) fn len(&self) -> usize {
        self.arguments.len()
    }

    /// An argument; 0 is the name of the command, 1 the key.
    pub(crate) fn argument(&self, at: usize) -> &'a [u8] {
        bytes_of(self.arguments[at])
    }

    /// The arguments from one on.
    pub(crate) fn arguments_from(&self, at: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.arguments[at..].iter().map(|&argument| bytes_of(argument))
    }

    /// Whether the command comes from a primary or from the AOF: what it asks for was already done
    /// there, so limits do not apply.
    pub(crate) fn is_replay(&self) -> bool {
        let flags = server!(RedisModule_GetContextFlags(self.ctx));
        let replay = raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING;
        flags & replay as c_int != 0
    }

    /// Whether the client speaks RESP3.
    pub(crate) fn speaks_resp3(&self) -> bool {
        let flags = server!(RedisModule_GetContextFlags(self.ctx));
        flags & raw::REDISMODULE_CTX_FLAGS_RESP3 as c_int != 0
    }

    fn open(&self, at: usize, mode: u32) -> Option<OpenKey> {
        let key = server!(RedisModule_OpenKey(self.ctx, self.arguments[at], mode as c_int));
        (!key.is_null()).then_some(OpenKey(key))
    }

    /// What the key named by an argument holds, if it exists; without a family, a filter of any.
    pub(crate) fn find(
        &self,
        at: usize,
        family: Option<Family>,
    ) -> Result<Option<&'a Value>, Refusal> {
        let value = self.value(at, raw::REDISMODULE_READ, family)?;
        // SAFETY: the server keeps the value while a command runs that does not delete it, and
        // none of ours does; no other thread reaches it.
        Ok(value.map(|value| unsafe { &*value }))
    }

    /// What the key named by an argument holds, to change. A command calls this once for a key
    /// that it changes, and reaches that key in no other way.
    pub(crate) fn find_mut(
        &mut self,
        at: usize,
        family: Option<Family>,
    ) -> Result<Option<&'a mut Value>, Refusal> {
        let mode = raw::REDISMODULE_READ | raw::REDISMODULE_WRITE;
        let value = self.value(at, mode, family)?;
        // SAFETY: as in `find`; commands ask once, so this is the only reference.
        Ok(value.map(|value| unsafe { &mut *value }))
    }

    fn value(
        &self,
        at: usize,
        mode: u32,
        family: Option<Family>,
    ) -> Result<Option<*mut Value>, Refusal> {
        let Some(key) = self.open(at, mode) else { return Ok(None) };
        let kind = server!(RedisModule_ModuleTypeGetType(key.0));
        let is = |family: Family| kind == TYPES[family as usize].load(Relaxed);
        let ours = match family {
            Some(family) => is(family),
            None => is(Family::Bloom) || is(Family::Cuckoo),
        };
        if !kind.is_null() && ours {
            return Ok(Some(server!(RedisModule_ModuleTypeGetValue(key.0)).cast()));
        }
        let is_empty =
            server!(RedisModule_KeyType(key.0)) == raw::REDISMODULE_KEYTYPE_EMPTY as c_int;
        if is_empty { Ok(None) } else { Err(Refusal::WrongType) }
    }

    /// Makes the key named by an argument hold this.
    pub(crate) fn put(&mut self, at: usize, value: Value) -> Result<&'a mut Value, Refusal> {
        let mode = raw::REDISMODULE_READ | raw::REDISMODULE_WRITE;
        let key = self.open(at, mode).ok_or("ERR could not create filter")?;
        let kind = TYPES[value.family() as usize].load(Relaxed);
        let value = Box::into_raw(Box::new(value));
        if server!(RedisModule_ModuleTypeSetValue(key.0, kind, value.cast())) == OK {
            // SAFETY: as in `find_mut`; the server owns it from now on.
            return Ok(unsafe { &mut *value });
        }
        // SAFETY: the server did not take it.
        drop(unsafe { Box::from_raw(value) });
        Err("ERR could not create filter".into())
    }

    /// Whether as many bytes more stay below the server's `maxmemory`. It is asked only for many:
    /// before every command the server looks for itself.
    pub(crate) fn room_below_maxmemory(&self, bytes: u64) -> Result<(), NoMemory> {
        if bytes < LARGE || self.is_replay() || room_left() >= bytes {
            Ok(())
        } else {
            Err(NoMemory)
        }
    }

    /// Sends this very command to replicas and to the AOF.
    pub(crate) fn replicate(&self) {
        server!(RedisModule_ReplicateVerbatim(self.ctx));
    }

    /// Sends another command to replicas and to the AOF: a name, the key named by an argument, and
    /// bytes.
    pub(crate) fn replicate_bytes(&self, command: &CStr, at: usize, bytes: &[u8]) {
        let key = self.arguments[at];
        let (command, data) = (command.as_ptr(), bytes.as_ptr());
        server!(RedisModule_Replicate(
            self.ctx,
            command,
            c"sb".as_ptr(),
            key,
            data.cast::<c_char>(),
            bytes.len()
        ));
    }

    /// Sends another command to replicas and to the AOF: a name, the key, words and some of our
    /// own arguments.
    pub(crate) fn replicate_items(&self, command: &CStr, word: Option<&CStr>, items: &[usize]) {
        let key = self.arguments[1];
        let mut items: Vec<_> = items.iter().map(|&at| self.arguments[at]).collect();
        let (command, count, items) = (command.as_ptr(), items.len(), items.as_mut_ptr());
        match word {
            Some(word) => server!(RedisModule_Replicate(
                self.ctx,
                command,
                c"scv".as_ptr(),
                key,
                word.as_ptr(),
                items,
                count
            )),
            None => {
                server!(RedisModule_Replicate(self.ctx, command, c"sv".as_ptr(), key, items, count))
            }
        };
    }

    /// Sends an event to the listeners of the keyspace.
    pub(crate) fn notify(&self, event: &CStr) {
        let (kind, key) = (raw::REDISMODULE_NOTIFY_GENERIC, self.arguments[1]);
        server!(RedisModule_NotifyKeyspaceEvent(self.ctx, kind, event.as_ptr(), key));
    }

    /// Writes a line into the server's log.
    pub(crate) fn log(&self, text: &str) {
        log(self.ctx, c"warning", text);
    }

    fn reply(&self, reply: &Reply) {
        let ctx = self.ctx;
        match reply {
            Reply::Simple(text) => {
                let text = line(text);
                server!(RedisModule_ReplyWithSimpleString(ctx, text.as_ptr()));
            }
            Reply::Int(value) => {
                server!(RedisModule_ReplyWithLongLong(ctx, *value));
            }
            Reply::Bool(value) => {
                server!(RedisModule_ReplyWithBool(ctx, c_int::from(*value)));
            }
            Reply::Double(value) => {
                server!(RedisModule_ReplyWithDouble(ctx, *value));
            }
            Reply::Bulk(bytes) => {
                let (data, len) = (bytes.as_ptr().cast(), bytes.len());
                server!(RedisModule_ReplyWithStringBuffer(ctx, data, len));
            }
            Reply::Null => {
                server!(RedisModule_ReplyWithNull(ctx));
            }
            Reply::Error(refusal) => self.refuse(refusal),
            Reply::Array(elements) => {
                server!(RedisModule_ReplyWithArray(ctx, elements.len() as _));
                for element in elements {
                    self.reply(element);
                }
            }
            Reply::Map(pairs) => {
                server!(RedisModule_ReplyWithMap(ctx, pairs.len() as _));
                for (name, value) in pairs {
                    let (data, len) = (name.as_ptr().cast(), name.len());
                    server!(RedisModule_ReplyWithStringBuffer(ctx, data, len));
                    self.reply(value);
                }
            }
        }
    }

    fn refuse(&self, refusal: &Refusal) {
        match refusal {
            Refusal::Arity => {
                server!(RedisModule_WrongArity(self.ctx));
            }
            Refusal::WrongType => {
                let text = raw::REDISMODULE_ERRORMSG_WRONGTYPE.as_ptr();
                server!(RedisModule_ReplyWithError(self.ctx, text.cast()));
            }
            Refusal::Text(text) => {
                let text = line(text);
                server!(RedisModule_ReplyWithError(self.ctx, text.as_ptr()));
            }
        }
    }
}

/// A key that is closed when done with.
struct OpenKey(*mut RedisModuleKey);

impl Drop for OpenKey {
    fn drop(&mut self) {
        server!(RedisModule_CloseKey(self.0));
    }
}

/// Text as the protocol allows it on one line.
fn line(text: &str) -> CString {
    let clean: Vec<u8> =
        text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }).collect();
    CString::new(clean).unwrap_or_default()
}

fn log(ctx: *mut RedisModuleCtx, level: &CStr, text: &str) {
    let text = line(text);
    server!(RedisModule_Log(ctx, level.as_ptr(), c"%s".as_ptr(), text.as_ptr()));
}

fn bytes_of<'a>(string: *const RedisModuleString) -> &'a [u8] {
    let mut len = 0;
    let data = server!(RedisModule_StringPtrLen(string, &raw mut len));
    // SAFETY: the server keeps arguments, and their bytes, while the command runs; `'a` does not
    // outlive it.
    unsafe { slice::from_raw_parts(data.cast(), len) }
}

/// What the server calls for the command with this number.
extern "C" fn run<const NUMBER: usize>(
    ctx: *mut RedisModuleCtx,
    argv: *mut *mut RedisModuleString,
    argc: c_int,
) -> c_int {
    guarded(OK, || {
        // SAFETY: the server passes as many arguments as it says, and keeps them while the command
        // runs.
        let arguments = unsafe { slice::from_raw_parts(argv, argc as usize) };
        let mut call = Call { ctx, arguments };
        let command = &COMMANDS[NUMBER];
        let answer: Answer = if command.takes(arguments.len()) {
            catch_unwind(AssertUnwindSafe(|| (command.run)(&mut call))).unwrap_or_else(|_| {
                PANICS.fetch_add(1, Relaxed);
                call.log("a command panicked; please report this");
                Err("ERR internal error; the server's log says more".into())
            })
        } else {
            Err(Refusal::Arity)
        };
        match answer {
            Ok(reply) => call.reply(&reply),
            Err(refusal) => call.refuse(&refusal),
        }
        OK
    })
}

type Runner = extern "C" fn(*mut RedisModuleCtx, *mut *mut RedisModuleString, c_int) -> c_int;

macro_rules! runners {
    ($($number:literal)*) => { [$(run::<$number>),*] };
}

/// One for each command: the server tells a function nothing but its arguments.
const RUNNERS: [Runner; COMMANDS.len()] = runners!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
    17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40);

/// What is large enough to look how much memory is left.
const LARGE: u64 = 1 << 20;

/// Bytes that are left below the server's `maxmemory`.
fn room_left() -> u64 {
    let ctx = ptr::null_mut();
    let info = server!(RedisModule_GetServerInfo(ctx, c"memory".as_ptr()));
    let field = |name: &CStr| {
        let mut error = OK;
        server!(RedisModule_ServerInfoGetFieldUnsigned(info, name.as_ptr(), &raw mut error))
    };
    let (used, most) = (field(c"used_memory"), field(c"maxmemory"));
    server!(RedisModule_FreeServerInfo(ctx, info));
    if most == 0 { u64::MAX } else { most.saturating_sub(used) }
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

const PERSISTENCE: RedisModuleEvent =
    RedisModuleEvent { id: raw::REDISMODULE_EVENT_PERSISTENCE, dataver: 1 };

/// Is told when such writing begins and ends.
unsafe extern "C" fn persistence(
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

/// Saves a value into an RDB file, or for DUMP.
unsafe extern "C" fn save(io: *mut RedisModuleIO, value: *mut c_void) {
    let stream = Stream(io);
    let saved = guarded(Err(NoMemory), || {
        // SAFETY: the server hands us a value of our type.
        files::save(stream, unsafe { &*value.cast::<Value>() })
    });
    if saved.is_err() {
        stream.fail();
    }
}

/// Loads a value from an RDB file, or from the payload of RESTORE, which may be forged.
unsafe extern "C" fn load<const FAMILY: usize>(
    io: *mut RedisModuleIO,
    encoding: c_int,
) -> *mut c_void {
    guarded(ptr::null_mut(), || {
        let loaded = (encoding == ENCODING).then(|| files::load(Stream(io))).flatten();
        match loaded.filter(|value| value.family() as usize == FAMILY) {
            Some(value) => Box::into_raw(Box::new(value)).cast(),
            None => ptr::null_mut(),
        }
    })
}

/// Writes the commands that make a value anew.
unsafe extern "C" fn rewrite(
    io: *mut RedisModuleIO,
    key: *mut RedisModuleString,
    value: *mut c_void,
) {
    let written = guarded(Err(NoMemory), || {
        // SAFETY: the server hands us a value of our type.
        let value = unsafe { &*value.cast::<Value>() };
        let command = match value.family() {
            Family::Bloom => c"BF.LOADCHUNK",
            Family::Cuckoo => c"CF.LOADCHUNK",
        };
        files::rewrite(value, |iter, bytes| {
            server!(RedisModule_EmitAOF(
                io,
                command.as_ptr(),
                c"slb".as_ptr(),
                key,
                iter as c_longlong,
                bytes.as_ptr().cast::<c_char>(),
                bytes.len()
            ));
        })
    });
    if written.is_err() {
        Stream(io).fail();
    }
}

unsafe extern "C" fn memory_usage(value: *const c_void) -> usize {
    // SAFETY: the server hands us a value of our type.
    guarded(0, || unsafe { &*value.cast::<Value>() }.memory() as usize)
}

/// What `DEBUG DIGEST` compares primaries and replicas by.
unsafe extern "C" fn digest(digest: *mut RedisModuleDigest, value: *mut c_void) {
    guarded((), || {
        // SAFETY: the server hands us a value of our type.
        let value = unsafe { &*value.cast::<Value>() };
        for id in value.filter().map(Filter::content).unwrap_or_default() {
            let id = id.to_le_bytes();
            let (data, len) = (id.as_ptr().cast(), id.len());
            server!(RedisModule_DigestAddStringBuffer(digest, data, len));
        }
        server!(RedisModule_DigestEndSequence(digest));
    });
}

unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: the server owned the value, of our type, and gives it up. (A thread may do this;
    // nobody else has the value then.)
    guarded((), || drop(unsafe { Box::from_raw(value.cast::<Value>()) }));
}

unsafe extern "C" fn copy(
    _: *mut RedisModuleString,
    _: *mut RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    guarded(ptr::null_mut(), || {
        // SAFETY: the server hands us a value of our type.
        let value = unsafe { &*value.cast::<Value>() };
        if memory::ask(value.memory()).is_err() {
            return ptr::null_mut();
        }
        Box::into_raw(Box::new(value.clone())).cast()
    })
}

/// Moves a small value to where the server wants it; a large array is a mapping of its own, and
/// has no neighbours to make room for.
unsafe extern "C" fn defrag(
    context: *mut RedisModuleDefragCtx,
    _: *mut RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the server hands us the place where it keeps a value of our type, and takes what
    // stands there afterwards.
    let old = unsafe { (*value).cast::<Value>() };
    guarded((), || {
        // SAFETY: as above.
        if unsafe { (*old).memory() } > MOVED {
            return;
        }
        DEFRAG.store(context, Relaxed);
        // SAFETY: as above; nobody else has the old value.
        unsafe {
            *value = Box::into_raw(Box::new((*old).clone())).cast();
            drop(Box::from_raw(old));
        }
    });
    DEFRAG.store(ptr::null_mut(), Relaxed);
    0
}

/// Tells the server of a type of ours.
fn create_type(ctx: *mut RedisModuleCtx, family: Family, name: &CStr) -> bool {
    // SAFETY: all-zero is the documented "none" for every field.
    let mut methods: RedisModuleTypeMethods = unsafe { mem::zeroed() };
    methods.version = u64::from(raw::REDISMODULE_TYPE_METHOD_VERSION);
    methods.rdb_load = match family {
        Family::Bloom => Some(load::<0>),
        Family::Cuckoo => Some(load::<1>),
    };
    methods.rdb_save = Some(save);
    methods.aof_rewrite = Some(rewrite);
    methods.mem_usage = Some(memory_usage);
    methods.digest = Some(digest);
    methods.free = Some(free);
    methods.copy = Some(copy);
    methods.defrag = Some(defrag);
    let (name, methods) = (name.as_ptr(), &raw mut methods);
    let kind = server!(RedisModule_CreateDataType(ctx, name, ENCODING, methods));
    TYPES[family as usize].store(kind, Relaxed);
    !kind.is_null()
}

/// Tells the server of a command, with its documentation and its ACL category.
fn create_command(ctx: *mut RedisModuleCtx, command: &Command, run: Runner) -> bool {
    let name = line(&command.name.to_ascii_lowercase());
    let (flags, keyed) = (line(command.flags), c_int::from(command.keys));
    let last = if command.many_keys { -1 } else { keyed };
    let created = server!(RedisModule_CreateCommand(
        ctx,
        name.as_ptr(),
        Some(run),
        flags.as_ptr(),
        keyed,
        last,
        keyed
    ));
    if created != OK {
        return false;
    }
    let registered = server!(RedisModule_GetCommand(ctx, name.as_ptr()));
    if !describe(registered, command, last) {
        log(ctx, c"warning", &format!("{} goes without documentation", command.name));
    }
    // SAFETY: reading a pointer that the server filled in, or not: older ones have no categories
    // of modules.
    if let Some(set) = unsafe { raw::RedisModule_SetCommandACLCategories } {
        let categories = line(&command.categories());
        // SAFETY: both come from above.
        unsafe { set(registered, categories.as_ptr()) };
    }
    true
}

/// Documents a command.
fn describe(registered: *mut raw::RedisModuleCommand, command: &Command, last: c_int) -> bool {
    let arguments = syntax::arguments(command.syntax);
    // All strings live until the server has copied them.
    let names: Vec<(CString, Option<CString>)> = arguments
        .iter()
        .map(|argument| (line(&argument.name), argument.token.as_deref().map(line)))
        .collect();
    // SAFETY: all-zero ends a list, and is the documented "none" for every field.
    let blank = || unsafe { mem::zeroed::<RedisModuleCommandArg>() };
    let mut list: Vec<RedisModuleCommandArg> = arguments
        .iter()
        .zip(&names)
        .map(|(argument, (name, token))| {
            let flag = |set, flag: u32| if set { flag as c_int } else { 0 };
            RedisModuleCommandArg {
                name: name.as_ptr(),
                type_: match argument.class {
                    Type::Key => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
                    Type::Text => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
                    Type::Integer => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
                    Type::Double => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE,
                    Type::Word => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
                },
                key_spec_index: if argument.class == Type::Key { 0 } else { -1 },
                token: token.as_ref().map_or(ptr::null(), |token| token.as_ptr()),
                flags: flag(argument.optional, raw::REDISMODULE_CMD_ARG_OPTIONAL)
                    | flag(argument.multiple, raw::REDISMODULE_CMD_ARG_MULTIPLE),
                ..blank()
            }
        })
        .chain([blank()])
        .collect();
    // SAFETY: as above.
    let mut specs: [RedisModuleCommandKeySpec; 3] = unsafe { mem::zeroed() };
    let reads = raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS;
    let changes = raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_UPDATE;
    let first = if command.is_write() { changes } else { reads };
    // The first key, and behind it keys that are only read.
    let places = [(1, 0, first), (2, -1, reads)];
    for (spec, (pos, lastkey, access)) in specs.iter_mut().zip(places) {
        if pos == 2 && last != -1 {
            break;
        }
        spec.flags = u64::from(access);
        spec.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
        spec.bs.index.pos = pos;
        spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
        spec.fk.range = raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 {
            lastkey,
            keystep: 1,
            limit: 0,
        };
    }
    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<RedisModuleCommandArg>(),
    };
    let (summary, complexity) = (line(command.summary), line(command.complexity));
    // SAFETY: as above.
    let mut info: RedisModuleCommandInfo = unsafe { mem::zeroed() };
    info.version = &raw const version;
    info.summary = summary.as_ptr();
    info.complexity = complexity.as_ptr();
    info.since = c"0.1.0".as_ptr();
    info.arity = command.arity();
    info.key_specs = if command.keys { specs.as_mut_ptr() } else { ptr::null_mut() };
    info.args = list.as_mut_ptr();
    server!(RedisModule_SetCommandInfo(registered, &raw const info)) == OK
}

unsafe extern "C" fn get_number(_: *const c_char, setting: *mut c_void) -> c_longlong {
    // SAFETY: the address is that of a static, given at registration.
    unsafe { &*setting.cast::<Number>() }.value.load(Relaxed)
}

unsafe extern "C" fn set_number(
    _: *const c_char,
    value: c_longlong,
    setting: *mut c_void,
    _: *mut *mut RedisModuleString,
) -> c_int {
    // SAFETY: as in `get_number`; the server has checked the range.
    unsafe { &*setting.cast::<Number>() }.value.store(value, Relaxed);
    OK
}

/// Which rate a setting is.
fn rate_at(setting: *mut c_void) -> Option<usize> {
    settings::RATES.iter().position(|&rate| ptr::eq(rate, setting.cast_const().cast::<Rate>()))
}

unsafe extern "C" fn get_rate(_: *const c_char, setting: *mut c_void) -> *mut RedisModuleString {
    rate_at(setting).map_or(ptr::null_mut(), |at| TEXTS[at].load(Relaxed))
}

unsafe extern "C" fn set_rate(
    _: *const c_char,
    value: *mut RedisModuleString,
    setting: *mut c_void,
    error: *mut *mut RedisModuleString,
) -> c_int {
    guarded(ERR, || {
        let Some(at) = rate_at(setting) else { return ERR };
        if !settings::RATES[at].set(bytes_of(value)) {
            let text = "an error rate lies between 0 and 1";
            let (data, len) = (text.as_ptr().cast(), text.len());
            let text = server!(RedisModule_CreateString(ptr::null_mut(), data, len));
            // SAFETY: the server asks for the reason here, and frees it.
            unsafe { *error = text };
            return ERR;
        }
        server!(RedisModule_RetainString(ptr::null_mut(), value));
        let old = TEXTS[at].swap(value, Relaxed);
        if !old.is_null() {
            server!(RedisModule_FreeString(ptr::null_mut(), old));
        }
        OK
    })
}

/// Tells the server of our settings, and takes over what its configuration says.
fn create_settings(ctx: *mut RedisModuleCtx) -> bool {
    let numbers = settings::NUMBERS.iter().all(|&setting| {
        let address: *const Number = setting;
        let flags = raw::REDISMODULE_CONFIG_DEFAULT as c_uint;
        let registered = server!(RedisModule_RegisterNumericConfig(
            ctx,
            setting.name.as_ptr(),
            setting.default,
            flags,
            setting.least,
            setting.most,
            Some(get_number),
            Some(set_number),
            None,
            address.cast_mut().cast()
        ));
        registered == OK
    });
    let rates = settings::RATES.iter().all(|&setting| {
        let address: *const Rate = setting;
        let registered = server!(RedisModule_RegisterStringConfig(
            ctx,
            setting.name.as_ptr(),
            setting.default.as_ptr(),
            raw::REDISMODULE_CONFIG_DEFAULT as c_uint,
            Some(get_rate),
            Some(set_rate),
            None,
            address.cast_mut().cast()
        ));
        registered == OK
    });
    numbers && rates && server!(RedisModule_LoadConfigs(ctx)) == OK
}

/// Takes the arguments behind the name of the module: pairs, as RedisBloom has them.
fn take_arguments(
    ctx: *mut RedisModuleCtx,
    argv: *mut *mut RedisModuleString,
    argc: c_int,
) -> bool {
    if argc == 0 {
        return true;
    }
    // SAFETY: the server passes as many arguments as it says.
    let arguments = unsafe { slice::from_raw_parts(argv, argc as usize) };
    arguments.chunks(2).all(|pair| {
        let name = bytes_of(pair[0]);
        let taken = pair.get(1).is_some_and(|&value| settings::take(name, bytes_of(value)));
        if !taken {
            let name = String::from_utf8_lossy(name);
            log(
                ctx,
                c"warning",
                &format!("{name} is no argument of this module, or has a bad value"),
            );
        }
        taken
    })
}

/// Our section of INFO.
unsafe extern "C" fn info(ctx: *mut RedisModuleInfoCtx, _: c_int) {
    guarded((), || {
        server!(RedisModule_InfoAddSection(ctx, c"filters".as_ptr()));
        let field = |name: &CStr, value: i64| {
            server!(RedisModule_InfoAddFieldLongLong(ctx, name.as_ptr(), value));
        };
        field(c"bloom_filters", ALIVE[Family::Bloom as usize].load(Relaxed));
        field(c"cuckoo_filters", ALIVE[Family::Cuckoo as usize].load(Relaxed));
        field(c"aging_filters", aged::ALIVE.load(Relaxed));
        field(c"caught_panics", PANICS.load(Relaxed) as i64);
    });
}

/// What the server calls when it loads the module.
///
/// # Safety
///
/// Only a server may call this, with a context of its own.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut RedisModuleCtx,
    argv: *mut *mut RedisModuleString,
    argc: c_int,
) -> c_int {
    let (name, version) = (NAME.as_ptr(), raw::REDISMODULE_APIVER_1 as c_int);
    // SAFETY: the context is the server's; this fills in the functions that all else relies on.
    // Nothing before it allocates.
    let known = unsafe { raw::Export_RedisModule_Init(ctx, name, VERSION, version) } == OK;
    // SAFETY: reading a pointer that was just filled in.
    if !known || unsafe { raw::RedisModule_TryAlloc }.is_none() {
        return ERR; // Older than Redis 7.0.
    }
    guarded(ERR, || {
        // SAFETY: as above; older servers have no categories of modules.
        if let Some(add) = unsafe { raw::RedisModule_AddACLCategory } {
            for category in [c"bloom", c"cuckoo", c"tamis"] {
                // SAFETY: the context is the server's; one that has the category already says so,
                // and no harm is done.
                unsafe { add(ctx, category.as_ptr()) };
            }
        }
        // We handle errors of reading ourselves, and know keys only by what they hold, so that
        // slots may move at any time. Servers that do not know the second option ignore it.
        let options = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
            | raw::VALKEYMODULE_OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION;
        server!(RedisModule_SetModuleOptions(ctx, options as c_int));
        let done = create_type(ctx, Family::Bloom, c"tamis-bf-")
            && create_type(ctx, Family::Cuckoo, c"tamis-cf-")
            && aging::create_type(ctx)
            && COMMANDS.iter().zip(RUNNERS).all(|(one, run)| create_command(ctx, one, run))
            && create_settings(ctx)
            && take_arguments(ctx, argv, argc)
            && server!(RedisModule_RegisterInfoFunc(ctx, Some(info))) == OK
            && server!(RedisModule_SubscribeToServerEvent(ctx, PERSISTENCE, Some(persistence)))
                == OK;
        if done { OK } else { ERR }
    })
}
