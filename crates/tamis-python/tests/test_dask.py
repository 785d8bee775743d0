"""Dask, with two worker processes."""

import pytest

from tamis import dask

from .cluster import KEYS, check_parts, check_semi_filter, whole

dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
    ) as cluster, distributed.Client(cluster) as client:
        yield client


def numbered(count, partitions=16):
    frame = pd.DataFrame({"id": range(count)})
    frame["key"] = "key " + frame["id"].astype(str)
    return dd.from_pandas(frame, npartitions=partitions)


def test_build_gives_the_filter_of_one_machine(client):
    df = numbered(KEYS)
    assert dask.build(df, "key", rate=0.001) == whole([f"key {n}" for n in range(KEYS)], rate=0.001)
    assert dask.build(df, "id", keys=KEYS, seed=7).content_id() == whole(
        range(KEYS), seed=7).content_id()
    both = dask.build(df, ["key", "id"], rate=1e-6)
    assert ("key 5", 5) in both and len(both) == KEYS


def test_parts(client, tmp_path):
    df = numbered(KEYS)
    check_parts(dask.build_parts(df, "key", str(tmp_path / "ours"), 6, rate=0.001), tmp_path)


def test_asking(client):
    present = whole([f"key {number}" for number in range(0, KEYS, 10)], rate=0.01)
    df = numbered(KEYS)
    answers = dask.contains(df, "key", present).compute()
    assert answers.dtype == bool and answers[::10].all()
    kept = dask.semi_filter(df, "key", present).compute()
    check_semi_filter(len(kept), KEYS, KEYS // 10, present.rate)
    assert list(kept.columns) == ["id", "key"]


def test_dedup(client):
    frame = pd.DataFrame({"a": [n % 1000 for n in range(KEYS)], "b": [str(n % 3) for n in range(KEYS)]})
    frame.loc[0:1, "b"] = None
    once = dask.dedup(dd.from_pandas(frame, npartitions=8), ["a", "b"]).compute()
    pairs = {(n % 1000, str(n % 3)) for n in range(2, KEYS)}
    assert once["b"].isna().sum() == 2
    assert sorted(once.dropna().itertuples(index=False, name=None)) == sorted(pairs)
