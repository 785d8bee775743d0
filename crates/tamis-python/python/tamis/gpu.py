"""Filters in the memory of a GPU, for arrays of CuPy, PyTorch, JAX or Numba that are there too.

    from tamis import gpu

    seen = gpu.Filter(cupy_array, rate=0.001)     # keys that are on the GPU
    answers = cupy.asarray(seen.contains(other))  # no copies either way
    seen.to_cpu().save("seen.tamis")              # the same bytes as a tamis.Filter

The kind is `blocked-rank`, from which keys can be removed, and the rate is 1% unless you say
otherwise.

Importing this needs no GPU; the first filter does (`DeviceError` says what is missing).
"""

from ._tamis import DeviceError
from ._tamis import GpuArray as Array
from ._tamis import GpuFilter as Filter
from ._tamis import _give_back as give_back

__all__ = ["Array", "DeviceError", "Filter", "give_back"]
