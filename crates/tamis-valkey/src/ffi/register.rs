//! What the server is told when it loads the module: commands with their documentation, settings,
//! and a section of INFO.

use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::{mem, ptr, slice};

use valkey_module::raw::{
    self, RedisModuleCommandArg, RedisModuleCommandInfo, RedisModuleCommandKeySpec, RedisModuleCtx,
    RedisModuleInfoCtx, RedisModuleString,
};

use super::{ERR, OK, PANICS, Runner, bytes_of, guarded, line, log};
use crate::aged;
use crate::asked::Family;
use crate::commands::Command;
use crate::settings::{self, Number, Rate};
use crate::syntax::{self, Type};
use crate::value::ALIVE;

/// The texts of the settings that are probabilities.
static TEXTS: [AtomicPtr<RedisModuleString>; 2] =
    [AtomicPtr::new(ptr::null_mut()), AtomicPtr::new(ptr::null_mut())];

/// Tells the server of a command, with its documentation and its ACL category.
pub(super) fn create_command(ctx: *mut RedisModuleCtx, command: &Command, run: Runner) -> bool {
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
pub(super) fn create_settings(ctx: *mut RedisModuleCtx) -> bool {
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
pub(super) fn take_arguments(
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
pub(super) unsafe extern "C" fn info(ctx: *mut RedisModuleInfoCtx, _: c_int) {
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
