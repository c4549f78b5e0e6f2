"""``check-protocol init``: a commented protocol to start from, which checks as it is."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from syncproof.models.errors import UserError
from syncproof.reports.files import check_writable, write_text

SKELETON = '''\
"""{name}: say here which kernel this is, and in which file and version it is found."""

from syncproof.models.core import Core
from syncproof.models.memory import RANK, Region
from syncproof.models.protocol import Protocol, assumption, parameter, role


class {name}(Protocol):
    """One line that says what the protocol does."""

    # A variant: ``--set fence=no``. Yes or no, a whole number, or one of several words.
    fence: bool = parameter(True, "a fence between the data and the flag")

    # What must be true of the world: printed with each verdict, dropped by ``--drop acknowledged``.
    acknowledged: bool = assumption("the sender waits until its last message was taken")

    def memory(self) -> None:
        # An array of blocks on every rank: here one for each source rank. A block is what the
        # kernel writes at once; what a put writes of it lands in atoms of the fabric's size.
        self.data = Region(index=(RANK,), block=512)
        # Fields that control flow looks at are compared; the first one is, by default.
        self.flag = Region(index=(RANK,), block=32, fields={{"flag": 32}})
        self.taken = Region(index=(RANK,), block=32, fields={{"flag": 32}})

    @role
    async def sender(self, core: Core) -> None:
        """A role is a process on every rank. Whatever it does to the outside goes through core."""
        me = core.rank
        for round in core.rounds():
            for peer in core.destinations():
                # ``at=`` names the line of the real kernel, shown wherever this one is.
                await core.put(self.data[peer][me], core.payload(peer, 0, round), at="kernel.h:40")
                # Nothing orders two puts but a fence; quiet also waits until they have landed.
                if self.fence:
                    await core.fence()
                await core.put(self.flag[peer][me], round + 1)
                if self.acknowledged:
                    await core.wait_until(self.taken[me][peer], lambda seen: seen > round)
        # A kernel does not end with puts in flight.
        await core.kernel_end()

    @role
    async def receiver(self, core: Core) -> None:
        """Takes what the others sent. A loop that polls is a wait_until, or poll_until a sweep."""
        me = core.rank
        for round in core.rounds():
            for peer in core.sources():
                await core.wait_until(self.flag[me][peer], lambda seen: seen > round)
                data = await core.load(self.data[me][peer])
                # Here the kernel trusts the data; this is what happens-before is judged by.
                core.consume(data, source=peer, token=0, round=round)
                await core.put(self.taken[peer][me], round + 1)
        await core.kernel_end()
'''


def run(path: str) -> int:
    """Write the skeleton to ``path``, which must not exist yet."""
    target = Path(path)
    if target.suffix != ".py":
        raise UserError("is no Python file", where=path, expected="a name that ends in .py")
    if target.exists():
        raise UserError("exists already", where=path, expected="a new file: another name")
    check_writable(path, "init")
    write_text(path, SKELETON.format(name=class_name(target.stem)))
    file = shlex.quote(path)
    print(f"wrote {path}; check it with: check-protocol {file}", file=sys.stdout)
    print(f"and see it fail with:        check-protocol {file} --set fence=no", file=sys.stdout)
    return 0


def class_name(stem: str) -> str:
    """The class that belongs into a file of that name: ``my_kernel`` gives ``MyKernel``."""
    words = re.findall(r"[A-Za-z0-9]+", stem)
    name = "".join(word[0].upper() + word[1:] for word in words)
    return name if name.isidentifier() else f"Protocol{name}"
