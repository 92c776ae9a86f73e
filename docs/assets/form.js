// Forms whose answers are looked up: each table has the spans of its answers, one level an axis. A form is made when it
// comes into view; until then, and without a script, a table is shown.
import { tableOf } from "./chart_data.js";
import { read } from "./charts.js";
import { element, formOf } from "./choice.js";

const LOAD_AHEAD_PX = 200;
const UNITS = { "": 1, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
const EXPECTED = { bytes: "bytes such as 4096, 24 KiB or 40 GiB", count: "a whole number of at least 1" };
const MAX = 2 ** 50;

// Bytes such as 4096 or `24 KiB`, or a plain number; null if the text is none. 4,096 and 4 096 are numbers as this
// site writes them.
function parse(kind, text) {
  const plain = text.replace(/(?<=\d)[,\s](?=\d{3})/g, "");
  const [, digits, unit] = /^\s*(\d+)\s*([KMGT]iB|B|)\s*$/.exec(plain) ?? [];
  const value = kind === "count" && unit ? 0 : Number(digits) * UNITS[unit];
  return value >= 1 && value <= MAX ? value : null;
}

// The place of the answer to `asked`, one number an axis; undefined if it was not measured.
function lookUp(spans, [value, ...others]) {
  const [, , inner] = spans.find(([first, last]) => first <= value && value <= last) ?? [];
  return Array.isArray(inner) ? lookUp(inner, others) : inner;
}

// Factors between a cell and `asked` on all axes, the largest first: their order is that of the distances.
const factors = (cell, asked) => cell.map((one, axis) => Math.max(one / asked[axis], asked[axis] / one)).sort((a, b) => b - a);

function isLess(one, other) {
  const place = one.findIndex((value, i) => value !== other[i]);
  return place >= 0 && one[place] < other[place];
}

// The measured cell that differs least on its worst axis.
function nearest(cells, asked) {
  return cells.reduce((kept, cell) => (isLess(factors(cell[0], asked), factors(kept[0], asked)) ? cell : kept));
}

// The answer to the `values` of all fields: its lines, and rows of the table if it was measured.
function answerTo({ axes, tables }, values) {
  const table = tables.find(({ where }) => Object.entries(where).every(([name, value]) => values[name] === value));
  if (!table) return { lines: ["Not measured with these choices."], rows: [] };
  const asked = axes.map((name) => values[name]);
  if (asked[0] % table.multiple) {
    return { lines: [`Not measured: all measured sizes are multiples of ${table.multiple} B.`], rows: [] };
  }
  const place = lookUp(table.spans, asked);
  if (place !== undefined) return table.answers[place];
  return { lines: ["Not measured.", `The nearest measured cell: ${nearest(table.cells, asked)[1]}.`], rows: [] };
}

function inputOf({ name, options }) {
  if (!options) return element("input", { name, size: 9 });
  return element("select", { name }, ...Object.entries(options).map(([value, text]) => new Option(text, value)));
}

// The form and its answer. The address has what differs from the start, by `<widget>.<field>`.
function show({ dataset }, data) {
  const { widget } = dataset;
  const root = new URL(dataset.root, location.href);
  const inputs = data.fields.map((input) => ({ ...input, key: `${widget}.${input.name}`, field: inputOf(input) }));
  const form = formOf(data.label);
  form.append(...inputs.map(({ label, field }) => element("label", {}, element("span", {}, label), field)));
  const status = element("div", { className: "hp-answer", role: "status" });
  const answer = element("div");

  const update = () => {
    const values = {};
    let fault = "";
    for (const { name, label, kind, field } of inputs) {
      values[name] = kind ? parse(kind, field.value) : field.value;
      if (values[name] === null) fault ||= `${label}: expected ${EXPECTED[kind]}, got “${field.value}”.`;
    }
    const { lines, rows } = fault ? { lines: [fault], rows: [] } : answerTo(data, values);
    status.replaceChildren(...lines.map((text) => element("p", {}, text)));
    // A row links its first cell to the evidence, whose address comes last.
    const shown = rows.map((cells) => ({ ...cells, href: cells.at(-1) }));
    const columns = data.columns.map((title, place) => [place, title]);
    answer.replaceChildren(...(rows.length ? [tableOf(shown, columns, root, "Fastest first; a name leads to code and samples")] : []));
    answer.dispatchEvent(new CustomEvent("hp-loaded", { bubbles: true }));
  };
  const follow = () => {
    const asked = new URLSearchParams(location.search);
    for (const { key, start, field, options } of inputs) {
      const value = asked.get(key);
      field.value = value !== null && (!options || value in options) ? value : start;
    }
    update();
  };
  form.addEventListener("input", () => {
    const address = new URL(location.href);
    for (const { key, start, field } of inputs) {
      if (field.value === start) address.searchParams.delete(key);
      else address.searchParams.set(key, field.value);
    }
    address.hash = `widget-${widget}`;
    history.replaceState(null, "", address);
    update();
  });
  addEventListener("popstate", follow);
  follow();
  return [form, status, answer];
}

async function load(figure) {
  try {
    const data = await read(new URL(figure.dataset.source, location.href), "json");
    figure.querySelector(".hp-view").replaceChildren(...show(figure, data));
  } catch (error) {
    figure.querySelector(".hp-note").textContent = `This form could not be loaded: ${error.message}`;
    console.error(error);
  }
}

export function watchForms() {
  const watch = (entries) => {
    for (const { target } of entries.filter(({ isIntersecting }) => isIntersecting)) {
      seen.unobserve(target);
      load(target);
    }
  };
  const seen = new IntersectionObserver(watch, { rootMargin: `${LOAD_AHEAD_PX}px` });
  for (const figure of document.querySelectorAll(".hp-widget[data-source]")) seen.observe(figure);
}
