// Filters of the ledger: by verdict, study, machine and author of the claim.
import { addressOfChoice, readChoice } from "./choice.js";

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
    verdicts: JSON.parse(box.dataset.verdicts),
  }));
  const distinct = (values) => [null, ...new Set(values)];
  const rows = claims.flatMap(({ verdicts }) => verdicts);
  const names = JSON.parse(status.dataset.names);
  const spec = specOf({
    verdict: distinct(Object.keys(WORDS)),
    study: distinct(claims.map(({ study }) => study)),
    machine: distinct(rows.map(([machine]) => machine)),
    by: distinct(claims.map(({ by }) => by)),
  }, names);
  const form = document.createElement("form");
  form.className = "hp-controls";
  form.setAttribute("aria-label", "Which claims are shown");
  const selects = spec.signals.map(selectOf);
  form.append(...selects.map((select) => select.parentElement));
  status.before(form);
  const note = document.createElement("p");
  note.className = "hp-note";
  note.setAttribute("role", "status");
  form.after(note);

  const show = (values) => {
    const counts = Object.fromEntries(Object.keys(WORDS).map((name) => [name, 0]));
    const few = { ...counts };
    for (const { box, study, by, verdicts } of claims) {
      const judged = verdicts.length ? verdicts : [["", "not tested"]];
      const found = judged.filter(
        ([machine, verdict]) => fits(values.machine, machine) && fits(values.verdict, verdict),
      );
      box.hidden = !(found.length && fits(values.study, study) && fits(values.by, by));
      if (box.hidden) continue;
      for (const [, verdict, isFew] of found) {
        counts[verdict] += 1;
        few[verdict] += Boolean(isFew);
      }
    }
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const parts = Object.entries(counts).filter(([, count]) => count);
    const ofFew = (name) => (few[name] ? ` (${few[name]} in ${status.dataset.few})` : "");
    const summary = parts.map(([name, count]) => `${count} ${WORDS[name][count === 1 ? 0 : 1]}${ofFew(name)}`).join(", ");
    status.textContent = total ? `${total} verdicts shown, one per claim and machine: ${summary}.` : "No claim matches these filters.";
    document.body.classList.toggle("hp-filtered", Object.values(values).some((value) => value !== null));
    hideEmpty();
  };
  const follow = () => {
    const { values, faults } = readChoice("ledger", spec);
    spec.signals.forEach(({ name, bind }, place) => {
      selects[place].selectedIndex = bind.options.indexOf(values[name]);
    });
    note.textContent = faults.join(" ");
    show(values);
  };
  form.addEventListener("change", () => {
    const chosen = spec.signals.map(({ name, bind }, place) => [name, bind.options[selects[place].selectedIndex]]);
    const values = Object.fromEntries(chosen);
    history.pushState(null, "", addressOfChoice("ledger", spec, values, ""));
    note.textContent = "";
    show(values);
  });
  addEventListener("popstate", follow);
  follow();
}

const fits = (wanted, value) => wanted === null || wanted === value;

// The selects in the form of a chart's signals, so that they have the same form in the address. Options
// show the names that pages use.
function specOf(choices, names) {
  return {
    signals: Object.entries(choices).map(([name, options]) => ({
      name,
      value: null,
      bind: { input: "select", name, options, labels: options.map((option) => names[option] ?? option ?? "all") },
    })),
  };
}

function selectOf({ name, bind }) {
  const label = document.createElement("label");
  label.append(name);
  const select = label.appendChild(document.createElement("select"));
  select.name = name;
  for (const text of bind.labels) select.add(new Option(text));
  return select;
}

// Hides headings and counts above lists without any shown claim.
function hideEmpty() {
  for (const list of document.querySelectorAll(".hp-claims")) {
    list.hidden = !list.querySelector("details:not([hidden])");
    const counts = list.previousElementSibling; // of all claims; the previous element is their title
    counts.classList.add("hp-counts");
    counts.previousElementSibling.classList.toggle("hp-counts", list.hidden);
  }
  for (const heading of document.querySelectorAll(".md-content h2")) {
    let shown = false;
    let lists = 0;
    for (let next = heading.nextElementSibling; next && next.tagName !== "H2"; next = next.nextElementSibling) {
      if (!next.matches(".hp-claims")) continue;
      lists += 1;
      shown ||= !next.hidden;
    }
    heading.hidden = lists > 0 && !shown;
  }
}
