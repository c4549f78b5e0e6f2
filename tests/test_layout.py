"""The layout: every folder of the map is a package, a link, and nothing else."""

from __future__ import annotations

import ast
import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).parents[1]
MAP: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
    "package-dir"
]
PARTS = {name: folder for name, folder in MAP.items() if name != "syncproof"}
ALLOWED = {
    "models": {"models"},
    "protocols": {"protocols", "models"},
    "checkers": {"checkers", "models"},
    "reports": {"reports", "models"},
    "specs": {"specs"},
    "syncproof": {"syncproof", "reports", "checkers", "protocols", "models", "specs"},
}
LONGEST_FILE = 500


def sources() -> list[Path]:
    """Every Python file of the product, each once."""
    parts = [p for folder in PARTS.values() for p in sorted((ROOT / folder).rglob("*.py"))]
    top = ROOT / "syncproof"
    own = [
        p
        for p in sorted(top.rglob("*.py"))
        if not any(parent.is_symlink() for parent in p.parents if parent != top)
    ]
    return parts + own


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and module of each import in a file, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield node.lineno, node.module or ""


def folder_of(module: str) -> str | None:
    """The folder that an import of ours leads to, or None for a library."""
    names = module.split(".")
    if names[0] != "syncproof":
        return None
    return names[1] if len(names) > 1 and names[1] in PARTS.values() else "syncproof"


def module_of(path: Path) -> str:
    """The name under which a file is imported."""
    names = list(path.relative_to(ROOT).with_suffix("").parts)
    if names[0] != "syncproof":
        names.insert(0, "syncproof")
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


@pytest.mark.parametrize("name", PARTS)
def test_package_is_importable_from_its_folder(name: str) -> None:
    """Each package of the map comes from its folder at the root."""
    module = importlib.import_module(name)
    assert module.__file__ is not None
    assert Path(module.__file__).resolve().parent == ROOT / PARTS[name]


@pytest.mark.parametrize("name", [n for n in PARTS if n.count(".") == 1])
def test_link_shows_the_folder(name: str) -> None:
    """Editors and type checkers find each folder through its link."""
    assert (ROOT / "syncproof" / PARTS[name]).resolve() == ROOT / PARTS[name]


def test_every_package_in_the_tree_is_listed() -> None:
    """The hand-kept list of packages is complete."""
    listed = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    )
    found = {module_of(path) for path in sources() if path.name == "__init__.py"}
    assert listed == found


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    """protocols -> models <- checkers, reports read only models, the command line is on top."""
    here = path.relative_to(ROOT).parts[0]
    for line, module in imports(path):
        assert module.split(".")[0] not in PARTS.values(), f"{path}:{line}: import {module}"
        target = folder_of(module)
        assert target is None or target in ALLOWED[here], f"{path}:{line}: {here} imports {module}"


def test_no_import_cycle() -> None:
    """No two modules import each other, not even through others."""
    graph = networkx.DiGraph()
    modules = {module_of(path) for path in sources()}
    for path in sources():
        for _, module in imports(path):
            if module in modules:
                graph.add_edge(module_of(path), module)
    cycles = [c for c in networkx.strongly_connected_components(graph) if len(c) > 1]
    assert cycles == []


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_file_is_short(path: Path) -> None:
    """A file can be read in one sitting."""
    assert len(path.read_text().splitlines()) <= LONGEST_FILE
