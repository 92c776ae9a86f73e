// What is chosen in the selects of a chart, and the same in the address:
// `?steps.machine=nvidia-h200&steps.bs=128`. What is chosen by default is not in it.

const key = (chart, bind) => `${chart}.${bind.name}`;

// An option as it stands in the address: its value, or its label where it has none.
function written(bind, value) {
  const place = bind.options.indexOf(value);
  return value === null ? String(bind.labels?.[place] ?? "none") : String(value);
}

export const bound = (spec) => spec.signals.filter((signal) => signal.bind?.input === "select");

// The value of every select of `chart` by the name of its signal, as the address says; `faults`
// are sentences about what is in the address and cannot be chosen.
export function readChoice(chart, spec) {
  const asked = new URLSearchParams(location.search);
  const values = {};
  const faults = [];
  const known = new Set();
  for (const { name, bind, value } of bound(spec)) {
    values[name] = value;
    known.add(key(chart, bind));
    const wanted = asked.get(key(chart, bind));
    if (wanted === null) continue;
    const place = bind.options.findIndex((option) => written(bind, option) === wanted);
    if (place >= 0) values[name] = bind.options[place];
    else faults.push(`${bind.name} “${wanted}” is not among its choices; it shows “${label(bind, value)}”.`);
  }
  for (const name of asked.keys()) {
    if (name.startsWith(`${chart}.`) && !known.has(name)) faults.push(`It has no choice of “${name.slice(chart.length + 1)}”.`);
  }
  return { values, faults };
}

const label = (bind, value) => bind.labels?.[bind.options.indexOf(value)] ?? String(value);

// The page's address with `values` chosen in `chart`, and the element `target` as its target.
export function addressOfChoice(chart, spec, values, target = `chart-${chart}`) {
  const address = new URL(location.href);
  for (const { name, bind, value } of bound(spec)) {
    if (values[name] === value) address.searchParams.delete(key(chart, bind));
    else address.searchParams.set(key(chart, bind), written(bind, values[name]));
  }
  address.hash = target;
  return address;
}

// `h2d_gather-steps-machine=nvidia-h200`: the name of a file of what is chosen.
export function fileName(study, chart, spec, values) {
  const parts = bound(spec)
    .filter(({ name, value }) => values[name] !== value)
    .map(({ name, bind }) => `${bind.name}=${written(bind, values[name])}`);
  return [study, chart, ...parts].join("-").replace(/[^\w.=+-]+/g, "_").slice(0, 150);
}
