//! The commands: a table of them, and a file a family.

mod aging;
mod bloom;
mod chunks;
mod cuckoo;
mod grow;
mod insert;
mod own;

use crate::ffi::Call;
use crate::reply::Answer;

/// A command, and what the server is told of it.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&mut Call<'_>) -> Answer,
    /// For the server: what the command does to data, and whether it is quick.
    pub(crate) flags: &'static str,
    /// Whether the first argument is a key.
    pub(crate) keys: bool,
    /// Whether all arguments are keys.
    pub(crate) many_keys: bool,
    /// The fewest arguments and the most (0 for any number), the name included.
    arity: (usize, usize),
    pub(crate) syntax: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) complexity: &'static str,
}

impl Command {
    /// Whether it can have `arguments` arguments.
    pub(crate) fn takes(&self, arguments: usize) -> bool {
        let (least, most) = self.arity;
        arguments >= least && (most == 0 || arguments <= most)
    }

    /// The number of arguments as the server wants it: negative where it is the least.
    pub(crate) fn arity(&self) -> i32 {
        let (least, most) = self.arity;
        if least == most { least as i32 } else { -(least as i32) }
    }

    pub(crate) fn is_write(&self) -> bool {
        self.flags.starts_with("write")
    }

    /// The ACL categories: the server's own, which it does not take from the flags, and ours.
    pub(crate) fn categories(&self) -> String {
        let access = if self.is_write() { "write" } else { "read" };
        let speed = if self.flags.ends_with("fast") { "fast" } else { "slow" };
        let own = match self.name.as_bytes()[0] {
            b'B' => "bloom",
            b'C' => "cuckoo",
            _ if self.name == "TAMIS.INCRBY" => "cuckoo",
            _ => "tamis",
        };
        format!("{access} {speed} {own}")
    }
}

const READ: &str = "readonly fast";
const READ_ALL: &str = "readonly";
const ADD: &str = "write deny-oom fast";
const ADD_ALL: &str = "write deny-oom";
const REMOVE: &str = "write fast";

const BY_LAYERS: &str = "O(n), where n is the number of layers";
const BY_ITEMS: &str = "O(k * n), where k is the number of items and n is the number of layers";
const BY_AGES: &str = "O(k * n), where k is the number of items and n is the number of steps";
const BY_BYTES: &str = "O(n), where n is the size of the filter";

/// A command with one key.
macro_rules! keyed {
    ($name:literal, $run:path, $flags:ident, $least:literal..=$most:literal, $syntax:literal, $complexity:expr, $summary:literal) => {
        Command {
            name: $name,
            run: $run,
            flags: $flags,
            keys: true,
            many_keys: false,
            arity: ($least, $most),
            syntax: $syntax,
            summary: $summary,
            complexity: $complexity,
        }
    };
}

/// All commands.
pub(crate) const COMMANDS: [Command; 41] = [
    keyed!(
        "BF.RESERVE",
        bloom::reserve,
        ADD,
        4..=7,
        "key error_rate:double capacity:int [EXPANSION expansion:int] [NONSCALING]",
        "O(1)",
        "Creates an empty Bloom filter; replies OK"
    ),
    keyed!(
        "BF.ADD",
        bloom::add,
        ADD,
        3..=3,
        "key item",
        BY_LAYERS,
        "Adds an item to a Bloom filter, which is created if needed; replies whether it was not in"
    ),
    keyed!(
        "BF.MADD",
        bloom::madd,
        ADD,
        3..=0,
        "key item...",
        BY_ITEMS,
        "Adds items to a Bloom filter, which is created if needed; replies for each whether it was not in"
    ),
    keyed!(
        "BF.INSERT",
        bloom::insert,
        ADD,
        4..=0,
        "key [CAPACITY capacity:int] [ERROR error:double] [EXPANSION expansion:int] [NOCREATE] [NONSCALING] ITEMS item...",
        BY_ITEMS,
        "Adds items to a Bloom filter, which is created as asked if needed; replies for each whether it was not in"
    ),
    keyed!(
        "BF.EXISTS",
        bloom::exists,
        READ,
        3..=3,
        "key item",
        BY_LAYERS,
        "Replies whether an item may be in a Bloom filter"
    ),
    keyed!(
        "BF.MEXISTS",
        bloom::mexists,
        READ,
        3..=0,
        "key item...",
        BY_ITEMS,
        "Replies for each item whether it may be in a Bloom filter"
    ),
    keyed!(
        "BF.CARD",
        bloom::card,
        READ,
        2..=2,
        "key",
        BY_LAYERS,
        "Replies how many items were added to a Bloom filter"
    ),
    keyed!(
        "BF.INFO",
        bloom::info,
        READ,
        2..=3,
        "key [information]",
        BY_LAYERS,
        "Replies with facts about a Bloom filter, or with one: CAPACITY, SIZE, FILTERS, ITEMS or EXPANSION"
    ),
    keyed!(
        "BF.SCANDUMP",
        bloom::scandump,
        READ_ALL,
        3..=3,
        "key iterator:int",
        BY_BYTES,
        "Replies with an iterator and a chunk of a Bloom filter's dump; iterator 0 when there is no more"
    ),
    keyed!(
        "BF.LOADCHUNK",
        bloom::loadchunk,
        ADD_ALL,
        4..=4,
        "key iterator:int data",
        BY_BYTES,
        "Takes a chunk of a dump; replies OK"
    ),
    keyed!(
        "BF.DEBUG",
        bloom::debug,
        READ,
        2..=2,
        "key",
        BY_LAYERS,
        "Replies with a line for a Bloom filter and one for each of its layers"
    ),
    keyed!(
        "CF.RESERVE",
        cuckoo::reserve,
        ADD,
        3..=0,
        "key capacity:int [BUCKETSIZE size:int] [MAXITERATIONS iterations:int] [EXPANSION expansion:int] [ERROR error:double]",
        "O(1)",
        "Creates an empty cuckoo filter; replies OK"
    ),
    keyed!(
        "CF.ADD",
        cuckoo::add,
        ADD,
        3..=3,
        "key item",
        BY_LAYERS,
        "Adds an item to a cuckoo filter, which is created if needed; replies 1"
    ),
    keyed!(
        "CF.ADDNX",
        cuckoo::addnx,
        ADD,
        3..=3,
        "key item",
        BY_LAYERS,
        "Adds an item to a cuckoo filter unless it seems to be in; replies whether it was added"
    ),
    keyed!(
        "CF.INSERT",
        cuckoo::insert,
        ADD,
        4..=0,
        "key [CAPACITY capacity:int] [ERROR error:double] [NOCREATE] ITEMS item...",
        BY_ITEMS,
        "Adds items to a cuckoo filter, which is created as asked if needed; replies for each 1, or -1 where it is full"
    ),
    keyed!(
        "CF.INSERTNX",
        cuckoo::insertnx,
        ADD,
        4..=0,
        "key [CAPACITY capacity:int] [ERROR error:double] [NOCREATE] ITEMS item...",
        BY_ITEMS,
        "Adds items to a cuckoo filter unless they seem to be in; replies for each 1 if added, 0 if not, -1 where it is full"
    ),
    keyed!(
        "CF.DEL",
        cuckoo::del,
        REMOVE,
        3..=3,
        "key item",
        BY_LAYERS,
        "Removes an item once from a cuckoo filter; replies whether it was in"
    ),
    keyed!(
        "CF.COUNT",
        cuckoo::count,
        READ,
        3..=3,
        "key item",
        BY_LAYERS,
        "Replies an upper bound on the count of an item in a cuckoo filter"
    ),
    keyed!(
        "CF.EXISTS",
        cuckoo::exists,
        READ,
        3..=3,
        "key item",
        BY_LAYERS,
        "Replies whether an item may be in a cuckoo filter"
    ),
    keyed!(
        "CF.MEXISTS",
        cuckoo::mexists,
        READ,
        3..=0,
        "key item...",
        BY_ITEMS,
        "Replies for each item whether it may be in a cuckoo filter"
    ),
    keyed!(
        "CF.INFO",
        cuckoo::info,
        READ,
        2..=2,
        "key",
        BY_LAYERS,
        "Replies with facts about a cuckoo filter"
    ),
    keyed!(
        "CF.SCANDUMP",
        cuckoo::scandump,
        READ_ALL,
        3..=3,
        "key iterator:int",
        BY_BYTES,
        "Replies with an iterator and a chunk of a cuckoo filter's dump; iterator 0 when there is no more"
    ),
    keyed!(
        "CF.LOADCHUNK",
        cuckoo::loadchunk,
        ADD_ALL,
        4..=4,
        "key iterator:int data",
        BY_BYTES,
        "Takes a chunk of a dump; replies OK"
    ),
    keyed!(
        "CF.COMPACT",
        cuckoo::compact,
        READ,
        2..=2,
        "key",
        "O(1)",
        "Does nothing: a cuckoo filter takes the memory of what is in; replies OK"
    ),
    keyed!(
        "CF.DEBUG",
        cuckoo::debug,
        READ,
        2..=2,
        "key",
        BY_LAYERS,
        "Replies with a line about a cuckoo filter"
    ),
    keyed!(
        "TAMIS.LAYER",
        own::layer,
        ADD_ALL,
        3..=3,
        "key announcement",
        "O(n), where n is the size of the layer",
        "Builds a layer as a primary announced it, and the filter too if it is the first: for replicas and the AOF; replies OK"
    ),
    keyed!(
        "TAMIS.INFO",
        own::info,
        READ_ALL,
        2..=2,
        "key",
        BY_BYTES,
        "Replies with a map: what was asked of a filter, the rate that it has now, and for each layer its kind, params, keys, rate and bytes"
    ),
    keyed!(
        "TAMIS.DUMP",
        own::dump,
        READ_ALL,
        2..=5,
        "key [LAYER layer:int] [PACKED]",
        BY_BYTES,
        "Replies with a layer of a filter in the wire format, as the command line tool reads it"
    ),
    keyed!(
        "TAMIS.LOAD",
        own::load,
        ADD_ALL,
        4..=4,
        "key family data",
        BY_BYTES,
        "Makes a filter of the family BLOOM or CUCKOO from the wire format; replies OK"
    ),
    keyed!(
        "TAMIS.DELTA",
        own::delta,
        READ_ALL,
        3..=5,
        "key content_id [LAYER layer:int]",
        BY_BYTES,
        "Replies with the word delta or snapshot, the content id now, and what turns that content into this, or all of it if it is not remembered; this version is then remembered"
    ),
    keyed!(
        "TAMIS.COUNT",
        own::count,
        READ,
        3..=0,
        "key item...",
        BY_ITEMS,
        "Replies for each item an upper bound on its count in a filter of either family"
    ),
    keyed!(
        "TAMIS.INCRBY",
        own::incrby,
        ADD,
        4..=4,
        "key item increment:int",
        BY_LAYERS,
        "Adds an item so often to a cuckoo filter, or removes it; replies how often it is then in"
    ),
    Command {
        name: "TAMIS.MERGE",
        run: own::merge,
        flags: ADD_ALL,
        keys: true,
        many_keys: true,
        arity: (3, 0),
        syntax: "key key_of_source...",
        summary: "Adds all that other filters hold to a filter, which is created if needed; replies with the rate that it has now",
        complexity: "O(n), where n is the size of all filters",
    },
    Command {
        name: "TAMIS.PLAN",
        run: own::plan,
        flags: "readonly fast",
        keys: false,
        many_keys: false,
        arity: (3, 4),
        syntax: "capacity:int error:double [family]",
        summary: "Replies with a map: the kind, params, rate and memory of the filter that would be made, without scaling; family is BLOOM or CUCKOO",
        complexity: "O(1)",
    },
    keyed!(
        "TAMIS.RESERVE",
        aging::reserve,
        ADD,
        6..=8,
        "key error_rate:double capacity:int EX seconds:int [STEPS steps:int]",
        "O(1)",
        "Creates an empty filter whose items are found for EX seconds, and are gone after EX (1 + 1/STEPS); replies OK"
    ),
    keyed!(
        "TAMIS.ADD",
        aging::add,
        ADD,
        3..=0,
        "key item...",
        BY_AGES,
        "Adds items to a filter whose items expire, or renews them; replies for each whether it was not in"
    ),
    keyed!(
        "TAMIS.TOUCH",
        aging::touch,
        ADD,
        3..=0,
        "key item...",
        BY_AGES,
        "Renews items of a filter whose items expire; replies for each whether it was in"
    ),
    keyed!(
        "TAMIS.EXISTS",
        aging::exists,
        READ,
        3..=0,
        "key item...",
        BY_AGES,
        "Replies for each item whether it may be in a filter whose items expire"
    ),
    keyed!(
        "TAMIS.DEL",
        aging::del,
        REMOVE,
        3..=0,
        "key item...",
        BY_AGES,
        "Removes items from a filter whose items expire; replies for each whether it was in"
    ),
    keyed!(
        "TAMIS.AT",
        aging::at,
        ADD,
        4..=0,
        "key milliseconds:int action [item...]",
        BY_AGES,
        "Does ADD, TOUCH, EXISTS or DEL at a time that is said: for replicas, the AOF and imports; replies as they do"
    ),
    keyed!(
        "TAMIS.AGES",
        aging::ages,
        ADD_ALL,
        3..=3,
        "key data",
        BY_BYTES,
        "Makes a filter whose items expire from the wire format: for replicas and the AOF; replies OK"
    ),
];
