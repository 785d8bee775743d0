"""Speeds beside other packages, in one run: nanoseconds of processor time a key, the best of
interleaved rounds.

    python crates/tamis-python/benches/beside.py [KEYS] [ROUNDS]

Keys are URLs at a rate of 0.3%. rbloom and fastbloom-rs are measured if they are installed.
"""

import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version

import numpy
import pyarrow

import tamis

KEYS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 7
RATE = 0.003

present = [f"https://example.org/{number * 7919}/page/{number}" for number in range(KEYS)]
absent = [f"https://example.com/{number * 7919}/page/{number}" for number in range(KEYS)]


def ours(kind, present, absent):
    def run():
        built = tamis.Filter(KEYS, RATE, kind)
        yield built.update(present)
        yield built.contains(present)
        yield built.contains(absent)

    return run


def loops(make):
    """One key at a time, as programs without batches do it."""

    def run():
        built = make()
        for key in present:
            built.add(key)
        yield
        for key in present:
            key in built
        yield
        for key in absent:
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
numbers = [numpy.arange(KEYS, dtype="u8"), numpy.arange(KEYS, 2 * KEYS, dtype="u8")]
rows = {}
for kind in ("blocked", "blocked-rank"):
    rows[f"tamis {kind}, Arrow"] = ours(kind, *arrow)
    rows[f"tamis {kind}, NumPy u64"] = ours(kind, *numbers)
    rows[f"tamis {kind}, list of str"] = ours(kind, present, absent)
    rows[f"tamis {kind}, loop"] = loops(lambda kind=kind: tamis.Filter(KEYS, RATE, kind))
try:
    import rbloom

    rows["rbloom, update and loops"] = rbloom_batch
    rows["rbloom, loop"] = loops(lambda: rbloom.Bloom(KEYS, RATE))
except ImportError:
    pass
try:
    import fastbloom_rs

    rows["fastbloom-rs, batches"] = fastbloom_batch
except ImportError:
    pass

best = {name: [float("inf")] * 3 for name in rows}
for _ in range(ROUNDS):
    for name, run in rows.items():
        start = time.thread_time()
        for step, _ in enumerate(run()):
            now = time.thread_time()
            best[name][step] = min(best[name][step], (now - start) / KEYS * 1e9)
            start = time.thread_time()

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
