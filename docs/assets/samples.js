// The samples of a variant as a plot below its row on the page of data: a lane for each run, a dot for each sample.
// The row links to the samples file of each run, which has all variants.
// The address names case and metric: `?samples.case=…&samples.metric=…#<machine>-<study>-<variant>`.
import { parseCsv } from "./chart_data.js";
import { read } from "./charts.js";
import { button } from "./copy.js";
import { parseCase } from "./explorer.js";
import { digits, seconds } from "./figures.js";

const NAME = "samples";
const LOG_SPAN = 20; // a longer axis is logarithmic
const LANE_PX = 34;
const TOP_PX = 8;
const AXIS_PX = 26;
const SIDE_PX = 24;
const MAX_WIDTH_PX = 900;
const ROUNDS = 5; // heights of dots within a lane, by round
const SVG = "http://www.w3.org/2000/svg";

export function watchSamples() {
  document.addEventListener("hp-loaded", ({ target }) => {
    for (const row of target.querySelectorAll("tr[id]")) offer(row);
  });
  document.addEventListener("hp-shown", async ({ target }) => {
    if (!filesOf(target).length) return;
    await show(target);
    target.scrollIntoView();
  });
}

const filesOf = (row) => [...row.querySelectorAll('td:nth-child(2) a[href$=".csv"]')];

function offer(row) {
  const [link] = filesOf(row);
  if (!link || !row.id) return;
  const name = row.cells[0].textContent;
  const plot = button("Plot", `Plot the samples of ${name}`, () => {
    if (row.nextElementSibling?.classList.contains("hp-samples")) row.nextElementSibling.remove();
    else show(row);
  });
  link.parentElement.append(" ", plot);
}

async function show(row) {
  if (row.nextElementSibling?.classList.contains("hp-samples")) return;
  const line = document.createElement("tr");
  line.className = "hp-samples";
  const cell = line.insertCell();
  cell.colSpan = row.cells.length;
  row.after(line);
  try {
    const texts = await Promise.all(filesOf(row).map(({ href }) => read(href, "text")));
    const all = texts.flatMap((text, place) => samplesIn(text, runOf(filesOf(row)[place])));
    new Samples(cell, all.filter(({ variant }) => variant === row.cells[0].textContent)).start();
  } catch (error) {
    cell.textContent = `The samples could not be shown: ${error.message}`;
    console.error(error);
  }
}

const runOf = (link) => decodeURIComponent(link.pathname.split("/").at(-1)).replace(/\.csv$/, "");

// One object per sample of the samples file of a run.
export function samplesIn(text, run) {
  return parseCsv(text).flatMap((row) =>
    Object.entries(row).flatMap(([column, values]) => {
      const [, metric, unit] = column.match(/^(.+) \[(.+)\]$/) ?? [];
      if (!metric || !values || row.status !== "ok") return [];
      return values.split(" ").map((value) => ({ variant: row.variant, case: row.case, run, round: Number(row.round), metric, unit, value: Number(value) }));
    }),
  );
}

const distinct = (values) => [...new Set(values)];

// The middle value, or the mean of the middle two.
export function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const half = sorted.length / 2;
  return (sorted[Math.ceil(half) - 1] + sorted[Math.floor(half)]) / 2;
}

// The median over rounds of each round's median.
export const medianOf = (samples) =>
  median(distinct(samples.map(({ round }) => round)).map((round) => median(samples.filter((one) => one.round === round).map(({ value }) => value))));

class Samples {
  constructor(cell, samples) {
    this.cell = cell;
    this.samples = samples;
  }

  start() {
    if (!this.samples.length) {
      this.cell.textContent = "No samples: every case was skipped or failed.";
      return;
    }
    const asked = new URLSearchParams(location.search);
    const form = element("form", { className: "hp-controls" });
    form.setAttribute("aria-label", "Which samples are shown");
    this.fields = Object.fromEntries(["case", "metric"].map((key) => [key, form.appendChild(element("label", {}, key)).appendChild(element("select", { name: key }))]));
    this.view = element("div");
    this.text = element("p", { className: "hp-text" });
    this.text.setAttribute("role", "status");
    const box = element("div", { className: "hp-samples-box" });
    box.style.maxWidth = `${this.cell.closest(".hp-table").clientWidth}px`; // the table may be wider
    this.others = element("a", {}, "Other cases in the explorer");
    const line = element("p", { className: "hp-quiet" });
    line.append(this.others);
    box.append(form, this.view, this.text, line);
    this.cell.append(box);
    fill(this.fields.case, distinct(this.samples.map((one) => one.case)), asked.get(`${NAME}.case`));
    this.offerMetrics(asked.get(`${NAME}.metric`));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", () => {
      this.offerMetrics(this.fields.metric.value);
      const address = new URL(location.href);
      for (const [key, field] of Object.entries(this.fields)) address.searchParams.set(`${NAME}.${key}`, field.value);
      address.hash = this.cell.parentElement.previousElementSibling.id;
      history.replaceState(null, "", address);
    });
  }

  offerMetrics(wanted) {
    const here = this.samples.filter((one) => one.case === this.fields.case.value);
    fill(this.fields.metric, distinct(here.map(({ metric }) => metric)), wanted);
    this.draw(here.filter(({ metric }) => metric === this.fields.metric.value));
  }

  draw(samples) {
    const runs = distinct(samples.map(({ run }) => run)).sort();
    const values = samples.map(({ value }) => value);
    const width = Math.min(this.cell.closest(".hp-table").clientWidth, MAX_WIDTH_PX);
    const axis = axisOf(Math.min(...values), Math.max(...values), width - 2 * SIDE_PX);
    const bottom = TOP_PX + LANE_PX * runs.length;
    const drawing = shape("svg", { width, height: bottom + AXIS_PX, viewBox: `0 0 ${width} ${bottom + AXIS_PX}`, role: "img" });
    for (const tick of axis.ticks) {
      const x = SIDE_PX + axis.place(tick);
      drawing.append(shape("line", { x1: x, x2: x, y1: TOP_PX, y2: bottom, class: "grid" }));
      drawing.append(shape("text", { x, y: bottom + 15, "text-anchor": "middle" }, short(written(tick, samples[0].unit))));
    }
    runs.forEach((run, lane) => {
      const top = TOP_PX + lane * LANE_PX;
      const here = samples.filter((one) => one.run === run);
      drawing.append(shape("text", { x: 0, y: top + 9 }, run.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d).*/, "$1-$2-$3 $4:$5 UTC")));
      for (const { value, round } of here) {
        const dot = shape("circle", { cx: SIDE_PX + axis.place(value), cy: top + 15 + 3 * (round % ROUNDS), r: 2.6 });
        dot.append(shape("title", {}, `round ${round + 1}: ${written(value, samples[0].unit)}`));
        drawing.append(dot);
      }
      const x = SIDE_PX + axis.place(medianOf(here));
      drawing.append(shape("line", { x1: x, x2: x, y1: top + 11, y2: top + LANE_PX - 3, class: "median" }));
    });
    const range = `from ${written(Math.min(...values), samples[0].unit)} to ${written(Math.max(...values), samples[0].unit)}`;
    const rounds = distinct(samples.map(({ run, round }) => `${run} ${round}`)).length;
    this.text.textContent = `${counted(samples.length, "sample")} of ${counted(rounds, "round")} in ${counted(runs.length, "run")}, ${range}. One lane per run; height within a lane: the round; tick: the run's median.`;
    this.others.href = explorerAddress(filesOf(this.cell.parentElement.previousElementSibling)[0], this.fields);
    drawing.setAttribute("aria-label", this.text.textContent);
    this.view.replaceChildren(drawing);
  }
}

// Address of the explorer with the machine and study of a samples file, and the case and metric in `fields`.
function explorerAddress(file, fields) {
  const [machine, study] = file.pathname.split("/").slice(-3);
  const asked = { study, machine: decodeURIComponent(machine), metric: fields.metric.value, ...parseCase(fields.case.value) };
  const address = new URL("../explorer/", location.href.split(/[?#]/, 1)[0]);
  for (const [key, value] of Object.entries(asked)) address.searchParams.set(`explorer.${key}`, value);
  return address.href;
}

const counted = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;

const written = (value, unit) => {
  if (unit === "s") return value ? seconds(value) : "0 s";
  return `${digits(value)}${unit === "1" ? "" : ` ${unit}`}`;
};

// Without zeros at the end of the fraction.
const short = (figure) => figure.replace(/\.(\d*?)0+(?!\d)/, (_, kept) => (kept ? `.${kept}` : ""));

// Where values are on an axis of `width` pixels, and its ticks.
export function axisOf(low, high, width) {
  const isLog = low > 0 && high > LOG_SPAN * low;
  const along = isLog ? Math.log10 : (value) => value;
  const space = (along(high) - along(low)) * 0.04 || Math.abs(along(low)) * 0.01 || 1;
  const [start, end] = [along(low) - space, along(high) + space];
  const place = (value) => ((along(value) - start) / (end - start)) * width;
  const most = Math.max(2, Math.floor(width / 90));
  const ticks = isLog ? decades(start, end, most) : steps(start, end, most);
  return { place, ticks };
}

function steps(start, end, most) {
  const rough = (end - start) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((one) => one * power >= rough);
  const first = Math.ceil(start / step);
  return Array.from({ length: Math.floor(end / step) - first + 1 }, (_, place) => (first + place) * step);
}

function decades(start, end, most) {
  const powers = Array.from({ length: Math.floor(end) - Math.ceil(start) + 1 }, (_, place) => Math.ceil(start) + place);
  const every = Math.ceil(powers.length / most);
  return powers.filter((_, place) => place % every === 0).map((power) => 10 ** power);
}

function element(name, properties = {}, text = "") {
  const made = Object.assign(document.createElement(name), properties);
  if (text) made.append(text);
  return made;
}

function shape(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

// Fills a select with `options`, of which `wanted` is chosen if it is one.
function fill(select, options, wanted) {
  select.replaceChildren(...options.map((option) => new Option(option)));
  select.selectedIndex = Math.max(options.indexOf(wanted), 0);
}
