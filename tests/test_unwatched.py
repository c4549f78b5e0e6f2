"""Whoever cannot be watched cannot be proved: what roles tell each other by what no engine sees."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from syncproof.checkers.certificate.roles import LiveRoles
from syncproof.checkers.explicit.check import question_of
from syncproof.checkers.explicit.search import Budget
from syncproof.engines import ANY_RANKS, AUTOMATIC, ENGINES, FULL, UNBOUNDED, Engine
from syncproof.models.errors import UserError
from syncproof.models.instance import Instance
from syncproof.models.verdict import EXIT_CODES, Answer, Verdict
from syncproof.registry import built_ins, find
from tests.small import instance

HEAD = """
from syncproof.models.core import Core
from syncproof.models.memory import RANK, Region
from syncproof.models.protocol import Protocol, role
"""

TELLING = """
class Telling(Protocol):
    def memory(self):
        self.slot = Region(owner=0, block=8)

    @role(on=[0])
    async def first(self, core: Core):
        await core.quiet()
        {tell}

    @role(on=[1])
    async def second(self, core: Core):
        await core.quiet()
        told = bool({told})
        core.check(told, "rank 0 was first")
"""
"""Whoever runs the roles in the order of their ranks finds that rank 1 was told."""


@dataclass(frozen=True)
class Channel:
    """How one role tells another something, beside memory."""

    setup: str
    tell: str
    told: str
    undo: str = ""


CHANNELS = {
    "queue": Channel("from queue import SimpleQueue; Q = SimpleQueue()", "Q.put(1)", "Q.qsize()"),
    "queue, by its method": Channel(
        "from queue import SimpleQueue; Q = SimpleQueue(); put, size = Q.put, Q.qsize",
        "put(1)",
        "size()",
    ),
    "thread local": Channel(
        "import threading; T = threading.local()", "T.x = 1", "hasattr(T, 'x')"
    ),
    "weak dictionary": Channel(
        "import weakref\nclass K: pass\nW, k = weakref.WeakKeyDictionary(), K()",
        "W[k] = 1",
        "len(W)",
    ),
    "lru_cache": Channel(
        "import functools\n@functools.lru_cache\ndef f(x): return x",
        "f(1)",
        "f.cache_info().currsize",
    ),
    "environ": Channel(
        "import os", "os.environ['TOLD'] = '1'", "'TOLD' in os.environ", "os.environ.pop('TOLD', 0)"
    ),
    "file": Channel(
        "import tempfile; name = tempfile.mktemp()",
        "open(name, 'w').close()",
        "__import__('os').path.exists(name)",
    ),
    "open file": Channel("import io; F = io.StringIO()", "F.write('x')", "F.tell()"),
    "logging": Channel(
        "import logging\nL = logging.Logger('l')",
        "L.addHandler(logging.NullHandler())",
        "L.hasHandlers()",
    ),
    "decimal": Channel(
        "import decimal\nC = decimal.getcontext().copy()", "C.prec = 3", "C.prec == 3"
    ),
    "decimal, this thread's": Channel(
        "import decimal",
        "decimal.getcontext().prec = 3",
        "decimal.getcontext().prec == 3",
        "decimal.getcontext().prec = 28",
    ),
    "context variable": Channel(
        "from contextvars import ContextVar; V = ContextVar('V', default=0)", "V.set(1)", "V.get()"
    ),
    "own random generator": Channel(
        "import random; R = random.Random(1); S = R.getstate()", "R.random()", "R.getstate() != S"
    ),
    "generator": Channel(
        "def g():\n    yield 0\n    yield 1\nG = g(); next(G)", "next(G)", "next(G, 2) == 2"
    ),
    "iterator": Channel("I = iter([1])", "next(I)", "next(I, None) is None"),
    "count": Channel("import itertools; N = itertools.count()", "next(N)", "repr(N) != 'count(0)'"),
    "array": Channel("import array; A = array.array('i', [0])", "A[0] = 1", "A[0]"),
    "bytearray": Channel("A = bytearray(1)", "A[0] = 1", "A[0]"),
    "memoryview": Channel("A = memoryview(bytearray(1))", "A[0] = 1", "A[0]"),
    "set": Channel("S = set()", "S.add(1)", "S"),
    "deque": Channel("from collections import deque; D = deque()", "D.append(1)", "D"),
    "Counter": Channel("from collections import Counter; D = Counter()", "D['a'] += 1", "D"),
    "defaultdict": Channel(
        "from collections import defaultdict; D = defaultdict(int)", "D['a']", "D"
    ),
    "attribute of a Counter": Channel(
        "from collections import Counter; D = Counter()", "D.x = 1", "hasattr(D, 'x')"
    ),
    "OrderedDict": Channel(
        "from collections import OrderedDict; D = OrderedDict(a=1, b=2)",
        "D.move_to_end('a')",
        "[*D] == ['b', 'a']",
    ),
    "slots": Channel("class X:\n    __slots__ = ('a',)\nO = X(); O.a = 0", "O.a = 1", "O.a"),
    "slots, set and unset": Channel(
        "class X:\n    __slots__ = ('a', 'b')\nO = X(); O.a = 7",
        "O.b = O.a; del O.a",
        "not hasattr(O, 'a')",
    ),
    "list in a named tuple": Channel(
        "from typing import NamedTuple\nclass X(NamedTuple):\n    a: list\nO = X([])",
        "O.a.append(1)",
        "O.a",
    ),
    "class attribute": Channel("class X: a = 0", "X.a = 1", "X.a"),
    "name of a class": Channel("class X: pass", "X.__name__ = 'Y'", "X.__name__ == 'Y'"),
    "class attribute, of a typing.Protocol": Channel(
        "import typing\nclass X(typing.Protocol): a = 0", "X.a = 1", "X.a"
    ),
    "hidden in an alias": Channel(
        "class X: a = 0\nA = dict[str, X]", "A.__args__[1].a = 1", "A.__args__[1].a"
    ),
    "hidden in an annotation": Channel(
        "import typing\nA = typing.Annotated[int, []]",
        "A.__metadata__[0].append(1)",
        "A.__metadata__[0]",
    ),
    "type variable": Channel(
        "import typing\nT = typing.TypeVar('T', bound=list[int])", "T.x = 1", "hasattr(T, 'x')"
    ),
    "function attribute": Channel("def f(): pass\nf.a = 0", "f.a = 1", "f.a"),
    "attribute of a static method": Channel("S = staticmethod(len)", "S.a = 1", "hasattr(S, 'a')"),
    "wrapped": Channel(
        "import functools\nclass X: pass\ndef f(): pass\nf.a = 1",
        "functools.update_wrapper(X, f, ('a',), ())",
        "hasattr(X, 'a')",
    ),
    "overloads": Channel(
        "import typing\ndef f(): pass",
        "typing.final(f)",
        "hasattr(f, '__final__')",
    ),
    "registered": Channel(
        "import collections.abc\nclass X: pass",
        "collections.abc.Sized.register(X)",
        "isinstance(X(), collections.abc.Sized)",
    ),
    "single dispatch": Channel(
        "import functools\n@functools.singledispatch\ndef f(x): return 0",
        "f.register(int, lambda x: 1)",
        "f(1)",
    ),
    "fields of a dataclass": Channel(
        "import dataclasses\n@dataclasses.dataclass\nclass X: a: int = 0",
        "dataclasses.fields(X)[0].name = 'b'",
        "dataclasses.fields(X)[0].name == 'b'",
    ),
    "attribute of a module of Python's": Channel(
        "import math", "math.told = 1", "hasattr(math, 'told')", "vars(math).pop('told', 0)"
    ),
    "attribute by a pattern": Channel(
        "import math\ndef told(m):\n    match m:\n        case object(told=x): return x\n",
        "math.told = 1",
        "told(math)",
        "vars(math).pop('told', 0)",
    ),
    "attrgetter": Channel(
        "import math, operator\nL = []\nmath.told = L\nget = operator.attrgetter",
        "get('told')(math).append(1)",
        "get('told')(math)",
        "vars(math).pop('told', 0)",
    ),
    "Formatter": Channel(
        "import math, string\nmath.told = []\nF = string.Formatter()",
        "F.get_field('0.told', (math,), {})[0].append(1)",
        "F.get_field('0.told', (math,), {})[0]",
        "vars(math).pop('told', 0)",
    ),
    "module's __getattr__": Channel(
        "import types\nM, L = types.ModuleType('m'), []\nM.__file__ = __file__\n"
        "M.__getattr__ = lambda name: (L.append(1), len(L))[1]",
        "M.x",
        "M.x > 1",
    ),
    "calls itself math": Channel("__name__ = 'math'\nL = iter([1])", "next(L)", "next(L, 0) == 0"),
    "sys.modules": Channel(
        "import sys",
        "sys.modules['told'] = None",
        "'told' in sys.modules",
        "sys.modules.pop('told', 0)",
    ),
    "import": Channel(
        "", "import sys; sys.modules['told'] = None", "'told' in __import__('sys').modules"
    ),
    "mutable default": Channel(
        "def f(x, seen=[]):\n    if x: seen.append(1)\n    return len(seen)", "f(1)", "f(0)"
    ),
    "built-in name": Channel(
        "import builtins",
        "builtins.told = 1",
        "hasattr(builtins, 'told')",
        "vars(builtins).pop('told', 0)",
    ),
    "global": Channel("N = 0\ndef f():\n    global N\n    N = 1", "f()", "N"),
    "closure": Channel(
        "def made():\n    n = 0\n    def f():\n        nonlocal n\n        n += 1\n"
        "    def g(): return n\n    return f, g\nF, G = made()",
        "F()",
        "G()",
    ),
    "exception": Channel("E = ValueError()", "E.told = 1", "hasattr(E, 'told')"),
    "context of an exception": Channel(
        "E = ValueError()\ndef f():\n    try: raise E\n    except ValueError: pass",
        "f()",
        "E.__traceback__",
    ),
    "descriptor": Channel(
        "class D:\n    n = iter([1])\n    def __get__(self, o, t): return next(self.n, 0)\n"
        "class X: a = D()",
        "X.a",
        "X.a == 0",
    ),
    "property": Channel(
        "L = []\nclass X:\n    @property\n    def a(self):\n        L.append(1)\n        return L",
        "X().a",
        "len(X().a) > 1",
    ),
    "__del__": Channel(
        "I = iter([1])\nclass X:\n    def __del__(self): next(I, 0)", "X()", "next(I, 0) == 0"
    ),
    "collector": Channel(
        "import gc\ndef is_told(*a): pass",
        "gc.callbacks.append(is_told)",
        "is_told in gc.callbacks",
        "for f in [*gc.callbacks]:\n    if f.__name__ == 'is_told': gc.callbacks.remove(f)",
    ),
    "threshold of the collector": Channel(
        "from gc import freeze, get_freeze_count, unfreeze",
        "freeze()",
        "get_freeze_count()",
        "unfreeze()",
    ),
    "weak reference": Channel(
        "import weakref\nclass K: pass\nk = K()",
        "weakref.finalize(k, int)",
        "weakref.getweakrefcount(k)",
    ),
    "trace function": Channel(
        "import sys\ndef f(*a): return None",
        "sys.setprofile(f)",
        "sys.getprofile() is f",
        "sys.setprofile(None)",
    ),
    "recursion limit": Channel(
        "from sys import getrecursionlimit, setrecursionlimit",
        "setrecursionlimit(4321)",
        "getrecursionlimit() == 4321",
        "setrecursionlimit(1000)",
    ),
    "vars": Channel("class X: pass\nO = X()", "vars(O)['a'] = 1", "hasattr(O, 'a')"),
    "object.__setattr__": Channel(
        "class X: pass\nO = X()", "object.__setattr__(O, 'a', 1)", "hasattr(O, 'a')"
    ),
    "class of this package": Channel(
        "from syncproof.models.operations import Operation",
        "type(core.quiet()).told = 1",
        "hasattr(core.quiet(), 'told')",
        "if 'told' in vars(Operation): del Operation.told",
    ),
    "method of this package": Channel(
        "from syncproof.models.core import Core",
        "type(core).put.told = 1",
        "hasattr(core.put, 'told')",
        "vars(Core.put).pop('told', 0)",
    ),
    "function of Python's": Channel(
        "import copy",
        "copy.copy.told = 1",
        "hasattr(copy.copy, 'told')",
        "vars(copy.copy).pop('told', 0)",
    ),
    "getattr by another name": Channel(
        "G = getattr\ndef f(): pass",
        "G(f, '__dict__')['told'] = 1",
        "'told' in G(f, '__dict__')",
    ),
    "getattr of a name in pieces": Channel(
        "def f(): pass\nNAME = ('__dict', '__')",
        "getattr(f, ''.join(NAME))['told'] = 1",
        "'told' in getattr(f, ''.join(NAME))",
    ),
    "object.__getattribute__": Channel(
        "def f(): pass",
        "object.__getattribute__(f, '__dict__')['told'] = 1",
        "hasattr(f, 'told')",
    ),
    "type.__setattr__ by another name": Channel(
        "SET = type.__setattr__\nclass X: pass", "SET(X, 'told', 1)", "hasattr(X, 'told')"
    ),
    "what a method is of, by a pattern": Channel(
        "PUSH = [].append\ndef f(p):\n    match p:\n        case object(__self__=x): return x",
        "PUSH(1)",
        "f(PUSH)",
    ),
    "what a method is of, by match_args": Channel(
        "PUSH = [].append\nclass M(type):\n    def __instancecheck__(self, x): return True\n"
        "class X(metaclass=M): __match_args__ = ('__self__',)\n"
        "def f(p):\n    match p:\n        case X(x): return x",
        "PUSH(1)",
        "f(PUSH)",
    ),
    "name of a module": Channel(
        "import math", "math.__init__('told')", "math.__name__ == 'told'", "math.__init__('math')"
    ),
    "a static method made anew": Channel("S = staticmethod(min)", "S.__init__(max)", "S(0, 1)"),
    "class not written in Python": Channel(
        "import tempfile; name = tempfile.mktemp()\nfrom io import FileIO",
        "FileIO(name, 'w').close()",
        "FileIO(name).close() is None",
    ),
    "module by a list": Channel(
        "import sys; M = [sys]",
        "setattr(M[0], 'told', 1)",
        "hasattr(M[0], 'told')",
        "",
    ),
    "hasattr of a global": Channel(
        "import types\nM = types.ModuleType('m')\nM.__file__ = __file__\n"
        "exec('def f():\\n    global told\\n    told = 1', vars(M))\nF = M.f",
        "F()",
        "hasattr(M, 'told')",
    ),
    "attributes of a slot": Channel("", "self.slot[0].told = 1", "hasattr(self.slot[0], 'told')"),
    "attributes of a region": Channel("", "self.slot.told = 1", "hasattr(self.slot, 'told')"),
    "class of the protocol": Channel("", "type(self).told = 1", "hasattr(self, 'told')"),
    "attribute of the bounds": Channel(
        "",
        "type(core.bounds).told = 1",
        "hasattr(self.bounds, 'told')",
        "from syncproof.models.bounds import Bounds\nif 'told' in vars(Bounds): del Bounds.told",
    ),
    "choices": Channel("", "core._choices['told'] = 1", "core._choices"),
    "groups": Channel("", "core._groups['told'] = ()", "'told' in core._groups"),
    "function that this package made": Channel(
        "from queue import SimpleQueue\nfrom syncproof.models.round_core import aside\n"
        "Q = SimpleQueue(); put, size = aside(Q.put), aside(Q.qsize)",
        "put(1)",
        "size()",
    ),
    "registered, by another name": Channel(
        "import collections.abc\nclass X: pass\nR = collections.abc.Sized.register",
        "R(X)",
        "isinstance(X(), collections.abc.Sized)",
    ),
    "parameters of a dataclass": Channel(
        "import dataclasses\n@dataclasses.dataclass\nclass X: a: int = 0",
        "X.__dataclass_params__.eq = False",
        "not X.__dataclass_params__.eq",
    ),
    "list of the protocol": Channel("", "list.append(self.bounds_seen, 1)", "self.bounds_seen"),
    "in a lambda": Channel("I = iter([1])", "(lambda: next(I))()", "(lambda: next(I, 0))() == 0"),
    "in a comprehension": Channel(
        "I = iter([1])", "[x for x in [0] if next(I)]", "[x for x in [0] if not next(I, 0)]"
    ),
    "in a local class": Channel(
        "I = iter([1])\ndef f():\n    class X:\n        def m(self): return next(I, 0)\n"
        "    return X().m()",
        "f()",
        "f() == 0",
    ),
}
"""Wrong only by what it tells: no engine may call it proved."""


@contextmanager
def telling(channel: Channel, folder: Path, name: str) -> Iterator[Instance]:
    """The instance of a protocol in a file of the user's; afterwards all is as before."""
    text = TELLING.format(tell=textwrap.indent(channel.tell, " " * 8).strip(), told=channel.told)
    if "bounds_seen" in text:
        text = text.replace("self.slot = ", "self.bounds_seen = []\n        self.slot = ")
    file = folder / f"{''.join(filter(str.isalpha, name))}.py"
    file.write_text(HEAD + channel.setup + "\n" + text, encoding="utf-8")
    made = instance(find(f"{file}:Telling").kind, ranks=2)
    try:
        yield made
    finally:
        _undo(channel)


def _undo(channel: Channel) -> None:
    space: dict[str, object] = {}
    imports = [each for each in channel.setup.split("\n") if each.startswith(("import", "from"))]
    for each in imports:
        exec(each.partition(";")[0], space)
    exec(channel.undo, space)


def verdict_by(engine: Engine, made: Instance) -> Verdict | UserError:
    """What the command line would say."""
    try:
        return engine.check(made, question_of(made, "x"), Budget(seconds=60), lambda *_: None)
    except UserError as error:
        return error


SEARCHES = [ENGINES["certificate"], ENGINES["reduced"], FULL["fast-full"]]


@pytest.mark.parametrize("name", CHANNELS)
def test_no_engine_proves_what_roles_tell_each_other(name: str, tmp_path: Path) -> None:
    """Refused, violated or not decided: whatever cannot be watched costs the proof."""
    for engine in SEARCHES:
        with telling(CHANNELS[name], tmp_path, name + engine.name) as made:
            found = verdict_by(engine, made)
        assert isinstance(found, UserError) or found.answer is not Answer.PROVED, engine.name


ASKING = """
class Asking(Protocol):
    def memory(self):
        self.flag = Region(index=(RANK,), block=8)

    @role
    async def sender(self, core: Core):
        {tell}
        for peer in core.destinations():
            await core.put(self.flag[peer][core.rank], 1)
        await core.quiet()

    @role
    async def receiver(self, core: Core):
        for peer in core.sources():
            await core.wait_until(self.flag[core.rank][peer], lambda flag: flag == 1)
"""
"""Right, and for every number of ranks and rounds."""

ALL = {
    **{each.name: each for each in (*ENGINES.values(), *FULL.values(), AUTOMATIC, ANY_RANKS)},
    **{f"unbounded {name}": each for name, each in UNBOUNDED.items()},
}


def asking(tell: str, folder: Path) -> Instance:
    """An instance of `ASKING` in a file, with a statement in its first role."""
    file = folder / "asking.py"
    setup = "from queue import SimpleQueue\nQ = SimpleQueue()\n"
    file.write_text(HEAD + setup + ASKING.format(tell=tell), encoding="utf-8")
    return instance(find(f"{file}:Asking").kind, ranks=2)


@pytest.mark.parametrize("name", ALL)
def test_every_engine_obeys(name: str, tmp_path: Path) -> None:
    """What an engine proves it does not prove of a role that only looks at a queue."""
    good = verdict_by(ALL[name], asking("pass", tmp_path))
    assert isinstance(good, Verdict)
    proved = [each.property for each in good.properties if each.answer is Answer.PROVED]
    assert proved
    found = verdict_by(ALL[name], asking("Q.qsize()", tmp_path))
    assert isinstance(found, Verdict) and EXIT_CODES[found.answer] == 3
    for each in found.properties:
        assert each.answer is Answer.UNDECIDED
        if each.property in proved:
            assert "refers to Q" in each.detail and "_queue.SimpleQueue" in each.detail


@pytest.mark.parametrize("name", ALL)
def test_every_engine_passes_the_one_place(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it says that something cannot be watched, nothing is proved, and the reason is told."""
    monkeypatch.setattr(Instance, "unwatched", lambda _: "a reason")
    found = verdict_by(ALL[name], asking("pass", tmp_path))
    assert isinstance(found, Verdict) and found.answer is Answer.UNDECIDED
    assert any(each.detail.startswith("a reason: ") for each in found.properties)
    assert all(each.answer is Answer.UNDECIDED for each in found.properties)


@pytest.mark.parametrize("name", ["queue", "thread local", "lru_cache", "environ", "decimal"])
def test_without_the_rule_it_is_proved(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests above can fail: nothing else stands in the way."""
    monkeypatch.setattr(Instance, "unwatched", lambda _: "")
    with telling(CHANNELS[name], tmp_path, name) as made:
        found = verdict_by(ENGINES["reduced"], made)
    assert isinstance(found, Verdict) and found.answer is Answer.PROVED


CONSTANTS = """
import collections, dataclasses, enum, fractions, functools, math, operator, re, struct, typing
from typing import Any, NamedTuple, cast

class Point(NamedTuple):
    x: int
    y: int = 0

Pair = collections.namedtuple("Pair", "a b")

@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    a: int = 1

@dataclasses.dataclass
class Plain:
    a: int = 1

class Colour(enum.Enum):
    RED = 1

class Flag(enum.IntFlag):
    A = 1

T = typing.TypeVar("T")
MISSING = object()
LINE = re.compile("a")
TABLE, NAMES = collections.Counter("abc"), {"a", "b"}
LAST = collections.deque([1, 2], maxlen=2)
GIVEN = collections.defaultdict(int, a=1)
ORDERED = collections.OrderedDict(a=1)
HALF = fractions.Fraction(1, 2)
POINT, PAIR, SLOTTED, PLAIN = Point(1), Pair(1, 2), Slotted(), Plain()
Table = dict[str, list[int]]

def helper(x: int, given: dict[str, int] | None = None) -> int:
    found: Table = {}
    seen = collections.deque()
    seen.append(x)
    counts = collections.Counter(seen)
    counts[x] += 1
    made = Plain(x)
    made.a += 1
    first = cast("int", sorted(counts, key=operator.neg)[0])
    return made.a + len(found) + first + functools.reduce(max, seen)
"""

USES = (
    "assert MISSING is not None and LINE.match('a') and TABLE['a'] and 'a' in NAMES and LAST[0]; "
    "assert GIVEN['a'] and ORDERED['a'] and HALF < 1 and POINT.x and PAIR.a and SLOTTED.a; "
    "assert PLAIN.a and Colour.RED and Flag.A and helper(1) and struct.pack('<I', 1); "
    "assert self.limit and math.ceil(HALF) and POINT._replace(y=2) and dataclasses.replace(PLAIN)"
)


@pytest.mark.parametrize("name", ["certificate", "reference", "auto"])
def test_what_can_be_watched_is_proved(name: str, tmp_path: Path) -> None:
    """Constants of the standard library's kinds, and what a role makes for itself alone."""
    text = ASKING.format(tell=USES).replace(
        "    @role",
        "    @functools.cached_property\n    def limit(self): return len(NAMES)\n\n    @role",
        1,
    )
    file = tmp_path / "constants.py"
    file.write_text(HEAD + CONSTANTS + text, encoding="utf-8")
    made = instance(find(f"{file}:Asking").kind, ranks=2)
    assert made.unwatched() == ""
    found = verdict_by(ALL[name], made)
    assert isinstance(found, Verdict) and found.answer is Answer.PROVED


TAKEN_BACK = """
SEEN = []

class TakenBack(Protocol):
    def memory(self):
        self.slot = Region(owner=1, block=8)
        self.answer = Region(owner=1, block=8)

    @role(on=[1])
    async def first(self, core: Core):
        await core.quiet()
        SEEN.append(1)
        await core.wait_until(self.answer[1], lambda answer: answer == 1)
        SEEN.pop()

    @role(on=[2])
    async def second(self, core: Core):
        await core.quiet()
        core.check(SEEN, "rank 1 was first")
        await core.put(self.answer[1], 1)
        await core.quiet()

    @role
    async def others(self, core: Core):
        await core.quiet()
"""


@pytest.mark.parametrize("ranks", [3, 40])
def test_what_is_taken_back_before_the_end_is_seen(
    ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate looks whenever another process goes on; at the end all is as it was."""
    file = tmp_path / "taken_back.py"
    file.write_text(HEAD + TAKEN_BACK, encoding="utf-8")
    made = instance(find(f"{file}:TakenBack").kind, ranks=ranks)
    found = verdict_by(ENGINES["certificate"], made)
    assert isinstance(found, UserError) and "what other roles and runs see" in str(found)
    monkeypatch.setattr(LiveRoles, "_look", lambda *_: None)
    made = instance(find(f"{file}:TakenBack").kind, ranks=40)
    found = verdict_by(ENGINES["certificate"], made)  # only rank 0 is run again: nothing is seen
    assert isinstance(found, Verdict) and found.answer is Answer.PROVED


LEAVING = {
    "a choice": """
        if not SEEN:
            SEEN.append(1)
            core.choose("x", (0, 1))
        SEEN.clear()
        core.check(core.choose("x", (0, 1)) in (0, 1), "always")
        await core.quiet()
""",
    "a choice that is hidden": """
        if not SEEN:
            SEEN.append(1)
            try:
                core.choose("x", (0, 1))
            except BaseException:
                pass
        await core.quiet()
""",
    "an error": """
        SEEN.append(1)
        await core.quiet()
        raise ValueError
""",
    "an error at once": """
        SEEN.append(1)
        raise ValueError
""",
}


@pytest.mark.parametrize("engine", ["certificate", "reduced"])
@pytest.mark.parametrize("name", LEAVING)
def test_what_a_run_leaves_behind_is_seen_however_it_ends(
    name: str, engine: str, tmp_path: Path
) -> None:
    """Also where it ends in an error, or at a choice with which all begins anew."""
    text = "SEEN = []\n" + ASKING.format(tell="await core.quiet()" + LEAVING[name])
    file = tmp_path / "leaving.py"
    file.write_text(HEAD + text, encoding="utf-8")
    found = verdict_by(ENGINES[engine], instance(find(f"{file}:Asking").kind, ranks=2))
    assert isinstance(found, UserError) and "what other roles and runs see" in str(found)


HIDING = """
class Hiding(Protocol):
    def memory(self):
        self.slot = Region(owner=0, block=8)

    @role(on=[0])
    async def reader(self, core: Core):
        def passes(value):
            try:
                return core.choose("x", (False, True)) or True
            except BaseException:
                return True

        await core.wait_until(self.slot[0], passes)
        await core.quiet()

    @role(on=[0])
    async def writer(self, core: Core):
        await core.put(self.slot[0], 1)
        await core.quiet()
"""


@pytest.mark.parametrize("engine", ["certificate", "reference", "reduced", "smt", "auto"])
def test_a_condition_hides_no_choice(engine: str, tmp_path: Path) -> None:
    """An engine asks it outside of all steps, where nothing else would tell of the choice."""
    file = tmp_path / "hiding.py"
    file.write_text(HEAD + HIDING, encoding="utf-8")
    made = instance(find(f"{file}:Hiding").kind, ranks=1)
    found = verdict_by(ALL[engine], made)
    assert isinstance(found, UserError) or found.answer is not Answer.PROVED


BY_CLASS = """
class ByClass(Protocol):
    def memory(self):
        self.slot = Region(owner=0, block=8)
        self.done = Region(owner=0, block=8)

    @role(on=[0])
    async def first(self, core: Core):
        class Message:
            told = 0
        await core.put(self.slot[0], {value})
        await core.wait_until(self.done[0], lambda done: done == 1)
        core.check(Message.told == 0, "nobody writes to a class")

    @role(on=[1])
    async def second(self, core: Core):
        found = await core.get(self.slot[0])
        if found != 0:
            {kind}.told = 1
        await core.put(self.done[0], 1)
        await core.quiet()
"""


@pytest.mark.parametrize(
    ("value", "kind"),
    [("Message", "found"), ("dataclass(frozen=True)(Message)()", "type(found)")],
)
@pytest.mark.parametrize("engine", ["certificate", "reference", "fast"])
def test_no_class_is_put_into_memory(value: str, kind: str, engine: str, tmp_path: Path) -> None:
    """Its attributes may be set by whoever has it, and no landing tells of it."""
    text = "from dataclasses import dataclass\n" + BY_CLASS.format(value=value, kind=kind)
    file = tmp_path / "by_class.py"
    file.write_text(HEAD + text, encoding="utf-8")
    found = verdict_by(ALL[engine], instance(find(f"{file}:ByClass").kind, ranks=2))
    assert isinstance(found, UserError) or found.answer is not Answer.PROVED


ANEW = """
from dataclasses import dataclass

@dataclass(frozen=True, slots=True)
class Message:
    told: int

@dataclass(frozen=True)
class Plain:
    told: int

from syncproof.models.values import Block
ANEW = Block.__init__

class Holder:
    anew = Block.__init__

class Anew(Protocol):
    def memory(self):
        fields = {{"told": 4, "rest": 4}}
        self.slot = Region(
            owner=0, block=8, fields=fields, compared=("told", "rest"), initial={initial}
        )

    @role(on=[0])
    async def first(self, core: Core):
        block = await core.get(self.slot[0])
        await core.quiet()
        {anew}
        await core.quiet()

    @role(on=[1])
    async def second(self, core: Core):
        block = await core.get(self.slot[0])
        core.check({told}, "rank 0 was first")
        await core.quiet()
"""


@pytest.mark.parametrize(
    ("initial", "anew", "told"),
    [
        ("0", "block.__init__({'told': 1})", "block.told == 1"),
        ("0", "getattr(block, '__init__')({'told': 1})", "block.told == 1"),
        ("0", "ANEW(block, {'told': 1})", "block.told == 1"),
        ("0", "Holder.anew(block, {'told': 1})", "block.told == 1"),
        ("Message(0)", "block.told.__init__(1)", "block.told == Message(1)"),
        ("Message(0)", "type(block.told).told.__set__(block.told, 1)", "block.told.told == 1"),
        ("Message(0)", "block.told.__setstate__([1])", "block.told.told == 1"),
        ("Plain(0)", "block.told.__init__(1)", "block.told.told == 1"),
        ("Plain(0)", "vars(block.told)['told'] = 1", "block.told.told == 1"),
        ("Plain(0)", "object.__setattr__(block.told, 'told', 1)", "block.told.told == 1"),
    ],
)
@pytest.mark.parametrize("engine", ["certificate", "reduced"])
def test_what_was_read_is_not_made_anew(
    initial: str, anew: str, told: str, engine: str, tmp_path: Path
) -> None:
    """Every run that reads a value is given the same object: it must stay as it is."""
    text = ANEW.format(initial=initial, anew=anew, told=told)
    file = tmp_path / "anew.py"
    file.write_text(HEAD + text, encoding="utf-8")
    made = instance(find(f"{file}:Anew").kind, ranks=2)
    found = verdict_by(ALL[engine], made)
    assert isinstance(found, UserError) or found.answer is not Answer.PROVED
    if isinstance(found, Verdict):
        assert made.unwatched()


@pytest.mark.parametrize("name", sorted(built_ins()))
def test_the_built_in_protocols_can_be_watched(name: str) -> None:
    """So that each of them may be proved."""
    assert instance(built_ins()[name], ranks=2).unwatched() == ""
