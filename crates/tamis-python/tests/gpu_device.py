"""`tamis.gpu` on a GPU, without pytest: run by scripts/gpu. Packages that are missing are named.

    python crates/tamis-python/tests/gpu_device.py [--keys N]     [default: 268435456]

The exit code is the number of checks that failed.
"""

import argparse
import gc
import os
import sys
import time
import traceback

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy

import tamis
from tamis import gpu

FEW = 200_000
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def package(name):
    try:
        return __import__(name)
    except ImportError:
        print(f"   {name} is not installed")
        return None


def numbers(start, number, dtype="u8"):
    return numpy.arange(start, start + number, dtype=dtype)


def raises(exceptions, call):
    try:
        call()
    except exceptions as error:
        print(f"   {type(error).__name__}: {error}")
        return
    raise AssertionError(f"nothing was raised, but {exceptions} was expected")


def compare(given, back):
    """`given` makes an array of a package of a NumPy one; `back` makes NumPy's of its arrays."""
    inside, asked = numbers(0, FEW), numbers(FEW // 2, FEW)
    for kind in ("blocked-rank", "blocked"):
        cpu = tamis.Filter(inside, rate=0.003, kind=kind)
        here = gpu.Filter(given(inside), rate=0.003, kind=kind)
        assert here.content_id() == cpu.content_id()
        assert here.to_cpu().to_bytes() == cpu.to_bytes()
        answers = back(here.contains(given(asked)))
        assert answers.dtype == bool, answers.dtype
        assert numpy.array_equal(answers, cpu.contains(asked))
    cpu = tamis.Filter(2 * FEW, rate=0.003, kind="blocked-rank")
    here = gpu.Filter(2 * FEW, rate=0.003)
    for filter in (cpu, here):
        array = given if filter is here else lambda keys: keys
        filter.update(array(inside))
        filter.update(array(asked))
        assert filter.remove_many(array(numbers(FEW // 4, FEW))) == FEW
    assert here.content_id() == cpu.content_id() and len(here) == len(cpu) == FEW
    counts = back(here.count_many(given(asked)))
    few = slice(0, 1000)
    assert counts[few].tolist() == [cpu.count(int(key)) for key in asked[few]]
    # The same number has one spelling, with a sign and without.
    negative = numbers(-FEW, FEW, "i8")
    signed = gpu.Filter(given(negative), rate=1e-6)
    assert signed.content_id() == tamis.Filter(negative, rate=1e-6, kind="blocked-rank").content_id()
    assert back(signed.contains(given(negative.view("u8")))).all()
    # No keys are keys too.
    assert len(back(here.contains(given(numbers(0, 0))))) == 0


@check
def numpy_arrays():
    compare(lambda keys: keys, numpy.asarray)


@check
def texts_of_the_host():
    words = [f"word {number}" for number in range(1000)]
    here = gpu.Filter(words, rate=1e-6)
    assert here.content_id() == tamis.Filter(words, rate=1e-6, kind="blocked-rank").content_id()
    assert numpy.asarray(here.contains(words)).all()


@check
def cupy_arrays():
    cupy = package("cupy")
    if not cupy:
        return
    compare(cupy.asarray, lambda answers: cupy.asnumpy(cupy.asarray(answers)))
    compare(cupy.asarray, lambda answers: cupy.asnumpy(cupy.from_dlpack(answers)))
    # No copies: the address is the same, and the memory lives as long as the array does.
    answers = gpu.Filter(cupy.arange(FEW, dtype="u8")).contains(cupy.arange(FEW, dtype="u8"))
    taken = cupy.asarray(answers)
    assert taken.data.ptr == answers.__cuda_array_interface__["data"][0]
    del answers
    gc.collect()
    assert bool(taken.all())

    class Interface:
        """An array with the older interface alone, as Numba's."""

        def __init__(self, array):
            self.array = array
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    compare(lambda keys: Interface(cupy.asarray(keys)), lambda answers: cupy.asnumpy(cupy.asarray(answers)))


@check
def streams_of_cupy():
    cupy = package("cupy")
    if not cupy:
        return
    # Without 0, which memory that nothing has been written to may hold.
    here = gpu.Filter(cupy.arange(1, FEW, dtype="u8"), rate=1e-6)
    stream = cupy.cuda.Stream(non_blocking=True)
    for _ in range(20):
        with stream:
            late = cupy.zeros(1 << 25, dtype="u8") + cupy.uint64(1 << 40)
            for _ in range(20):
                late += cupy.uint64(1)
            late %= cupy.uint64(FEW)
        answers = cupy.asarray(here.contains(late))
        assert bool(answers.all()), "keys were read before they were written"


@check
def torch_tensors():
    torch = package("torch")
    if not torch:
        return

    def given(keys):
        return torch.from_numpy(keys.view("i8").copy()).cuda()

    compare(given, lambda answers: torch.from_dlpack(answers).cpu().numpy())
    compare(given, lambda answers: torch.as_tensor(answers, device="cuda").cpu().numpy())
    answers = gpu.Filter(given(numbers(0, FEW))).contains(given(numbers(0, FEW)))
    taken = torch.from_dlpack(answers)
    assert taken.data_ptr() == answers.__cuda_array_interface__["data"][0]
    del answers
    gc.collect()
    assert bool(taken.all())
    unsigned = torch.arange(FEW, device="cuda").to(torch.uint64)
    assert bool(torch.from_dlpack(gpu.Filter(unsigned).contains(unsigned)).all())


@check
def jax_arrays():
    jax = package("jax")
    if not jax:
        return
    jax.config.update("jax_enable_x64", True)
    if jax.devices()[0].platform not in ("gpu", "cuda"):
        print("   JAX has no GPU here")
        return
    import jax.dlpack

    compare(jax.numpy.asarray, lambda answers: numpy.asarray(jax.dlpack.from_dlpack(answers)))


@check
def numba_arrays():
    if not package("numba"):
        return
    from numba import cuda

    compare(cuda.to_device, lambda answers: cuda.as_cuda_array(answers).copy_to_host())


@check
def wrong_arrays():
    here = gpu.Filter(1000)
    cupy = package("cupy")
    torch = package("torch")
    if cupy:
        for bad in (
            cupy.zeros(10, "f4"), cupy.zeros(10, "f8"), cupy.zeros(10, "i4"), cupy.zeros(10, "?"),
            cupy.zeros((10, 10), "u8"), cupy.zeros((), "u8"), cupy.zeros(100, "u8")[::2],
            cupy.zeros(100, "u8")[::-1],
        ):
            raises(TypeError, lambda bad=bad: here.contains(bad))
            raises(TypeError, lambda bad=bad: here.update(bad))
    if torch:
        raises(TypeError, lambda: here.contains(torch.zeros(10, device="cuda")))
        raises(TypeError, lambda: here.contains(torch.zeros((4, 4), dtype=torch.int64, device="cuda")))
        raises(TypeError, lambda: here.contains(torch.zeros(10, dtype=torch.int64, device="cuda")[::2]))
    raises(TypeError, lambda: here.contains(numpy.zeros(10, "f4")))
    assert len(here) == 0


@check
def forged_arrays():
    here = gpu.Filter(1000)
    host = numbers(0, 1000)

    class Forged:
        def __init__(self, **changes):
            self.__cuda_array_interface__ = {
                "shape": (1000,), "typestr": "<u8", "version": 3,
                "data": (host.ctypes.data, False), **changes,
            }

    answers = here.contains(host)
    own = answers.__cuda_array_interface__["data"][0]
    for words in (
        {}, {"data": (8, False)}, {"data": (0, False)}, {"data": (1 << 62, False)},
        {"data": (own + 1, False)}, {"data": (own, False), "shape": (1 << 40,)},
        {"data": (own, False), "shape": (1 << 61,)}, {"data": (own, False), "shape": (2**64 - 1,)},
    ):
        raises(ValueError, lambda words=words: here.contains(Forged(**words)))
        raises(ValueError, lambda words=words: here.update(Forged(**words)))
    for words in ({"typestr": "<f4"}, {"shape": (10, 100)}, {"strides": (16,)}, {"mask": 1},
                  {"typestr": ">u8"}, {"data": None}, {"shape": "x"}):
        raises((TypeError, ValueError), lambda words=words: here.contains(Forged(**words)))
    cupy = package("cupy")
    if cupy:
        pinned = cupy.cuda.alloc_pinned_memory(8000)
        raises(ValueError, lambda: here.contains(Forged(data=(pinned.ptr, False))))
        # Memory that went back to the driver. (What a pool keeps is still memory of the GPU.)
        memory = cupy.cuda.runtime.malloc(64 << 20)
        assert len(here.contains(Forged(data=(memory, False)))) == 1000
        cupy.cuda.runtime.free(memory)
        raises(ValueError, lambda: here.contains(Forged(data=(memory, False))))
    assert len(here) == 0
    here.update(host)
    assert numpy.asarray(here.contains(host)).all(), "the GPU does not work any more"


@check
def to_and_from_the_host():
    keys = numbers(0, FEW)
    for kind in ("blocked-rank", "blocked"):
        cpu = tamis.Filter(keys, rate=0.001, kind=kind, seed=7)
        here = gpu.Filter.from_cpu(cpu)
        assert here.kind == kind and here.content_id() == cpu.content_id()
        assert here.to_cpu() == cpu and numpy.asarray(here.contains(keys)).all()
    raises(tamis.UnsupportedError, lambda: gpu.Filter.from_cpu(tamis.Filter(keys, kind="bloom")))
    raises(tamis.UnsupportedError, lambda: here.remove_many(keys))
    raises(tamis.UnsupportedError, lambda: gpu.Filter(100, kind="bloom"))
    one, two = gpu.Filter(2 * FEW, rate=0.001), gpu.Filter(2 * FEW, rate=0.001)
    both = tamis.Filter(2 * FEW, rate=0.001, kind="blocked-rank")
    one.update(keys)
    two.update(keys + numpy.uint64(FEW))
    both.update(keys)
    both.update(keys + numpy.uint64(FEW))
    one.merge(two)
    assert one.content_id() == both.content_id()
    raises(tamis.MismatchError, lambda: one.merge(gpu.Filter(100)))


@check
def memory_is_given_back():
    cupy = package("cupy")
    here = gpu.Filter(numbers(0, 1000))
    keys = numbers(0, 1 << 22)
    gpu.give_back()
    if not cupy:
        return
    free = cupy.cuda.runtime.memGetInfo()[0]
    for _ in range(50):
        here.contains(keys)
    gc.collect()
    gpu.give_back()
    assert free - cupy.cuda.runtime.memGetInfo()[0] < 64 << 20
    raises(MemoryError, lambda: gpu.Filter(10**12, rate=0.001))
    assert len(here.contains(keys)) == len(keys)


def speed(number):
    """Questions from CuPy beside the same in `tamis-gpu bench`, in billions of keys a second."""
    cupy = package("cupy")
    if not cupy:
        return
    inside = cupy.arange(number, dtype="u8")
    absent = cupy.arange(number, 2 * number, dtype="u8")
    full = gpu.Filter(inside, rate=0.003, params={"block": 512})

    def told(name, call, rounds=9):
        speeds = []
        for _ in range(rounds + 1):
            cupy.cuda.runtime.deviceSynchronize()
            start = time.perf_counter()
            call()
            cupy.cuda.runtime.deviceSynchronize()
            speeds.append(number / (time.perf_counter() - start) / 1e9)
        speeds = sorted(speeds[1:])
        print(f"| Python, CuPy | {name} | {speeds[len(speeds) // 2]:.2f} | {speeds[0]:.2f} | {speeds[-1]:.2f} |")

    told("hit", lambda: full.contains(inside))
    told("miss", lambda: full.contains(absent))
    told("miss, as a CuPy array", lambda: cupy.asarray(full.contains(absent)))
    told("build", lambda: gpu.Filter(inside, rate=0.003, params={"block": 512}), rounds=3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, default=1 << 28)
    number = parser.parse_args().keys
    failed = 0
    for function in CHECKS:
        print(f"== {function.__name__}", flush=True)
        try:
            function()
            print("   ok", flush=True)
        except Exception:
            failed += 1
            traceback.print_exc(file=sys.stdout)
            print("   FAILED", flush=True)
    print(f"== {len(CHECKS) - failed} of {len(CHECKS)} checks passed", flush=True)
    speed(number)
    return failed


if __name__ == "__main__":
    sys.exit(main())
