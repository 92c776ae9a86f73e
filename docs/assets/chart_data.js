// Rows of a CSV file, and the rows that a chart shows, as a sentence, as a table and as a CSV file.
import { write } from "./figures.js";

const MAX_TABLE_ROWS = 500;

const counted = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;

// Mirrors text_of in analysis/site/charts/columns.py.
export function textOf(rows, { measure, names }) {
  if (!rows.length) return "Nothing is shown: no point matches the selection.";
  const counts = ["variant", "machine"]
    .map((name) => [new Set(rows.map((row) => row[name]).filter(Boolean)).size, name])
    .filter(([count]) => count)
    .map(([count, name]) => counted(count, name));
  const shown = `Shown: ${[counted(rows.length, "point"), counts.join(" and ")].filter(Boolean).join(" of ")}`;
  const values = measure ? rows.filter((row) => Number.isFinite(row[measure.field])) : [];
  if (!values.length) return `${shown}.`;
  values.sort((one, other) => one[measure.field] - other[measure.field]);
  const [lowest, highest] = [values[0], values.at(-1)].map((row) => {
    const places = [row.variant, row.machine].filter(Boolean);
    const place = places.map((name) => names[name] ?? name).join(" on ");
    return write(row[measure.field], measure.kind) + (place && ` (${place})`);
  });
  return `${shown}; ${measure.title}: from ${lowest} to ${highest}.`;
}

// A table of `rows`; each variant links to its samples.
export function tableOf(rows, spec, root) {
  const columns = spec.usermeta.columns.filter(([field]) => rows.some((row) => write(row[field], "plain")));
  const box = document.createElement("div");
  box.className = "hp-table";
  box.tabIndex = 0;
  const table = box.appendChild(document.createElement("table"));
  table.className = "hp";
  table.createCaption().textContent =
    rows.length > MAX_TABLE_ROWS ? `First ${MAX_TABLE_ROWS} of ${rows.length} shown rows` : "Shown rows";
  const head = table.createTHead().insertRow();
  const isNumber = columns.map(([field]) => rows.some((row) => typeof row[field] === "number"));
  columns.forEach(([, title], place) => {
    const cell = head.appendChild(document.createElement("th"));
    cell.scope = "col";
    cell.textContent = title;
    cell.className = isNumber[place] ? "hp-number" : "";
  });
  const body = table.createTBody();
  for (const row of rows.slice(0, MAX_TABLE_ROWS)) {
    const line = body.insertRow();
    columns.forEach(([field, , kind], place) => {
      const cell = line.insertCell();
      cell.className = isNumber[place] ? "hp-number" : "";
      const inner = field === "variant" && row.href ? cell.appendChild(samplesLink(row.href, root)) : cell;
      inner.textContent = spec.usermeta.names[row[field]] ?? write(row[field], kind);
    });
  }
  return box;
}

function samplesLink(href, root) {
  const link = document.createElement("a");
  const address = new URL(href, root);
  if (address.href.startsWith(root.href)) link.href = address.href;
  return link;
}

// Rows of a CSV file, as text.
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

// `rows` as CSV, with the columns of the chart's data file, and the address as their source.
export function csvOf(rows, spec, source) {
  const quoted = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const columns = Object.keys(spec.data.find(({ url }) => url).format.parse);
  const lines = rows.map((row) => [...columns.map((name) => row[name]), source].map(quoted).join(","));
  return [[...columns, "source"].join(","), ...lines, ""].join("\n");
}
