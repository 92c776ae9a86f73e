// Filters of the ledger: by verdict, study, machine and author of the claim, and by text.
import { addressOfChoice, readChoice, selectOf } from "./choice.js";

const TEXT = "ledger-text"; // key of the address

const WORDS = {
  holds: ["holds", "hold"],
  "does not hold": ["does not hold", "do not hold"],
  undecided: ["is undecided", "are undecided"],
  "not tested": ["is not tested", "are not tested"],
};

export function watchLedger() {
  const status = document.querySelector(".hp-ledger");
  if (!status) return;
  const claims = [...document.querySelectorAll(".hp-claims > details")].map((box) => ({
    box,
    study: box.dataset.study,
    by: box.dataset.by,
    text: box.textContent.toLowerCase(),
    verdicts: JSON.parse(box.dataset.verdicts),
  }));
  const distinct = (values) => [null, ...new Set(values)];
  const rows = claims.flatMap(({ verdicts }) => verdicts);
  const names = JSON.parse(status.dataset.names);
  const menus = menusOf({
    verdict: distinct(Object.keys(WORDS)),
    study: distinct(claims.map(({ study }) => study)),
    machine: distinct(rows.map(([machine]) => machine)),
    by: distinct(claims.map(({ by }) => by)),
  }, names);
  const form = document.createElement("form");
  form.className = "hp-controls";
  form.setAttribute("aria-label", "Which claims are shown");
  const boxes = menus.map(selectOf);
  const selects = boxes.map((box) => box.querySelector("select"));
  const field = textField();
  form.append(...boxes, field.parentElement);
  status.before(form);
  const note = document.createElement("p");
  note.className = "hp-note";
  note.setAttribute("role", "status");
  form.after(note);

  const show = (values) => {
    const counts = Object.fromEntries(Object.keys(WORDS).map((name) => [name, 0]));
    const words = field.value.toLowerCase().split(/\s+/);
    for (const { box, study, by, verdicts, text } of claims) {
      const judged = verdicts.length ? verdicts : [["", "not tested"]];
      const found = judged.filter(
        ([machine, verdict]) => fits(values.machine, machine) && fits(values.verdict, verdict),
      );
      const isNamed = words.every((word) => text.includes(word));
      box.hidden = !(found.length && isNamed && fits(values.study, study) && fits(values.by, by));
      if (box.hidden) continue;
      for (const [, verdict] of found) counts[verdict] += 1;
    }
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const parts = Object.entries(counts).filter(([, count]) => count);
    const summary = parts.map(([name, count]) => `${count} ${WORDS[name][count === 1 ? 0 : 1]}`).join(", ");
    status.textContent = total ? `${total} verdicts shown, one per claim and machine: ${summary}.` : "No claim matches these filters.";
    const isFiltered = Boolean(field.value.trim()) || Object.values(values).some((value) => value !== null);
    document.body.classList.toggle("hp-filtered", isFiltered);
    hideEmpty(isFiltered);
  };
  const follow = () => {
    const { values, faults } = readChoice("ledger", menus);
    menus.forEach(({ name, options }, place) => (selects[place].selectedIndex = options.indexOf(values[name])));
    field.value = new URLSearchParams(location.search).get(TEXT) ?? "";
    note.textContent = faults.join(" ");
    show(values);
  };
  field.addEventListener("input", () => {
    const address = new URL(location.href);
    address.searchParams.delete(TEXT);
    if (field.value) address.searchParams.set(TEXT, field.value);
    history.replaceState(null, "", address);
    show(chosen());
  });
  const chosen = () =>
    Object.fromEntries(menus.map(({ name, options }, place) => [name, options[selects[place].selectedIndex]]));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => {
    if (event.target === field) return;
    const values = chosen();
    history.pushState(null, "", addressOfChoice("ledger", menus, values, ""));
    note.textContent = "";
    show(values);
  });
  addEventListener("popstate", follow);
  follow();
}

const fits = (wanted, value) => wanted === null || wanted === value;

// Menus whose options have the names that pages use.
function menusOf(choices, names) {
  return Object.entries(choices).map(([name, options]) => ({
    name,
    options,
    value: null,
    labels: options.map((option) => names[option] ?? option ?? "all"),
  }));
}

function textField() {
  const label = document.createElement("label");
  label.append("text");
  const field = label.appendChild(document.createElement("input"));
  field.type = "search";
  field.name = "text";
  return field;
}

// Hides lists without any shown claim, with their titles, counts and sections. With a filter, it opens the
// sections of all other lists.
function hideEmpty(isFiltered) {
  for (const list of document.querySelectorAll(".hp-claims")) {
    list.hidden = !list.querySelector("details:not([hidden])");
    const counts = list.previousElementSibling; // of all claims; the previous element is their title
    if (!counts?.matches("ul")) continue;
    counts.classList.add("hp-counts");
    counts.previousElementSibling.classList.toggle("hp-counts", list.hidden);
  }
  for (const fold of document.querySelectorAll("details:is(.hp-section, .hp-more):has(.hp-claims)")) {
    fold.hidden = !fold.querySelector(".hp-claims:not([hidden])");
    if (isFiltered) fold.open = !fold.hidden;
  }
}
