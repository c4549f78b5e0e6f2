"""The page in a real browser: what is drawn, how it is stepped through, and what it never does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import networkx
import pytest

from syncproof.models.verdict import Answer, PropertyVerdict, Trace, Verdict
from syncproof.reports.gate_page import gate_page
from syncproof.reports.page import page_of
from tests import gates, page_examples
from tests.page_examples import ALL, long_run, trace_of

pytestmark = pytest.mark.outside("chromium")

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
WIDE, NARROW = (1280, 900), (390, 800)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Debian's Chromium, headless; closed before other tests, whose event loops it disturbs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page in the browser, with what it asked for and complained of."""

    page: Any
    url: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def check(self) -> None:
        """Nothing but the file was asked for, and nothing went wrong."""
        assert self.requests == [self.url]
        assert self.complaints == []

    def text(self, selector: str) -> str:
        """What a reader sees of an element."""
        return " ".join(self.page.inner_text(selector).split())

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)


Open = Callable[..., Opened]


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a report from disk; at the end no request has left and no error was logged."""
    pages: list[Opened] = []
    contexts = []

    def open_page(
        thing: Verdict | Trace | str,
        scheme: str = "light",
        size: tuple[int, int] = WIDE,
        **more: Any,
    ) -> Opened:
        file = tmp_path / f"report{len(pages)}.html"
        html = thing if isinstance(thing, str) else page_of(thing, **more)
        file.write_text(html, encoding="utf-8")
        context = chromium.new_context(
            color_scheme=scheme, viewport={"width": size[0], "height": size[1]}, offline=True
        )
        contexts.append(context)
        found = Opened(context.new_page(), file.as_uri())
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.on(
            "requestfailed", lambda request: found.refused.update({request.url: request.failure})
        )
        found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
        found.page.on("console", lambda message: found.complaints.append(message.text))
        found.page.goto(found.url)
        pages.append(found)
        return found

    yield open_page
    for each in contexts:
        each.close()
    for page in pages:
        page.check()


def selected(page: Opened) -> str:
    """The id of the selected row; it is the one that assistive technology is told of."""
    rows: list[str] = page.page.eval_on_selector_all(
        ".row[aria-selected=true]", "rows => rows.map(row => row.id)"
    )
    assert len(rows) == 1
    assert page.page.get_attribute("#lanes", "aria-activedescendant") == rows[0]
    return rows[0]


def memory_shown(page: Opened) -> dict[tuple[str, str], tuple[str, str]]:
    """Each field's value before and after the selected step, as they are read on the page."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    rows: list[list[str]] = page.page.evaluate(
        """() => [...document.querySelectorAll(".block")].flatMap(block =>
            [...block.querySelectorAll("dt")].map(name => [
                block.querySelector("h4").textContent, name.textContent,
                name.nextElementSibling.querySelector(".old")?.textContent ?? "",
                (name.nextElementSibling.querySelector(".new")
                    ?? name.nextElementSibling.firstElementChild).textContent]))"""
    )
    for block, name, old, new in rows:
        found[block, name] = (old or new, new)
    return found


# Each kind of answer


@pytest.mark.parametrize("example", ALL, ids=lambda each: each.__name__)
def test_every_answer_has_its_page(example: Callable[[], Verdict], opened: Open) -> None:
    """Answer, properties with their reasons, bounds, assumptions and statistics can be read."""
    verdict = example()
    page = opened(verdict, about="What it is.", again="check-protocol check it")
    assert page.page.title() == f"{verdict.question.protocol}: {verdict.answer.value}"
    text = page.text("body")
    for each in verdict.properties:
        assert f"{each.property} {each.answer.value} {each.detail}".strip() in text
    assert f"{verdict.states:,}" in text
    assert "2 ranks" in text and "at most 2 in flight per source and atom" in text
    assert "What it is." in text and "check-protocol check it" in text
    for name, assumed in verdict.assumptions.items():
        assert f"{name}: {assumed}" in text
    for note in verdict.notes:
        assert note in text
    assert (page.page.query_selector("#run") is None) == (verdict.trace is None)


def test_a_proof_says_of_what(opened: Open) -> None:
    """The page of a proof has its statistics, every bound and every key of the fabric."""
    verdict = page_examples.proof()
    page = opened(verdict)
    figures = page.text(".figures")
    assert f"states {verdict.states:,}" in figures
    assert f"transitions {verdict.transitions:,}" in figures
    page.page.click("summary")
    keys = page.text("details")
    for name, value in {**verdict.question.bounds, **verdict.question.fabric}.items():
        assert f"{name} {' '.join(json.dumps(value).split())}" in keys


def test_a_proof_shows_what_carries_it(opened: Open) -> None:
    """Each event in its place, those that the data comes by marked, and what each comes after."""
    verdict = page_examples.explained()
    assert verdict.chains is not None
    page = opened(verdict)
    assert page.page.locator(".carried").count() == len(verdict.chains.carried) == 1
    (each,) = verdict.chains.carried
    rows = page.page.eval_on_selector_all(
        ".events li", "rows => rows.map(r => [r.innerText, r.className])"
    )
    assert len(rows) == len(each.events)
    for number, (text, kind) in enumerate(rows):
        told = " ".join(text.split())
        event = each.events[number]
        assert told.startswith(f"{number + 1} {event.actor} {event.text}")
        assert (kind == "link") == (number in each.chain)
        for order in each.orders:
            assert (f"{order.why} {order.first + 1}" in told) or order.second != number
    assert f"Of {verdict.chains.consumes} consumes" in page.text("main")


def test_engines_that_disagree_are_shown_apart(opened: Open) -> None:
    """An error of ours is not shown as an answer: each engine's own is beside it."""
    verdict = page_examples.broken()
    one = replace(page_examples.proof(), engine="reference")
    other = replace(page_examples.stale(), engine="reduced", trace=None)
    page = opened(verdict, engines=(one, other))
    assert "The engines disagree" in page.text(".headline")
    assert page.text("h1").endswith("error")
    table = page.text(".fit")
    assert "reference proved" in table and "reduced violated" in table


# A run


def test_it_opens_at_the_failure(opened: Open) -> None:
    """The failing read is selected, marked in its lane, and the missing edge is drawn and said."""
    trace = trace_of(page_examples.torn())
    page = opened(page_examples.torn())
    assert selected(page) == "row-7"
    assert page.text(".row.fails .text") == trace.steps[7].text
    assert page.page.locator("#lanes .cross").count() == 1
    assert page.page.locator("#lanes .missing").count() == 1
    for place in (".headline", "#details", ".row.end"):
        assert trace.message in page.text(place)
    assert trace.missing_edge in page.text(".headline")
    assert trace.missing_edge in page.text("#details .wrong")
    assert "SENTINEL" in page.text("#details .wrong-value")


def test_each_step_is_told_in_full(opened: Open) -> None:
    """Stepping through with the keys shows lane, words, source, kernel line and memory of each."""
    trace = trace_of(page_examples.torn())
    page = opened(page_examples.torn())
    names = {cell.number: (cell.block, cell.field, cell.byte) for cell in trace.memory}
    labels = {
        number: (block, field if field != "rest" else f"rest @{byte} B")
        for number, (block, field, byte) in names.items()
    }
    held = {labels[cell.number]: cell.initial for cell in trace.memory}
    page.press("Home")
    for number, step in enumerate(trace.steps):
        assert selected(page) == f"row-{number}"
        assert page.text("#position") == f"step {number + 1} of {len(trace.steps)}"
        details = page.text("#details")
        assert step.text in details and step.actor in details
        if step.line is not None:
            assert f"{step.line.file}:{step.line.line}" in details
            assert " ".join(step.line.text.split()) in details
            assert step.line.at in details
        if step.put >= 0:
            assert f"issued in step {step.put + 1}" in details
        before = dict(held)
        for cell, change in zip(step.writes, step.changes, strict=True):
            held[labels[cell]] = change.after
        assert memory_shown(page) == {name: (before[name], held[name]) for name in held}
        page.press("ArrowRight")
    assert selected(page) == f"row-{len(trace.steps)}"
    assert page.text("#position") == "the end"


def test_keys_buttons_and_slider_say_the_same(opened: Open) -> None:
    """Every way to step moves the one selection, and none goes beyond the ends."""
    page = opened(page_examples.torn())
    page.press("Home", "ArrowUp", "ArrowLeft")
    assert selected(page) == "row-0"
    assert page.page.is_disabled("#previous")
    page.press("PageDown", "PageDown", "ArrowDown")
    assert selected(page) == "row-8"
    assert page.page.is_disabled("#next")
    page.page.click("#previous")
    assert selected(page) == "row-7"
    page.page.click("#row-2")
    assert page.page.input_value("#slider") == "2"
    page.page.click("#next")
    assert selected(page) == "row-3"
    page.page.focus("#slider")
    page.press("ArrowRight", "ArrowRight")
    assert selected(page) == "row-5"
    assert page.page.get_attribute("#slider", "aria-valuetext") == "step 6 of 8"
    page.press("f")
    assert selected(page) == "row-7"
    page.page.fill("#slider", "1")
    assert selected(page) == "row-1"


def test_links_lead_to_the_other_end_of_a_put(opened: Open) -> None:
    """From an issue to its landing and back, and what never lands is said."""
    page = opened(page_examples.torn())
    page.page.click("#row-1")
    assert "lands in step 6; 1 more in flight at the end" in page.text("#details")
    page.page.click("#details .links button >> text=step 6")
    assert selected(page) == "row-5"
    page.page.click("#details .links button >> text=step 2")
    assert selected(page) == "row-1"
    page.page.click("#row-4")
    assert "does not land before the end" in page.text("#details")


def test_puts_are_arrows_from_issue_to_landing(opened: Open) -> None:
    """A torn block has an arrow for each atom, and what is in flight at the end has no tip."""
    trace = trace_of(page_examples.torn())
    page = opened(page_examples.torn())
    landed = sum(step.put >= 0 for step in trace.steps)
    issued = sum(step.issues for step in trace.steps)
    assert (landed, issued) == (2, 4)
    assert page.page.locator("#lanes .flight:not(.lost)").count() == landed
    assert page.page.locator("#lanes .tip").count() == landed
    assert page.page.locator("#lanes .flight.lost").count() == issued - landed
    page.page.click("#row-1")
    assert page.page.locator("#lanes .flight.chosen").count() == 2
    marks = page.page.evaluate(
        """() => {
            const middle = row => { const box = document.getElementById(row)
                .getBoundingClientRect(); return box.top + box.height / 2; };
            return [...document.querySelectorAll("#lanes .flight:not(.lost)")].map(path => {
                const box = path.getBoundingClientRect();
                const rows = [...document.querySelectorAll(".row")].map(row => row.id);
                const near = y => rows.find(row => Math.abs(middle(row) - y) < 3);
                return [near(box.top), near(box.bottom)];
            });
        }"""
    )
    ends = [(f"row-{step.put}", f"row-{n}") for n, step in enumerate(trace.steps) if step.put >= 0]
    assert sorted(map(tuple, marks)) == sorted(ends)


def test_every_step_stands_in_its_lane(opened: Open) -> None:
    """The mark of each step is under the name of who takes it; a sync has one for each member."""
    trace = trace_of(page_examples.overwritten())
    page = opened(page_examples.overwritten())
    acting = {name for step in trace.steps for name in (step.actor, *step.joined)}
    lanes = [name for name in trace.processes if name in acting]
    names = page.page.eval_on_selector_all(
        "#lanes .heading text", "all => all.map(each => each.textContent)"
    )
    assert names == [*lanes, "fabric"]
    marks = page.page.evaluate(
        """() => {
            const lines = [...document.querySelectorAll("#lanes .lane")]
                .map(each => Number(each.getAttribute("x1")));
            const rows = [...document.querySelectorAll(".row:not(.end)")].map(row => {
                const box = row.getBoundingClientRect();
                return [row.id, box.top + box.height / 2];
            });
            const shapes = "#lanes .mark, #lanes .landing, #lanes .cross";
            const svg = document.querySelector("#lanes .space svg").getBoundingClientRect();
            return [...document.querySelectorAll(shapes)].map(each => {
                const box = each.getBoundingClientRect();
                const [x, y] = [box.left + box.width / 2 - svg.left, box.top + box.height / 2];
                const lane = lines.findIndex(line => Math.abs(line - x) < 3);
                return [rows.find(([, at]) => Math.abs(at - y) < 3)[0], lane];
            });
        }"""
    )
    wanted = {
        (f"row-{number}", names.index(lane))
        for number, step in enumerate(trace.steps)
        for lane in {step.actor, *step.joined}
    }
    assert {tuple(each) for each in marks} == wanted


def test_a_hang_shows_who_waits(opened: Open) -> None:
    """The end is selected, blocked processes are crossed out, the wait-for table is below."""
    verdict = page_examples.hang()
    trace = trace_of(verdict)
    page = opened(verdict)
    assert selected(page) == f"row-{len(trace.steps)}"
    assert page.page.locator("#lanes .cross").count() == len(trace.waiting)
    rows = page.page.locator("section:has(#waiting) tbody tr").all_inner_texts()
    assert len(rows) == len(trace.waiting)
    for row, waiting in zip(rows, trace.waiting, strict=True):
        for part in (waiting.process, waiting.operation, waiting.reason, *waiting.helpers):
            assert part in row
    assert memory_shown(page)["window[0][1, 0, 0]", "lead"] == ("SENTINEL", "SENTINEL")


def test_a_run_without_steps(opened: Open) -> None:
    """A hang before the first step has its end alone."""
    page = opened(page_examples.at_once())
    assert selected(page) == "row-0"
    page.press("ArrowRight", "Home", "End", "g", "f")
    assert page.page.locator("section:has(#waiting) tbody tr").count() == 2


def test_steps_that_do_not_matter_are_left_out_until_asked_for(opened: Open) -> None:
    """The slice is shown first, under the numbers of the whole run; a box shows all."""
    trace = trace_of(page_examples.overwritten())
    shown = tuple(n for n in range(len(trace.steps)) if n not in (1, 6))
    page = opened(replace(trace, shown=shown))
    numbers = page.page.locator(".row .number").all_inner_texts()
    assert numbers == [str(n + 1) for n in shown] + [""]
    assert page.page.locator("#all-label").inner_text() == f"all {len(trace.steps)} steps"
    page.page.click("#row-0")
    page.page.check("#all")
    assert page.page.locator(".row").count() == len(trace.steps) + 1
    assert selected(page) == "row-0"
    page.page.uncheck("#all")
    assert page.page.locator(".row").count() == len(shown) + 1


# Happens-before


def test_the_graph_is_that_of_the_slice(opened: Open) -> None:
    """A node for each step, a line for each dependency, and the missing one apart."""
    trace = trace_of(page_examples.torn())
    page = opened(page_examples.torn())
    page.press("g")
    assert page.page.is_visible("#graph") and not page.page.is_visible("#lanes")
    steps = page.page.eval_on_selector_all(
        "#graph .node", "nodes => nodes.map(node => Number(node.dataset.step))"
    )
    assert sorted(steps) == list(trace.shown)
    titles = page.page.eval_on_selector_all(
        "#graph .edge-line title", "titles => titles.map(title => title.textContent)"
    )
    assert sorted(title.split(":")[0] for title in titles) == sorted(
        f"step {number + 1}, after step {cause + 1}"
        for number, step in enumerate(trace.steps)
        for cause in step.after
    )
    assert page.page.locator("#graph .missing").count() == 1
    assert page.page.locator("#graph .node.fails").get_attribute("data-step") == "7"
    page.press("g")
    assert page.page.is_visible("#lanes") and not page.page.is_visible("#graph")


def test_the_graph_steps_with_the_run(opened: Open) -> None:
    """A click on a node selects its step; what is neither before nor after it is faint."""
    trace = trace_of(page_examples.torn())
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(trace.steps)))
    graph.add_edges_from((cause, n) for n, step in enumerate(trace.steps) for cause in step.after)
    page = opened(page_examples.torn())
    page.page.click("#tab-graph")
    for number, step in enumerate(trace.steps):
        page.page.click(f"#graph .node[data-step='{number}'] rect")
        assert step.text in page.text("#details")
        assert page.page.locator("#graph .node.chosen").get_attribute("data-step") == str(number)
        faint = page.page.eval_on_selector_all(
            "#graph .node.apart", "nodes => nodes.map(node => Number(node.dataset.step))"
        )
        near = networkx.ancestors(graph, number) | networkx.descendants(graph, number) | {number}
        assert set(faint) == set(graph) - near


def test_tabs_work_by_keyboard(opened: Open) -> None:
    """The arrow keys change between the tabs, and only the open one is a stop."""
    page = opened(page_examples.torn())
    page.page.focus("#tab-lanes")
    page.press("ArrowRight")
    assert page.page.evaluate("document.activeElement.id") == "tab-graph"
    assert page.page.get_attribute("#tab-graph", "aria-selected") == "true"
    assert page.page.get_attribute("#tab-lanes", "tabindex") == "-1"
    page.press("ArrowLeft")
    assert page.page.is_visible("#lanes")


def test_everything_is_reached_by_tab(opened: Open) -> None:
    """Tab leads through tabs, buttons, slider, run, details and the links in them."""
    page = opened(page_examples.torn())
    page.page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(20):
        page.press("Tab")
        reached.add(
            page.page.evaluate("document.activeElement.id || document.activeElement.tagName")
        )
    assert {"tab-lanes", "previous", "slider", "next", "lanes", "details", "BUTTON"} <= reached


# Size


def test_4000_steps_are_drawn_as_far_as_they_are_seen(opened: Open) -> None:
    """However long the run, the page holds what is in sight, at every place of it.

    It loads in half a second; ten are allowed here, for a machine that does other things too.
    """
    trace = long_run(1_000)
    page = opened(trace)
    assert page.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") < 10_000
    few = 2_500
    count = "document.querySelectorAll('*').length"
    assert page.page.evaluate(count) < few
    assert selected(page) == "row-3999"
    for place in (0, 2_000, 3_999):
        page.page.fill("#slider", str(place))
        assert selected(page) == f"row-{place}"
        assert page.page.evaluate(count) < few
        box = page.page.locator(f"#row-{place}").bounding_box()
        frame = page.page.locator("#lanes").bounding_box()
        assert frame["y"] <= box["y"] and box["y"] + box["height"] <= frame["y"] + frame["height"]
        assert page.text(f"#row-{place} .number") == str(place + 1)
    page.press("g")
    assert page.page.evaluate(count) < few
    assert page.page.locator("#graph .node.chosen").get_attribute("data-step") == "3999"
    page.page.eval_on_selector("#graph", "box => { box.scrollTop = 0; box.scrollLeft = 0; }")
    page.page.wait_for_selector("#graph .node[data-step='0']")
    assert page.page.evaluate(count) < few


def test_scrolling_shows_other_rows(opened: Open) -> None:
    """What is scrolled into sight is drawn, and the selection stays what it was."""
    page = opened(long_run(1_000))
    page.page.eval_on_selector("#lanes", "box => { box.scrollTop = 34 * 1000; }")
    page.page.wait_for_selector("#row-1005")
    assert page.page.is_visible("#row-1005 .text")
    assert selected(page) == "row-3999"


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_many_lanes_leave_room_for_words(size: tuple[int, int], opened: Open) -> None:
    """With 64 processes the lanes are scrolled sideways, and every step can still be read."""
    page = opened(long_run(64, ranks=32), size=size)
    page.page.eval_on_selector("#lanes", "box => { box.scrollLeft = box.scrollWidth; }")
    frame = page.page.locator("#lanes").bounding_box()
    words = page.page.locator(".row[aria-selected=true] .text").bounding_box()
    assert words["width"] > 100
    assert words["x"] + words["width"] <= frame["x"] + frame["width"]
    names = page.page.eval_on_selector_all("#lanes .heading text", "all => all.length")
    assert names == 65


def test_memory_of_a_long_run(opened: Open) -> None:
    """With many blocks those of the step are shown, and all on demand."""
    trace = long_run(1_000)
    page = opened(trace)
    page.page.fill("#slider", "2001")
    change = trace.steps[2001].changes[0]
    assert memory_shown(page) == {(change.block, "lead"): (change.before, change.after)}
    page.page.check("#all-blocks")
    values = {cell.number: cell.initial for cell in trace.memory}
    for step in trace.steps[:2001]:
        values.update((c, each.after) for c, each in zip(step.writes, step.changes, strict=True))
    shown = memory_shown(page)
    assert {name: old for name, (old, _) in shown.items()} == {
        (cell.block, "lead"): values[cell.number] for cell in trace.memory
    }


# To be read by everyone


def violations_of(page: Opened) -> list[str]:
    """What axe-core finds wrong for assistive technology and contrast."""
    from axe_playwright_python.sync_playwright import Axe

    found: list[dict[str, Any]] = Axe().run(page.page).response["violations"]
    return [each["id"] for each in found]


def check_accessible(page: Opened) -> None:
    """Roles, names and contrasts are as axe-core asks, in both views."""
    assert violations_of(page) == []
    if page.page.query_selector("#run"):
        page.press("g")
        assert violations_of(page) == []


@pytest.mark.parametrize(("example", "scheme"), [("torn", "light"), ("hang", "dark")])
def test_accessible(example: str, scheme: str, opened: Open) -> None:
    """A run can be read with assistive technology, in light and in dark."""
    check_accessible(opened(getattr(page_examples, example)(), scheme))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_gate_is_a_page_for_everyone(scheme: str, opened: Open) -> None:
    """Its table leads to what failed and from there to the run; nothing sticks out."""
    links = {gates.VIOLATION.obligation.name: [("the run step by step", "1.html")]}
    page = opened(gate_page(gates.WHOLE, links), scheme, NARROW)
    assert violations_of(page) == []
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.page.evaluate(wide) <= 0
    assert page.page.locator(".obligations tbody tr").count() == len(gates.EACH)
    marks = page.page.eval_on_selector_all(".mark span", "all => all.map(e => e.ariaLabel)")
    assert marks == ["yes" if each not in gates.WHOLE.failed else "no" for each in gates.EACH]
    leads = page.page.eval_on_selector_all(
        ".obligations a", "all => all.map(a => document.querySelector(a.hash).innerText)"
    )
    names = [each.obligation.name.split()[0] for each in gates.WHOLE.failed]
    assert [each.split()[0] for each in leads] == names
    assert page.page.get_attribute(".failure .links a", "href") == "1.html"


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("example", ["torn", "hang", "proof", "explained", "undecided", "broken"])
def test_all_pages_are_accessible(example: str, scheme: str, opened: Open) -> None:
    """The same for every kind of page in both schemes."""
    check_accessible(opened(getattr(page_examples, example)(), scheme))


def test_axe_would_see_a_bad_contrast(opened: Open) -> None:
    """The check above fails when the words are too faint or a control has no name."""
    page = opened(page_examples.torn())
    page.page.evaluate("document.documentElement.style.setProperty('--muted', '#b0b4b8')")
    assert "color-contrast" in violations_of(page)
    page.page.evaluate("document.getElementById('slider').removeAttribute('aria-label')")
    assert "label" in violations_of(page)


def test_dark_is_dark(opened: Open) -> None:
    """The page follows the reader's colour scheme."""
    brightness = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    assert min(opened(page_examples.torn()).page.evaluate(brightness)) > 200
    assert max(opened(page_examples.torn(), "dark").page.evaluate(brightness)) < 60


@pytest.mark.parametrize("example", ["torn", "hang", "explained"])
def test_narrow_screens_scroll_one_way(example: str, opened: Open) -> None:
    """On a telephone nothing sticks out to the side."""
    page = opened(getattr(page_examples, example)(), size=NARROW)
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.page.evaluate(wide) <= 0


# What is shown is never executed

EVIL = (
    "</script></style><script>document.title = 'executed'</script>"
    "<img src=x onerror=\"document.title='executed'\"> {{ 7 * 7 }} {% x %}"
    " &lt;b&gt; \u202e \x1b[31m"
)


def evil(trace: Trace) -> Trace:
    """A run whose every name and text is markup."""
    names = {name: f"{EVIL}{name}" for name in trace.processes}

    def spoiled(step: Any) -> Any:
        line = step.line and replace(step.line, file=EVIL, text=EVIL, at=EVIL)
        changes = tuple(
            replace(each, block=EVIL, field=EVIL, before=EVIL, after=EVIL) for each in step.changes
        )
        return replace(
            step,
            text=EVIL,
            line=line,
            changes=changes,
            actor=names.get(step.actor, step.actor),
            joined=tuple(names[each] for each in step.joined),
        )

    return replace(
        trace,
        question=replace(trace.question, protocol=EVIL, settings={EVIL: EVIL}, mutant=EVIL),
        property=EVIL,
        message=EVIL,
        choices=((EVIL, EVIL),),
        processes=tuple(names.values()),
        missing_edge=f"{EVIL}!",
        steps=tuple(map(spoiled, trace.steps)),
        memory=tuple(
            replace(each, block=f"{EVIL}{each.block}", field=EVIL, initial=EVIL)
            for each in trace.memory
        ),
        waiting=tuple(
            replace(
                each,
                process=names[each.process],
                line=each.line and replace(each.line, file=EVIL, text=EVIL, at=EVIL),
                operation=EVIL,
                sees=EVIL,
                helpers=(EVIL,),
                reason=EVIL,
            )
            for each in trace.waiting
        ),
    )


@pytest.mark.parametrize("example", ["torn", "hang", "overwritten"])
def test_markup_is_shown_and_not_executed(example: str, opened: Open) -> None:
    """Names, messages, sources and values that hold markup, scripts or templates stay text."""
    found: Verdict = getattr(page_examples, example)()
    trace = evil(trace_of(found))
    verdict = replace(
        found,
        question=trace.question,
        engine=EVIL,
        properties=(PropertyVerdict(EVIL, Answer.VIOLATED, EVIL),),
        assumptions={EVIL: EVIL},
        persists=(EVIL,),
        routing=EVIL,
        notes=(EVIL,),
        trace=trace,
    )
    page = opened(verdict, about=EVIL, again=EVIL, engines=(verdict, verdict))
    page.press("Home", *["ArrowRight"] * (len(trace.steps) + 1), "g", "Home", "ArrowRight")
    assert page.page.title() != "executed"
    assert page.page.locator("img").count() == 0
    assert page.page.locator("script").count() == 2
    assert page.page.locator("style").count() == 1
    plain = EVIL.replace("\u202e", "\\u202e").replace("\x1b", "\\x1b")
    assert page.text("h1").startswith(" ".join(plain.split()))
    assert page.text("#details .what") == " ".join(plain.split())
    assert "49" not in page.text("h1")


def test_the_policy_stops_what_would_get_through(opened: Open) -> None:
    """Even a script that got into the page would not run, and nothing could be fetched."""
    page = opened(page_examples.torn())
    page.page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "document.title = 'executed'";
            document.body.append(script);
            document.body.append(Object.assign(document.createElement("img"),
                {src: "http://127.0.0.1:9/x.png"}));
            document.body.insertAdjacentHTML("beforeend",
                "<b style='color: red' onclick=\\"document.title = 'executed'\\">x</b>");
            document.body.lastElementChild.click();
        }"""
    )
    assert page.page.title() != "executed"
    assert len([each for each in page.complaints if "Content Security Policy" in each]) == 4
    page.page.wait_for_timeout(50)
    assert page.refused == {"http://127.0.0.1:9/x.png": "csp"}
    assert page.requests == [page.url, *page.refused]
    page.requests[1:] = []
    page.complaints.clear()


def test_a_request_or_an_error_would_be_noticed(opened: Open) -> None:
    """What every test above rests on: a page that asks for something or fails is seen to."""
    html = "<title>x</title><img src='x.png'><script>console.error('broken'); nothing();</script>"
    page = opened(html)
    page.page.wait_for_load_state()
    assert len(page.requests) == 2
    assert any("broken" in each for each in page.complaints)
    assert any("nothing" in each for each in page.complaints)
    page.requests[1:] = []
    page.complaints.clear()
