// A form whose answers are looked up: each table has the spans of its answers, one level an axis.

const UNITS = { "": 1, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
const EXPECTED = { bytes: "bytes such as 4096, 24 KiB or 40 GiB", count: "a whole number of at least 1" };
const MAX = 2 ** 50;

// Bytes such as 4096 or `24 KiB`, or a plain number; null if the text is none. 4,096 and 4 096 are numbers as this
// site writes them.
export function parse(kind, text) {
  const plain = text.replace(/(?<=\d)[,\s](?=\d{3})/g, "");
  const [, digits, unit] = /^\s*(\d+)\s*([KMGT]iB|B|)\s*$/.exec(plain) ?? [];
  const value = kind === "count" && unit ? 0 : Number(digits) * UNITS[unit];
  return value >= 1 && value <= MAX ? value : null;
}

// The place of the answer to `asked`, one number an axis; undefined if it was not measured.
export function lookUp(spans, [value, ...others]) {
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
export function nearest(cells, asked) {
  return cells.reduce((kept, cell) => (isLess(factors(cell[0], asked), factors(kept[0], asked)) ? cell : kept));
}

function element(tag, text = "", attributes = {}) {
  return Object.assign(document.createElement(tag), { textContent: text }, attributes);
}

function tableOf(columns, rows) {
  const head = [...columns, "evidence"].map((name) => element("th", name, { scope: "col" }));
  const body = rows.map((cells) => {
    const href = new URL(`../../${cells.at(-1)}`, import.meta.url);
    const link = element("a", "code and samples", { href });
    const row = element("tr");
    row.append(...cells.slice(0, -1).map((text) => element("td", text)), element("td"));
    row.lastChild.append(link);
    return row;
  });
  const table = element("table", "", { className: "hp" });
  table.createTHead().insertRow().append(...head);
  table.createTBody().append(...body);
  const box = element("div", "", { className: "hp-table", tabIndex: 0 });
  box.append(table);
  return box;
}

function fieldOf({ name, label, options }) {
  const box = element("label");
  const field = element(options ? "select" : "input", "", { name });
  for (const [option, shown] of Object.entries(options ?? {})) field.add(new Option(shown, option));
  if (!options) field.size = 9;
  box.append(element("span", label), field);
  return [box, field];
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

// Fills `root` with the form and its answer. The address has what differs from the start, by `<widget>.<field>`.
export function show(root, data, widget, keepInAddress) {
  const inputs = data.fields.map((input) => {
    const [box, field] = fieldOf(input);
    return { ...input, options: input.options && Object.keys(input.options), box, field };
  });
  const form = element("form", "", { className: "hp-controls", onsubmit: () => false });
  form.setAttribute("aria-label", data.label);
  form.append(...inputs.map(({ box }) => box));
  const status = element("div", "", { className: "hp-answer" });
  status.setAttribute("role", "status");
  const answer = document.createElement("div");
  root.append(form, status, answer);

  const update = () => {
    const values = {};
    let fault = "";
    for (const { name, label, kind, field } of inputs) {
      values[name] = kind ? parse(kind, field.value) : field.value;
      if (values[name] === null) fault ||= `${label}: expected ${EXPECTED[kind]}, got “${field.value}”.`;
    }
    const { lines, rows } = fault ? { lines: [fault], rows: [] } : answerTo(data, values);
    status.replaceChildren(...lines.map((text) => element("p", text)));
    answer.replaceChildren(...(rows.length ? [tableOf(data.columns, rows)] : []));
    answer.dispatchEvent(new CustomEvent("hp-loaded", { bubbles: true }));
  };
  keepInAddress(form, widget, inputs, update);
}
