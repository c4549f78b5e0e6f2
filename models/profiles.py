"""Fabric profiles by name or file: what ``--fabric NAME|FILE.yaml[,KEY=VALUE ...]`` means."""

from __future__ import annotations

import difflib
import errno
import os
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from syncproof.models.errors import UserError
from syncproof.models.fabric import Profile, profile_from_data

LARGEST_FILE = 1 << 20
"""Bytes that a profile may have; a file of this size is something else."""

ENDINGS = (".yaml", ".yml")


def shipped_profiles() -> tuple[str, ...]:
    """The names of the profiles in ``specs/fabrics``, in alphabetical order."""
    files = resources.files("syncproof.specs").joinpath("fabrics").iterdir()
    return tuple(sorted(f.name.removesuffix(".yaml") for f in files if f.name.endswith(".yaml")))


def load_profile(text: str) -> Profile:
    """The profile that ``NAME|FILE.yaml[,KEY=VALUE ...]`` names; its name is that text.

    Raises `UserError` for a name, file, key or value that cannot be used.
    """
    base, *settings = (piece.strip() for piece in text.split(","))
    content, where = _content(base)
    profile = profile_from_data(base, parsed_yaml(content, where))
    if not settings:
        return profile
    return profile.changed({"name": ",".join([base, *settings]), **_settings(settings)})


def parsed_yaml(content: str, where: str) -> Any:
    """What a YAML text holds; a `UserError` with file, line and column if it is malformed."""
    try:
        node = yaml.compose(content, Loader=yaml.SafeLoader)
        _refuse_repeated_keys(node, where)
        return yaml.safe_load(content)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else where
        raise UserError(f"malformed YAML: {error.problem}", where=place) from None
    except yaml.YAMLError as error:
        raise UserError(f"malformed YAML: {error}", where=where) from None
    except RecursionError:
        raise UserError("malformed YAML: nested too deeply", where=where) from None
    except ValueError as error:
        raise UserError(f"malformed YAML: {error}", where=where) from None


def _content(base: str) -> tuple[str, str]:
    """The text of a profile and where it comes from."""
    if base.endswith(ENDINGS) or os.sep in base:
        return _file(Path(base)), base
    shipped = shipped_profiles()
    if base not in shipped:
        near = difflib.get_close_matches(base, shipped, n=2)
        expected = f"perhaps {' or '.join(near)}" if near else f"one of {', '.join(shipped)}"
        raise UserError(
            f"no fabric {base!r}", where="--fabric", expected=f"{expected}, or a FILE.yaml"
        )
    file = resources.files("syncproof.specs").joinpath("fabrics", f"{base}.yaml")
    return file.read_text(encoding="utf-8"), f"fabric {base}"


def _file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise OSError(errno.EFBIG, f"larger than {LARGEST_FILE} bytes")
        return content.decode("utf-8")
    except OSError as error:
        what = f"cannot read the fabric profile: {error.strerror or error}"
        raise UserError(what, where=str(path), expected="a YAML file") from None
    except ValueError:
        raise UserError("not a text in UTF-8", where=str(path), expected="a YAML file") from None


def _settings(pieces: list[str]) -> dict[str, Any]:
    """The keys that ``KEY=VALUE`` pieces change, each value as YAML reads a scalar."""
    found: dict[str, Any] = {}
    for piece in pieces:
        where = f"--fabric, {piece!r:.60}"
        key, equals, text = (part.strip() for part in piece.partition("="))
        if not equals or not key or not text:
            raise UserError("not a setting", where=where, expected="KEY=VALUE")
        if key in found or key == "name":
            problem = "is given twice" if key in found else "is not a key"
            raise UserError(f"{key} {problem}", where=where)
        value = parsed_yaml(text, where)
        if isinstance(value, dict | list):
            raise UserError(f"{key} is not one value", where=where, expected="a file for the rest")
        found[key] = value
    return found


def _refuse_repeated_keys(node: yaml.Node | None, where: str) -> None:
    """YAML forbids a key that is given twice; the parser would silently take the last."""
    seen: set[int] = set()
    pending = [node] if node is not None else []
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, yaml.MappingNode):
            keys: set[Any] = set()
            for key, value in each.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in keys:
                        place = f"{where}:{key.start_mark.line + 1}"
                        raise UserError(f"{key.value:.60} is given twice", where=place)
                    keys.add(key.value)
                pending.append(value)
        elif isinstance(each, yaml.SequenceNode):
            pending += each.value
