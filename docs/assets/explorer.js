// Draws any metric over any key of any study, from data/summary.csv. The address has the choice.
import { parseCsv, tableOf } from "./chart_data.js";
import { read, show } from "./charts.js";
import { addressOfChoice, isAsked, readChoice, selectOf } from "./choice.js";

const NAME = "explorer";
const ALL = null; // an option of a menu
const LOG_SPAN = 20; // a longer axis is logarithmic
const HEIGHT_PX = 380;
const COLUMNS = ["machine", "variant", "case", "value", "unit", "runs", "hosts", "state"].map((field) => [field, field]);

export function watchExplorer() {
  const root = document.querySelector(".hp-explorer");
  if (root) new Explorer(root).start();
}

const distinct = (values) => [...new Set(values)];
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

// Keys and values of a case's id; whole numbers become numbers.
export function parseCase(id) {
  const pairs = id.split(",").map((pair) => pair.split("="));
  return Object.fromEntries(pairs.map(([key, value]) => [key, /^\d+$/.test(value) ? Number(value) : value]));
}

class Explorer {
  rows = null; // of the summary
  payloads = {}; // bytes by study, then by variant and case

  constructor(root) {
    this.root = root;
    this.studies = JSON.parse(root.dataset.studies);
    this.names = JSON.parse(root.dataset.names);
    this.first = JSON.parse(root.dataset.start); // the choice of the picture
    this.site = new URL(root.dataset.root, location.href);
    this.part = (name) => root.querySelector(`.hp-${name}`);
  }

  start() {
    this.part("controls").addEventListener("change", (event) => this.choose(event));
    addEventListener("popstate", () => this.follow());
    for (const kind of ["pointerenter", "pointerdown", "focusin"]) this.root.addEventListener(kind, () => this.touch());
    if (isAsked(NAME)) this.touch();
  }

  touch() {
    this.touched ??= this.follow();
  }

  // Shows the choice of the address.
  async follow() {
    try {
      if (!this.rows) await this.load();
      const asked = new URLSearchParams(location.search).get(`${NAME}.study`);
      const study = asked in this.studies ? asked : (this.first.study ?? Object.keys(this.studies)[0]);
      this.menus = this.menusOf(study);
      const { values, faults } = readChoice(NAME, this.menus);
      // The axis shows all values of its key, and so do the colours, unless the address asks for one.
      this.menus = this.menus.filter(({ name }) => name !== values.over);
      delete values[values.over];
      if (!new URLSearchParams(location.search).has(`${NAME}.${values.colour}`)) values[values.colour] = ALL;
      this.values = { ...values, study };
      this.part("note").textContent = faults.join(" ");
      this.part("button")?.remove();
      const boxes = this.menus.map(selectOf);
      this.menus.forEach(({ name, options }, place) => {
        boxes[place].querySelector("select").selectedIndex = options.indexOf(this.values[name]);
      });
      this.part("controls").replaceChildren(...boxes);
      await this.draw();
    } catch (error) {
      this.part("note").textContent = `The explorer could not be shown: ${error.message}`;
      console.error(error);
    }
  }

  async load() {
    this.part("note").textContent = "Loading all figures…";
    const text = await read(new URL("data/summary.csv", this.site), "text");
    this.rows = parseCsv(text).map((row) => ({
      ...row,
      median: Number(row.median),
      keys: { machine: row.machine, variant: row.variant, ...parseCase(row.case) },
    }));
  }

  menusOf(study) {
    const about = this.studies[study];
    const isFirst = study === this.first.study;
    const usual = isFirst ? this.first : about.headline;
    const rows = this.rows.filter((row) => row.study === study);
    const of = (key) => distinct(rows.map(({ keys }) => keys[key]).filter((value) => value !== undefined));
    const keys = distinct(rows.flatMap(({ keys }) => Object.keys(keys))).filter((key) => of(key).length > 1);
    const metrics = distinct(rows.map(({ metric }) => metric));
    const filters = keys.map((name) => {
      const options = of(name).every(isNumber) ? of(name).sort((a, b) => a - b) : of(name);
      const labels = ["all", ...options.map((value) => this.names[value] ?? String(value))];
      return { name, options: [ALL, ...options], labels, value: options.includes(usual[name]) ? usual[name] : ALL };
    });
    const metric = ["gpu_time", "host_time"].find((one) => metrics.includes(one)) ?? metrics[0];
    const x = keys.find((key) => of(key).length > 2 && of(key).every(isNumber)) ?? keys[0];
    const start = isFirst ? this.first : { metric, as: "figure", x, colour: "variant" };
    const studies = Object.keys(this.studies);
    return [
      { name: "study", options: studies, labels: studies.map((name) => this.studies[name].title), value: study },
      { name: "metric", options: metrics, labels: metrics.map((one) => about.metrics[one] ?? one), value: start.metric },
      { name: "as", options: ["figure", "rate"], value: start.as },
      { name: "over", options: keys, value: start.x },
      { name: "colour", options: keys, value: keys.includes(start.colour) ? start.colour : keys[0] },
      ...filters,
    ];
  }

  async choose({ target }) {
    const { options } = this.menus.find(({ name }) => name === target.name);
    const value = options[target.selectedIndex];
    const isStudy = target.name === "study";
    const values = { ...this.values, [target.name]: value };
    const address = isStudy ? new URL(location.pathname, location.href) : addressOfChoice(NAME, this.menus, values, "");
    address.searchParams.set(`${NAME}.study`, values.study);
    if (values[values.colour] === ALL) address.searchParams.delete(`${NAME}.${values.colour}`);
    history.pushState(null, "", address);
    await this.follow();
  }

  // The figures of the choice.
  async figures() {
    const { study, metric, as } = this.values;
    const payloads = new URL(`charts/${study}/all.payloads.json`, this.site);
    const bytes = as === "rate" ? (this.payloads[study] ??= await read(payloads, "json")) : {};
    const fits = ({ keys }) => Object.entries(this.values).every(([key, value]) => !(key in keys) || value === ALL || keys[key] === value);
    const rows = this.rows.filter((row) => row.study === study && row.metric === metric && fits(row));
    return rows.flatMap((row) => {
      const payload = bytes[`${row.variant} ${row.case}`];
      const isRate = as === "rate" && row.unit === "s";
      if (isRate && !payload) return [];
      const shown = { ...row.keys, machine: this.names[row.machine] ?? row.machine };
      const asked = new URLSearchParams({ "samples.case": row.case, "samples.metric": metric });
      const href = `data/?${asked}#${row.machine}-${study}-${row.variant}`;
      const line = Object.entries(shown).filter(([key]) => key !== this.values.over).map(([, value]) => value).join(" ");
      const figure = isRate ? { value: payload / row.median / 1e9, unit: "GB/s" } : { value: row.median, unit: row.unit };
      return [{ ...shown, ...figure, case: row.case, line, href, state: row.stale === "1" ? "stale" : "measured", runs: row.runs, hosts: row.hosts }];
    });
  }

  async draw() {
    const figures = await this.figures();
    this.part("text").textContent = figures.length ? `Shown: ${figures.length} figures, ${figures[0].unit}.` : "No figure matches this choice.";
    this.part("data").querySelector(".hp-table")?.remove();
    if (!figures.length) {
      this.part("view").replaceChildren();
      return;
    }
    await show(this.part("view"), this.chartOf(figures), this.site);
    this.part("data").append(tableOf(figures, COLUMNS, this.site));
  }

  // A Vega-Lite chart: medians as points and lines.
  chartOf(figures) {
    const { over, colour, metric, study } = this.values;
    const scaleOf = (values) => {
      const isLong = values.every((value) => value > 0) && Math.max(...values) > LOG_SPAN * Math.min(...values);
      return isLong ? { type: "log" } : { type: "linear", zero: false };
    };
    const places = figures.map((row) => row[over]);
    const isContinuous = places.every(isNumber);
    const { unit } = figures[0];
    const title = unit === "GB/s" ? "payload, GB/s" : `${this.studies[study].metrics[metric] ?? metric}${unit === "1" ? "" : `, ${unit}`}`;
    const axis = unit === "s" ? { labelExpr: "format(datum.value, '~s') + 's'" } : {};
    const x = isContinuous ? { type: "quantitative", scale: scaleOf(places) } : { type: "nominal", axis: { labelAngle: -35 } };
    const encoding = {
      x: { field: over, ...x },
      y: { field: "value", type: "quantitative", title, scale: scaleOf(figures.map(({ value }) => value)), axis },
      color: { field: colour, type: "nominal", sort: null },
      detail: { field: "line", type: "nominal" },
      href: { field: "href", type: "nominal" },
      tooltip: COLUMNS.map(([field]) => ({ field, type: "nominal" })),
    };
    const points = { mark: { type: "point", filled: true, size: 50 }, encoding };
    const lines = { mark: { type: "line", strokeWidth: 1.2 }, encoding: { ...encoding, href: { value: null }, tooltip: { value: null } } };
    return {
      width: "container",
      autosize: { type: "fit-x", contains: "padding" },
      height: HEIGHT_PX,
      config: JSON.parse(this.root.dataset.config),
      data: { values: figures },
      layer: isContinuous ? [lines, points] : [points],
    };
  }
}
