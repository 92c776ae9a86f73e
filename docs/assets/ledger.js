// Filters of the ledger: by verdict, study, machine and author of the claim, and by text.
import { element, followChoice, formOf } from "./choice.js";

const TEXT = "ledger-text"; // key of the address
const WORDS = { holds: "hold", "does not hold": "do not hold", undecided: "are undecided", "not tested": "are not tested" };

export function watchLedger() {
  const status = document.querySelector(".hp-ledger");
  if (!status) return;
  const claims = [...document.querySelectorAll(".hp-claims > details")].map((box) => {
    const verdicts = JSON.parse(box.dataset.verdicts);
    const { study, by } = box.dataset;
    return { box, study, by, text: box.textContent.toLowerCase(), verdicts: verdicts.length ? verdicts : [[null, "not tested"]] };
  });
  const names = JSON.parse(status.dataset.names);
  const machines = claims.flatMap(({ verdicts }) => verdicts.map(([machine]) => machine));
  const choices = { verdict: Object.keys(WORDS), study: claims.map(({ study }) => study), machine: machines.filter(Boolean), by: claims.map(({ by }) => by) };
  const menus = Object.entries(choices).map(([name, values]) => {
    const options = [null, ...new Set(values)];
    return { name, options, value: null, labels: options.map((option) => names[option] ?? option ?? "all") };
  });
  const form = formOf("Which claims are shown");
  const field = element("input", { type: "search", name: "text" });
  const note = element("p", { className: "hp-note", role: "status" });
  status.before(form, note);

  const show = (values, faults) => {
    note.textContent = faults.join(" ");
    const counts = Object.fromEntries(Object.keys(WORDS).map((name) => [name, 0]));
    const words = field.value.toLowerCase().split(/\s+/);
    for (const { box, study, by, verdicts, text } of claims) {
      const found = verdicts.filter(([machine, verdict]) => fits(values.machine, machine) && fits(values.verdict, verdict));
      const isNamed = words.every((word) => text.includes(word));
      box.hidden = !(found.length && isNamed && fits(values.study, study) && fits(values.by, by));
      if (!box.hidden) for (const [, verdict] of found) counts[verdict] += 1;
    }
    const parts = Object.entries(counts).filter(([, count]) => count);
    const total = parts.reduce((sum, [, count]) => sum + count, 0);
    const summary = parts.map(([name, count]) => `${count} ${count === 1 ? `is “${name}”` : WORDS[name]}`).join(", ");
    status.textContent = total ? `${total} verdicts shown, one per claim and machine: ${summary}.` : "No claim matches these filters.";
    const isFiltered = Boolean(field.value.trim()) || Object.values(values).some((value) => value !== null);
    for (const section of document.querySelectorAll("details.hp-section:has(.hp-claims)")) {
      section.hidden = !section.querySelector(".hp-claims > :not([hidden])");
      if (isFiltered) section.open = !section.hidden;
    }
  };
  const readText = () => (field.value = new URLSearchParams(location.search).get(TEXT) ?? "");
  readText();
  addEventListener("popstate", readText);
  const chosen = followChoice(form, "ledger", menus, show);
  form.append(element("label", {}, "text", field));
  field.addEventListener("input", () => {
    const address = new URL(location.href);
    if (field.value) address.searchParams.set(TEXT, field.value);
    else address.searchParams.delete(TEXT);
    history.replaceState(null, "", address);
    show(chosen(), []);
  });
}

const fits = (wanted, value) => wanted === null || wanted === value;
