// What the reader does: the slider, the buttons, the tabs and the keyboard.

const slider = byId("slider");
const tabs = [byId("tab-lanes"), byId("tab-graph")];
const PAGE = 10;

function showPosition() {
  const name = nameOf(view.position);
  slider.max = view.shown.length;
  slider.value = view.position;
  slider.setAttribute("aria-valuetext", name);
  byId("position").value = name;
  byId("previous").disabled = view.position === 0;
  byId("next").disabled = view.position === view.shown.length;
}

function failingPosition() {
  return view.places.get(run.failure.step) ?? view.shown.length;
}

function openTab(tab) {
  const hadFocus = [lanesBox, graphBox].includes(document.activeElement);
  for (const each of tabs) {
    const isOpen = each === tab;
    each.setAttribute("aria-selected", String(isOpen));
    each.tabIndex = isOpen ? 0 : -1;
    byId(each.getAttribute("aria-controls")).hidden = !isOpen;
  }
  if (hadFocus) (tab === tabs[0] ? lanesBox : graphBox).focus({ preventScroll: true });
  showLanes(false);
  showGraph();
}

function otherTab() {
  return tabs.find((tab) => tab.getAttribute("aria-selected") === "false");
}

const KEYS = {
  ArrowRight: () => select(view.position + 1),
  ArrowLeft: () => select(view.position - 1),
  ArrowDown: () => select(view.position + 1),
  ArrowUp: () => select(view.position - 1),
  PageDown: () => select(view.position + PAGE),
  PageUp: () => select(view.position - PAGE),
  Home: () => select(0),
  End: () => select(view.shown.length),
  f: () => select(failingPosition()),
  g: () => openTab(otherTab()),
};
const SCROLLS = new Set(["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End"]);

function pressed(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || !(event.key in KEYS)) return;
  const { target } = event;
  if (target.closest("input[type=range]") && event.key.length > 1) return;
  if (target.closest("[role=tab]") && event.key.startsWith("Arrow")) {
    openTab(otherTab());
    tabs.find((tab) => tab.tabIndex === 0).focus();
  } else if (SCROLLS.has(event.key) && !target.closest("#lanes, #graph")) {
    return; // these scroll the page, unless the run has the focus
  } else {
    KEYS[event.key]();
  }
  event.preventDefault();
}

slider.addEventListener("input", () => select(Number(slider.value)));
byId("previous").addEventListener("click", () => select(view.position - 1));
byId("next").addEventListener("click", () => select(view.position + 1));
for (const tab of tabs) tab.addEventListener("click", () => openTab(tab));
document.addEventListener("keydown", pressed);

const all = byId("all");
byId("all-label").hidden = run.shown.length === run.steps.length;
all.checked = false;
all.addEventListener("change", () => show(all.checked ? run.steps.map((_, step) => step) : run.shown));

view.listeners.push(showPosition);
drawGraphHeading();
show(run.shown);
select(failingPosition());
lanesBox.focus({ preventScroll: true });
