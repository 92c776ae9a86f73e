// The form of the hot set: the chosen variant of the measured cell that is nearest to the request.

const UNITS = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

export function parseBytes(text) {
  const [, number, unit] = text.match(/^\s*(\d+(?:\.\d+)?)\s*([KMGT]?i?B)?\s*$/) ?? [];
  const bytes = Number(number) * UNITS[unit ?? "B"];
  return bytes >= 1 ? bytes : null;
}

export function parseCount(text) {
  return /^\s*\d+\s*$/.test(text) && Number(text) >= 1 ? Number(text) : null;
}

const distance = (one, other) => Math.abs(Math.log(one / other));

// The measured cells of the pool and the number of requests nearest to `job`, by misses, and the nearest of them.
export function nearest(cells, job) {
  const here = cells.filter(({ machine }) => machine === job.machine);
  const away = (cell) => distance(cell.requests, job.requests) + distance(cell.pool, job.pool);
  const least = Math.min(...here.map(away));
  const row = here.filter((cell) => away(cell) <= least + 1e-9);
  const [{ requests, pool }] = row;
  const place = row.filter((cell) => cell.requests === requests && cell.pool === pool);
  place.sort((one, other) => one.misses - other.misses);
  const best = place.reduce((kept, cell) => (distance(cell.misses, job.misses) < distance(kept.misses, job.misses) ? cell : kept));
  return { place, best };
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
  const unit = bytes < UNITS.GiB ? "MiB" : "GiB";
  return `${Number((bytes / UNITS[unit]).toPrecision(3))} ${unit}`;
};
const site = (path) => new URL(`../../${path}`, import.meta.url).href;

const step = (variant) => element("a", variant, { href: site(`studies/hot_set/#${variant}`) });

function sentences({ variant, title, time, basis, over, layers, model, graph }) {
  const gain = over && `It is ${over} as fast as a block per request.`;
  const whole = `${layers} layers, one by one: ${model}${graph ? `; in one graph: ${graph}` : ""}.`;
  return [[`${title}: ${time} a layer.`], ["Code: ", step(variant), "."], [[basis && `${basis}.`, gain, whole].filter(Boolean).join(" ")]];
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
    { name: "pool", label: "pool on the host", expected: "bytes such as 188 MiB or 40 GiB", parse: parseBytes },
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
export function show(root, cells, widget, keepInAddress) {
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

  const update = () => {
    const job = {};
    for (const { name, label, field, parse, expected } of inputs) {
      job[name] = parse ? parse(field.value) : field.value;
      if (job[name] === null) {
        say([`${label}: expected ${expected}, got “${field.value}”.`]);
        answer.replaceChildren();
        return;
      }
    }
    const { place, best } = nearest(cells, job);
    const isExact = ["requests", "misses"].every((key) => best[key] === job[key]) && size(best.pool) === size(job.pool);
    const where = `requests: ${best.requests}, misses: ${best.misses}, pool: ${size(best.pool)}`;
    say(...sentences(best), [isExact ? "Exactly this case was measured." : `The nearest measured case: ${where}.`]);
    answer.replaceChildren(tableOf(place, best));
  };
  keepInAddress(form, widget, inputs, update);
}
