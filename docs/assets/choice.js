// Menus, and their choice in the address: `?steps.machine=H200&steps.bs=128`. The address omits the values that
// menus begin with. A menu is {name, options, value}, and may have labels of its options; null is all.

const written = (value) => (value === null ? "all" : String(value));
const keyOf = (prefix, name) => (prefix ? `${prefix}.${name}` : name);

export const isAsked = (prefix) => [...new URLSearchParams(location.search).keys()].some((key) => key.startsWith(`${prefix}.`));

// The value of every menu by its name, according to the address. `faults` are sentences about requested values that
// do not exist.
export function readChoice(prefix, menus) {
  const asked = new URLSearchParams(location.search);
  const values = {};
  const faults = [];
  for (const { name, options, value } of menus) {
    const wanted = asked.get(keyOf(prefix, name));
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
    if (values[name] === value) address.searchParams.delete(keyOf(prefix, name));
    else address.searchParams.set(keyOf(prefix, name), written(values[name]));
  }
  address.hash = target;
  return address;
}

export const formOf = (label) => element("form", { className: "hp-controls", onsubmit: () => false, ariaLabel: label });

export function element(tag, properties = {}, ...content) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...content);
  return made;
}

// A labelled select of a menu.
export function selectOf({ name, options, labels }) {
  const select = element("select", { name });
  options.forEach((option, place) => select.add(new Option(labels?.[place] ?? written(option))));
  return element("label", {}, element("span", {}, name), select);
}

// Fills `form` with `menus`, and calls `show` with the values that the address has, now and whenever they change. A
// change leads to the fragment `target`.
export function followChoice(form, prefix, menus, show, target = "") {
  form.append(...menus.map(selectOf));
  const selects = menus.map(({ name }) => form.elements[name]);
  const chosen = () => Object.fromEntries(menus.map(({ name, options }, place) => [name, options[selects[place].selectedIndex]]));
  const follow = () => {
    const { values, faults } = readChoice(prefix, menus);
    menus.forEach(({ name, options }, place) => (selects[place].selectedIndex = options.indexOf(values[name])));
    show(values, faults);
  };
  form.addEventListener("change", (event) => {
    if (!selects.includes(event.target)) return;
    history.pushState(null, "", addressOfChoice(prefix, menus, chosen(), target));
    show(chosen(), []);
  });
  addEventListener("popstate", follow);
  follow();
  return chosen;
}
