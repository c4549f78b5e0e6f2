"""Compiled loops kept as machine code, so that a later run need not import numba.

numba compiles a loop behind one C function of one address: that of a row of words, where plain
numbers stand as they are, and an array as its address and shape. llvmlite, which takes a tenth of
numba's time to import, makes an object file of it and loads that. Nothing in it depends on
Python, and what is kept is looked for by a hash of all that it was made from.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from syncproof.checkers.fast.arrays import Kind, Numbers

SOURCES = ("arrays", "backward", "compiler", "intrinsics", "kernels", "machine_code")


NUMBER = Kind("", 0)


class Loop:
    """The C function of a loop, with the engine that owns its code."""

    def __init__(self, name: str, code: bytes) -> None:
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
        self._function = kind(self._engine.get_function_address(name))

    def __call__(self, table: Numbers, arguments: tuple[Any, ...]) -> int:
        """Call it with the table of some arguments, which are kept alive meanwhile."""
        return int(self._function(table.ctypes.data))


def prepared(loop: str, *arguments: Any) -> Callable[[], int]:
    """A call of a loop, compiled if need be; it may be made in another thread, and does not hold
    the interpreter's lock. Arrays must be contiguous."""
    kinds, words = [], list[int]()
    for each in arguments:
        if isinstance(each, np.ndarray):
            assert each.flags.c_contiguous, "the loops know no strides"
            kinds.append(_kind(each.dtype, each.ndim))
            words += (each.ctypes.data, *each.shape)
        else:
            kinds.append(NUMBER)
            words.append(int(each))
    return partial(loaded(loop, tuple(kinds)), np.array(words, np.int64), arguments)


def run(loop: str, *arguments: Any) -> int:
    """Call a loop; what it gives."""
    return prepared(loop, *arguments)()


@cache
def loaded(loop: str, kinds: tuple[Kind, ...]) -> Loop:
    """A loop for arguments of some kinds."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    file = folder() / f"{loop}-{_made_from(loop, kinds)}.o"
    code = _kept(file)
    if code is None:
        code = _compiled(loop, kinds)
        _keep(file, code)
    return Loop(loop, code)


@cache
def _kind(dtype: np.dtype[Any], dimensions: int) -> Kind:
    """The kind of an array; the name of a type takes numpy longer than a short call."""
    return Kind(dtype.name, dimensions)


def folder() -> Path:
    """Where machine code is kept: where numba is told to keep its own, or in the user's cache."""
    usual = os.path.join("~", ".cache", "syncproof", "numba")
    return Path(os.environ.get("NUMBA_CACHE_DIR") or os.path.expanduser(usual))


def _target() -> Any:
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True, codemodel="jitdefault"
    )


def _made_from(loop: str, kinds: tuple[Kind, ...]) -> str:
    """A hash of the sources, the compilers, the processor and what the loop is asked for."""
    here = Path(__file__).parent
    made = hashlib.sha256()
    for source in SOURCES:
        made.update((here / f"{source}.py").read_bytes())
    machine = llvm.get_process_triple(), llvm.get_host_cpu_name()
    features = llvm.get_host_cpu_features().flatten()
    made.update(repr((llvmlite.__version__, machine, features, loop, kinds)).encode())
    spec = find_spec("numba")
    assert spec is not None and spec.origin is not None
    made.update(Path(spec.origin).with_name("_version.py").read_bytes())
    return made.hexdigest()[:32]


def _kept(file: Path) -> bytes | None:
    """What was kept, if it is whole."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, code = content[:32], content[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def _keep(file: Path, code: bytes) -> None:
    """Keep it, written beside and renamed; who cannot keep it compiles again."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as beside:
            beside.write(hashlib.sha256(code).digest() + code)
        os.replace(beside.name, file)


def _compiled(loop: str, kinds: tuple[Kind, ...]) -> bytes:
    _say_once()
    from syncproof.checkers.fast.compiler import assembly_of

    assembly, name = assembly_of(loop, kinds)
    module = llvm.parse_assembly(assembly)
    module.get_function(name).name = loop
    module.verify()
    outside = [
        each.name
        for each in module.functions
        if each.is_declaration and not each.name.startswith("llvm.")
    ]
    assert not outside, f"the loop {loop} calls what is not in it: {outside}"
    return bytes(_target().emit_object(module))


@cache
def _say_once() -> None:
    print("compiling the fast engine: takes seconds, and is kept", file=sys.stderr)
