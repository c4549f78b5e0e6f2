"""A doorbell: rank 0 hands messages to rank 1 through one slot, and gets a credit for each."""

from syncproof.models.core import Core
from syncproof.models.memory import Region
from syncproof.models.protocol import Protocol, parameter, role


class Doorbell(Protocol):
    """One slot, a doorbell that counts messages, and a credit that counts those taken."""

    fence: bool = parameter(True, "a fence between the message and the doorbell")
    credits: bool = parameter(True, "the producer waits until the slot is free")

    def memory(self) -> None:
        self.slot = Region(owner=1, block=512)
        self.bell = Region(owner=1, block=32)
        self.credit = Region(owner=0, block=32)

    @role(on=[0])
    async def producer(self, core: Core) -> None:
        for round in core.rounds():
            if self.credits:
                await core.wait_until(self.credit[0], lambda taken: taken == round)
            await core.put(self.slot[1], core.payload(1, 0, round), at="doorbell.cu:31")
            if self.fence:
                await core.fence()
            await core.put(self.bell[1], round + 1)
        await core.quiet()

    @role(on=[1])
    async def consumer(self, core: Core) -> None:
        for round in core.rounds():
            await core.wait_until(self.bell[1], lambda rung: rung == round + 1)
            message = await core.load(self.slot[1], at="doorbell.cu:52")
            core.consume(message, source=0, token=0, round=round)
            await core.put(self.credit[0], round + 1)
        await core.quiet()
