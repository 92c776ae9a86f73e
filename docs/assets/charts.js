// Draws a chart when it comes into view, and again when the palette, the width or the selection changes.
// Until then, the first chart of a page is a static picture of its default selection.
import { csvOf, tableOf, textOf } from "./chart_data.js";
import { addressOfChoice, bound, fileName, readChoice } from "./choice.js";
import { button, copy } from "./copy.js";

const DRAW_AHEAD_PX = 200;
const charts = new Map(); // figure -> Chart

const palette = () => document.body.getAttribute("data-md-color-scheme");

export async function read(address, how) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  return response[how]();
}

const once = (make) => {
  let made;
  return () => (made ??= make());
};

export const engine = once(
  () =>
    new Promise((loaded, failed) => {
      const script = document.createElement("script");
      script.src = new URL("vega.js", import.meta.url);
      script.onload = loaded;
      script.onerror = () => failed(new Error("vega.js could not be loaded"));
      document.head.append(script);
    }),
);
export const palettes = once(() => read(new URL("palettes.json", import.meta.url), "json"));

class Chart {
  isSeen = false;
  view = null;
  drawn = null; // palette and width of the current drawing
  drawing = Promise.resolve();

  constructor(figure) {
    this.figure = figure;
    this.name = figure.dataset.chart;
    this.root = new URL(figure.dataset.root, location.href);
    this.part = (name) => figure.querySelector(`.hp-${name}`);
    this.part("controls").addEventListener("change", () => this.onSelect());
    this.part("data").addEventListener("toggle", () => this.describe());
    this.read = once(() =>
      Promise.all([
        read(new URL(figure.dataset.spec, location.href), "json"),
        palettes(),
        engine(),
      ]),
    );
  }

  // Draws the chart if it is in view and outdated. Drawings run one after the other.
  update() {
    this.drawing = this.drawing.then(async () => {
      const width = this.part("scroll").clientWidth;
      const state = `${palette()} ${width}`;
      if (!this.isSeen || this.drawn === state) return;
      try {
        await this.draw(width);
        this.drawn = state;
      } catch (error) {
        this.figure.querySelector(".hp-coming")?.remove();
        this.part("note").textContent = `This chart could not be drawn: ${error.message}`;
        console.error(error);
      }
    });
  }

  async draw(width) {
    const [spec, colours] = await this.read();
    this.spec = spec;
    const requested = this.view ? { values: this.values, faults: [] } : readChoice(this.name, spec);
    const values = { ...requested.values, column_px: width };
    const signals = spec.signals.map((signal) =>
      signal.name in values ? { ...signal, value: values[signal.name] } : signal,
    );
    const controls = document.createElement("div");
    const holder = document.createElement("div");
    holder.setAttribute("aria-hidden", "true"); // the surrounding box has the text
    holder.className = "hp-coming"; // until its width is final
    this.part("view").append(holder);
    const scheme = palette();
    const options = {
      mode: "vega",
      actions: false,
      hover: false,
      logLevel: 1, // errors only: a selection without points is no reason to warn
      renderer: "svg",
      config: colours[scheme],
      bind: controls,
      loader: { baseURL: this.root.href.replace(/\/$/, "") },
      tooltip: { theme: scheme === "slate" ? "dark" : "light" },
    };
    const { view } = await vegaEmbed(holder, { ...spec, signals }, options);
    await narrow(view, spec, width);
    this.view?.finalize();
    this.view = view;
    holder.classList.replace("hp-coming", "hp-live");
    this.part("controls").replaceChildren(...controls.children);
    this.part("view").replaceChildren(holder);
    this.offerTools();
    this.describe(requested.faults);
  }

  get values() {
    return Object.fromEntries(bound(this.spec).map(({ name }) => [name, this.view.signal(name)]));
  }

  get address() {
    return addressOfChoice(this.name, this.spec, this.values);
  }

  // After the reader changed a select: writes the selection into the address, so that Back works.
  async onSelect() {
    await this.view.runAsync();
    history.pushState(null, "", this.address);
    this.describe([]);
  }

  // After the address changed.
  async follow() {
    if (!this.view) return;
    const { values, faults } = readChoice(this.name, this.spec);
    for (const [name, value] of Object.entries(values)) this.view.signal(name, value);
    await this.view.runAsync();
    this.describe(faults);
  }

  // Describes the shown rows in a sentence and, if it is unfolded, in a table.
  describe(faults) {
    if (!this.view) return;
    if (faults) this.part("note").textContent = faults.join(" ");
    const rows = this.rows();
    this.part("text").textContent = textOf(rows, this.spec.usermeta);
    const details = this.part("data");
    details.querySelector(".hp-table")?.remove();
    if (details.open) details.append(tableOf(rows, this.spec, this.root));
  }

  rows() {
    return this.view.data("shown");
  }

  offerTools() {
    const tools = this.part("tools");
    if (tools.children.length) return;
    const save = async (kind, make) => {
      const link = document.createElement("a");
      link.download = `${fileName(this.figure.dataset.study, this.name, this.spec, this.values)}.${kind}`;
      link.href = await make();
      link.click();
    };
    const file = (text, type) => URL.createObjectURL(new Blob([text], { type }));
    const formats = {
      png: () => this.opaque(() => this.view.toImageURL("png", 2)),
      svg: async () => file(await this.opaque(() => this.view.toSVG()), "image/svg+xml"),
      csv: () => file(csvOf(this.rows(), this.spec), "text/csv"),
    };
    tools.append(
      button("Copy link", `Copy the address of ${this.name} as shown`, () => copy(this.address.href)),
      ...Object.entries(formats).map(([kind, make]) =>
        button(kind.toUpperCase(), `Save ${this.name} as ${kind.toUpperCase()}`, () => save(kind, make)),
      ),
    );
  }

  // The result of `make`, called while the chart has the page's background colour.
  async opaque(make) {
    this.view.background(getComputedStyle(document.body).backgroundColor);
    try {
      return await make();
    } finally {
      await this.view.background("transparent").runAsync();
    }
  }
}

// Shrinks a drawing to `width`: first the legend by using fewer columns, then the plot.
async function narrow(view, spec, width) {
  const svg = view.container().querySelector("svg");
  const excess = (part) => part.getBoundingClientRect().right - svg.getBoundingClientRect().left - width;
  const isTooWide = () => [...svg.querySelectorAll(".role-legend")].some((legend) => excess(legend) > 0);
  for (const columns of spec.usermeta.legendColumns ?? []) {
    if (isTooWide()) await view.signal("legend_columns", columns).resize().runAsync();
  }
  if (excess(svg) > 0) await view.signal("column_px", Math.floor(width - excess(svg))).resize().runAsync();
}

const updateAll = () => charts.forEach((chart) => chart.update());

export function watchCharts() {
  const seen = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const chart = charts.get(target);
        chart.isSeen = isIntersecting;
        chart.update();
      }
    },
    { rootMargin: `${DRAW_AHEAD_PX}px` },
  );
  for (const figure of document.querySelectorAll(".hp-chart")) {
    charts.set(figure, new Chart(figure));
    seen.observe(figure);
  }
  let pending;
  addEventListener("resize", () => {
    clearTimeout(pending);
    pending = setTimeout(updateAll, 150);
  });
  addEventListener("popstate", () => charts.forEach((chart) => chart.follow()));
  new MutationObserver(updateAll).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
}
