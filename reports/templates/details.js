// The selected step in full, and memory before and after it.

const FEW_BLOCKS = 8;
const details = byId("details");
let allBlocks = blocks.size <= FEW_BLOCKS;

function showDetails() {
  const step = stepAt(view.position);
  const parts = step < 0 ? endOf() : partsOf(step);
  details.replaceChildren(...parts, ...memoryAt(step));
}

function partsOf(number) {
  const step = run.steps[number];
  const who = [run.lanes[step.lane], ...others(step)].join(", ");
  const parts = [
    make("div", {}, make("div", { class: "who" }, `step ${number + 1}, ${who}`), make("p", { class: "what" }, step.text)),
  ];
  if (step.line >= 0) parts.push(sourceOf(run.lines[step.line]));
  const links = linksOf(number, step);
  if (links.length) parts.push(make("ul", { class: "links" }, ...links));
  if (run.failure.step === number) parts.push(wrong());
  return parts;
}

function others(step) {
  return step.joined.filter((lane) => lane !== step.lane).map((lane) => run.lanes[lane]);
}

function sourceOf(line) {
  const source = make("div", { class: "source" }, make("div", { class: "place" }, `${line.file}:${line.line}`), line.text);
  if (line.at) source.append(make("div", { class: "place" }, `kernel: ${line.at}`));
  return source;
}

function linksOf(number, step) {
  const links = [];
  if (step.put >= 0) links.push(make("li", {}, "issued in ", linkTo(step.put)));
  if (step.issues) {
    const landed = landings.get(number) ?? [];
    const missing = step.issues - landed.length;
    const item = make("li", {});
    if (landed.length) item.append("lands in ", ...linksTo(landed));
    if (missing > 0) item.append(landed.length ? `; ${missing} more in flight at the end` : "does not land before the end");
    links.push(item);
  }
  const causes = step.after.filter((cause) => cause !== step.put);
  if (causes.length) links.push(make("li", {}, "comes after ", ...linksTo(causes)));
  return links;
}

function linkTo(step) {
  const button = make("button", { type: "button" }, `step ${step + 1}`);
  button.addEventListener("click", () => selectStep(step));
  return button;
}

function linksTo(steps) {
  return steps.flatMap((step, place) => (place ? [", ", linkTo(step)] : [linkTo(step)]));
}

function wrong() {
  const { property, message, edge } = run.failure;
  const box = make("div", { class: "wrong" }, make("strong", {}, property), make("p", {}, message));
  if (edge) box.append(make("p", {}, edge));
  return box;
}

function endOf() {
  const parts = [make("div", {}, make("div", { class: "who" }, "the end"), make("p", { class: "what" }, "The run ends here"))];
  const blocked = run.failure.blocked.map((lane) => run.lanes[lane]).join(", ");
  if (blocked) parts.push(make("p", {}, `blocked: ${blocked}`));
  parts.push(wrong());
  return parts;
}

// Memory

function memoryAt(step) {
  if (!blocks.size) return [];
  const touched = step < 0 ? new Set() : blocksOf(step);
  const title = make("div", { class: "over" }, make("h3", {}, step < 0 ? "Memory at the end" : "Memory before and after this step"));
  if (blocks.size > FEW_BLOCKS) title.append(choiceOfBlocks());
  const names = [...blocks.keys()].filter((name) => allBlocks || touched.has(name));
  const shown = names.map((name) => blockAt(name, step, touched.has(name)));
  if (!shown.length) shown.push(make("p", { class: "muted" }, "This step touches none."));
  return [make("div", { id: "memory" }, title, ...shown)];
}

function choiceOfBlocks() {
  const box = make("input", { type: "checkbox", id: "all-blocks" });
  box.checked = allBlocks;
  box.addEventListener("change", () => {
    allBlocks = box.checked;
    showDetails();
    byId("all-blocks").focus();
  });
  return make("label", {}, box, `all ${blocks.size} blocks`);
}

function blockAt(name, step, isTouched) {
  const reads = new Set(step < 0 ? [] : run.steps[step].reads);
  const fails = step >= 0 && step === run.failure.step;
  const list = make("dl");
  for (const cell of blocks.get(name)) {
    const { field, byte } = run.cells[cell];
    list.append(make("dt", {}, byte < 0 ? field : `${field} @${byte} B`), valueAt(cell, step, reads.has(cell), fails));
  }
  const isWrong = fails && blocks.get(name).some((cell) => reads.has(cell));
  const kind = isWrong ? "block wrong-read" : isTouched ? "block touched" : "block";
  return make("div", { class: kind }, make("h4", {}, name), list);
}

function valueAt(cell, step, isRead, fails) {
  const last = run.steps.length;
  const old = valueBefore(cell, step < 0 ? last : step);
  const now = valueBefore(cell, step < 0 ? last : step + 1);
  const value = make("dd");
  if (old === now) value.append(make("span", isRead && fails ? { class: "wrong-value" } : {}, now));
  else value.append(make("span", { class: "old" }, old), " → ", make("span", { class: "new" }, now));
  if (isRead) value.append(" ", make("span", { class: "read" }, "read"));
  return value;
}

view.listeners.push(showDetails);
