// The form of the hot set: the chosen variant of the nearest measured cell, if that is near enough.

const UNITS = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

export function parseBytes(text) {
  const [, number, unit] = text.match(/^\s*(\d+(?:\.\d+)?)\s*([KMGT]?i?B)\s*$/) ?? [];
  const bytes = Number(number) * UNITS[unit];
  return bytes >= 1 ? bytes : null;
}

export function parseCount(text) {
  return /^\s*\d+\s*$/.test(text) && Number(text) >= 1 ? Number(text) : null;
}

const AXES = ["requests", "misses", "pool"];
// Factors between a cell and `job` on all axes, the largest first.
const factors = (cell, job) => AXES.map((axis) => Math.max(cell[axis] / job[axis], job[axis] / cell[axis])).sort((a, b) => b - a);

function isLess(one, other) {
  const place = one.findIndex((value, i) => value !== other[i]);
  return place >= 0 && one[place] < other[place];
}

// The measured cell whose largest factor from `job` is smallest, that factor, and the cells with the same
// requests and pool, by misses.
export function nearest(cells, job) {
  const here = cells.filter(({ machine }) => machine === job.machine);
  const best = here.reduce((kept, cell) => (isLess(factors(cell, job), factors(kept, job)) ? cell : kept));
  const place = here.filter(({ requests, pool }) => requests === best.requests && pool === best.pool);
  place.sort((one, other) => one.misses - other.misses);
  return { place, best, factor: factors(best, job)[0] };
}

function element(tag, text = "", attributes = {}) {
  return Object.assign(document.createElement(tag), { textContent: text }, attributes);
}

function lineOf(parts) {
  const made = element("p");
  made.append(...parts);
  return made;
}

const size = (bytes) => {
  const unit = Object.keys(UNITS).findLast((name) => bytes >= UNITS[name]);
  return `${Number((bytes / UNITS[unit]).toPrecision(3))} ${unit}`;
};
const site = (path) => new URL(`../../${path}`, import.meta.url).href;

const step = (variant) => element("a", variant, { href: site(`studies/hot_set/#${variant}`) });

function sentences({ variant, title, time, basis, over, layers, model, graph }) {
  const gain = over && `It is ${over} as fast as a block per request.`;
  const whole = `${layers} layers, one by one: ${model}${graph ? `; in one graph: ${graph}` : ""}.`;
  return [[`${title}: ${time} a layer.`], ["Code: ", step(variant), "."], [[basis && `${basis}.`, gain, whole].filter(Boolean).join(" ")]];
}

const caseOf = ({ requests, misses, pool }) => `requests: ${requests}, misses: ${misses}, pool: ${size(pool)}`;
const gigabytes = (rate) => `${(rate / 1e9).toPrecision(3)} GB/s`;

// Why the nearest cell is no answer to `job`; empty if it is one.
function refusal({ near, row_bytes, link }, { best, factor }, job) {
  if (factor > near) return `Not measured: ${caseOf(job)}.`;
  const [rate, limit] = [(job.misses * row_bytes) / best.seconds, link[job.machine]];
  if (!(rate > limit)) return "";
  return `Not measured: ${caseOf(job)}. In the time of the nearest case, these rows need ${gigabytes(rate)}, and the link carries at most ${gigabytes(limit)}.`;
}

function tableOf(place, best) {
  const columns = ["misses", "use", "time of a layer", "speed over a block per request", "evidence"];
  const table = element("table", "", { className: "hp" });
  table.dataset.stacked = "";
  const head = table.createTHead().insertRow();
  for (const name of columns) head.append(element("th", name, { scope: "col" }));
  const body = table.createTBody();
  for (const cell of place) {
    const row = body.insertRow();
    row.className = cell === best ? "hp-target" : "";
    for (const text of [cell.misses, cell.title, cell.time, cell.over]) row.insertCell().textContent = text;
    row.insertCell().append(element("a", "samples", { href: site(cell.samples) }), ", ", step(cell.variant));
    [...row.cells].forEach((made, place) => (made.dataset.column = columns[place]));
  }
  const box = element("div", "", { className: "hp-table", tabIndex: 0 });
  box.append(table);
  return box;
}

const number = "a whole number of at least 1";

function inputsOf(cells) {
  const machines = new Map(cells.map(({ machine, called }) => [machine, called]));
  return [
    { name: "machine", options: [...machines.keys()], labels: [...machines.values()] },
    { name: "requests", label: "requests of a step", expected: number, parse: parseCount },
    { name: "misses", label: "misses of all requests", expected: number, parse: parseCount },
    { name: "pool", label: "pool on the host", expected: "bytes with a unit such as 188 MiB or 40 GiB", parse: parseBytes },
  ];
}

function fieldOf({ name, options, labels, label }) {
  const box = document.createElement("label");
  box.append(element("span", label ?? name, { className: "vega-bind-name" }));
  const field = element(options ? "select" : "input", "", { name });
  if (options) options.forEach((option, place) => field.add(new Option(labels[place], option)));
  else field.size = 9;
  box.append(field);
  return [box, field];
}

// Fills `root` with the form and its answer. The address has what differs from the start, by `<widget>.<field>`.
export function show(root, data, widget, keepInAddress) {
  const { cells, near, row_bytes } = data;
  const most = Math.max(...cells.map(({ pool }) => pool));
  const first = cells.find(({ pool }) => pool === most);
  const start = { ...first, pool: size(first.pool) };
  const inputs = inputsOf(cells).map((input) => {
    const [box, field] = fieldOf(input);
    return { ...input, start: String(start[input.name]), box, field };
  });
  const form = element("form", "", { className: "hp-controls", onsubmit: () => false });
  form.setAttribute("aria-label", "The hot set of a layer");
  form.append(...inputs.map(({ box }) => box));
  const status = element("div", "", { className: "hp-answer" });
  status.setAttribute("role", "status");
  const answer = document.createElement("div");
  root.append(form, status, answer);
  const say = (...lines) => status.replaceChildren(...lines.map((parts) => lineOf(parts)));

  const refuse = (name, expected) => {
    const { label, field } = inputs.find((input) => input.name === name);
    say([`${label}: expected ${expected}, got “${field.value}”.`]);
    answer.replaceChildren();
  };

  const update = () => {
    const job = {};
    for (const { name, field, parse, expected } of inputs) {
      job[name] = parse ? parse(field.value) : field.value;
      if (job[name] === null) {
        refuse(name, expected);
        return;
      }
    }
    if (job.pool < job.misses * row_bytes) {
      const expected = `at least ${size(job.misses * row_bytes)}, for ${job.misses} rows of ${row_bytes} B`;
      refuse("pool", expected);
      return;
    }
    const found = nearest(cells, job);
    const { place, best } = found;
    const refused = refusal(data, found, job);
    if (refused) {
      const there = `The nearest measured case: ${caseOf(best)}. It takes ${best.time} a layer: ${best.title} (`;
      say([refused], [there, step(best.variant), ")."], [`A case is an answer up to a factor of ${near} in requests, misses and pool.`]);
    } else {
      const isExact = caseOf(best) === caseOf(job);
      say(...sentences(best), [isExact ? "Exactly this case was measured." : `The nearest measured case: ${caseOf(best)}.`]);
    }
    answer.replaceChildren(tableOf(place, refused ? null : best));
  };
  keepInAddress(form, widget, inputs, update);
}
