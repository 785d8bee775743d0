"""Speeds beside other packages, in one run: nanoseconds of processor time a key, the best of
interleaved rounds.

    python crates/tamis-python/benches/beside.py [KEYS] [ROUNDS]

Keys are URLs at a rate of 0.3%. rbloom and fastbloom-rs are measured if they are installed, and
the library itself if LIBRARY names what `cargo build --release -p tamis-python --example library`
made. Loops ask strings whose hash Python remembers, strings that are new to it, and integers.
"""

import os
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version

import numpy
import pyarrow

import tamis

KEYS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 7
RATE = 0.003
START = object()
"""What came before is not timed."""

present = [f"https://example.org/{number * 7919}/page/{number}" for number in range(KEYS)]
absent = [f"https://example.com/{number * 7919}/page/{number}" for number in range(KEYS)]


def ours(kind, present, absent):
    def run():
        built = tamis.Filter(KEYS, RATE, kind)
        yield built.update(present)
        yield built.contains(present)
        yield built.contains(absent)

    return run


def loops(make, keys=None, others=None):
    """One key at a time, as programs without batches do it."""
    keys, others = keys or present, others or absent

    def run():
        built = make()
        for key in keys:
            built.add(key)
        yield
        for key in keys:
            key in built
        yield
        for key in others:
            key in built
        yield

    return run


def renewed(make):
    """Strings that Python has not hashed before, as those that a program reads."""

    def run():
        hosts = ([key[:8] + key[8:] for key in keys] for keys in (present, present, absent))
        built = make()
        keys = next(hosts)
        yield START
        for key in keys:
            built.add(key)
        yield
        for keys in hosts:
            yield START
            for key in keys:
                key in built
            yield

    return run


def rbloom_batch():
    built = rbloom.Bloom(KEYS, RATE)
    yield built.update(present)
    # It has no batch of questions.
    for key in present:
        key in built
    yield
    for key in absent:
        key in built
    yield


def fastbloom_batch():
    built = fastbloom_rs.BloomFilter(KEYS, RATE)
    yield built.add_str_batch(present)
    yield built.contains_str_batch(present)
    yield built.contains_str_batch(absent)


arrow = [pyarrow.array(present), pyarrow.array(absent)]
integers = [list(range(KEYS)), list(range(KEYS, 2 * KEYS))]
numbers = [numpy.arange(KEYS, dtype="u8"), numpy.arange(KEYS, 2 * KEYS, dtype="u8")]
rows = {}
for kind in ("blocked", "blocked-rank"):
    rows[f"tamis {kind}, Arrow"] = ours(kind, *arrow)
    rows[f"tamis {kind}, NumPy u64"] = ours(kind, *numbers)
    rows[f"tamis {kind}, list of str"] = ours(kind, present, absent)
    make = lambda kind=kind: tamis.Filter(KEYS, RATE, kind)
    rows[f"tamis {kind}, loop"] = loops(make)
    rows[f"tamis {kind}, loop of int"] = loops(make, *integers)
    rows[f"tamis {kind}, loop of new str"] = renewed(make)
try:
    import rbloom

    rows["rbloom, update and loops"] = rbloom_batch
    make = lambda: rbloom.Bloom(KEYS, RATE)
    rows["rbloom, loop"] = loops(make)
    rows["rbloom, loop of int"] = loops(make, *integers)
    rows["rbloom, loop of new str"] = renewed(make)
except ImportError:
    pass
try:
    import fastbloom_rs

    rows["fastbloom-rs, batches"] = fastbloom_batch
except ImportError:
    pass

best = {name: [float("inf")] * 3 for name in rows}


def note(name, step, nanoseconds):
    best[name][step] = min(best[name][step], nanoseconds)


for _ in range(ROUNDS):
    for name, run in rows.items():
        step, start = 0, time.thread_time()
        for said in run():
            if said is not START:
                note(name, step, (time.thread_time() - start) / KEYS * 1e9)
                step += 1
            start = time.thread_time()
    for kind in ("blocked", "blocked-rank") if "LIBRARY" in os.environ else ():
        name = f"the library, {kind}"
        best.setdefault(name, [float("inf")] * 3)
        told = subprocess.check_output([os.environ["LIBRARY"], kind, str(KEYS)]).split()
        for step, nanoseconds in enumerate(told):
            note(name, step, float(nanoseconds))

print(f"{KEYS} keys, rate {RATE}, best of {ROUNDS} interleaved rounds, ns of processor time a key")
print(f"Python {platform.python_version()}", end="")
for package in ("tamis", "rbloom", "fastbloom-rs", "pyarrow", "numpy"):
    try:
        print(f", {package} {version(package)}", end="")
    except PackageNotFoundError:
        pass
print("\n\n| | build | hit | miss |\n|---|---|---|---|")
for name, times in best.items():
    print(f"| {name} | " + " | ".join(f"{time:.0f}" for time in times) + " |")

def ratio(slower, quicker):
    """How many times as long the first takes: to build, for hits and for misses."""
    if slower in best and quicker in best:
        times = " / ".join(f"{a / b:.2f}" for a, b in zip(best[slower], best[quicker]))
        print(f"- {slower}, over {quicker}: {times}")


print("\nHow many times as long the first takes, build / hit / miss:\n")
ratio("rbloom, update and loops", "tamis blocked, Arrow")
ratio("rbloom, loop", "tamis blocked, loop")
ratio("rbloom, loop of new str", "tamis blocked, loop of new str")
ratio("rbloom, loop of int", "tamis blocked, loop of int")
for kind in ("blocked", "blocked-rank"):
    ratio(f"tamis {kind}, Arrow", f"the library, {kind}")
