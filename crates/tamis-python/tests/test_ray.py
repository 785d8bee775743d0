"""Ray, with two workers."""

import os

import pytest

from tamis import ray as on_ray

from .cluster import KEYS, check_parts, check_semi_filter, whole

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")


@pytest.fixture(scope="module", autouse=True)
def running():
    os.environ.setdefault("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200 << 20)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def numbered(count):
    return ray.data.range(count, override_num_blocks=8).map_batches(
        lambda batch: {"id": batch["id"], "key": [f"key {n}" for n in batch["id"]]})


def test_build_gives_the_filter_of_one_machine():
    ds = numbered(KEYS).materialize()
    assert on_ray.build(ds, "key", rate=0.001) == whole([f"key {n}" for n in range(KEYS)], rate=0.001)
    assert on_ray.build(ds, "id", keys=KEYS, seed=7).content_id() == whole(
        range(KEYS), seed=7).content_id()
    both = on_ray.build(ds, ["key", "id"], rate=1e-6)
    assert ("key 5", 5) in both and len(both) == KEYS


@pytest.mark.parametrize("parts", [1, 6])
def test_parts(parts, tmp_path):
    ds = numbered(KEYS).materialize()
    check_parts(on_ray.build_parts(ds, "key", str(tmp_path / "ours"), parts, rate=0.001), tmp_path)


def test_asking():
    present = whole([f"key {number}" for number in range(0, KEYS, 10)], rate=0.01)
    ds = numbered(KEYS).materialize()
    rows = on_ray.contains(ds, "key", present).take_all()
    assert all(row["contains"] for row in rows if row["id"] % 10 == 0)
    kept = on_ray.semi_filter(ds, "key", present)
    check_semi_filter(kept.count(), KEYS, KEYS // 10, present.rate)


def test_dedup():
    rows = [{"a": n % 50, "b": str(n % 3)} for n in range(1000)] + [{"a": 1, "b": None}] * 2
    once = on_ray.dedup(ray.data.from_items(rows), ["a", "b"]).take_all()
    assert sum(row["b"] is None for row in once) == 2
    pairs = sorted((row["a"], row["b"]) for row in once if row["b"] is not None)
    assert pairs == sorted({(n % 50, str(n % 3)) for n in range(1000)})
