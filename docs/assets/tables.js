// Tables that do not fit a narrow screen: a card for each row, with the name of its column above each value; a table of
// few columns stays one, and its words break. The style sheet does the rest. Without a script, they scroll.
const NARROW = matchMedia("(max-width: 44em)");
const FEW_COLUMNS = 3;
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
  const isSmall = names.length <= FEW_COLUMNS;
  table.removeAttribute("data-stacked");
  table.toggleAttribute("data-small", isSmall);
  // A sentence in a cell of one word's width fits, but nobody can read it.
  const isSqueezed = !isSmall && [...table.querySelectorAll("tbody td")].some((cell) => cell.textContent.length > 30 && cell.clientWidth < 100);
  const fits = !(NARROW.matches && isSqueezed) && Math.max(table.offsetWidth, box.scrollWidth) <= room;
  if (!fits) box.tabIndex = 0; // what scrolls can be reached by keys
  if (!names.length || !NARROW.matches || fits) return;
  table.setAttribute("data-stacked", "");
  for (const cell of table.querySelectorAll("tbody td:not(:first-child)")) cell.dataset.column = names[cell.cellIndex] ?? "";
}
