// Tables on a narrow screen: smaller letters where that makes them fit, else a card for each row with the name of its
// column above each value. A table of few columns stays one, and its words break. Of a long table, a button shows the
// rest. The style sheet does the rest. Without a script, tables scroll.
import { element } from "./choice.js";

const NARROW = matchMedia("(max-width: 44em)");
const FEW_COLUMNS = 3;
const SHORT = 24; // letters of a cell beside others in a card
const MAX_ROWS = 12;
const MAX_CARDS = 6;
const rooms = new WeakMap(); // the width that a table had when it was arranged

const watcher = new ResizeObserver((entries) => entries.forEach(({ target }) => arrange(target)));

const watch = (part) => part.querySelectorAll("table").forEach((table) => watcher.observe(table));

export function watchTables() {
  watch(document);
  // A table that is as narrow as it can be keeps its size.
  addEventListener("resize", () => document.querySelectorAll("table").forEach(arrange));
  document.addEventListener("hp-loaded", ({ target }) => watch(target));
}

function arrange(table) {
  const box = table.closest(".hp-table, .md-typeset__scrollwrap") ?? table.parentElement;
  const room = box.clientWidth;
  if (!room || rooms.get(table) === room) return;
  rooms.set(table, room);
  const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
  for (const state of ["data-stacked", "data-tight"]) table.removeAttribute(state);
  const isSmall = names.length <= FEW_COLUMNS;
  table.toggleAttribute("data-small", isSmall);
  // A sentence in a cell of one word's width fits, but nobody can read it.
  const isSqueezed = () => !isSmall && [...table.querySelectorAll("tbody td")].some((cell) => cell.textContent.length > Math.max(30, cell.clientWidth / 2) && cell.clientWidth < 100);
  const fits = () => !(NARROW.matches && isSqueezed()) && Math.max(table.offsetWidth, box.scrollWidth) <= room;
  if (NARROW.matches && names.length && !fits()) table.setAttribute("data-tight", "");
  const isWide = !fits();
  if (isWide) box.tabIndex = 0; // what scrolls can be reached by keys
  if (!names.length || !NARROW.matches) return;
  if (isWide) stack(table, names);
  cut(table, box, isWide ? MAX_CARDS : MAX_ROWS);
}

function stack(table, names) {
  table.removeAttribute("data-tight");
  table.setAttribute("data-stacked", "");
  const cells = [...table.querySelectorAll("tbody td:not(:first-child)")];
  const long = new Set(cells.filter((cell) => cell.textContent.length > SHORT).map((cell) => cell.cellIndex));
  for (const cell of cells) {
    cell.dataset.column = names[cell.cellIndex] ?? "";
    cell.toggleAttribute("data-short", !long.has(cell.cellIndex)); // side by side
  }
}

// Hides the rows after the first `most` until the reader asks for them; not in what the reader has opened.
function cut(table, box, most) {
  const rows = table.querySelectorAll("tbody tr");
  if (rows.length <= most + 1 || table.closest("details") || table.dataset.cut !== undefined) return;
  table.dataset.cut = "";
  rows.forEach((row, index) => row.classList.toggle("hp-cut", index >= most));
  const button = element("button", { className: "hp-button hp-rest", type: "button" }, `Show all ${rows.length} rows`);
  button.addEventListener("click", () => {
    rows.forEach((row) => row.classList.remove("hp-cut"));
    button.remove();
  });
  box.after(button);
}
