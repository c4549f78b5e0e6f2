"""What numba makes of a loop: the text of an LLVM module, with one C function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from llvmlite import ir
from numba import cfunc, types
from numba.extending import intrinsic, register_jitable
from numba.np.arrayobj import make_array, populate_array

from syncproof.checkers.fast import backward, kernels
from syncproof.checkers.fast.arrays import Kind

WORD = ir.IntType(64)


def assembly_of(loop: str, kinds: Sequence[Kind]) -> tuple[str, str]:
    """The module of a loop for arguments of some kinds, and what its C function is called there.

    The function takes the address of a row of words, as `machine_code` describes it. The loop is
    made part of it, so that nothing is left that could count a reference or raise.
    """
    written = getattr(kernels, loop, None) or getattr(backward, loop)
    inlined = register_jitable(forceinline=True, error_model="numpy")(written)
    unpacked = _unpacking([_type_of(each) for each in kinds])

    def entry(table: Any) -> Any:
        return inlined(*unpacked(table))

    made = cfunc(types.int64(types.CPointer(types.int64)))(entry)
    return made.inspect_llvm(), made.native_name


def _type_of(kind: Kind) -> Any:
    if not kind.dimensions:
        return types.int64
    return types.Array(getattr(types, kind.dtype), kind.dimensions, "C")


def _unpacking(kinds: Sequence[Any]) -> Any:
    """A function from such a row to the arguments."""

    @intrinsic
    def unpack(context: Any, table: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            places = (builder.gep(arguments[0], [ir.Constant(WORD, at)]) for at in count())
            words = map(builder.load, places)
            found = [_argument(context, builder, kind, words) for kind in kinds]
            return context.make_tuple(builder, signature.return_type, found)

        return types.Tuple(kinds)(table), codegen

    return unpack


def _argument(context: Any, builder: Any, kind: Any, words: Iterator[Any]) -> Any:
    """The next argument: a number, or an array that nobody owns."""
    first = next(words)
    if kind == types.int64:
        return first
    scalar = context.get_data_type(kind.dtype)
    size = ir.Constant(WORD, context.get_abi_sizeof(scalar))
    shape = [next(words) for _ in range(kind.ndim)]
    strides = [size]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    array = make_array(kind)(context, builder)
    data = builder.inttoptr(first, scalar.as_pointer())
    populate_array(array, data, shape, strides, itemsize=size, meminfo=None)
    return array._getvalue()
