// The form of What should I call?, and its answer in words.
import { NOTABLE, alignmentOf, answers, certainty, isPoolTooLarge, leftOut, nearestCell, nearestGather } from "./advice.js";

const LAYOUTS = ["packed", "pitched", "scattered"];
const BY_SIZE = "as the size";
const ALIGNMENTS = [BY_SIZE, "128", "16", "1"];
const SURE = 0.95;
const UNITS = { "": 1, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
const NONE = "–";
// Columns of the table that are left out if no way has a value.
const COSTS = { submit: "CPU time until the call returns", cpu: "CPU time of all threads", gpu: "GPU time" };
const MAX_BYTES = 2 ** 40;

// Bytes such as 4096 or `24 KiB`; null if the text is none.
export function parseSize(text) {
  const found = /^\s*(\d+)\s*([KMGT]iB|B|)\s*$/.exec(ungrouped(text));
  const size = found ? Number(found[1]) * UNITS[found[2]] : 0;
  return size >= 1 && size <= MAX_BYTES ? size : null;
}

// The same with a unit.
const parseWithUnit = (text) => (/B\s*$/.test(text) ? parseSize(text) : null);

// 4,096 and 4 096 are numbers as this site writes them.
function ungrouped(text) {
  return text.replace(/(?<=\d)[,\s](?=\d{3})/g, "");
}

function parseCount(text) {
  const plain = ungrouped(text);
  const count = /^\s*\d+\s*$/.test(plain) ? Number(plain) : 0;
  return count >= 1 && count <= MAX_BYTES ? count : null;
}

function written(value) {
  for (const [scale, prefix] of [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]]) {
    if (value >= scale) return `${Number((value / scale).toPrecision(3))} ${prefix}s`;
  }
  return "0 s";
}

function writtenBytes(bytes) {
  for (const [unit, scale] of Object.entries(UNITS).reverse()) {
    if (unit && bytes >= scale) return `${Number((bytes / scale).toPrecision(3))} ${unit}`;
  }
  return `${bytes} B`;
}

// Without rounding: a size of pieces as a key.
function exactBytes(bytes) {
  const [unit, scale] = Object.entries(UNITS).findLast(([name, known]) => name && bytes % known === 0);
  return `${bytes / scale} ${unit}`;
}

const piecesOf = ({ size, count }) => `${count} × ${exactBytes(size)}`;

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  Object.assign(made, attributes);
  return made;
}

function row(tag, cells) {
  const made = document.createElement("tr");
  made.append(...cells.map((cell) => element(tag, cell)));
  return made;
}

// A line of the answer from texts and elements; a lead is printed larger.
function line(parts, className = "") {
  const made = element("p", "", { className });
  made.append(...parts);
  return made;
}

const lead = (...parts) => line(parts, "hp-lead");

function linkTo(address, text) {
  return element("a", text, { href: new URL(address, import.meta.url) });
}

const evidenceOf = (variant, text) => linkTo(`../../studies/transfers/#${variant}`, text);
const wordsOf = ({ calls }, variant) => calls?.[variant]?.words ?? variant;
const nameOf = ({ called, machine }) => called ?? machine;
const rateOf = (advice, payload) => (payload / advice.seconds / 1e9).toPrecision(3);
const costOf = (advice, payload) => `${written(advice.seconds)}, ${rateOf(advice, payload)} GB/s`;

function tableOf(adviser, advices, payload) {
  const table = element("table", "", { className: "hp" });
  table.dataset.stacked = "";
  const head = document.createElement("thead");
  const costs = Object.entries(COSTS).filter(([key]) => advices.some((one) => one[key] !== null));
  const columns = ["way", "time", "GB/s", ...costs.map(([, name]) => name), "basis"];
  const isNumber = (place) => place > 0 && place < columns.length - 1;
  const heads = row("th", columns);
  [...heads.cells].forEach((cell, place) => cell.classList.toggle("hp-number", isNumber(place)));
  head.append(heads);
  const body = document.createElement("tbody");
  const orNone = (seconds) => (seconds === null ? NONE : written(seconds));
  for (const one of advices) {
    const time = `${written(one.seconds)} (${written(one.low)} to ${written(one.high)})`;
    const cells = [wordsOf(adviser, one.variant), time, rateOf(one, payload), ...costs.map(([key]) => orNone(one[key])), ""];
    const made = row("td", cells);
    [...made.cells].forEach((cell, place) => {
      cell.dataset.column = columns[place];
      cell.classList.toggle("hp-number", isNumber(place));
      cell.toggleAttribute("data-none", cell.textContent === NONE);
    });
    made.lastChild.append(evidenceOf(one.variant, one.isMeasured ? "measured" : "modelled"));
    made.firstChild.title = `${one.variant}: ${one.title}`;
    body.append(made);
  }
  table.append(head, body);
  const box = element("div", "", { className: "hp-table hp-few", tabIndex: 0 });
  const all = element("button", `All ${advices.length} ways`, { className: "hp-button", type: "button" });
  all.onclick = () => box.classList.remove("hp-few");
  box.append(table, all);
  return box;
}

// Missing measurements on this machine that may change the answer.
function warnings(adviser, advisers, advices, asked) {
  const { job, memory, payload } = asked;
  const found = [];
  const [best] = advices;
  const unmeasured = adviser.unmeasured ?? [];
  const elsewhere = advisers
    .filter((other) => other !== adviser)
    .map((other) => [other, answers(other, job, memory)[0]])
    .filter(([, way]) => way && unmeasured.includes(way.variant) && (!best || best.seconds > NOTABLE * way.seconds));
  for (const [other, way] of elsewhere.slice(0, 1)) {
    const what = best ? "Faster ways were" : "The ways for such pieces were";
    const fastest = `the fastest is ${wordsOf(other, way.variant)}: ${costOf(way, payload)}`;
    const text = `${what} not measured on ${nameOf(adviser)}. On ${nameOf(other)}, ${fastest} (`;
    found.push(lead(text, evidenceOf(way.variant, "code and samples"), ")."));
  }
  return found;
}

// Says that no way was measured near the job, and names the nearest cell.
function refusal(adviser, { job, memory }) {
  const cell = nearestCell(adviser, job, memory);
  if (!cell) return [lead("No way that can move these pieces was measured on this machine.")];
  const there = `The nearest measured cell: ${piecesOf(cell)} in ${written(cell.seconds)}, by ${wordsOf(adviser, cell.variant)} (`;
  return [lead(`Not measured on ${nameOf(adviser)}: ${piecesOf(job)}.`), line([there, evidenceOf(cell.variant, "code and samples"), ")."])];
}

// Says that lists from such a pool were not measured, and names the nearest gather of the study that measured them.
function poolRefusal(adviser, job) {
  const reach = adviser.reach ? `, beyond the ${writtenBytes(adviser.reach)} that a GPU's translations cover` : "";
  const refused = lead(`Not measured on ${nameOf(adviser)}: lists in a pool of ${writtenBytes(job.pool)}${reach}.`);
  const study = linkTo("../../studies/pool_gather/", "Gather from a large pool");
  const cell = nearestGather(adviser, job);
  if (!cell) return [refused, line(["See the study ", study, "."])];
  const there = `${piecesOf(cell)} from ${writtenBytes(cell.pool)} in ${written(cell.seconds)}, by `;
  const way = linkTo(`../../studies/pool_gather/#${cell.variant}`, cell.variant);
  return [refused, line(["The nearest cell of the study ", study, `: ${there}`, way, "."])];
}

// The call, its rate and its cost, then how sure that is. `asked`: the job, its memory and payload, and
// the number of its requests.
function sentences(adviser, advisers, advices, asked) {
  const { payload, requests } = asked;
  const [best, second] = advices;
  const warned = warnings(adviser, advisers, advices, asked);
  const found = [...warned];
  if (!best) return [...found, ...refusal(adviser, asked)];
  const each = requests > 1 ? `, ${written(best.seconds / requests)} a request` : "";
  const cost = best.submit === null ? "" : ` CPU time until the call returns: ${written(best.submit)}.`;
  const use = warned.length ? "Of the ways measured here, use" : "Use";
  const [time, rate] = [written(best.seconds), rateOf(best, payload)];
  found.push(lead(`${use} ${wordsOf(adviser, best.variant)}: ${time}${each}, ${rate} GB/s.${cost}`));
  found.push(...sourceOf(adviser, best));
  if (!second) return [...found, line(["No other way was measured."])];
  const probability = Math.round(certainty(best, second) * 100);
  const other = wordsOf(adviser, second.variant);
  const slower = (second.seconds / best.seconds).toPrecision(3);
  const compared =
    certainty(best, second) >= SURE
      ? `It is ${slower} times as fast as the next way: ${other}.`
      : `Another way may be as fast: ${other} (predicted ${written(second.seconds)}; probability that it is slower: ${probability} %).`;
  return [...found, line([compared])];
}

// Where to find the call: a kernel's source in full, and its code on the page of the study.
function sourceOf(adviser, { variant }) {
  const source = adviser.calls?.[variant]?.source;
  const page = evidenceOf(variant, "code and samples");
  if (!source) return [line([page])];
  const box = document.createElement("details");
  const lines = source.trimEnd().split("\n").length;
  const text = element("pre", "", { tabIndex: 0 });
  text.append(element("code", source));
  box.append(element("summary", `Source of the kernel, ${lines} lines`), text);
  return [line([page]), box];
}

function inputsOf(advisers) {
  const memories = [...new Set(advisers.flatMap(({ ways }) => ways.map(({ memory }) => memory)))].sort();
  const bytes = "bytes such as 4096, 24 KiB or 16 MiB";
  const withUnit = "bytes with a unit such as 188 MiB or 40 GiB";
  const number = "a whole number of at least 1";
  return [
    { name: "machine", options: advisers.map(({ machine }) => machine), labels: advisers.map(({ machine, called }) => called ?? machine) },
    { name: "size", start: "16 KiB", label: "size of a piece", expected: bytes, parse: parseSize },
    { name: "count", start: "4096", label: "pieces of a request", expected: number, parse: parseCount },
    { name: "batch", start: "1", label: "requests in one call", expected: number, parse: parseCount },
    { name: "host", options: LAYOUTS, start: "scattered", label: "on the host" },
    { name: "device", options: LAYOUTS, start: "scattered", label: "on the device" },
    { name: "pool", start: "512 MiB", label: "pool on the host", expected: withUnit, parse: parseWithUnit },
    { name: "direction", options: ["h2d", "d2h"] },
    { name: "stream", options: ["idle", "busy"] },
    { name: "alignment", options: ALIGNMENTS, label: "alignment in bytes" },
    { name: "memory", options: ["any", ...memories], start: "pinned" },
  ];
}

function fieldOf({ name, options, label, labels = options }) {
  const box = document.createElement("label");
  box.append(element("span", label ?? name, { className: "vega-bind-name" }));
  const field = document.createElement(options ? "select" : "input");
  field.name = name;
  if (options) field.append(...options.map((option, i) => element("option", labels[i], { value: option })));
  else field.size = 9;
  box.append(field);
  return [box, field];
}

// The ways that the table leaves out, for want of times.
function notes(adviser, advisers, advices, { job, memory }) {
  const isList = [job.host, job.device].includes("scattered");
  const missing = isList ? (adviser.unmeasured ?? []) : [];
  const far = leftOut(adviser, job, memory);
  const callOf = (name) => wordsOf(advisers.find(({ calls }) => calls?.[name]) ?? adviser, name);
  const answered = advices.map(({ variant }) => callOf(variant));
  const named = (names) => [...new Set(names.map(callOf))].filter((call) => !answered.includes(call)).join("; ");
  return [
    ["Not measured on this machine", named(missing)],
    ["Not measured near such pieces", named(far)],
  ]
    .filter(([, calls]) => calls)
    .map(([what, calls]) => `${what}: ${calls}.`)
    .join(" ");
}

// Fills `root` with the form and its answer. The address has what differs from the start, by
// `<widget>.<field>`.
export function show(root, advisers, widget, keepInAddress) {
  const inputs = inputsOf(advisers).map((input) => {
    const [box, field] = fieldOf(input);
    return { ...input, start: input.start ?? input.options[0], box, field };
  });
  const form = element("form", "", { className: "hp-controls", onsubmit: () => false });
  form.setAttribute("aria-label", "What is moved");
  form.append(...inputs.map(({ box }) => box));
  const status = element("div", "", { className: "hp-answer" });
  status.setAttribute("role", "status");
  const answer = document.createElement("div");
  root.append(form, status, answer);

  const refuse = (...lines) => {
    status.replaceChildren(...lines);
    answer.replaceChildren();
  };
  const refuseField = (name, expected) => {
    const { label, field } = inputs.find((input) => input.name === name);
    refuse(lead(`${label}: expected ${expected}, got “${field.value}”.`));
  };

  const update = () => {
    const values = {};
    for (const { name, field, parse, expected } of inputs) {
      values[name] = parse ? parse(field.value) : field.value;
      if (values[name] === null) {
        refuseField(name, expected);
        return;
      }
    }
    const { machine, stream, alignment, memory, batch, ...pieces } = values;
    const job = {
      ...pieces,
      count: pieces.count * batch,
      is_busy: stream === "busy",
      alignment: alignment === BY_SIZE ? alignmentOf(pieces.size) : Number(alignment),
    };
    const payload = job.size * job.count;
    if (job.host === "scattered" && job.pool < payload) {
      refuseField("pool", `at least ${writtenBytes(payload)}, for ${piecesOf(job)}`);
      return;
    }
    const adviser = advisers.find((one) => one.machine === machine);
    if (isPoolTooLarge(adviser, job)) {
      refuse(...poolRefusal(adviser, job));
      return;
    }
    const advices = answers(adviser, job, memory);
    const asked = { job, memory, payload, requests: batch };
    status.replaceChildren(...sentences(adviser, advisers, advices, asked));
    const quiet = element("p", notes(adviser, advisers, advices, asked), { className: "hp-quiet" });
    answer.replaceChildren(...(advices.length ? [tableOf(adviser, advices, payload), quiet] : []));
  };
  keepInAddress(form, widget, inputs, update);
}
