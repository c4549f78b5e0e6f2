// Swim-lanes: a row for each step, drawn as far as they are in sight.

const ROW = 34;
const END = 62;
const TRACK = 5;
const MOST_TRACKS = 8;
const LEFT = 20;
const lanesBox = byId("lanes");
const heading = make("div", { class: "heading", "aria-hidden": "true" });
const space = make("div", { class: "space", role: "presentation" });
lanesBox.append(heading, space);
let layout;

function layOut() {
  const used = new Set(run.failure.blocked);
  for (const number of view.shown) {
    const step = run.steps[number];
    for (const lane of [step.lane, ...step.joined]) used.add(lane);
  }
  const flights = flightsOf();
  if (flights.length) used.add(fabric);
  const lanes = [...used].sort((one, other) => one - other);
  const tracks = giveTracks(flights);
  const room = Math.min(300, lanesBox.clientWidth * 0.3);
  const gap = Math.max(15, Math.min(44, Math.floor(room / lanes.length)));
  const x = new Map(lanes.map((lane, place) => [lane, LEFT + place * gap + (lane === fabric ? tracks * TRACK : 0)]));
  const width = Math.max(...x.values(), LEFT) + 22;
  const [indent, words] = lanesBox.clientWidth < 560 ? [38, 170] : [54, 320];
  layout = { lanes, flights, x, width, indent, words, height: view.shown.length * ROW + END };
}

// Each put from issue to landing, as places among the rows; those that never land end at once.
function flightsOf() {
  const flights = [];
  for (const [place, number] of view.shown.entries()) {
    const { put, lane, issues } = run.steps[number];
    if (put >= 0 && view.places.has(put)) {
      flights.push({ from: view.places.get(put), to: place, lane: run.steps[put].lane, lost: false });
    }
    if (issues > (landings.get(number) ?? []).length) {
      flights.push({ from: place, to: place, lane, lost: true });
    }
  }
  return flights.sort((one, other) => one.from - other.from || one.to - other.to);
}

function giveTracks(flights) {
  const free = [];
  for (const flight of flights.filter((each) => !each.lost)) {
    let track = free.findIndex((until) => until <= flight.from);
    if (track < 0) track = free.push(0) - 1;
    free[track] = flight.to;
    flight.track = track % MOST_TRACKS;
  }
  return Math.min(free.length, MOST_TRACKS);
}

function drawHeading() {
  const { lanes, x, width, indent, words } = layout;
  const longest = Math.max(...lanes.map((lane) => run.lanes[lane].length));
  const height = Math.min(24 + longest * 4.6, 150);
  const names = lanes.map((lane) =>
    draw("text", { transform: `translate(${x.get(lane) + 3} ${height - 9}) rotate(-42)` }, run.lanes[lane]),
  );
  const room = indent + width + longest * 6;
  const drawing = draw("svg", { width: room, height, viewBox: `${-indent} 0 ${room} ${height}` }, ...names);
  heading.replaceChildren(drawing);
  space.style.height = `${layout.height}px`;
  for (const box of [heading, space]) box.style.minWidth = `${indent + width + words}px`;
}

// Rows

function drawRows() {
  if (lanesBox.closest("[hidden]")) return;
  const hidden = heading.offsetHeight;
  const top = lanesBox.scrollTop;
  const first = Math.max(0, Math.floor((top - hidden) / ROW) - 6);
  const last = Math.min(view.shown.length, Math.ceil((top + lanesBox.clientHeight) / ROW) + 6);
  const rows = [];
  for (let place = first; place <= last; place += 1) rows.push(rowAt(place));
  if (view.position < first || view.position > last) rows.push(rowAt(view.position));
  space.replaceChildren(...rows, drawingOf(first, last));
  lanesBox.setAttribute("aria-activedescendant", `row-${view.position}`);
}

function rowAt(place) {
  const number = stepAt(place);
  const row = make("div", {
    id: `row-${place}`,
    role: "option",
    class: "row",
    "aria-selected": String(place === view.position),
    "aria-posinset": place + 1,
    "aria-setsize": view.shown.length + 1,
  });
  row.style.top = `${place * ROW}px`;
  row.addEventListener("click", () => select(place));
  const gap = make("span", { class: "gap" });
  gap.style.width = `${layout.width - 14}px`;
  if (number < 0) fillEnd(row, gap);
  else fillRow(row, gap, number);
  return row;
}

function fillRow(row, gap, number) {
  const step = run.steps[number];
  const text = make("span", { class: "text" });
  if (step.lane === fabric) {
    row.classList.add("fabric");
    text.append(step.text, step.put >= 0 ? ` (step ${step.put + 1})` : "");
  } else {
    const [verb, ...rest] = step.text.split(" ");
    text.append(make("b", {}, verb), rest.length ? ` ${rest.join(" ")}` : "");
  }
  if (run.failure.step === number) row.classList.add("fails");
  const line = run.lines[step.line];
  const source = make("span", { class: "source" }, line ? `${line.file.split("/").pop()}:${line.line}` : "");
  row.title = step.text;
  row.append(make("span", { class: "number" }, String(number + 1)), gap, text, source);
}

function fillEnd(row, gap) {
  const { property, message, edge } = run.failure;
  row.classList.add("end");
  const words = `${property}: ${message}${edge ? `; ${edge}` : ""}`;
  row.title = words;
  row.append(make("span", { class: "number" }), gap, make("span", { class: "text" }, words));
}

// Lanes, marks and arrows

function drawingOf(first, last) {
  const top = first * ROW;
  const height = Math.min((last + 1) * ROW + END, layout.height) - top;
  const { x, lanes, flights, width, indent } = layout;
  const parts = lanes.map((lane) => draw("line", { class: "lane", x1: x.get(lane), x2: x.get(lane), y1: top, y2: top + height }));
  for (const flight of flights) {
    if (flight.from <= last && flight.to >= first) parts.push(...flightLine(flight));
  }
  parts.push(...missingEdge());
  for (let place = first; place <= last; place += 1) parts.push(...marksAt(place));
  const drawing = draw("svg", { width, height, viewBox: `0 ${top} ${width} ${height}`, "aria-hidden": "true" }, ...parts);
  drawing.style.top = `${top}px`;
  drawing.style.left = `${indent}px`;
  return drawing;
}

const middleOf = (place) => place * ROW + ROW / 2;

function flightLine({ from, to, lane, lost, track }) {
  const { x } = layout;
  const end = x.get(fabric);
  const turn = end - 13 - track * TRACK;
  const y1 = middleOf(from);
  const y2 = middleOf(to);
  const chosen = view.position === from || view.position === to ? " chosen" : "";
  const turned = `M${x.get(lane)} ${y1}H${turn - 4}Q${turn} ${y1} ${turn} ${y1 + 6}`;
  if (lost) {
    const stub = draw("path", { class: `flight lost${chosen}`, d: `M${x.get(lane)} ${y1}H${end - 10}` });
    return [stub, draw("circle", { class: `open${chosen}`, cx: end - 6.5, cy: y1, r: 3.5 })];
  }
  const path = `${turned}V${y2 - 6}Q${turn} ${y2} ${turn + 4} ${y2}H${end - 8}`;
  const tip = `M${end - 5} ${y2}l-6 -3.5v7z`;
  return [draw("path", { class: `flight${chosen}`, d: path }), draw("path", { class: "tip", d: tip })];
}

function missingEdge() {
  const [one, two] = run.failure.unordered.map((step) => view.places.get(step));
  if (one === undefined || two === undefined) return [];
  const { x } = layout;
  const x1 = x.get(run.steps[view.shown[one]].lane);
  const x2 = x.get(run.steps[view.shown[two]].lane);
  const y1 = middleOf(one);
  const y2 = middleOf(two);
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
  const [tx, ty] = [x2 - ux * 8, y2 - uy * 8];
  const line = `M${x1 + ux * 7} ${y1 + uy * 7}L${tx - ux * 5} ${ty - uy * 5}`;
  const tip = `M${tx} ${ty}L${tx - ux * 9 - uy * 4.5} ${ty - uy * 9 + ux * 4.5}L${tx - ux * 9 + uy * 4.5} ${ty - uy * 9 - ux * 4.5}z`;
  return [draw("path", { class: "missing", d: line }), draw("path", { class: "missing-tip", d: tip })];
}

function marksAt(place) {
  const { x } = layout;
  const y = middleOf(place);
  const number = stepAt(place);
  if (number < 0) return run.failure.blocked.map((lane) => cross(x.get(lane), y + 8));
  const step = run.steps[number];
  if (step.lane === fabric) {
    const kind = step.put >= 0 ? "landing" : "other";
    return [draw("path", { class: kind, d: `M${x.get(fabric)} ${y - 6.5}l6.5 6.5l-6.5 6.5l-6.5 -6.5z` })];
  }
  if (run.failure.step === number) return [cross(x.get(step.lane), y)];
  const members = [...new Set([step.lane, ...step.joined])].map((lane) => x.get(lane));
  const marks = members.map((at) => draw("circle", { class: "mark", cx: at, cy: y, r: 5.5 }));
  if (members.length > 1) {
    marks.unshift(draw("line", { class: "join", x1: Math.min(...members), x2: Math.max(...members), y1: y, y2: y }));
  }
  return marks;
}

function cross(x, y) {
  return draw("path", { class: "cross", d: `M${x - 5} ${y - 5}l10 10m0 -10l-10 10` });
}

const drawRowsLater = whenSeen(lanesBox, drawRows);

function showLanes(changed) {
  if (changed) {
    layOut();
    drawHeading();
  }
  const top = view.position * ROW + heading.offsetHeight;
  const isLast = view.position >= view.shown.length - 1;
  bringIntoSight(lanesBox, top, top + (isLast ? ROW + END : 2 * ROW), heading.offsetHeight);
  drawRows();
}

window.addEventListener("resize", () => {
  layOut();
  drawHeading();
});
view.listeners.push(showLanes);
