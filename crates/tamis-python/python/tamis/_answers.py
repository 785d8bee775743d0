"""Answers of a batch in the form that the caller works with."""

from __future__ import annotations

from typing import Any


def make(answers: bytearray, out: str | None) -> Any:
    """`answers` has a byte a row, 0 or 1."""
    if out is None:
        try:
            return _numpy(answers)
        except ImportError:
            return _list(answers)
    forms = {"numpy": _numpy, "arrow": _arrow, "list": _list}
    if out not in forms:
        raise ValueError(f"out: {out!r} is unknown; choose from {', '.join(forms)}")
    return forms[out](answers)


def _numpy(answers: bytearray) -> Any:
    import numpy

    return numpy.frombuffer(answers, dtype=numpy.bool_)


def _arrow(answers: bytearray) -> Any:
    import pyarrow

    return pyarrow.array(pyarrow.array(_numpy(answers)), type=pyarrow.bool_())


def _list(answers: bytearray) -> list[bool]:
    return list(map(bool, answers))
