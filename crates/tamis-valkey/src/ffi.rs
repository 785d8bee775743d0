//! All that touches the server's C interface, and the only unsafe code of the module: commands
//! here, memory in `allocator.rs`, what keys hold in `types.rs`, what the server is told when it
//! loads the module in `register.rs`.
//!
//! Three rules keep the server alive. No panic leaves a function that the server calls: each runs
//! under [`guarded`]. Memory comes from the server's allocator that may refuse, so that a filter
//! that does not fit is an error and not the end of the process. And what a key holds is reached
//! only by the thread that runs commands.
#![allow(unsafe_code)] // Calls into the server; each block says what it relies on.
// The server's functions are in mutable statics, which it fills before any of our code runs and
// never again.

use std::ffi::{CStr, CString, c_char, c_int, c_longlong};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{ptr, slice};

use valkey_module::raw::{self, RedisModuleCtx, RedisModuleKey, RedisModuleString};

use crate::aged::Aged;
use crate::asked::Family;
use crate::commands::COMMANDS;
use crate::memory::NoMemory;
use crate::reply::{Answer, Refusal, Reply};
use crate::value::Value;
use types::PERSISTENCE;

/// The name and the version that clients look for before they use these commands: those of
/// RedisBloom.
const NAME: &CStr = c"bf";
const VERSION: c_int = 80000;

const OK: c_int = raw::REDISMODULE_OK as c_int;
const ERR: c_int = raw::REDISMODULE_ERR as c_int;

/// Panics that were caught: for INFO.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Calls a function of the server; one that it does not have panics, and the panic is caught at
/// the boundary.
macro_rules! server {
    ($name:ident ( $($argument:expr),* $(,)? )) => {{
        // SAFETY: the server filled in the pointer before it called us, and every caller passes
        // what the function is documented to take.
        unsafe { raw::$name.expect("the server has the function")($($argument),*) }
    }};
}

mod allocator; // After the macro, which they use.
mod register;
mod types;

pub(crate) use types::{Held, Log, Stream, TypeId, limit_on_loading, saves_all};

/// Runs what the server called; a panic becomes `otherwise`.
fn guarded<T>(otherwise: T, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        PANICS.fetch_add(1, Relaxed);
        otherwise
    })
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
        let value = self.held(at, raw::REDISMODULE_READ, types_of(family))?;
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
        let value = self.held(at, mode, types_of(family))?;
        // SAFETY: as in `find`; commands ask once, so this is the only reference.
        Ok(value.map(|value| unsafe { &mut *value }))
    }

    /// As [`find`](Self::find), where items expire.
    pub(crate) fn aged(&self, at: usize) -> Result<Option<&'a Aged>, Refusal> {
        let value = self.held(at, raw::REDISMODULE_READ, &[TypeId::Aging])?;
        // SAFETY: as in `find`.
        Ok(value.map(|value| unsafe { &*value }))
    }

    /// As [`find_mut`](Self::find_mut), where items expire.
    pub(crate) fn aged_mut(&mut self, at: usize) -> Result<Option<&'a mut Aged>, Refusal> {
        let mode = raw::REDISMODULE_READ | raw::REDISMODULE_WRITE;
        let value = self.held(at, mode, &[TypeId::Aging])?;
        // SAFETY: as in `find_mut`.
        Ok(value.map(|value| unsafe { &mut *value }))
    }

    /// The value of a key of one of these types, all of which hold a `T`.
    fn held<T: Held>(
        &self,
        at: usize,
        mode: u32,
        types: &[TypeId],
    ) -> Result<Option<*mut T>, Refusal> {
        let Some(key) = self.open(at, mode) else { return Ok(None) };
        let kind = server!(RedisModule_ModuleTypeGetType(key.0));
        if !kind.is_null() && types.iter().any(|id| id.handle() == kind) {
            return Ok(Some(server!(RedisModule_ModuleTypeGetValue(key.0)).cast()));
        }
        let is_empty =
            server!(RedisModule_KeyType(key.0)) == raw::REDISMODULE_KEYTYPE_EMPTY as c_int;
        if is_empty { Ok(None) } else { Err(Refusal::WrongType) }
    }

    /// Makes the key named by an argument hold this.
    pub(crate) fn put<T: Held>(&mut self, at: usize, value: T) -> Result<&'a mut T, Refusal> {
        let mode = raw::REDISMODULE_READ | raw::REDISMODULE_WRITE;
        let key = self.open(at, mode).ok_or("ERR could not create filter")?;
        let kind = value.type_id().handle();
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
                    self.reply(&Reply::Simple(name));
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

/// The types of the keys of a family, or of both.
fn types_of(family: Option<Family>) -> &'static [TypeId] {
    match family {
        Some(Family::Bloom) => &[TypeId::Bloom],
        Some(Family::Cuckoo) => &[TypeId::Cuckoo],
        None => &[TypeId::Bloom, TypeId::Cuckoo],
    }
}

/// The time of the server's clock, in milliseconds.
pub(crate) fn now() -> u64 {
    u64::try_from(server!(RedisModule_Milliseconds())).unwrap_or(0)
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
    // The share of the limit that is used, 0 without one: asking for both numbers takes longer.
    if server!(RedisModule_GetUsedMemoryRatio()) == 0.0 {
        return u64::MAX;
    }
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
        allocator::find_try_calloc();
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
        let mut commands = COMMANDS.iter().zip(RUNNERS);
        let (info, persistence) = (register::info, types::persistence);
        let done = types::create::<Value, { TypeId::Bloom as usize }>(ctx, c"tamis-bf-")
            && types::create::<Value, { TypeId::Cuckoo as usize }>(ctx, c"tamis-cf-")
            && types::create::<Aged, { TypeId::Aging as usize }>(ctx, c"tamis-ag-")
            && commands.all(|(one, run)| register::create_command(ctx, one, run))
            && register::create_settings(ctx)
            && register::take_arguments(ctx, argv, argc)
            && server!(RedisModule_RegisterInfoFunc(ctx, Some(info))) == OK
            && server!(RedisModule_SubscribeToServerEvent(ctx, PERSISTENCE, Some(persistence)))
                == OK;
        if done { OK } else { ERR }
    })
}
