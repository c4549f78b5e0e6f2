"""Processor instructions that numba has no words for: the wide product, prefetch, atomics."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_untracked
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from syncproof.checkers.fast.arrays import AT_ONCE

Codegen = Any


@intrinsic
def multiply_high(context: Any, one: Any, other: Any) -> tuple[Any, Codegen]:
    """The upper 64 bits of the product of two unsigned 64-bit numbers."""

    def codegen(_: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(each, wide) for each in arguments))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    data = make_array(kind)(context, builder, array).data
    return builder.gep(data, [index])


@intrinsic
def prefetch(context: Any, array: Any, index: Any) -> tuple[Any, Codegen]:
    """Ask the processor to fetch the cache line of ``array[index]``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], *arguments)
        byte = builder.bitcast(place, cgutils.voidptr_t)
        number = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [byte, *(number(each) for each in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def atomic_add(context: Any, array: Any, index: Any, value: Any) -> tuple[Any, Codegen]:
    """Add to ``array[index]`` in one step; gives what was there before."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], *arguments[:2])
        old = builder.atomic_rmw("add", place, arguments[2], "seq_cst")
        return impl_ret_untracked(context, builder, signature.return_type, old)

    return array.dtype(array, types.intp, array.dtype), codegen


@intrinsic
def compare_and_swap(
    context: Any, array: Any, index: Any, expected: Any, value: Any
) -> tuple[Any, Codegen]:
    """Put ``value`` into ``array[index]`` if ``expected`` is there; gives what was there before."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], *arguments[:2])
        pair = builder.cmpxchg(place, arguments[2], arguments[3], "seq_cst", "seq_cst")
        old = builder.extract_value(pair, 0)
        return impl_ret_untracked(context, builder, signature.return_type, old)

    return array.dtype(array, types.intp, array.dtype, array.dtype), codegen


@intrinsic
def atomic_load(context: Any, array: Any, index: Any) -> tuple[Any, Codegen]:
    """What is in ``array[index]`` now, with everything written before it was put there."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], *arguments)
        size = context.get_abi_sizeof(context.get_data_type(signature.return_type))
        found = builder.load_atomic(place, "acquire", size)
        return impl_ret_untracked(context, builder, signature.return_type, found)

    return array.dtype(array, types.intp), codegen


@intrinsic
def make_moves(
    context: Any, buffer: Any, to: Any, state: Any, moves: Any, move: Any
) -> tuple[Any, Codegen]:
    """Write the states of one word behind four moves: the processor does them as one."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        four = ir.VectorType(ir.IntType(64), AT_ONCE)
        target, at, word, table, first = arguments
        place = _place(context, builder, signature.args[0], target, at)
        known = make_array(signature.args[3])(context, builder, table)
        row = builder.extract_value(known.shape, 1)
        keep = builder.gep(known.data, [first])
        bits = builder.gep(known.data, [builder.add(first, row)])
        words = ir.Constant(four, ir.Undefined)
        for i in range(AT_ONCE):
            words = builder.insert_element(words, word, ir.Constant(ir.IntType(32), i))
        keep, bits = (
            builder.load(builder.bitcast(each, four.as_pointer()), align=8) for each in (keep, bits)
        )
        behind = builder.or_(builder.and_(words, keep), bits)
        builder.store(behind, builder.bitcast(place, four.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(buffer, types.intp, types.uint64, moves, types.intp), codegen
