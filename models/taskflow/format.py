"""The file format as a table: sections, keys and their kinds; the JSON Schema is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from syncproof.models.taskflow.schedule import BARRIERS, CORES, KINDS, VERSION

MARK = "syncproof-taskflow"
"""The key that says what the file is; its value is the version."""


@dataclass(frozen=True)
class Key:
    """What a key holds: ``kind`` names a checker of `reading`, ``of`` the words it can be."""

    kind: str
    text: str
    required: bool = False
    of: tuple[str, ...] = ()
    default: Any = None


RANK = Key("count", "the rank it lives on, from 0", required=True)
PARTS: dict[str, dict[str, Key]] = {
    "tensors": {
        "rank": RANK,
        "tiles": Key("count", "how many tiles it has", required=True),
        "input": Key("flag", "whether it is written before the launch", default=False),
    },
    "pools": {"rank": RANK, "size": Key("count", "how many cores it has", required=True)},
    "queues": {
        "rank": RANK,
        "core": Key("word", "what runs it", of=CORES, default="aiv"),
        "pool": Key("name", "the pool whose cores it holds while it runs", default=""),
    },
    "events": {
        "kind": Key("word", "how it counts", of=KINDS, default="counter"),
        "rank": Key("count", "the rank it is counted on", default=0),
        "id": Key("count", "its id in hardware or in the array of counters"),
        "mode": Key("count", "of a cross_core event: 0, 1 or 2", default=2),
        "cores": Key("names", "the queues of a cross_core event; source and target of a flag"),
        "arrivals": Key("count", "of an mbarrier: arrivals that complete a phase", default=1),
        "epochs": Key("flag", "launch n waits for n times the threshold", default=False),
    },
}
TASK: dict[str, Key] = {
    "name": Key("name", "unlike that of any other task", required=True),
    "queue": Key("name", "the queue that runs it, behind those before it", required=True),
    "reads": Key("tiles", "tensor: tile, [first, last), a list of such, or all"),
    "writes": Key("tiles", "as reads"),
    "waits": Key("amounts", "event: threshold, or how many to consume"),
    "triggers": Key("amounts", "event: how much is added"),
    "duration": Key("number", "microseconds", default=0.0),
    "operator": Key("name", "the operator that it is a tile of", default=""),
    "quiet": Key("flag", "whether its writes are complete before it triggers", default=True),
}
LAUNCHES: dict[str, Key] = {
    "count": Key("count", "how often the schedule is launched", default=1),
    "zero": Key("names", "counters that their ranks zero between launches"),
    "barrier": Key("word", "where all ranks meet: about the zeroing", of=BARRIERS, default="after"),
}
TOP = (MARK, "name", "ranks", "tensors", "pools", "queues", "events", "tasks", "launches")


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a schedule file."""
    named = {
        section: {"type": "object", "additionalProperties": _object(keys)}
        for section, keys in PARTS.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A static schedule of tile tasks",
        "type": "object",
        "required": [MARK, "ranks", "queues", "tasks"],
        "additionalProperties": False,
        "properties": {
            MARK: {"const": VERSION, "description": "the version of the format"},
            "name": {"type": "string"},
            "ranks": {"type": "integer", "minimum": 1},
            **named,
            "tasks": {"type": "array", "items": _object(TASK)},
            "launches": _object(LAUNCHES),
        },
        "$defs": {"range": _RANGE},
    }


_RANGE = {
    "type": "array",
    "items": {"type": "integer", "minimum": 0},
    "minItems": 2,
    "maxItems": 2,
}
_KINDS: dict[str, dict[str, Any]] = {
    "count": {"type": "integer", "minimum": 0},
    "flag": {"type": "boolean"},
    "name": {"type": "string"},
    "word": {"type": "string"},
    "names": {"type": "array", "items": {"type": "string"}},
    "number": {"type": "number", "minimum": 0},
    "amounts": {
        "type": "object",
        "additionalProperties": {"type": "integer", "minimum": 1},
    },
    "tiles": {
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"const": "all"},
                {"$ref": "#/$defs/range"},
                {"type": "array", "items": {"$ref": "#/$defs/range"}, "minItems": 1},
            ]
        },
    },
}


def _object(keys: dict[str, Key]) -> dict[str, Any]:
    properties = {}
    for name, key in keys.items():
        properties[name] = {**_KINDS[key.kind], "description": key.text}
        if key.of:
            properties[name]["enum"] = list(key.of)
    required = [name for name, key in keys.items() if key.required]
    made: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return {**made, "required": required} if required else made
