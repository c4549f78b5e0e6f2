// The run and what is selected in it. A position is a place among the steps on show; the one
// behind the last step is the end of the run.

const run = JSON.parse(document.getElementById("data").textContent);
const fabric = run.lanes.indexOf("fabric");
const byId = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// What is on show, and where

const view = { shown: run.shown, places: new Map(), position: 0, listeners: [] };

function show(steps) {
  const kept = stepAt(view.position);
  view.shown = steps;
  view.places = new Map(steps.map((step, place) => [step, place]));
  select(kept < 0 ? steps.length : view.places.get(kept) ?? steps.length, true);
}

function select(position, changed = false) {
  const to = Math.max(0, Math.min(view.shown.length, position));
  if (to === view.position && !changed) return;
  view.position = to;
  for (const listener of view.listeners) listener(changed);
}

function selectStep(step) {
  if (!view.places.has(step)) byId("all").click();
  select(view.places.get(step));
}

function stepAt(position) {
  return position < view.shown.length ? view.shown[position] : -1;
}

function nameOf(position) {
  const step = stepAt(position);
  return step < 0 ? "the end" : `step ${step + 1} of ${run.steps.length}`;
}

// Puts and what became of them

const landings = new Map();
run.steps.forEach((step, number) => {
  if (step.put >= 0) landings.set(step.put, [...(landings.get(step.put) ?? []), number]);
});

// Memory: each cell's values by the steps that wrote them

const history = run.cells.map((cell) => [[-1, cell.initial]]);
run.steps.forEach((step, number) => {
  for (const [cell, value] of step.writes) history[cell].push([number, value]);
});

// The value of a cell when the steps before `step` are done.
function valueBefore(cell, step) {
  const values = history[cell];
  let low = 0;
  let high = values.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (values[middle][0] < step) low = middle;
    else high = middle;
  }
  return values[low][1];
}

const blocks = new Map();
run.cells.forEach((cell, number) => {
  blocks.set(cell.block, [...(blocks.get(cell.block) ?? []), number]);
});

function blocksOf(step) {
  if (step < 0) return new Set();
  const { reads, lands, writes } = run.steps[step];
  return new Set([...reads, ...lands, ...writes.map(([cell]) => cell)].map((cell) => run.cells[cell].block));
}

// What comes before and after a step

const before = run.steps.map((step) => step.after);
const behind = run.steps.map(() => []);
before.forEach((causes, step) => causes.forEach((cause) => behind[cause].push(step)));

function reachable(from, edges) {
  const found = new Set([from]);
  const work = [from];
  while (work.length) {
    for (const next of edges[work.pop()]) {
      if (!found.has(next)) {
        found.add(next);
        work.push(next);
      }
    }
  }
  return found;
}

// Draws what is in sight of a scrolled box, again whenever that changes.

function whenSeen(box, redraw) {
  let asked = false;
  const later = () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      redraw();
    });
  };
  box.addEventListener("scroll", later, { passive: true });
  window.addEventListener("resize", later);
  return later;
}

function bringIntoSight(box, top, bottom, hidden) {
  if (top - hidden < box.scrollTop) box.scrollTop = top - hidden;
  else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
}
