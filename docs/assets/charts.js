// Draws a chart when it comes into view, and again when the palette, the width or the choice changes.
// Until then the first one of a page is there as a picture: what it shows by default.
import { csvOf, tableOf, textOf } from "./chart_data.js";
import { addressOfChoice, bound, fileName, readChoice } from "./choice.js";
import { button, copy } from "./copy.js";

const AHEAD_PX = 200;
const charts = new Map(); // figure -> Chart

const palette = () => document.body.getAttribute("data-md-color-scheme");

async function read(address, how) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  return response[how]();
}

const once = (make) => {
  let made;
  return () => (made ??= make());
};

const engine = once(
  () =>
    new Promise((loaded, failed) => {
      const script = document.createElement("script");
      script.src = new URL("vega.js", import.meta.url);
      script.onload = loaded;
      script.onerror = () => failed(new Error("vega.js could not be loaded"));
      document.head.append(script);
    }),
);
const palettes = once(() => read(new URL("palettes.json", import.meta.url), "json"));

class Chart {
  isSeen = false;
  view = null;
  drawn = null; // the palette and width it is drawn in
  drawing = Promise.resolve();

  constructor(figure) {
    this.figure = figure;
    this.name = figure.dataset.chart;
    this.root = new URL(figure.dataset.root, location.href);
    this.part = (name) => figure.querySelector(`.hp-${name}`);
    this.part("controls").addEventListener("change", () => this.chosen());
    this.part("data").addEventListener("toggle", () => this.tell());
    this.read = once(() =>
      Promise.all([
        read(new URL(figure.dataset.spec, location.href), "json"),
        palettes(),
        engine(),
      ]),
    );
  }

  // Draws it if it is in view and not drawn as it should be; one drawing after the other.
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
    const asked = this.view ? { values: this.values, faults: [] } : readChoice(this.name, spec);
    const set = { ...asked.values, column_px: width };
    const signals = spec.signals.map((signal) =>
      signal.name in set ? { ...signal, value: set[signal.name] } : signal,
    );
    const controls = document.createElement("div");
    const holder = document.createElement("div");
    holder.setAttribute("aria-hidden", "true"); // the box around it has the words
    holder.className = "hp-coming"; // until it has its width
    this.part("view").append(holder);
    const scheme = palette();
    const options = {
      mode: "vega",
      actions: false,
      hover: false,
      logLevel: 1, // errors: a selection without any points deserves no warning
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
    this.tell(asked.faults);
  }

  get values() {
    return Object.fromEntries(bound(this.spec).map(({ name }) => [name, this.view.signal(name)]));
  }

  get address() {
    return addressOfChoice(this.name, this.spec, this.values);
  }

  // After a select was changed: it stands in the address, and one can go back.
  async chosen() {
    await this.view.runAsync();
    history.pushState(null, "", this.address);
    this.tell([]);
  }

  // After the address was changed.
  async follow() {
    if (!this.view) return;
    const { values, faults } = readChoice(this.name, this.spec);
    for (const [name, value] of Object.entries(values)) this.view.signal(name, value);
    await this.view.runAsync();
    this.tell(faults);
  }

  // What is shown, in words and, where that is open, as a table.
  tell(faults) {
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
    const ways = {
      png: () => this.opaque(() => this.view.toImageURL("png", 2)),
      svg: async () => file(await this.opaque(() => this.view.toSVG()), "image/svg+xml"),
      csv: () => file(csvOf(this.rows(), this.spec), "text/csv"),
    };
    tools.append(
      button("Copy link", `Copy the address of ${this.name} as shown`, () => copy(this.address.href)),
      ...Object.entries(ways).map(([kind, make]) =>
        button(kind.toUpperCase(), `Save ${this.name} as ${kind.toUpperCase()}`, () => save(kind, make)),
      ),
    );
  }

  // What `make` returns while the chart has the page's colour behind it.
  async opaque(make) {
    this.view.background(getComputedStyle(document.body).backgroundColor);
    try {
      return await make();
    } finally {
      await this.view.background("transparent").runAsync();
    }
  }
}

// Brings what was drawn wider than `width` down to it: a legend by having fewer columns, then the plot.
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
    { rootMargin: `${AHEAD_PX}px` },
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
