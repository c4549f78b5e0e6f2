"""Schedules as plain data and as text of the file format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from syncproof.models.taskflow.format import MARK, PARTS, TASK
from syncproof.models.taskflow.schedule import VERSION, Schedule, Task, Tiles


def to_data(schedule: Schedule) -> dict[str, Any]:
    """What a file of this schedule holds; read again it is the same schedule."""
    data: dict[str, Any] = {MARK: VERSION, "name": schedule.name, "ranks": schedule.ranks}
    for section in PARTS:
        parts: Mapping[str, Any] = getattr(schedule, section)
        if parts:
            data[section] = {name: _part(section, part) for name, part in parts.items()}
    data.setdefault("queues", {})
    data["tasks"] = [_task(task) for task in schedule.tasks]
    launches = schedule.launches
    data["launches"] = {
        "count": launches.count,
        "zero": list(launches.zero),
        "barrier": launches.barrier,
    }
    return data


def to_text(schedule: Schedule) -> str:
    """JSON with a line for each part, so that lines mean something."""
    data = to_data(schedule)
    lines = []
    for key, value in data.items():
        head = json.dumps(key)
        if isinstance(value, dict) and key in PARTS:
            rows = [f"    {json.dumps(name)}: {json.dumps(part)}" for name, part in value.items()]
            lines.append(f"  {head}: {{\n" + ",\n".join(rows) + "\n  }")
        elif isinstance(value, list):
            rows = [f"    {json.dumps(task)}" for task in value]
            lines.append(f"  {head}: [\n" + ",\n".join(rows) + "\n  ]")
        else:
            lines.append(f"  {head}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _part(section: str, part: Any) -> dict[str, Any]:
    found = {}
    for name, key in PARTS[section].items():
        value = getattr(part, "is_input" if name == "input" else name)
        value = list(value) if isinstance(value, tuple) else value
        if key.required or (value != key.default and value not in (None, [])):
            found[name] = value
    return found


def _task(task: Task) -> dict[str, Any]:
    found: dict[str, Any] = {"name": task.name, "queue": task.queue}
    for name, key in TASK.items():
        value = getattr(task, name)
        if key.kind == "tiles" and value:
            found[name] = _tiles(value)
        elif key.kind == "amounts" and value:
            found[name] = dict(value)
        elif name not in found and key.kind in ("number", "name", "flag") and value != key.default:
            found[name] = value
    return found


def _tiles(accesses: Iterable[Tiles]) -> dict[str, Any]:
    found: dict[str, list[list[int]]] = {}
    for access in accesses:
        found.setdefault(access.tensor, []).append([access.first, access.last])
    return {name: each[0] if len(each) == 1 else each for name, each in found.items()}
