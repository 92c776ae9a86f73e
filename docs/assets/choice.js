// The selection in the selects of a chart, and its form in the address:
// `?steps.machine=nvidia-h200&steps.bs=128`. The address omits defaults.

const key = (chart, bind) => `${chart}.${bind.name}`;

// An option's form in the address: its value or, for null, its label.
function written(bind, value) {
  const place = bind.options.indexOf(value);
  return value === null ? String(bind.labels?.[place] ?? "none") : String(value);
}

export const bound = (spec) => spec.signals.filter((signal) => signal.bind?.input === "select");

// The value of every select of `chart`, by the name of its signal, according to the address. `faults`
// are sentences about requested values that do not exist.
export function readChoice(chart, spec) {
  const requested = new URLSearchParams(location.search);
  const values = {};
  const faults = [];
  const known = new Set();
  for (const { name, bind, value } of bound(spec)) {
    values[name] = value;
    known.add(key(chart, bind));
    const wanted = requested.get(key(chart, bind));
    if (wanted === null) continue;
    const place = bind.options.findIndex((option) => written(bind, option) === wanted);
    if (place >= 0) values[name] = bind.options[place];
    else faults.push(`${bind.name} has no option “${wanted}”; “${label(bind, value)}” is shown.`);
  }
  for (const name of requested.keys()) {
    if (name.startsWith(`${chart}.`) && !known.has(name)) faults.push(`There is no select “${name.slice(chart.length + 1)}”.`);
  }
  return { values, faults };
}

const label = (bind, value) => bind.labels?.[bind.options.indexOf(value)] ?? String(value);

// The page's address with the selection `values` in `chart` and the fragment `target`.
export function addressOfChoice(chart, spec, values, target = `chart-${chart}`) {
  const address = new URL(location.href);
  for (const { name, bind, value } of bound(spec)) {
    if (values[name] === value) address.searchParams.delete(key(chart, bind));
    else address.searchParams.set(key(chart, bind), written(bind, values[name]));
  }
  address.hash = target;
  return address;
}

// Name of a file with the current selection, such as `h2d_gather-steps-machine=nvidia-h200`.
export function fileName(study, chart, spec, values) {
  const parts = bound(spec)
    .filter(({ name, value }) => values[name] !== value)
    .map(({ name, bind }) => `${bind.name}=${written(bind, values[name])}`);
  return [study, chart, ...parts].join("-").replace(/[^\w.=+-]+/g, "_").slice(0, 150);
}
