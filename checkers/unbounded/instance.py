"""An instance whose rounds do not end at a number."""

from __future__ import annotations

from typing import Any

from syncproof.checkers.unbounded.channel import Channel, RoundValues
from syncproof.checkers.unbounded.frames import (
    FramedAutomaton,
    HomeAutomaton,
    RoundIdentity,
)
from syncproof.checkers.unbounded.system import RoundSystem
from syncproof.models.bounds import Bounds
from syncproof.models.instance import Choices, Instance, cache_lines, groups_of
from syncproof.models.lowering import Lowering
from syncproof.models.nodes import Process
from syncproof.models.operations import Operation, Statement
from syncproof.models.protocol import Protocol
from syncproof.models.round_core import NoBound, RoundCore, aside, from_the_start
from syncproof.models.transitions import Features


class RoundInstance(Instance):
    """An instance whose rounds do not end at a number."""

    def round_system(self, choices: Choices, modulus: int, lookback: int) -> RoundSystem:
        """The system under one assignment of the choices that name no round."""
        parts = self.parts(choices)
        values = RoundValues()
        channel = Channel(values, modulus, lookback)
        locks = self.profile.atomics == "nic_only"
        lowering = Lowering(parts.layout, self.profile, values, locks)
        groups = groups_of(parts.protocol, parts.processes)
        shared = parts.shared()
        automata = []
        for process in parts.processes:
            said: list[Statement] = []
            core = RoundCore(
                process.role,
                process.rank,
                process.instance,
                process.count,
                self.bounds,
                groups,
                choices,
                said.append,
                ask=aside(channel.ask),
                note=aside(channel.note),
                begin=aside(channel.begin),
            )
            identity = RoundIdentity((parts.protocol, core), Operation, modulus)
            home = HomeAutomaton(
                process,
                _starting(parts.protocol, process, core),
                said,
                lowering,
                self.mutation,
                channel=channel,
                identity=identity,
                shared=shared,
            )
            automata.append(FramedAutomaton(home, modulus, lookback))
        features = Features(
            twins=self.profile.quiet == "target",
            locks=locks,
            caches=bool(cache_lines(parts.layout)),
            views=self.profile.load_order == "none",
            ghosts=True,
        )
        return RoundSystem(automata, channel, parts, features)


def round_instance(instance: Instance) -> RoundInstance:
    """The same instance without a bound on its rounds."""
    bounds = Bounds(**{**vars(instance.bounds), "rounds": 1})
    object.__setattr__(bounds, "rounds", NoBound())
    return RoundInstance(
        instance.kind, bounds, instance.profile, instance.settings, instance.mutation
    )


def _starting(protocol: Protocol, process: Process, core: RoundCore) -> Any:
    function = next(r.function for r in protocol.roles() if r.name == process.role)
    return lambda: from_the_start(core, function, protocol)
