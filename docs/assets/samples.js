// The samples of a variant as a plot below its row on the page of data: a lane for each run, a point for each sample.
// The row links to the samples file of each run, which has all variants.
// The address names case and metric: `?samples.case=…&samples.metric=…#<machine>-<study>-<variant>`.
import { parseCsv } from "./chart_data.js";
import { read, show } from "./charts.js";
import { element, followChoice, formOf } from "./choice.js";
import { button } from "./copy.js";
import { parseCase } from "./explorer.js";

const LOG_SPAN = 20; // a longer axis is logarithmic
const INK = "light-dark(#1f2933,#e3e8ef)";
const GRID = "light-dark(#e4e8ee,#343c4a)";
const CONFIG = {
  background: "transparent",
  view: { stroke: "transparent" },
  axis: { labelColor: INK, titleColor: INK, titleFontWeight: "normal", gridColor: GRID, domainColor: GRID, tickColor: GRID },
  point: { color: "light-dark(#1f6fb2,#5aa9e6)", filled: true, size: 24, opacity: 0.65 },
  tick: { color: INK, thickness: 2 },
};

export function watchSamples() {
  document.addEventListener("hp-loaded", ({ target }) => {
    for (const row of target.querySelectorAll("tr[id]")) offer(row);
  });
  document.addEventListener("hp-shown", async ({ target }) => {
    if (!filesOf(target).length) return;
    await open(target);
    target.scrollIntoView();
  });
}

const filesOf = (row) => [...row.querySelectorAll('td:nth-child(2) a[href$=".csv"]')];

function offer(row) {
  const [link] = filesOf(row);
  if (!link) return;
  const plot = button("Plot", `Plot the samples of ${row.cells[0].textContent}`, () => {
    if (row.nextElementSibling?.matches(".hp-samples")) row.nextElementSibling.remove();
    else open(row);
  });
  link.parentElement.append(" ", plot);
}

async function open(row) {
  if (row.nextElementSibling?.matches(".hp-samples")) return;
  const cell = element("td", { colSpan: row.cells.length });
  row.after(element("tr", { className: "hp-samples" }, cell));
  try {
    const texts = await Promise.all(filesOf(row).map(({ href }) => read(href, "text")));
    const all = texts.flatMap((text, place) => samplesIn(text, filesOf(row)[place].textContent));
    plot(cell, row, all.filter(({ variant }) => variant === row.cells[0].textContent));
  } catch (error) {
    cell.textContent = `The samples could not be shown: ${error.message}`;
    console.error(error);
  }
}

// One object per sample of the samples file of a run.
function samplesIn(text, run) {
  return parseCsv(text).flatMap((row) =>
    Object.entries(row).flatMap(([column, values]) => {
      const [, metric, unit] = column.match(/^(.+) \[(.+)\]$/) ?? [];
      if (!metric || !values || row.status !== "ok") return [];
      return values.split(" ").map((value) => ({ variant: row.variant, case: row.case, run, round: Number(row.round) + 1, metric, unit, value: Number(value) }));
    }),
  );
}

const distinct = (values) => [...new Set(values)];
const counted = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;

function plot(cell, row, samples) {
  if (!samples.length) {
    cell.textContent = "No samples: every case was skipped or failed.";
    return;
  }
  const form = formOf("Which samples are shown");
  const view = element("div", { className: "hp-view" });
  const text = element("p", { className: "hp-text", role: "status" });
  const others = element("a", {}, "Other cases in the explorer");
  const box = element("div", { className: "hp-samples-box" }, form, view, text, element("p", { className: "hp-quiet" }, others));
  box.style.width = `${Math.min(cell.closest(".hp-table").clientWidth, 900)}px`; // the table may be wider
  cell.append(box);
  const file = new URL(filesOf(row)[0].href);
  const site = new URL("../../../", file);
  const [machine, study] = file.pathname.split("/").slice(-3);
  const menus = ["case", "metric"].map((name) => {
    const options = distinct(samples.map((sample) => sample[name]));
    return { name, options, value: options[0] };
  });
  followChoice(form, "samples", menus, (values) => {
    const shown = samples.filter((one) => one.case === values.case && one.metric === values.metric);
    const rounds = distinct(shown.map(({ run, round }) => `${run} ${round}`)).length;
    const runs = distinct(shown.map(({ run }) => run)).length;
    text.textContent = `${counted(shown.length, "sample")} of ${counted(rounds, "round")} in ${counted(runs, "run")}. One lane per run; height within a lane: the round; tick: the median.`;
    const asked = { study, machine: decodeURIComponent(machine), metric: values.metric, ...parseCase(values.case) };
    others.href = new URL(`explorer/?${new URLSearchParams(Object.entries(asked).map(([key, value]) => [`explorer.${key}`, value]))}`, site);
    show(view, chartOf(shown), site);
  }, row.id);
}

function chartOf(samples) {
  const values = samples.map(({ value }) => value);
  const isLog = Math.min(...values) > 0 && Math.max(...values) > LOG_SPAN * Math.min(...values);
  const { unit, metric } = samples[0] ?? {};
  const axis = unit === "s" ? { labelExpr: "format(datum.value, '~s') + 's'" } : {};
  const x = { type: "quantitative", title: unit === "s" || unit === "1" ? metric : `${metric}, ${unit}`, axis, scale: isLog ? { type: "log" } : { zero: false } };
  const y = { field: "run", type: "nominal", title: null };
  return {
    width: "container",
    height: { step: 34, for: "position" },
    autosize: { type: "fit-x", contains: "padding" },
    config: CONFIG,
    data: { values: samples },
    layer: [
      { mark: "point", encoding: { x: { ...x, field: "value" }, y, yOffset: { field: "round", type: "ordinal" }, tooltip: ["run", "round", "value"].map((field) => ({ field, type: "nominal" })) } },
      { mark: "tick", encoding: { x: { ...x, field: "value", aggregate: "median" }, y } },
    ],
  };
}
