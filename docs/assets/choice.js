// Menus, and their choice in the address: `?steps.machine=H200&steps.bs=128`. The address omits the values that
// menus begin with. A menu is {name, options, value}, and may have labels of its options; null is all.

const written = (value) => (value === null ? "all" : String(value));

export const isAsked = (prefix) => [...new URLSearchParams(location.search).keys()].some((key) => key.startsWith(`${prefix}.`));

// The value of every menu by its name, according to the address. `faults` are sentences about requested values that
// do not exist.
export function readChoice(prefix, menus) {
  const asked = new URLSearchParams(location.search);
  const values = {};
  const faults = [];
  for (const { name, options, value } of menus) {
    const wanted = asked.get(`${prefix}.${name}`);
    const place = options.findIndex((option) => written(option) === wanted);
    values[name] = place < 0 ? value : options[place];
    if (wanted !== null && place < 0) faults.push(`${name} has no option “${wanted}”; “${written(value)}” is shown.`);
  }
  return { values, faults };
}

// The page's address with the choice `values` and the fragment `target`.
export function addressOfChoice(prefix, menus, values, target) {
  const address = new URL(location.href);
  for (const { name, value } of menus) {
    if (values[name] === value) address.searchParams.delete(`${prefix}.${name}`);
    else address.searchParams.set(`${prefix}.${name}`, written(values[name]));
  }
  address.hash = target;
  return address;
}

// A labelled select of a menu.
export function selectOf({ name, options, labels }) {
  const label = document.createElement("label");
  label.append(Object.assign(document.createElement("span"), { textContent: name }));
  const select = label.appendChild(document.createElement("select"));
  select.name = name;
  options.forEach((option, place) => select.add(new Option(labels?.[place] ?? written(option))));
  return label;
}
