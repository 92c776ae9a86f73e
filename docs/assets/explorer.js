// Draws any metric over any key of any study, from the tables in data/ and charts/. The address has the choice.
import { parseCsv, tableOf } from "./chart_data.js";
import { engine, palettes, read } from "./charts.js";
import { addressOfChoice, readChoice } from "./choice.js";

const NAME = "explorer";
const ALL = null; // an option of a select
const LOG_SPAN = 20; // a longer axis is logarithmic
const HEIGHT_PX = 380;
const COLUMNS = [
  ["machine", "machine", "plain"], ["variant", "variant", "plain"], ["case", "case", "plain"],
  ["value", "figure", "digits"], ["runs", "runs", "plain"], ["hosts", "hosts", "plain"], ["state", "state", "plain"],
];

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

const signal = (name, label, options, value, labels) => ({
  name,
  value,
  bind: { input: "select", name: label, options, labels: labels ?? options.map((one) => (one === ALL ? "all" : String(one))) },
});

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
    new MutationObserver(() => this.draw()).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
    for (const kind of ["pointerenter", "pointerdown", "focusin"]) {
      this.root.addEventListener(kind, () => this.touch());
    }
    if (new URLSearchParams(location.search).has(`${NAME}.study`)) {
      this.part("still")?.remove(); // of another choice
      this.part("text").textContent = "";
      this.touch();
    }
  }

  touch() {
    this.touched ??= this.follow();
  }

  // Shows the choice of the address.
  async follow() {
    try {
      if (!this.rows) this.part("note").textContent = "Loading all figures…";
      await this.load();
      await this.show(this.requested());
    } catch (error) {
      this.part("note").textContent = `The explorer could not be shown: ${error.message}`;
      console.error(error);
    }
  }

  async load() {
    if (this.rows) return;
    const [text] = await Promise.all([read(new URL("data/summary.csv", this.site), "text"), engine()]);
    this.rows = parseCsv(text).map((row) => ({
      ...row,
      median: Number(row.median),
      keys: { machine: row.machine, variant: row.variant, ...parseCase(row.case) },
    }));
  }

  requested() {
    const asked = new URLSearchParams(location.search).get(`${NAME}.study`);
    return asked in this.studies ? asked : (this.first.study ?? Object.keys(this.studies)[0]);
  }

  // The selects of a study, in the form of a chart's signals.
  async specOf(study) {
    const about = this.studies[study];
    const usual = study === this.first.study ? this.first : about.headline;
    const rows = this.rows.filter((row) => row.study === study);
    const of = (key) => distinct(rows.map(({ keys }) => keys[key]).filter((value) => value !== undefined));
    const keys = distinct(rows.flatMap(({ keys }) => Object.keys(keys))).filter((key) => of(key).length > 1);
    const metrics = distinct(rows.map(({ metric }) => metric));
    const sorted = (values) => (values.every(isNumber) ? values.sort((a, b) => a - b) : values);
    const filters = keys.map((key) => {
      const options = sorted(of(key));
      const labels = ["all", ...options.map((value) => this.names[value] ?? String(value))];
      const start = options.includes(usual[key]) ? usual[key] : ALL;
      return signal(key, key, [ALL, ...options], start, labels);
    });
    const titles = Object.values(this.studies).map(({ title }) => title);
    const first = ["gpu_time", "host_time"].find((one) => metrics.includes(one)) ?? metrics[0];
    const chosen = (name, otherwise) => (study === this.first.study ? this.first[name] : otherwise);
    const x = keys.find((key) => of(key).length > 2 && of(key).every(isNumber)) ?? "variant";
    return {
      signals: [
        signal("study", "study", Object.keys(this.studies), null, titles),
        signal("metric", "metric", metrics, chosen("metric", first), metrics.map((one) => about.metrics[one] ?? one)),
        signal("as", "as", ["figure", "rate"], chosen("as", "figure")),
        signal("x", "over", keys, chosen("x", keys.includes(x) ? x : keys[0])),
        signal("colour", "colour", keys, chosen("colour", keys.includes("variant") ? "variant" : keys[0])),
        ...filters,
      ],
    };
  }

  async show(study) {
    this.spec = await this.specOf(study);
    this.spellOutCase();
    const { values, faults } = readChoice(NAME, this.spec);
    // The axis shows all values of its key, unless the address asks for one.
    const asked = new URLSearchParams(location.search);
    for (const key of [values.x, values.colour]) if (!asked.has(`${NAME}.${key}`)) values[key] = ALL;
    this.values = { ...values, study };
    this.part("note").textContent = faults.join(" ");
    this.part("button")?.remove();
    this.part("controls").replaceChildren(...this.spec.signals.map((one) => this.selectOf(one)));
    await this.draw();
  }

  // An address can name a whole case: its keys replace it, except those of the axis and the colours.
  spellOutCase() {
    const address = new URL(location.href);
    const named = address.searchParams.get(`${NAME}.case`);
    if (named === null) return;
    const usual = Object.fromEntries(this.spec.signals.map(({ name, value }) => [name, value]));
    const asked = (name) => address.searchParams.get(`${NAME}.${name}`);
    const drawn = [asked("over") ?? usual.x, asked("colour") ?? usual.colour];
    const keys = { machine: asked("machine"), ...parseCase(named) };
    for (const key of ["case", "machine"]) address.searchParams.delete(`${NAME}.${key}`);
    for (const [key, value] of Object.entries(keys)) {
      if (key in usual && value !== null && !drawn.includes(key)) address.searchParams.set(`${NAME}.${key}`, value);
    }
    history.replaceState(null, "", address);
  }

  selectOf({ name, bind }) {
    const label = document.createElement("label");
    label.append(Object.assign(document.createElement("span"), { className: "vega-bind-name", textContent: bind.name }));
    const select = label.appendChild(document.createElement("select"));
    select.name = name;
    for (const text of bind.labels) select.add(new Option(text));
    select.selectedIndex = bind.options.indexOf(this.values[name]);
    return label;
  }

  async choose({ target }) {
    const { bind } = this.spec.signals.find(({ name }) => name === target.name);
    const value = bind.options[target.selectedIndex];
    const address = target.name === "study" ? new URL(location.pathname, location.href) : this.address({ ...this.values, [target.name]: value });
    if (target.name === "study") address.searchParams.set(`${NAME}.study`, value);
    history.pushState(null, "", address);
    await this.follow();
  }

  address(values) {
    const address = addressOfChoice(NAME, this.spec, values, "");
    address.searchParams.set(`${NAME}.study`, values.study);
    for (const key of [values.x, values.colour]) if (values[key] === ALL) address.searchParams.delete(`${NAME}.${key}`);
    return address;
  }

  async payloadsOf(study) {
    if (this.payloads[study]) return this.payloads[study];
    const text = await read(new URL(`charts/${study}/cases.csv`, this.site), "text");
    const bytes = parseCsv(text).map((row) => [`${row.variant} ${row.case}`, Number(row.payload_bytes)]);
    return (this.payloads[study] = Object.fromEntries(bytes));
  }

  // The figures of the choice, and their runs.
  async figures() {
    const { study, metric, as } = this.values;
    const bytes = as === "rate" ? await this.payloadsOf(study) : {};
    const fits = ({ keys }) => Object.entries(this.values).every(([key, value]) => !(key in keys) || value === ALL || keys[key] === value);
    const rows = this.rows.filter((row) => row.study === study && row.metric === metric && fits(row));
    return rows.flatMap((row) => {
      const payload = bytes[`${row.variant} ${row.case}`];
      const isRate = as === "rate" && row.unit === "s";
      if (isRate && !payload) return [];
      const write = (value) => (isRate ? payload / value / 1e9 : value);
      const shown = { ...row.keys, machine: this.names[row.machine] ?? row.machine };
      const asked = new URLSearchParams({ "samples.case": row.case, "samples.metric": metric });
      const href = `data/?${asked}#${row.machine}-${study}-${row.variant}`;
      const line = Object.entries(shown).filter(([key]) => key !== this.values.x).map(([, value]) => value).join(" ");
      const state = row.stale === "1" ? "stale" : "measured";
      return [{ ...shown, case: row.case, line, href, state, runs: row.runs, hosts: row.hosts, unit: isRate ? "GB/s" : row.unit, value: write(row.median), by_run: row.by_run.split("|").map(Number).map(write) }];
    });
  }

  async draw() {
    if (!this.spec) return;
    const figures = await this.figures();
    const status = this.part("text");
    const view = this.part("view");
    this.part("data").querySelector(".hp-table")?.remove();
    if (!figures.length) {
      view.replaceChildren();
      status.textContent = "No figure matches this choice.";
      return;
    }
    const scheme = document.body.getAttribute("data-md-color-scheme");
    const holder = document.createElement("div");
    holder.setAttribute("aria-hidden", "true"); // the table has the figures
    holder.className = "hp-coming"; // until it is drawn
    view.append(holder);
    await vegaEmbed(holder, this.chartOf(figures), {
      mode: "vega-lite", ast: true, actions: false, renderer: "svg", logLevel: 1, config: (await palettes())[scheme],
      tooltip: { theme: scheme === "slate" ? "dark" : "light" },
    });
    holder.className = "hp-live";
    view.replaceChildren(holder);
    const values = figures.map(({ value }) => value);
    status.textContent = `Shown: ${figures.length} figures, from ${Math.min(...values).toPrecision(3)} to ${Math.max(...values).toPrecision(3)} ${figures[0].unit === "1" ? "" : figures[0].unit}.`;
    const columns = COLUMNS.map(([field, title, kind]) => [field, field === "value" ? `figure, ${figures[0].unit}` : title, kind]);
    this.part("data").append(tableOf(figures, { usermeta: { columns, names: {} } }, this.site));
  }

  // A Vega-Lite chart: medians as points and lines, runs as faint points.
  chartOf(figures) {
    const { x, colour, as, metric, study } = this.values;
    const scaleOf = (values) => {
      const isLong = values.every((value) => value > 0) && Math.max(...values) > LOG_SPAN * Math.min(...values);
      return { type: isLong ? "log" : "linear" };
    };
    const places = figures.map((row) => row[x]);
    const isContinuous = places.every(isNumber);
    const name = as === "rate" ? "payload, GB/s" : `${this.studies[study].metrics[metric] ?? metric}${figures[0].unit === "1" ? "" : `, ${figures[0].unit}`}`;
    const axis = figures[0].unit === "s" ? { labelExpr: "format(datum.value, '~s') + 's'" } : {};
    const encoding = {
      x: isContinuous ? { field: x, type: "quantitative", scale: scaleOf(places) } : { field: x, type: "nominal", axis: { labelAngle: -35 } },
      y: { field: "value", type: "quantitative", title: name, scale: { ...scaleOf(figures.map(({ value }) => value)), zero: false }, axis },
      color: { field: colour, type: "nominal", legend: { orient: "bottom", columns: 3 } },
      detail: { field: "line", type: "nominal" },
    };
    const tooltip = ["machine", "variant", "case", "value", "runs", "hosts", "state"].map((field) => ({ field }));
    const runs = figures.flatMap((row) => row.by_run.map((value) => ({ ...row, value })));
    return {
      width: this.part("scroll").clientWidth - 90,
      height: HEIGHT_PX,
      params: [["compact", false], ["legend_columns", 3]].map(([name, value]) => ({ name, value })),
      layer: [
        { data: { values: runs }, mark: { type: "point", filled: true, size: 14, opacity: 0.45 }, encoding },
        ...(isContinuous ? [{ data: { values: figures }, mark: { type: "line", strokeWidth: 1.2 }, encoding }] : []),
        { data: { values: figures }, mark: { type: "point", filled: true, size: 50 }, encoding: { ...encoding, shape: { condition: { test: "datum.state === 'stale'", value: "cross" }, value: "circle" }, tooltip } },
      ],
    };
  }
}
