// The form of What should I call?, and its answer in words.
import { advise, adviseFromPool, alignmentOf, beyond, certainty, isPoolUnknown, readsInPlace } from "./advice.js";

const LAYOUTS = ["packed", "pitched", "scattered"];
const BY_SIZE = "as the size";
const ALIGNMENTS = [BY_SIZE, "128", "16", "1"];
const SURE = 0.95;
// Another machine's way is worth a warning if it is this many times as fast.
const NOTABLE = 1.1;
const UNITS = { "": 1, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
const NONE = "–";
// Columns of the table that are left out if no way has a value.
const COSTS = { submit: "CPU time until the call returns", cpu: "CPU time of all threads", gpu: "GPU time" };
const MAX_BYTES = 2 ** 40;

// Bytes such as 4096 or `24 KiB`; null if the text is none.
export function parseSize(text) {
  const found = /^\s*(\d+)\s*([KMG]iB|B|)\s*$/.exec(ungrouped(text));
  const size = found ? Number(found[1]) * UNITS[found[2]] : 0;
  return size >= 1 && size <= MAX_BYTES ? size : null;
}

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
    made.lastChild.append(evidenceOf(one.variant, one.isMeasured ? "measured" : "modelled"), one.isWalking ? ", page walks" : "");
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
  if (isPoolUnknown(adviser, job)) {
    const reach = writtenBytes(adviser.reach_elsewhere);
    const pool = `How much a pool of ${writtenBytes(job.pool)} slows reads by a kernel was not measured on ${nameOf(adviser)}`;
    found.push(lead(`${pool}, so these ways have no time here. On another machine, pools above ${reach} are slower.`));
  }
  const unmeasured = adviser.unmeasured ?? [];
  const elsewhere = advisers
    .filter((other) => other !== adviser)
    .map((other) => [other, adviseFromPool(other, job, memory)[0]])
    .filter(([, way]) => way && unmeasured.includes(way.variant) && (!best || best.seconds > NOTABLE * way.seconds));
  for (const [other, way] of elsewhere.slice(0, 1)) {
    const what = best ? "Faster ways were" : "The ways for such pieces were";
    const fastest = `the fastest is ${wordsOf(other, way.variant)}: ${costOf(way, payload)}`;
    const text = `${what} not measured on ${nameOf(adviser)}. On ${nameOf(other)}, ${fastest} (`;
    found.push(lead(text, evidenceOf(way.variant, "code and samples"), ")."));
  }
  return found;
}

// Notes on how a pool slows kernels that read in place.
function poolNotes(adviser, advices, job) {
  const walking = advices.find((one) => one.isWalking);
  if (walking) {
    const slower = `Page walks of a pool of ${writtenBytes(job.pool)} slow reads by a kernel, from ${written(walking.base)} to ${written(walking.seconds)}. Rows stored together, or packing by the CPU beside reads by the GPU, avoid most walks: `;
    const largest = adviser.pools.at(-1)[0];
    const beyondAll = job.pool > largest ? ` No pool above ${writtenBytes(largest)} was measured.` : "";
    return [line([slower, linkTo("../../studies/pool_gather/", "what to do"), `.${beyondAll}`])];
  }
  const isWrite = job.direction === "d2h" && job.host === "scattered" && job.pool > (adviser.reach_elsewhere ?? Infinity);
  if (!isWrite || !advices.some(readsInPlace)) return [];
  return [line(["Writes to a large pool were not measured: a kernel's times are for one that the GPU's translations cover."])];
}

// The call, its rate and its cost, then how sure that is. `asked`: the job, its memory and payload, and
// the number of its requests.
function sentences(adviser, advisers, advices, asked) {
  const { job, payload, requests } = asked;
  const [best, second] = advices;
  const warned = warnings(adviser, advisers, advices, asked);
  const found = [...warned];
  if (!best) return [...found, lead("No way that can move these pieces was measured on this machine.")];
  const each = requests > 1 ? `, ${written(best.seconds / requests)} a request` : "";
  const cost = best.submit === null ? "" : ` CPU time until the call returns: ${written(best.submit)}.`;
  const use = warned.length ? "Of the ways measured here, use" : "Use";
  const [time, rate] = [written(best.seconds), rateOf(best, payload)];
  found.push(lead(`${use} ${wordsOf(adviser, best.variant)}: ${time}${each}, ${rate} GB/s.${cost}`));
  found.push(...sourceOf(adviser, best), ...poolNotes(adviser, advices, job));
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
  const number = "a whole number of at least 1";
  return [
    { name: "machine", options: advisers.map(({ machine }) => machine), labels: advisers.map(({ machine, called }) => called ?? machine) },
    { name: "size", start: "16 KiB", label: "size of a piece", expected: bytes, parse: parseSize },
    { name: "count", start: "4096", label: "pieces of a request", expected: number, parse: parseCount },
    { name: "batch", start: "1", label: "requests in one call", expected: number, parse: parseCount },
    { name: "host", options: LAYOUTS, start: "scattered", label: "on the host" },
    { name: "device", options: LAYOUTS, start: "scattered", label: "on the device" },
    { name: "pool", start: "1 GiB", label: "pool on the host", expected: bytes, parse: parseSize },
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
function leftOut(adviser, advisers, job, memory) {
  const isList = [job.host, job.device].includes("scattered");
  const missing = isList ? (adviser.unmeasured ?? []) : [];
  const few = beyond(adviser, job, memory);
  const walking = isPoolUnknown(adviser, job) ? advise(adviser, job, memory).filter(readsInPlace) : [];
  const callOf = (name) => wordsOf(advisers.find(({ calls }) => calls?.[name]) ?? adviser, name);
  const named = (names) => [...new Set(names.map(callOf))].join("; ");
  return [
    missing.length ? `Not measured on this machine: ${named(missing)}.` : "",
    few.length ? `Not measured with such a number of pieces: ${named(few)}.` : "",
    walking.length ? `Not measured from such a pool: ${named(walking.map(({ variant }) => variant))}.` : "",
  ]
    .filter(Boolean)
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

  const update = () => {
    const values = {};
    for (const { name, label, field, parse, expected } of inputs) {
      values[name] = parse ? parse(field.value) : field.value;
      if (values[name] === null) {
        status.replaceChildren(lead(`${label}: expected ${expected}, got “${field.value}”.`));
        answer.replaceChildren();
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
    const adviser = advisers.find((one) => one.machine === machine);
    const advices = adviseFromPool(adviser, job, memory);
    const payload = job.size * job.count;
    const asked = { job, memory, payload, requests: batch };
    status.replaceChildren(...sentences(adviser, advisers, advices, asked));
    answer.replaceChildren(tableOf(adviser, advices, payload), element("p", leftOut(adviser, advisers, job, memory), { className: "hp-quiet" }));
  };
  keepInAddress(form, widget, inputs, update);
}
