"""Fabric profiles: those that are shipped, those in files, and what is refused in one line."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from syncproof.models.errors import UserError
from syncproof.models.fabric import HOPS, Profile
from syncproof.models.profiles import load_profile, shipped_profiles


def refusal(text: str) -> str:
    """The one line that a user sees for ``--fabric text``."""
    with pytest.raises(UserError) as caught:
        load_profile(text)
    line = str(caught.value)
    assert "\n" not in line and len(line) < 400
    return line


def written(folder: Path, content: str | bytes) -> str:
    """A profile file with this content."""
    path = folder / "mine.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def test_the_promised_profiles_are_shipped() -> None:
    """The names that the documentation uses can be given to --fabric."""
    promised = {"cm384", "nvlink", "nvlink-ll128", "rdma-rc", "rdma-unordered", "sc"}
    assert promised <= set(shipped_profiles())
    for name in shipped_profiles():
        assert load_profile(name).name == name


def test_cm384_has_the_papers_numbers() -> None:
    """512-byte atoms (UBEP 3.4) and the latencies of UBEP's table 2."""
    profile = load_profile("cm384")
    assert (profile.store_atomicity, profile.ordering) == (512, "none")
    assert profile.latency_ns == {"same_rank": 218, "one_hop": 929, "two_hops": 2500}


@pytest.mark.parametrize(
    ("name", "atomicity", "ordering"),
    [
        ("nvlink", 16, "none"),
        ("nvlink-ll128", 128, "none"),
        ("rdma-rc", 8, "per_queue"),
        ("rdma-unordered", 8, "none"),
    ],
)
def test_atom_and_order_of_each_fabric(name: str, atomicity: int, ordering: str) -> None:
    """Each shipped fabric has the atomicity and the order that it is named for."""
    profile = load_profile(name)
    assert (profile.store_atomicity, profile.ordering) == (atomicity, ordering)
    assert load_profile("sc").immediate and not profile.immediate


@pytest.mark.parametrize("name", shipped_profiles())
def test_every_value_has_its_source_beside_it(name: str) -> None:
    """In a shipped file no key stands in a paragraph without a comment."""
    file = resources.files("syncproof.specs").joinpath("fabrics", f"{name}.yaml")
    paragraphs = file.read_text(encoding="utf-8").split("\n\n")
    bare = [p for p in paragraphs if "#" not in p and p.strip()]
    assert not bare


def test_documentation_lists_every_profile_and_key() -> None:
    """The README beside the files names what can be given, with its default."""
    readme = resources.files("syncproof.specs").joinpath("fabrics", "README.md")
    text = readme.read_text(encoding="utf-8")
    for name in shipped_profiles():
        assert f"| `{name}` |" in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    defaults = {cells[0].strip("| `"): cells[1] for cells in rows if len(cells) == 3}
    keys = Profile("x").as_data()
    del keys["name"]
    assert defaults.keys() == keys.keys()
    for key, value in keys.items():
        default = "none" if value == {} else str(value).lower() if value in (True, False) else value
        if key == "load_atomicity":
            default = 0
        assert defaults[key].strip("`").startswith(str(default)), key


def test_a_key_is_changed_and_the_rest_kept() -> None:
    """NAME,KEY=VALUE is the named profile but for that key, and says so in its name."""
    changed = load_profile("cm384,store_atomicity=128, same_address_order=false,ordering=none")
    assert (changed.store_atomicity, changed.same_address_order) == (128, False)
    back = {"store_atomicity": 512, "same_address_order": True, "name": "cm384"}
    assert changed.changed(back) == load_profile("cm384")
    assert changed.name.startswith("cm384,store_atomicity=128")


def test_a_file_is_a_profile(tmp_path: Path) -> None:
    """FILE.yaml gives a profile with every key it names and defaults for the others."""
    data = {"store_atomicity": 64, "hops": {"two_hops": {"ordering": "per_queue"}}}
    profile = load_profile(written(tmp_path, yaml.safe_dump(data)))
    assert profile.store_atomicity == 64
    assert profile.changed({"ranks_per_switch": 1}).between(0, 1).ordering == "per_queue"
    assert load_profile(f"{tmp_path}/mine.yaml,signal=prior").signal == "prior"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cm38", ["cm38", "perhaps cm384"]),
        ("rdma_rc", ["perhaps rdma-rc"]),
        ("", ["one of cm384", "FILE.yaml"]),
        ("cm384,store_atomicty=8", ["store_atomicty", "store_atomicity", "cm384"]),
        ("cm384,name=x", ["name"]),
        ("cm384,quiet", ["KEY=VALUE"]),
        ("cm384,quiet=", ["KEY=VALUE"]),
        ("cm384,", ["KEY=VALUE"]),
        ("cm384,quiet=all,quiet=local", ["quiet is given twice"]),
        ("cm384,quiet=some", ["all or target or local"]),
        ("cm384,store_atomicity=abc", ["a whole number"]),
        ("cm384,store_atomicity=true", ["a whole number"]),
        ("cm384,store_atomicity=0", ["a power of two"]),
        ("cm384,store_atomicity=480", ["a power of two"]),
        ("cm384,load_atomicity=-8", ["load_atomicity is -8"]),
        ("cm384,in_flight=0", ["at least 1"]),
        ("cm384,immediate=3", ["true or false"]),
        ("cm384,latency_ns=3", ["a mapping"]),
        ("cm384,quiet={a: 1}", ["quiet is not one value"]),
        ("cm384,quiet=[all", ["malformed YAML"]),
        ("cm384,in_flight=2026-99-99", ["malformed YAML"]),
        ("cm384,quiet=target,load_order=none", ["not modelled"]),
        ("no/such/file.yaml", ["no/such/file.yaml", "No such file"]),
        ("/", ["directory"]),
    ],
)
def test_a_wrong_name_key_or_value_is_one_line(text: str, says: list[str]) -> None:
    """A setting that cannot be used is refused with what is wrong and what would be right."""
    line = refusal(text)
    assert all(part in line for part in says), line


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", ["not a mapping"]),
        ("- 1", ["not a mapping"]),
        ("store_atomicity: [", ["malformed YAML", "mine.yaml:1"]),
        ("a: 1\nb: :\n  c", ["malformed YAML", "mine.yaml:2"]),
        ("store_atomicity: 8\nquiet: all\nquiet: local", ["quiet is given twice", "mine.yaml:3"]),
        ("hops: {one_hop: {signal: own, signal: prior}}", ["signal is given twice"]),
        ("1: 2", ["unknown key '1'"]),
        ("name: x", ["unknown key 'name'"]),
        ("store_atomicity: 8.5", ["a whole number"]),
        ("fence: [orders]", ["orders or drains or none"]),
        ("fence: null", ["orders or drains or none"]),
        ("hops: {three_hops: {}}", ["three_hops", "two_hops"]),
        ("hops: {one_hop: 3}", ["a mapping"]),
        ("hops: {one_hop: {quiet: all}}", ["unknown key 'quiet'", "one_hop"]),
        ("hops: {one_hop: {store_atomicity: 24}}", ["a power of two", "one_hop"]),
        ("latency_ns: {one_hop: fast}", ["nanoseconds"]),
        ("latency_ns: {one_hop: -1}", ["nanoseconds"]),
        ("latency_ns: {one_hop: .nan}", ["nanoseconds"]),
        ("latency_ns: {one_hop: .inf}", ["nanoseconds"]),
        ("latency_ns: {moon: 1}", ["moon"]),
        ("&a {hops: *a}", ["hops"]),
        ("quiet: !!python/object/apply:os.getcwd []", ["malformed YAML"]),
        ("[" * 5000, ["malformed YAML"]),
        (b"\xff\xfe\x00", ["UTF-8"]),
        ("#" * ((1 << 20) + 1), ["larger than"]),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, content: str | bytes, says: list[str]) -> None:
    """A file that cannot be used is refused with its place, and nothing in it is executed."""
    line = refusal(written(tmp_path, content))
    assert "mine.yaml" in line
    assert all(part in line for part in says), line


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([*Profile("x").as_data(), *HOPS, "none", "orders", "per_pair", "target"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*Profile("x").as_data(), *HOPS]), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(ANYTHING | st.text(max_size=40))
def test_any_content_is_a_profile_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: object
) -> None:
    """Whatever a file holds, the answer is a profile or a `UserError`, never another exception."""
    content = data if isinstance(data, str) else yaml.safe_dump(data)
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(content, encoding="utf-8", errors="replace", newline="")
    try:
        assert isinstance(load_profile(str(path)), Profile)
    except UserError as error:
        assert "\n" not in str(error)


SETTINGS = st.from_regex(r"sc(,[a-z_]{1,12}=[\w:{}\[\]&*!.-]{0,8}){0,3}", fullmatch=True)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30) | SETTINGS)
def test_any_setting_is_a_profile_or_one_line(text: str) -> None:
    """Whatever --fabric is given, the answer is a profile or a `UserError`."""
    try:
        assert isinstance(load_profile(text), Profile)
    except UserError as error:
        assert "\n" not in str(error)
