"""Protocols by name: those that ship with us, those of other packages, and files of the user's."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

import syncproof.protocols
from syncproof.awaits import check_awaits
from syncproof.models.errors import UserError
from syncproof.models.protocol import Protocol
from syncproof.unordered import check_order

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "syncproof.protocols"
"""The entry point group by which other packages add protocols: ``name = "module:Class"``."""


@dataclass(frozen=True)
class Subject:
    """A protocol as the user named it; ``file`` is where its source is not ours, or empty."""

    spec: str
    kind: type[Protocol]
    file: str = ""


def find(spec: str, also: Iterable[str] = ()) -> Subject:
    """The protocol that ``spec`` names: ``sp``, ``my_kernel.py`` or ``my_kernel.py:MyProtocol``.

    ``also`` are other words that the user may have meant. Raises `UserError` if there is none.
    """
    if is_file(spec):
        return _from_file(spec)
    built_in = _built_in(spec)
    if built_in is not None:
        return Subject(spec, built_in)
    others = third_parties()
    if spec in others:
        return _from_entry_point(spec, others[spec])
    known = [*built_ins(), *others]
    near = difflib.get_close_matches(spec, [*known, *also], n=3)
    raise UserError(
        f"no protocol {spec!r}",
        expected=f"perhaps {' or '.join(near)}" if near else f"{', '.join(known)}, or FILE.py",
    )


def is_file(spec: str) -> bool:
    """Whether a name means a file: ``FILE.py`` or ``FILE.py:CLASS``."""
    return spec.endswith(".py") or ".py:" in spec


def file_of(spec: str) -> str:
    """The file that a name means, or nothing."""
    return f"{_file_and_class(spec)[0]}.py" if is_file(spec) else ""


def _file_and_class(spec: str) -> tuple[str, str]:
    """A name that means a file, without ``.py``, and the class in it, if it is named."""
    name, _, wanted = spec.partition(".py:") if ".py:" in spec else (spec[:-3], "", "")
    return name, wanted


def built_ins() -> dict[str, type[Protocol]]:
    """Every protocol that ships with us, by name."""
    found = [kind for module in _modules() for kind in _protocols_in(_import(module))]
    return {kind.name: kind for kind in sorted(found, key=lambda kind: kind.name) if kind.name}


def third_parties() -> dict[str, EntryPoint]:
    """The protocols that installed packages announce, not loaded; ours hide equal names."""
    from importlib.metadata import entry_points  # slow, and seldom needed

    return {each.name: each for each in sorted(entry_points(group=GROUP), key=lambda e: e.name)}


def _modules() -> list[str]:
    return [each.name for each in pkgutil.iter_modules(syncproof.protocols.__path__)]


def _import(module: str) -> ModuleType:
    return importlib.import_module(f"{syncproof.protocols.__name__}.{module}")


def _built_in(name: str) -> type[Protocol] | None:
    """The protocol of that name; the module that is called like it is looked at first."""
    modules = _modules()
    for module in sorted(modules, key=lambda each: each != name):
        for kind in _protocols_in(_import(module)):
            if kind.name == name:
                return kind
        if not name:
            break
    return None


def _protocols_in(module: ModuleType) -> list[type[Protocol]]:
    """The protocols that a module defines itself and that have roles."""
    return [
        each
        for each in vars(module).values()
        if inspect.isclass(each)
        and issubclass(each, Protocol)
        and each.__module__ == module.__name__
        and each.roles()
    ]


def _from_entry_point(spec: str, entry: EntryPoint) -> Subject:
    where = f"entry point {entry.name} = {entry.value}"
    try:
        kind = entry.load()
    except Exception as error:
        raise UserError(f"does not load: {_words(error)}", where=where) from error
    return Subject(spec, _checked(kind, where), inspect.getfile(kind))


def _from_file(spec: str) -> Subject:
    name, wanted = _file_and_class(spec)
    path = Path(f"{name}.py")
    if not path.is_file():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.py")], n=2)
        raise UserError(
            "there is no such file",
            where=str(path),
            expected=f"perhaps {' or '.join(near)}" if near else "a Python file with a protocol",
        )
    module = _load(path)
    found = _protocols_in(module)
    if wanted:
        return Subject(spec, _named(module, wanted, found, str(path)), str(path.resolve()))
    if len(found) != 1:
        names = [kind.__name__ for kind in found]
        what = f"{len(names)} protocols: {', '.join(names)}" if names else "no protocol"
        expected = f"{path}:{names[0]}" if names else "a subclass of Protocol with an @role"
        raise UserError(what, where=str(path), expected=expected)
    return Subject(spec, found[0], str(path.resolve()))


def _named(
    module: ModuleType, wanted: str, found: list[type[Protocol]], where: str
) -> type[Protocol]:
    if not hasattr(module, wanted):
        names = ", ".join(kind.__name__ for kind in found)
        raise UserError(f"no class {wanted!r}", where=where, expected=names or "no protocol here")
    return _checked(getattr(module, wanted), f"{where}:{wanted}")


def _checked(kind: object, where: str) -> type[Protocol]:
    if not inspect.isclass(kind) or not issubclass(kind, Protocol):
        what = "a class" if inspect.isclass(kind) else f"a {type(kind).__name__}"
        raise UserError(f"{what} that is no protocol", where=where, expected="class X(Protocol)")
    if not kind.roles():
        raise UserError("a protocol without a role", where=where, expected="a method marked @role")
    return kind


def _load(path: Path) -> ModuleType:
    """The module of a user's file; what goes wrong while it is imported is the user's to mend."""
    name = "protocol_file_" + re.sub(r"\W", "_", path.stem)
    loader = _FromSource(name, str(path.resolve()))
    spec = importlib.util.spec_from_file_location(name, path.resolve(), loader=loader)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _beside(path), redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except SyntaxError as error:
        where = f"{error.filename or path}:{error.lineno or 1}"
        raise UserError(f"does not parse: {error.msg}", where=where) from error
    except (Exception, SystemExit) as error:
        line = line_in(error, str(path.resolve()))
        where = f"{path}:{line}" if line else str(path)
        cause = error.__cause__ if isinstance(error.__cause__, UserError) else error
        raise UserError(f"does not import: {_words(cause)}", where=where) from error
    source = inspect.getsource(module)
    check_awaits(source, str(path))
    check_order(source, str(path))
    return module


@contextmanager
def _beside(path: Path) -> Iterator[None]:
    """As for a script, modules in the file's folder can be imported while it is.

    Those that are not installed are read anew, wherever they are found.
    """

    def hook(place: str) -> FileFinder:
        if is_installed(Path(place)) or not Path(place).is_dir():
            raise ImportError(f"{place} is no folder of the user's", path=place)
        return FileFinder(
            place,
            (ExtensionFileLoader, EXTENSION_SUFFIXES),
            (_FromSource, SOURCE_SUFFIXES),
            (SourcelessFileLoader, BYTECODE_SUFFIXES),
        )

    sys.path.insert(0, str(path.resolve().parent))
    sys.path_hooks.insert(0, hook)
    known = _without_finders()
    try:
        yield
    finally:
        sys.path.pop(0)
        sys.path_hooks.remove(hook)
        _without_finders()
        sys.path_importer_cache.update(known)


def _without_finders() -> dict[str, Any]:
    """Forget who finds modules in folders that are not of installed packages; gives them."""
    apart = [place for place in [*sys.path_importer_cache] if not is_installed(Path(place))]
    return {place: sys.path_importer_cache.pop(place) for place in apart}


@cache
def is_installed(path: Path) -> bool:
    """Whether a file or folder is Python's own, or that of installed packages."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    places = {Path(sysconfig.get_path(each)).resolve() for each in names}
    here = path.resolve()
    return any(each == here or each in here.parents for each in places)


class _FromSource(SourceFileLoader):
    """Compiles a module each time. Python keeps bytecode by size and second of its source, so that
    after an edit it may be that of another protocol."""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def _words(error: BaseException) -> str:
    return str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"


def line_in(error: BaseException, file: str, *, innermost: bool = False) -> int | None:
    """The line of ``file`` that an exception came through last.

    With ``innermost`` only if it was raised outside of this package, below that line.
    """
    line, trace = None, error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        elif innermost and module.partition(".")[0] == "syncproof":
            line = None
        trace = trace.tb_next
    return line


@contextmanager
def blaming(subject: Subject, *, innermost: bool = False) -> Iterator[None]:
    """Within, an exception that comes from the user's file becomes a `UserError` with its line."""
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        line = line_in(error, subject.file, innermost=innermost) if subject.file else None
        if line is None:
            raise
        where = f"{subject.file}:{line}"
        raise UserError(f"{subject.kind.__name__} raised {_words(error)}", where=where) from error
