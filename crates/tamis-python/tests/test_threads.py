"""A filter that many threads share loses nothing."""

import sys
import threading

import pytest

import tamis

THREADS = 32
EACH = 2000


def run(work):
    """Runs `work(number)` in every thread, and raises what one of them raised."""
    failed = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=[number]) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive(), "threads wait for each other"
    if failed:
        raise failed[0]


@pytest.fixture(autouse=True)
def switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("kind", ["bloom", "blocked", "rank-indexed", "blocked-rank", "dleft"])
def test_adding_and_asking(kind):
    seen = tamis.Filter(keys=2 * THREADS * EACH, rate=1e-4, kind=kind)

    def work(number):
        keys = [f"{number} {at}" for at in range(EACH)]
        for at, key in enumerate(keys):
            seen.add(key)
            assert key in seen
            if at % 97 == 0:
                len(seen), seen.kind, repr(seen)
        seen.update(f"batch {key}" for key in keys)
        assert all(seen.contains(keys, out="list"))

    run(work)
    assert len(seen) == 2 * THREADS * EACH
    every = [f"{number} {at}" for number in range(THREADS) for at in range(EACH)]
    assert all(seen.contains(every, out="list"))
    assert all(seen.contains([f"batch {key}" for key in every], out="list"))


def test_exactly_one_thread_sees_a_key_as_new():
    seen = tamis.Filter(keys=10_000, rate=1e-9)
    news = [0] * THREADS

    def work(number):
        for key in range(3000):
            news[number] += seen.add_new([key], out="list")[0]

    run(work)
    assert sum(news) == 3000 == len(seen)


def test_whole_filters_meanwhile():
    """Merges in both directions, copies, bytes and deltas while others add."""
    one, two = (tamis.Filter(keys=100_000, kind="blocked", rate=1e-4) for _ in range(2))

    def work(number):
        for at in range(60):
            match number % 6:
                case 0: one.merge(two)
                case 1: two.merge(one)
                case 2: one.update(range(at * 100, at * 100 + 100))
                case 3: two.add(at + 10**9)
                case 4: one.diff(two), one == two
                case 5: tamis.Filter.from_bytes(one.to_bytes()), two.copy(), one.info()

    run(work)
    assert all(one.contains(range(6000)))


def test_closing_meanwhile(tmp_path):
    seen = tamis.Filter(range(1000))

    def work(number):
        if number == 7:
            seen.close()
            return
        try:
            for key in range(1000):
                assert key in seen
        except tamis.Error as error:
            assert "closed" in str(error)

    run(work)


def test_the_interpreter_is_free_meanwhile():
    """A batch lets other threads run: a counter goes on while a batch is read."""
    np = pytest.importorskip("numpy")
    seen = tamis.Filter(keys=8_000_000, kind="blocked")
    batch = np.arange(8_000_000, dtype="u8")
    ticks, done = [0], threading.Event()

    def count():
        while not done.is_set():
            ticks[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = ticks[0]
    seen.update(batch)
    during = ticks[0] - before
    done.set()
    thread.join()
    assert during > 1000


def test_the_module_does_not_need_the_lock():
    """On a free-threaded interpreter, importing tamis must not turn the lock on again."""
    if not hasattr(sys, "_is_gil_enabled"):
        pytest.skip("this interpreter always has the lock")
    import sysconfig

    free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    assert sys._is_gil_enabled() is not free
