"""What a file of the user's may be written in, so that `--ranks any` covers it.

Python has more ways to find out how many ranks there are than anybody can list. So of Python a
small language is left: what is not allowed here is refused, with its line. What can be said in
it deals in ranks by the operations of the opaque types alone (`models/ranks.py`).
"""

from __future__ import annotations

import ast
import inspect
import symtable
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tokenize import detect_encoding
from types import CodeType, FunctionType, ModuleType
from typing import NoReturn

from syncproof.checkers.unbounded.channel import NotCovered
from syncproof.models.core import Core
from syncproof.models.identity_classes import functions_of, is_of_package, resolves
from syncproof.models.protocol import Protocol

IMPORTS = {
    "__future__": ("annotations",),
    "typing": ("Any",),
    "collections.abc": ("Callable", "Hashable", "Mapping", "Sequence"),
    "syncproof.models.core": ("Core",),
    "syncproof.models.memory": ("CORE", "EXPERT", "RANK", "TOKEN", "Pool", "Region"),
    "syncproof.models.protocol": ("Protocol", "assumption", "parameter", "role"),
    "syncproof.models.values": ("SENTINEL", "Payload", "any_of"),
    "syncproof.models.per_rank": ("PerRank",),
}
"""What a file may import, besides what protocols of this package define."""
PROTOCOLS = "syncproof.protocols."
DECLARED = ("parameter", "assumption")
OURS_ALONE = ("regions", "ghosts", "parts")
"""What a protocol keeps of its own, which roles have no use for."""
BUILT_IN = frozenset(
    ("abs", "all", "any", "bool", "dict", "divmod", "int", "len", "list", "max", "min", "property",
     "range", "sum", "super", "tuple")
)  # fmt: skip
RESERVED = BUILT_IN.union(*IMPORTS.values())
OF_ALL = frozenset(
    ("append", "extend", "items", "keys", "values", "get", "fromkeys", "field", "compared", "names",
     "rank", "ranks", "index", "count", "role", "bounds", "sent", "tokens", "rounds",
     "tokens_per_pair", "include", "memory")
)  # fmt: skip
"""Attributes of lists, dicts, regions, blocks, cores, bounds and protocols that may be used,
besides the methods of cores, the fields of blocks and what the protocol has of its own."""
OF_OTHERS = frozenset(("format", "format_map", "members", "group", *OURS_ALONE))
"""Attributes of texts, operations and protocols by which a role could look into what it is given:
no name for a field, a region, a method or a parameter."""
INSIDE = ("ag_", "co_", "cr_", "f_", "gi_", "tb_")
"""How the attributes of frames, code and coroutines begin."""
OVERRIDDEN = frozenset(("memory", "name", "not_needed"))
"""What every protocol has and a class of the user's may give anew."""

EXPRESSIONS: tuple[type[ast.AST], ...] = (
    ast.Constant, ast.Name, ast.Attribute, ast.Call, ast.keyword, ast.Await, ast.BoolOp, ast.BinOp,
    ast.UnaryOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Dict,
    ast.Lambda, ast.arguments, ast.arg, ast.JoinedStr, ast.FormattedValue, ast.ListComp,
    ast.GeneratorExp, ast.comprehension, ast.expr_context, ast.boolop, ast.operator, ast.unaryop,
    ast.cmpop,
)  # fmt: skip
STATEMENTS: tuple[type[ast.AST], ...] = (
    ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.For, ast.Return, ast.Pass,
    ast.Break, ast.Continue, ast.AsyncWith, ast.withitem, ast.FunctionDef, ast.AsyncFunctionDef,
)  # fmt: skip
PLAIN = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.Name)
ANNOTATIONS: tuple[type[ast.AST], ...] = (
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.BinOp, ast.BitOr,
    ast.expr_context,
)  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef


def check_written(protocol: Protocol) -> None:
    """Refuse, by `NotCovered` with the line, a protocol whose own files say more than is allowed.

    Files of this package are not looked at; a file may build on them, and on no other.
    """
    kinds = [
        each for each in type(protocol).__mro__[:-1] if not (is_of_package(each) and resolves(each))
    ]
    for name in dict.fromkeys(each.__module__ for each in kinds):
        module = sys.modules.get(name)
        if module is None or not all(resolves(each) for each in kinds if each.__module__ == name):
            raise NotCovered(f"a class that is not where it says it is, in {name}")
        _File(protocol, module).check()


class _File:
    """A module that a protocol is written in."""

    def __init__(self, protocol: Protocol, module: ModuleType) -> None:
        kind = type(protocol)
        self.path = Path(inspect.getfile(module))
        with self.path.open("rb") as file:
            if detect_encoding(file.readline)[0] != "utf-8":
                raise NotCovered(f"another encoding than utf-8 at {self.path.name}:1")
        self.source = self.path.read_text(encoding="utf-8")
        self.tree, self.module = ast.parse(self.source), module
        self.kinds = [each for each in kind.__mro__ if each.__module__ == module.__name__]
        self.known = {*BUILT_IN, *_bound(self.tree.body)}
        self.attributes = OF_ALL | {*filter(_is_public, _own_names(protocol))}
        self.methods = _coroutines(kind) | _coroutines(Core)
        self.functions = _coroutines(module)
        for name, value in vars(protocol).items():
            if callable(value):
                self.refuse(self.tree, f"self.{name}, which is a function,")

    def refuse(self, node: ast.AST, what: str) -> NoReturn:
        """Raise the error of something that is not allowed."""
        raise NotCovered(f"{what} at {self.path.name}:{getattr(node, 'lineno', 1)}")

    def check(self) -> None:
        """Every statement and every name of the file; and that what runs is what is written."""
        for each in self.tree.body:
            self._statement(each)
            if not isinstance(each, ast.ImportFrom):
                for name in RESERVED.intersection(_bound([each])):
                    self.refuse(each, f"a {name} of its own")
        for table in _tables(symtable.symtable(self.source, str(self.path), "exec")):
            for symbol in table.get_symbols():
                if symbol.is_global() and symbol.get_name() not in self.known:
                    raise NotCovered(f"the name {symbol.get_name()} in {table.get_name()}")
        written = {*_codes(compile(self.source, str(self.path), "exec", dont_inherit=True))}
        for kind in self.kinds:
            for function in functions_of(kind):
                if function.__code__ not in written:
                    self.refuse(
                        self.tree, f"{function.__qualname__}, which is not what is written,"
                    )
        for each in self.tree.body:
            for name in _bound([each]):
                if not _is_as_written(each, getattr(self.module, name, None), name, written):
                    self.refuse(each, f"{name}, which is not what is written,")

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.ImportFrom):
            self._import(node)
        elif isinstance(node, ast.ClassDef):
            self._class(node)
        elif isinstance(node, Function):
            if node.decorator_list:
                self.refuse(node, "a decorated function")
            _Body(self, node).check()
        elif not _is_docstring(node):
            self._constant(node)

    def _import(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        for each in node.names:
            is_allowed = each.name in IMPORTS.get(module, ()) or _is_of_protocols(module, each.name)
            if node.level or each.asname or not is_allowed:
                self.refuse(node, f"the import of {each.name} from {module or '.'}")

    def _constant(self, node: ast.stmt) -> None:
        """A name for a plain value."""
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            self.refuse(node, _named(node))
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                if not isinstance(each, ast.Name) or not _is_public(each.id):
                    self.refuse(node, "an assignment to anything but a plain name")
        if isinstance(node, ast.AnnAssign):
            self.annotation(node.annotation)
        self.plain(node.value)

    def plain(self, value: ast.expr) -> None:
        """What is there before a role runs: nothing that could change."""
        for each in ast.walk(value):
            if isinstance(each, ast.expr) and not isinstance(each, PLAIN):
                self.refuse(each, f"{_named(each)} where it would be kept")

    def annotation(self, node: ast.AST | None) -> None:
        """What says of which type something is: nothing that is worked out."""
        for each in ast.walk(node) if node is not None else ():
            if not isinstance(each, ANNOTATIONS):
                self.refuse(each, f"{_named(each)} in an annotation")

    def _class(self, node: ast.ClassDef) -> None:
        is_plain = not (node.keywords or node.decorator_list or getattr(node, "type_params", []))
        if not is_plain or not all(isinstance(base, ast.Name) for base in node.bases):
            self.refuse(node, "a class that is more than class X(Protocol)")
        for each in node.body:
            if isinstance(each, Function):
                self._method(each)
            elif isinstance(each, ast.Assign | ast.AnnAssign):
                self._attribute(each)
            elif not _is_docstring(each) and not isinstance(each, ast.Pass):
                self.refuse(each, f"{_named(each)} in a class")

    def _attribute(self, node: ast.Assign | ast.AnnAssign) -> None:
        """An attribute of a class: a parameter, an assumption or a plain value."""
        for name in _bound([node]):
            if hasattr(Protocol, name) and name not in OVERRIDDEN:
                self.refuse(node, f"a {name} of its own")
        value = node.value
        if isinstance(value, ast.Call) and getattr(value.func, "id", "") in DECLARED:
            for each in (*value.args, *(keyword.value for keyword in value.keywords)):
                self.plain(each)
        else:
            self._constant(node)

    def _method(self, node: Function) -> None:
        if not _is_public(node.name):
            self.refuse(node, f"the method {node.name}")
        if hasattr(Protocol, node.name) and node.name not in OVERRIDDEN:
            self.refuse(node, f"a {node.name}() of its own")
        for each in node.decorator_list:
            call = each if isinstance(each, ast.Call) else None
            if getattr(call.func if call else each, "id", "") not in ("role", "property"):
                self.refuse(each, "a decorator but @role and @property")
            for keyword in call.keywords if call else ():
                value = keyword.value
                for part in value.elts if isinstance(value, ast.List) else [value]:
                    self.plain(part)
        _Body(self, node).check()


class _Body:
    """What a function of the file consists of, with the functions within it."""

    def __init__(self, file: _File, node: Function) -> None:
        self.file, self.node = file, node
        self.inside = [*_inside(node)]
        self.awaited = {*_awaited(self.inside)}
        self.defined = {e.name: e for e in self.inside if isinstance(e, Function)}
        self.variables = {*_bound(e for e in self.inside if not isinstance(e, Function))}

    def refuse(self, node: ast.AST, what: str) -> NoReturn:
        """Raise the error of something that is not allowed."""
        self.file.refuse(node if hasattr(node, "lineno") else self.node, what)

    def check(self) -> None:
        """Every node, and every name that is bound."""
        for name in (*self.variables, *self.defined):
            if not _is_public(name):
                self.refuse(self.node, f"the variable {name}")
        for each in (self.node, *self.inside):
            if not isinstance(each, (*EXPRESSIONS, *STATEMENTS)):
                self.refuse(each, _named(each))
            for name in ("annotation", "returns"):
                self.file.annotation(getattr(each, name, None))
            check = getattr(self, f"_{type(each).__name__.lower()}", None)
            if check is not None:
                check(each)

    # What a node of a kind has to be

    def _functiondef(self, node: Function) -> None:
        if node is not self.node and node.decorator_list:
            self.refuse(node, "a decorated function")

    _asyncfunctiondef = _functiondef

    def _arguments(self, node: ast.arguments) -> None:
        if node.vararg or node.posonlyargs:
            self.refuse(node, "an argument with a star")
        for each in (*node.defaults, *node.kw_defaults):
            if each is not None:
                self.file.plain(each)

    def _name(self, node: ast.Name) -> None:
        own = isinstance(self.defined.get(node.id), ast.AsyncFunctionDef)
        if (own or node.id in self.file.functions) and id(node) not in self.awaited:
            self.refuse(node, f"{node.id} without await")

    def _attribute(self, node: ast.Attribute) -> None:
        if node.attr not in self.file.attributes:
            self.refuse(node, f"the attribute {node.attr}")
        if node.attr in self.file.methods and id(node) not in self.awaited:
            self.refuse(node, f"{node.attr} without await")
        is_own = getattr(node.value, "id", "") == "self" and self.node.name == "memory"
        if isinstance(node.ctx, ast.Store) and not is_own:
            self.refuse(node, f"an assignment to {ast.unparse(node)}")

    def _subscript(self, node: ast.Subscript) -> None:
        is_own = getattr(node.value, "id", "") in self.variables
        if isinstance(node.ctx, ast.Store) and not is_own:
            self.refuse(node, f"an assignment to {ast.unparse(node)}")

    def _call(self, node: ast.Call) -> None:
        called = node.func
        if not isinstance(called, ast.Name | ast.Attribute):
            self.refuse(node, "a call of what has no name")
        name = called.id if isinstance(called, ast.Name) else called.attr
        if isinstance(called, ast.Name) and name in self.variables:
            self.refuse(node, f"a call of the variable {name}")
        if name == "super" and (node.args or node.keywords):
            self.refuse(node, "super() with arguments")

    def _compare(self, node: ast.Compare) -> None:
        for operator, right in zip(node.ops, node.comparators, strict=True):
            is_none = isinstance(right, ast.Constant) and right.value is None
            if isinstance(operator, ast.Is | ast.IsNot) and not is_none:
                self.refuse(node, "a comparison by identity")

    def _asyncwith(self, node: ast.AsyncWith) -> None:
        for each in node.items:
            called = getattr(each.context_expr, "func", None)
            if getattr(called, "attr", "") != "hold" or each.optional_vars is not None:
                self.refuse(node, "an async with of anything but core.hold")

    def _comprehension(self, node: ast.comprehension) -> None:
        if node.is_async:
            self.refuse(node.target, "an async comprehension")


def _is_public(name: str) -> bool:
    return not name.startswith("_") and not name.endswith("_")


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _named(node: ast.AST) -> str:
    return f"Python's {type(node).__name__}"


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """All that a function consists of, but for its decorators and for annotations."""
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    yield each
                    yield from _inside(each)


def _is_of_protocols(module: str, name: str) -> bool:
    """Whether this is a protocol, a function or a plain value of those that ship with us."""
    if not module.startswith(PROTOCOLS) or not _is_public(name):
        return False
    value = getattr(sys.modules.get(module), name, None)
    if isinstance(value, type):
        return issubclass(value, Protocol)
    is_function = isinstance(value, FunctionType) and value.__module__.startswith(PROTOCOLS)
    return is_function or type(value) in (bool, int, str)


def _own_names(protocol: Protocol) -> set[str]:
    """What the protocol's classes add to `Protocol`, the fields of blocks, and a core's methods."""
    fields = {name for each in protocol.regions.values() for name in each.names}
    own = {*dir(type(protocol)), *vars(protocol)} | fields
    inside = {name for name in own if name.startswith(INSIDE)}
    return own - inside - {*dir(Protocol), *OF_OTHERS} | {*dir(Core)}


def _coroutines(holder: object) -> frozenset[str]:
    """The names under which a class or a module has coroutine functions."""
    return frozenset(
        name for name in dir(holder) if _is_public(name) and _is_coroutine(getattr(holder, name))
    )


def _is_coroutine(value: object) -> bool:
    """Whether a value is a coroutine function, or marks one as a role."""
    return inspect.iscoroutinefunction(getattr(value, "function", value))


def _awaited(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """Names of coroutine functions where they may stand: called and awaited at once, or polled."""
    for each in nodes:
        if isinstance(each, ast.Await) and isinstance(each.value, ast.Call):
            yield id(each.value.func)
        elif isinstance(each, ast.Call) and getattr(each.func, "attr", "") == "poll_until":
            yield from map(id, each.args)


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that some nodes bind."""
    for each in nodes:
        if isinstance(each, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in each.names)
        elif isinstance(each, Function | ast.ClassDef):
            yield each.name
        elif isinstance(each, ast.arg):
            yield each.arg
        else:
            names = (n for n in ast.walk(each) if isinstance(n, ast.Name))
            yield from (name.id for name in names if isinstance(name.ctx, ast.Store))


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for each in table.get_children():
        yield from _tables(each)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _is_as_written(node: ast.stmt, value: object, name: str, written: set[CodeType]) -> bool:
    """Whether a name of the file has the value that its statement gives it."""
    if isinstance(node, ast.ImportFrom):
        return value is getattr(sys.modules.get(node.module or ""), name, None)
    if isinstance(node, Function):
        return isinstance(value, FunctionType) and value.__code__ in written
    if isinstance(node, ast.ClassDef):
        return isinstance(value, type)
    return type(value) in (bool, int, float, str, bytes, tuple, type(None))
