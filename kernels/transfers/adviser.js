// The adviser in the browser: the same computation as cost.py and adviser.py, on the exported file.

const REACH = 3.0;
const COUNT_WEIGHT = 0.5;
const METRIC = "host_time";
const SIGMAS = 1.96;
const OTHER_PLACE_ERROR = 0.05;
const LINE_BYTES = 128;
const VECTOR_BYTES = 16;

function piece(cost, size) {
  const isBelow = size <= cost.cliff;
  let at = cost.sizes.map((_, i) => i).filter((i) => cost.sizes[i] <= cost.cliff === isBelow);
  if (!at.length) at = cost.sizes.map((_, i) => i);
  const sizes = at.map((i) => cost.sizes[i]);
  const seconds = at.map((i) => cost.piece_s[i]);
  const last = sizes.length - 1;
  if (size <= sizes[0] || last === 0) return seconds[0] * Math.max(1, size / sizes[0]);
  const found = sizes.findIndex((known) => known >= size);
  const right = found < 0 ? last : Math.max(found, 1);
  const line = (i) => seconds[i] + ((seconds[i] - seconds[i - 1]) / (sizes[i] - sizes[i - 1])) * (size - sizes[i]);
  if (size > sizes[last]) return Math.max(line(right), seconds[last] + (size - sizes[last]) * cost.byte_s);
  const before = right > 1 ? line(right - 1) : seconds[0];
  const after = right < last ? line(right + 1) : (seconds[last] * size) / sizes[last];
  return Math.min(line(right), Math.max(before, after));
}

function correction(cost, size, count) {
  let total = 0;
  let weights = REACH ** -4;
  for (const [nearSize, nearCount, logRatio] of cost.misfits) {
    if (nearSize <= cost.cliff !== size <= cost.cliff) continue;
    const square = Math.log2(size / nearSize) ** 2 + (COUNT_WEIGHT * Math.log2(count / nearCount)) ** 2;
    if (square < 1e-12) return logRatio;
    weights += square ** -2;
    total += logRatio * square ** -2;
  }
  return total / weights;
}

// Seconds of `count` pieces of `size` bytes.
export function seconds(cost, size, count) {
  const fitted = (cost.latency_s + count * piece(cost, size)) * Math.exp(correction(cost, size, count));
  return Math.max(fitted, size * count * cost.byte_s);
}

// The largest of 128, 16 and 1 B that divides the size; 128 for an equal part of a cache line.
export function alignmentOf(size) {
  if (size >= VECTOR_BYTES && LINE_BYTES % size === 0) return LINE_BYTES;
  return [LINE_BYTES, VECTOR_BYTES, 1].find((unit) => size % unit === 0);
}

function canDo(way, job) {
  const isVectored = job.alignment >= VECTOR_BYTES && !way.variant.includes("bulk");
  if (way.direction !== job.direction || (way.alignment > job.alignment && !isVectored)) return false;
  if (way.moves === "rows") return job.host !== "scattered" && job.device !== "scattered";
  return way.moves === "any" || job.device === "packed";
}

// Sorts the situations of a variant by their likeness to the job's.
function distance(way, job) {
  const layouts = (way.host !== job.host) + (way.device !== job.device);
  return [way.is_busy !== job.is_busy, way.alignment > job.alignment, layouts, -way.alignment];
}

function isLess(one, other) {
  const place = one.findIndex((value, i) => value !== other[i]);
  return place >= 0 && one[place] < other[place];
}

function adviceOf(way, job) {
  const cost = way.costs[METRIC];
  const [isOtherState, isBetterAligned, layouts] = distance(way, job);
  const isSamePlace = job.count === 1 || (!isOtherState && !isBetterAligned && layouts === 0);
  const cells = cost.misfits.slice(0, cost.measured_here);
  const isMeasured = isSamePlace && cells.some(([size, count]) => size === job.size && count === job.count);
  let error = isMeasured ? cost.noise : Math.hypot(cost.noise, cost.error);
  if (!isSamePlace) error = Math.hypot(error, OTHER_PLACE_ERROR);
  const time = seconds(cost, job.size, job.count);
  const reach = Math.exp(SIGMAS * error);
  const by = (metric) => (metric in way.costs ? seconds(way.costs[metric], job.size, job.count) : null);
  return {
    variant: way.variant,
    title: way.title,
    seconds: time,
    low: time / reach,
    high: time * reach,
    error,
    isMeasured,
    submit: by("submit_time"),
    cpu: by("cpu_time"),
    gpu: by("gpu_time"),
  };
}

// All ways that can do the job from this kind of memory or from `any`, fastest first.
export function advise(adviser, asked, memory = "pinned") {
  const isOnePiece = asked.count === 1 || (asked.host === "packed" && asked.device === "packed");
  const job = isOnePiece ? { ...asked, size: asked.size * asked.count, count: 1, host: "packed", device: "packed" } : asked;
  const nearest = new Map();
  for (const way of adviser.ways) {
    if (memory !== "any" && way.memory !== memory) continue;
    if (!canDo(way, job) || !(METRIC in way.costs)) continue;
    const known = nearest.get(way.variant);
    if (!known || isLess(distance(way, job), distance(known, job))) nearest.set(way.variant, way);
  }
  return [...nearest.values()].map((way) => adviceOf(way, job)).sort((a, b) => a.seconds - b.seconds);
}

// Seconds of page walks for `count` scattered pieces from a pool; 0 where they are not calibrated.
function walkSeconds({ walks, entry_bytes }, { size, count, host, direction, pool }) {
  if (!walks?.length || host !== "scattered" || direction !== "h2d") return 0;
  const touches = count * (1 + (size - 16) / entry_bytes);
  const right = walks.findIndex(([bytes]) => bytes >= pool);
  if (right <= 0) return touches * walks.at(right)[1];
  const [[low, before], [high, after]] = [walks[right - 1], walks[right]];
  return touches * (before + ((after - before) * (pool - low)) / (high - low));
}

// The advices of `advise` for pieces from a pool: kernels that read in place wait for page walks.
export function adviseFromPool(adviser, job, memory) {
  const walked = walkSeconds(adviser, job);
  const slowed = advise(adviser, job, memory).map((one) => {
    if (!/gather|bulk/.test(one.variant) || walked <= one.seconds) return one;
    const factor = walked / one.seconds;
    return { ...one, seconds: walked, low: one.low * factor, high: one.high * factor, isMeasured: false, isWalking: true };
  });
  return slowed.sort((a, b) => a.seconds - b.seconds);
}

// Probability that `best` is faster than `second`.
export function certainty(best, second) {
  const z = Math.log(second.seconds / best.seconds) / Math.hypot(best.error, second.error);
  return 1 / (1 + Math.exp(-1.702 * z));
}

const LAYOUTS = ["packed", "pitched", "scattered"];
const BY_SIZE = "as the size";
const ALIGNMENTS = [BY_SIZE, "128", "16", "1"];
const SURE = 0.95;
const UNITS = { "": 1, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
const MAX_BYTES = 2 ** 40;

// Bytes such as 4096 or `24 KiB`; null if the text is none.
export function parseSize(text) {
  const found = /^\s*(\d+)\s*([KMG]iB|B|)\s*$/.exec(text);
  const size = found ? Number(found[1]) * UNITS[found[2]] : 0;
  return size >= 1 && size <= MAX_BYTES ? size : null;
}

function parseCount(text) {
  const count = /^\s*\d+\s*$/.test(text) ? Number(text) : 0;
  return count >= 1 && count <= MAX_BYTES ? count : null;
}

function written(value) {
  for (const [scale, prefix] of [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]]) {
    if (value >= scale) return `${Number((value / scale).toPrecision(3))} ${prefix}s`;
  }
  return "0 s";
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

function evidenceOf(variant, isMeasured) {
  const link = element("a", isMeasured ? "measured" : "modelled");
  link.href = new URL(`../../studies/transfers/#${variant}`, import.meta.url);
  return link;
}

function tableOf(advices, payload) {
  const table = element("table", "", { className: "hp" });
  const head = document.createElement("thead");
  head.append(row("th", ["way", "time", "GB/s", "the call takes", "CPU time", "GPU time", "basis"]));
  const body = document.createElement("tbody");
  const orNone = (seconds) => (seconds === null ? "–" : written(seconds));
  for (const one of advices) {
    const time = `${written(one.seconds)} (${written(one.low)} to ${written(one.high)})`;
    const made = row("td", [one.variant, time, rateOf(one, payload), orNone(one.submit), orNone(one.cpu), orNone(one.gpu), ""]);
    made.lastChild.append(evidenceOf(one.variant, one.isMeasured), one.isWalking ? ", page walks" : "");
    made.firstChild.title = one.title;
    body.append(made);
  }
  table.append(head, body);
  const box = element("div", "", { className: "hp-table", tabIndex: 0 });
  box.append(table);
  return box;
}

const rateOf = (advice, payload) => (payload / advice.seconds / 1e9).toPrecision(3);

// Sentences: the call, its rate and its cost, then how sure that is.
function sentences(advices, payload, requests) {
  const [best, second] = advices;
  if (!best) return ["No way that can move these pieces was measured on this machine."];
  const each = requests > 1 ? `, ${written(best.seconds / requests)} a request` : "";
  const cost = best.submit === null ? "" : ` The call keeps the caller for ${written(best.submit)}.`;
  const found = [`Use ${best.variant}: ${written(best.seconds)}${each}, ${rateOf(best, payload)} GB/s.${cost}`, best.title];
  if (!second) return [...found, "No other way was measured."];
  const probability = certainty(best, second);
  const surely = probability >= SURE ? "surely" : "not surely";
  const faster = (second.seconds / best.seconds).toPrecision(3);
  const percent = Math.round(probability * 100);
  return [...found, `It is ${faster} times as fast as ${second.variant}, ${surely} faster (probability ${percent} %).`];
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
  const say = (...lines) => status.replaceChildren(...lines.map((line) => element("p", line)));
  const answer = document.createElement("div");
  root.append(form, status, answer);

  const update = () => {
    const values = {};
    for (const { name, label, field, parse, expected } of inputs) {
      values[name] = parse ? parse(field.value) : field.value;
      if (values[name] === null) {
        say(`${label}: expected ${expected}, got “${field.value}”.`);
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
    say(...sentences(advices, payload, batch));
    const isList = [job.host, job.device].includes("scattered");
    const missing = isList && adviser.unmeasured?.length ? `Not measured on this machine: ${adviser.unmeasured.join(", ")}.` : "";
    answer.replaceChildren(tableOf(advices, payload), element("p", missing, { className: "hp-quiet" }));
  };
  keepInAddress(form, widget, inputs, update);
}
