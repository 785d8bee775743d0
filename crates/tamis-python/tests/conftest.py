"""What the tests share: the command line, the golden files, and keys."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[3]

KINDS = [
    "bloom", "counting", "blocked", "rank-indexed", "rank-set", "rank-counting", "rank-map",
    "blocked-rank", "dleft", "balanced-single", "balanced-sequential", "balanced-mht",
    "balanced-popcount", "balanced-two-choice", "partitioned", "compressed", "blocked-map",
]
BUILT_ONCE = ["partitioned", "compressed", "ribbon"]


@pytest.fixture(scope="session")
def command():
    """Runs `tamis`; scripts/python builds it and says where it is."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = os.environ.get("TAMIS", target / "debug" / "tamis")

    def run(*arguments, stdin=b"", check=True):
        done = subprocess.run(
            [binary, *map(str, arguments)], input=stdin, capture_output=True, check=False
        )
        assert not check or done.returncode == 0, done.stderr.decode()
        return done.stdout if check else done

    return run


@pytest.fixture(scope="session")
def golden():
    return ROOT / "golden" / "v1"
