// Rows of a CSV file, and rows of a chart as a table and as a CSV file.
import { element } from "./choice.js";

const MAX_TABLE_ROWS = 500;

// A table of `rows` with `columns` [field, title]; `href` of a row, within the site, leads from its first cell.
export function tableOf(rows, columns, root, caption = "Shown rows") {
  const shown = columns.filter(([field]) => rows.some((row) => textOf(row[field])));
  const table = element("table", { className: "hp" });
  const isCut = rows.length > MAX_TABLE_ROWS;
  table.createCaption().textContent = isCut ? `First ${MAX_TABLE_ROWS} of ${rows.length} rows` : caption;
  table.createTHead().insertRow().append(...shown.map(([, title]) => element("th", { scope: "col" }, title)));
  const body = table.createTBody();
  for (const row of rows.slice(0, MAX_TABLE_ROWS)) {
    const cells = body.insertRow();
    shown.forEach(([field], place) => {
      const cell = cells.insertCell();
      const inner = place === 0 && row.href ? cell.appendChild(samplesLink(row.href, root)) : cell;
      inner.textContent = textOf(row[field]);
    });
  }
  return element("div", { className: "hp-table", tabIndex: 0 }, table);
}

function textOf(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "number" ? String(Number(value.toPrecision(6))) : String(value);
}

function samplesLink(href, root) {
  const link = element("a");
  const address = new URL(href, root);
  if (address.href.startsWith(root.href)) link.href = address.href;
  return link;
}

// Rows of a CSV file, as text. A content policy may forbid to compile functions, as Vega does for CSV files.
export function parseCsv(text) {
  const rows = [[]];
  for (const [, cell, end] of text.replace(/\n$/, "").matchAll(/("(?:[^"]|"")*"|[^,\n]*)(,|\n|$)/g)) {
    rows.at(-1).push(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
    if (end === "\n") rows.push([]);
    if (!end) break; // the end of the text matches again
  }
  const [head, ...lines] = rows;
  return lines.map((cells) => Object.fromEntries(head.map((name, place) => [name, cells[place]])));
}

// `rows` as CSV with all of their columns, and the address as their source.
export function csvOf(rows, source) {
  const quoted = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const columns = Object.keys(rows[0] ?? {});
  const lines = rows.map((row) => [...columns.map((name) => row[name]), source].map(quoted).join(","));
  return [[...columns, "source"].join(","), ...lines, ""].join("\n");
}
