// Happens-before: each step below what it depends on, drawn as far as it is in sight.

const LAYER = 64;
const BOX = { width: 150, height: 40 };
const COLUMN = BOX.width + 22;
const MESSAGES = new Set(["put", "read", "write"]);
const graphBox = byId("graph");
const graphHeading = make("div", { class: "heading", "aria-hidden": "true" });
const graphSpace = make("div", { class: "space" });
graphBox.append(graphHeading, graphSpace);

const columns = [];
run.graph.widths.reduce((at, width, lane) => {
  columns[lane] = at;
  return at + width;
}, 0);
const graphWidth = run.graph.widths.reduce((sum, width) => sum + width, 0) * COLUMN + 24;
const graphHeight = run.graph.depth * LAYER + 24;
const places = new Map(
  run.graph.nodes.map(([step, lane, layer, column]) => [
    step,
    { layer, x: 18 + (columns[lane] + column) * COLUMN, y: 14 + layer * LAYER },
  ]),
);

function showGraph() {
  if (graphBox.closest("[hidden]")) return;
  graphSpace.style.height = `${graphHeight}px`;
  graphSpace.style.width = `${graphWidth}px`;
  const place = places.get(stepAt(view.position));
  if (place) {
    const top = place.y + graphHeading.offsetHeight;
    bringIntoSight(graphBox, top - 8, top + BOX.height + 24, graphHeading.offsetHeight);
    if (place.x < graphBox.scrollLeft) graphBox.scrollLeft = place.x - 18;
    const right = place.x + BOX.width + 18 - graphBox.clientWidth;
    if (right > graphBox.scrollLeft) graphBox.scrollLeft = right;
  }
  drawGraph();
}

function drawGraph() {
  if (graphBox.closest("[hidden]")) return;
  const hidden = graphHeading.offsetHeight;
  const first = Math.floor((graphBox.scrollTop - hidden) / LAYER) - 3;
  const last = Math.ceil((graphBox.scrollTop + graphBox.clientHeight) / LAYER) + 3;
  const step = stepAt(view.position);
  const near = step < 0 ? null : new Set([...reachable(step, before), ...reachable(step, behind)]);
  const edges = run.graph.edges.filter(([one, two]) => {
    const [from, to] = [places.get(one).layer, places.get(two).layer];
    return Math.min(from, to) <= last && Math.max(from, to) >= first;
  });
  const nodes = run.graph.nodes.filter(([, , layer]) => layer >= first && layer <= last);
  const top = Math.max(0, first * LAYER);
  const bottom = Math.min(graphHeight, (last + 1) * LAYER + 24);
  const missing = edges.filter(([, , why]) => why === "missing");
  const parts = [
    ...edges.filter(([, , why]) => why !== "missing").flatMap((edge) => edgeLine(edge, near)),
    ...nodes.map((node) => nodeBox(node, near, step)),
    ...missing.flatMap(([one, two]) => missingLine(places.get(one), places.get(two))),
  ];
  const drawing = draw(
    "svg",
    { width: graphWidth, height: Math.max(0, bottom - top), viewBox: `0 ${top} ${graphWidth} ${bottom - top}`, role: "img", "aria-label": describeGraph() },
    ...parts,
  );
  drawing.style.top = `${top}px`;
  drawing.style.pointerEvents = "auto";
  graphSpace.replaceChildren(drawing);
}

function describeGraph() {
  const missing = run.failure.edge || run.failure.message;
  return `${run.graph.nodes.length} steps and ${run.graph.edges.length} dependencies. ${missing}`;
}

function drawGraphHeading() {
  const names = run.lanes.map((name, lane) =>
    run.graph.widths[lane] ? draw("text", { x: 18 + columns[lane] * COLUMN, y: 21 }, name) : "",
  );
  graphHeading.replaceChildren(draw("svg", { width: graphWidth, height: 32 }, ...names));
  graphHeading.style.width = `max(100%, ${graphWidth}px)`;
}

function edgeLine([one, two, why], near) {
  const [from, to] = [places.get(one), places.get(two)];
  const x1 = from.x + BOX.width / 2;
  const x2 = to.x + BOX.width / 2;
  const y1 = from.y + BOX.height;
  const y2 = to.y - 6;
  const bend = Math.max(14, (y2 - y1) / 2);
  const apart = near && !(near.has(one) && near.has(two)) ? " apart" : "";
  const kind = MESSAGES.has(why) ? " message" : "";
  const title = draw("title", {}, `step ${two + 1}, after step ${one + 1}: ${run.graph.words[why]}`);
  return [
    draw("path", { class: `edge-line${kind}${apart}`, d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}` }, title),
    draw("path", { class: kind ? "tip" : "edge-tip", d: `M${x2} ${y2 + 5}l-3.5 -6h7z` }),
  ];
}

function missingLine(from, to) {
  const sideways = to.x >= from.x ? 1 : -1;
  const same = from.x === to.x;
  const x1 = same || sideways < 0 ? from.x : from.x + BOX.width;
  const x2 = same ? to.x - 8 : sideways < 0 ? to.x + BOX.width + 8 : to.x - 8;
  const y1 = from.y + BOX.height / 2;
  const y2 = to.y + BOX.height / 2;
  const out = same ? -40 : sideways * 40;
  const back = same ? -40 : -sideways * 40;
  const tip = x2 + (same || sideways > 0 ? 8 : -8);
  const point = same || sideways > 0 ? -9 : 9;
  const isSteep = Math.abs(y2 - y1) > Math.abs(x2 - x1);
  const word = {
    x: (x1 + x2) / 2 - (isSteep ? 9 : 0),
    y: (y1 + y2) / 2 - (isSteep ? 0 : 6),
    "text-anchor": isSteep ? "end" : "middle",
  };
  return [
    draw("path", { class: "missing", d: `M${x1} ${y1}C${x1 + out} ${y1} ${x2 + back} ${y2} ${x2} ${y2}` }),
    draw("path", { class: "missing-tip", d: `M${tip} ${y2}l${point} -4.5v9z` }),
    draw("text", { class: "missing-word", ...word }, "not ordered"),
  ];
}

function nodeBox([number, lane], near, chosen) {
  const { x, y } = places.get(number);
  const step = run.steps[number];
  const [verb, rest] = wordsOf(step);
  const kinds = ["node"];
  if (lane === fabric) kinds.push("fabric");
  if (number === run.failure.step) kinds.push("fails");
  if (number === chosen) kinds.push("chosen");
  if (near && !near.has(number)) kinds.push("apart");
  const node = draw(
    "g",
    { class: kinds.join(" "), transform: `translate(${x} ${y})`, "data-step": number },
    draw("title", {}, `${run.lanes[lane]}: ${step.text}`),
    draw("rect", { width: BOX.width, height: BOX.height, rx: 7 }),
    draw("text", { x: 12, y: rest ? 17 : 25 }, draw("tspan", { class: "count" }, String(number + 1)), ` ${verb}`),
    draw("text", { class: "small", x: 12, y: 32 }, rest),
  );
  node.addEventListener("click", () => selectStep(number));
  return node;
}

function wordsOf(step) {
  if (step.lane === fabric) {
    const cell = step.lands[0] ?? step.reads[0];
    return [step.put >= 0 ? "lands" : "fabric", short(cell === undefined ? step.text : run.cells[cell].block)];
  }
  const [verb, ...rest] = step.text.split(" ");
  return [short(verb), short(rest.join(" ").split(":")[0])];
}

const short = (text) => (text.length > 19 ? `${text.slice(0, 18)}…` : text);

whenSeen(graphBox, drawGraph);
view.listeners.push(showGraph);
