"""Every public name has an example, and every example is run."""

import doctest
import inspect
import json
import pathlib
import re

import pytest

import tamis
import tamis._plan

ROOT = pathlib.Path(__file__).parents[3]


def documented():
    yield "tamis", tamis
    for name in ("Filter", "Parts", "open", "plan"):
        yield f"tamis.{name}", getattr(tamis, name)
    for owner in (tamis.Filter, tamis.Parts):
        for name, member in vars(owner).items():
            if not name.startswith("_"):
                yield f"tamis.{owner.__name__}.{name}", member


@pytest.mark.parametrize("name, item", list(documented()), ids=lambda value: value if isinstance(value, str) else "")
def test_examples(name, item):
    text = inspect.cleandoc(item.__doc__ or "")
    test = doctest.DocTestParser().get_doctest(text, {"tamis": tamis}, name, None, None)
    assert test.examples, f"{name} has no example"
    runner = doctest.DocTestRunner()
    runner.run(test, out=lambda words: pytest.fail(words))


def test_every_public_name_is_in_the_stubs():
    stubs = (pathlib.Path(tamis.__file__).parent / "_tamis.pyi").read_text()
    for name in [*dir(tamis.Filter)]:
        if not name.startswith("_"):
            assert f"def {name}(" in stubs, name


def test_the_guide():
    """The sessions of docs/python.md, one after the other in one interpreter."""
    pytest.importorskip("pyarrow")
    text = (ROOT / "docs" / "python.md").read_text()
    sessions = "\n".join(re.findall(r"```pycon\n(.*?)```", text, re.S))
    test = doctest.DocTestParser().get_doctest(sessions, {}, "docs/python.md", None, 0)
    assert len(test.examples) > 30
    doctest.DocTestRunner().run(test, out=lambda words: pytest.fail(words))


def test_the_notebook():
    """Its cells, without a server: they are plain Python."""
    pytest.importorskip("pyarrow")
    path = ROOT / "crates" / "tamis-python" / "examples" / "tour.ipynb"
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 4
    names = {}
    for cell in cells:
        exec(compile("".join(cell["source"]), "tour.ipynb", "exec"), names)
