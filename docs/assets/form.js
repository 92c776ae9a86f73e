// The form of "What should I call?": its answers are looked up. Each question has a file of its own, which is loaded
// when it is chosen. Without a script, a table is shown for each.
import { tableOf } from "./chart_data.js";
import { read } from "./charts.js";
import { element, formOf } from "./choice.js";

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
function answerTo({ axes, multiple, tables }, values) {
  const table = tables.find(({ where }) => Object.entries(where).every(([name, value]) => values[name] === value));
  if (!table) return { lines: ["Not measured with these choices."], rows: [] };
  const asked = axes.map((name) => values[name]);
  if (asked[0] % multiple) return { lines: [`Not measured: all measured sizes are multiples of ${multiple} B.`], rows: [] };
  const place = lookUp(table.spans, asked);
  if (place !== undefined) return table.answers[place];
  return { lines: ["Not measured.", `The nearest measured cell: ${nearest(table.cells, asked)[1]}.`], rows: [] };
}

// What the faster option of a choice would give, where another one is chosen and both were measured.
function ifChanged(data, values) {
  return data.fields.flatMap(({ name, label, options, faster }) => {
    if (!faster || !options[faster] || values[name] === faster) return [];
    const { lines, rows } = answerTo(data, { ...values, [name]: faster });
    return rows.length ? [`If ${label} ${options[faster]}: ${lines[0]}`] : [];
  });
}

function inputOf({ name, options }) {
  if (!options) return element("input", { name, size: 9 });
  return element("select", { name }, ...Object.entries(options).map(([value, text]) => new Option(text, value)));
}

const labelled = (label, field) => element("label", {}, element("span", {}, label), field);

class Form {
  constructor(figure) {
    this.root = new URL(figure.dataset.root, location.href);
    this.parts = new Map([...figure.querySelectorAll("[data-source]")].map((part) => [part.dataset.name, part]));
    const options = [...this.parts].map(([name, part]) => new Option(part.querySelector("summary").textContent, name));
    this.kind = element("select", { name: "ask" }, ...options);
    this.form = formOf("What moves");
    this.status = element("div", { className: "hp-answer", role: "status" });
    this.answer = element("div");
    this.note = figure.querySelector(".hp-note");
    this.files = new Map();
    this.form.addEventListener("input", ({ target }) => this.change(target));
    addEventListener("popstate", () => this.follow());
    this.form.append(labelled("what moves", this.kind));
    this.view = figure.querySelector(".hp-view");
    this.follow();
  }

  // Shows the question that the address has: `?ask=rows&rows=2048&pool=40 GiB`, without what the form begins with.
  async follow() {
    const asked = new URLSearchParams(location.search);
    const name = this.parts.has(asked.get("ask")) ? asked.get("ask") : this.parts.keys().next().value;
    this.kind.value = name;
    try {
      if (!this.files.has(name)) this.files.set(name, await read(new URL(this.parts.get(name).dataset.source, location.href), "json"));
    } catch (error) {
      this.note.textContent = `This form could not be loaded: ${error.message}`;
      console.error(error);
      return;
    }
    this.data = this.files.get(name);
    this.inputs = this.data.fields.map((input) => ({ ...input, field: inputOf(input) }));
    for (const { name, start, field, options } of this.inputs) {
      const value = asked.get(name);
      field.value = value !== null && (!options || value in options) ? value : start;
    }
    for (const label of [...this.form.children].slice(1)) label.remove(); // the first one keeps the focus
    this.form.append(...this.inputs.map(({ label, field }) => labelled(label, field)));
    if (!this.form.isConnected) this.view.replaceChildren(this.form, this.status, this.answer);
    this.show(); // in the page, which hears of its table
  }

  show() {
    const values = {};
    let fault = "";
    for (const { name, label, kind, field } of this.inputs) {
      values[name] = kind ? parse(kind, field.value) : field.value;
      if (values[name] === null) fault ||= `${label}: expected ${EXPECTED[kind]}, got “${field.value}”.`;
    }
    const { lines, rows } = fault ? { lines: [fault], rows: [] } : answerTo(this.data, values);
    const others = fault ? [] : ifChanged(this.data, values);
    this.status.replaceChildren(...[...lines, ...others].map((text) => element("p", {}, text)));
    // A row begins with the name of its variant, whose code and samples its first cell links to.
    const { study, ways, columns } = this.data;
    const shown = rows.map(([way, ...cells]) => ({ ...cells, way: ways[way].words, takes: ways[way].takes, href: `studies/${study}/#${way}` }));
    const titles = [["way", "way"], ...columns.map((title, place) => [place, title]), ["takes", "takes"]];
    this.answer.replaceChildren(...(rows.length ? [tableOf(shown, titles, this.root, "Fastest first; a name leads to code and samples")] : []));
    this.answer.dispatchEvent(new CustomEvent("hp-loaded", { bubbles: true }));
  }

  async change(target) {
    const address = new URL(location.href);
    const isOther = target === this.kind;
    if (isOther) address.search = "";
    address.searchParams.set("ask", this.kind.value);
    for (const { name, start, field } of isOther ? [] : this.inputs) {
      if (field.value === start) address.searchParams.delete(name);
      else address.searchParams.set(name, field.value);
    }
    address.hash = "form";
    history.replaceState(null, "", address);
    if (isOther) await this.follow();
    else this.show();
  }
}

export function watchForms() {
  for (const figure of document.querySelectorAll(".hp-form")) new Form(figure);
}
