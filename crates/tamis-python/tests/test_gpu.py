"""`tamis.gpu` where there is no GPU. What needs one is in gpu_device.py, for scripts/gpu."""

import pathlib
import subprocess
import sys

import numpy
import pytest

import tamis
from tamis import gpu


def has_gpu():
    try:
        gpu.Filter(10)
    except gpu.DeviceError:
        return False
    return True


without = pytest.mark.skipif(has_gpu(), reason="there is a GPU: gpu_device.py tests it")


def test_importing_it_needs_no_gpu():
    code = "import tamis.gpu; assert sorted(tamis.gpu.__all__) == ['Array', 'DeviceError', 'Filter', 'give_back']"
    subprocess.run([sys.executable, "-c", code], check=True)


@without
@pytest.mark.parametrize("use", [
    lambda: gpu.Filter(1000),
    lambda: gpu.Filter(numpy.arange(10, dtype="u8"), rate=0.01),
    lambda: gpu.Filter.from_cpu(tamis.Filter([1], kind="blocked-rank")),
    lambda: gpu.give_back(),
], ids=["number", "keys", "from_cpu", "give_back"])
def test_the_first_use_says_what_is_missing(use):
    for _ in range(2):
        with pytest.raises(gpu.DeviceError, match="no GPU|libcuda|libnvrtc"):
            use()


def test_an_error_of_the_device_is_no_bad_value():
    assert issubclass(gpu.DeviceError, RuntimeError)
    assert not issubclass(gpu.DeviceError, ValueError)


@without
def test_bad_arguments_are_refused_as_such():
    with pytest.raises(TypeError):
        gpu.Filter()
    with pytest.raises(TypeError):
        gpu.Filter.from_cpu([1, 2])
    with pytest.raises(TypeError):
        gpu.Array()


def test_the_public_names_are_in_the_stubs():
    stubs = (pathlib.Path(tamis.__file__).parent / "_tamis.pyi").read_text()
    for item in (gpu.Filter, gpu.Array):
        for name in dir(item):
            if not name.startswith("_"):
                assert f"def {name}(" in stubs, name
                assert getattr(item, name).__doc__, name
