// Draws a chart when it is first touched, and again when the palette, the width or the selection changes.
// Until then, it is a static picture of its default selection.
import { csvOf, parseCsv, tableOf, textOf } from "./chart_data.js";
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
  isTouched = false;
  isChosen = false; // by the selects, not by the address
  view = null;
  drawn = null; // palette and width of the current drawing
  drawing = Promise.resolve();

  constructor(figure) {
    this.figure = figure;
    this.name = figure.dataset.chart;
    this.root = new URL(figure.dataset.root, location.href);
    this.part = (name) => figure.querySelector(`.hp-${name}`);
    this.selects = [...this.part("controls").querySelectorAll("select")];
    for (const select of this.selects) select.disabled = false;
    this.part("controls").addEventListener("change", () => this.onSelect());
    this.part("data").addEventListener("toggle", () => this.describe()); // printing opens it, too
    for (const kind of ["pointerenter", "pointerdown", "focusin"]) {
      figure.addEventListener(kind, () => this.touch());
    }
    this.isTouched = isAsked(this.name);
    figure.classList.toggle("hp-default", !this.isTouched);
    this.read = once(async () => {
      const spec = await read(new URL(figure.dataset.spec, location.href), "json");
      const texts = spec.data.map(({ url }) => url && read(new URL(url, this.root), "text"));
      return [spec, ...(await Promise.all([palettes(), Promise.all(texts), engine()]))];
    });
  }

  touch() {
    this.isTouched = true;
    this.update();
    return this.drawing;
  }

  // Draws the chart if it is in view, touched and outdated. Drawings run one after the other.
  update() {
    this.drawing = this.drawing.then(async () => {
      const width = this.part("scroll").clientWidth;
      const state = `${palette()} ${width}`;
      if (!this.isSeen || !this.isTouched || this.drawn === state) return;
      try {
        await this.draw(width);
        this.drawn = state;
      } catch (error) {
        this.fail(error);
      }
    });
  }

  // Without a drawing, the picture stays, which shows the default selection.
  fail(error) {
    this.figure.querySelector(".hp-coming")?.remove();
    if (!this.view) {
      this.part("controls").reset();
      this.figure.classList.add("hp-default");
    }
    this.part("note").textContent = `This chart could not be drawn: ${error.message}`;
    console.error(error);
  }

  async draw(width) {
    const [spec] = await this.read();
    this.spec = spec;
    const requested = this.view || this.isChosen ? { values: this.values, faults: [] } : readChoice(this.name, spec);
    this.values = requested.values;
    const holder = document.createElement("div");
    holder.setAttribute("aria-hidden", "true"); // the surrounding box has the text
    holder.className = "hp-coming"; // until its width is final
    this.part("view").append(holder);
    const view = await this.embed(holder, width);
    await narrow(view, spec, width);
    this.view?.finalize();
    this.view = view;
    holder.classList.replace("hp-coming", "hp-live");
    this.part("view").replaceChildren(holder);
    this.offerTools();
    this.describe(requested.faults);
  }

  // A view of the chart with the current selection in `holder`; `more` replaces parts of its specification.
  async embed(holder, width, more = {}) {
    const [spec, colours, texts] = await this.read();
    const values = { ...this.values, column_px: width };
    // The page has the selects.
    const signals = spec.signals.map(({ bind, ...signal }) =>
      signal.name in values ? { ...signal, value: values[signal.name] } : signal,
    );
    const scheme = palette();
    // A content policy may forbid to compile functions, as Vega does for expressions and CSV files.
    const data = spec.data.map(({ url, format, ...one }, place) =>
      url ? { ...one, values: parseCsv(texts[place]), format: { parse: format.parse } } : { ...one, ...(format && { format }) },
    );
    const options = {
      mode: "vega",
      ast: true,
      actions: false,
      hover: false,
      logLevel: 1, // errors only: a selection without points is no reason to warn
      renderer: "svg",
      config: colours[scheme],
      loader: { baseURL: this.root.href.replace(/\/$/, "") }, // of links
      tooltip: { theme: scheme === "slate" ? "dark" : "light", formatTooltip: tooltipOf },
    };
    const { view } = await vegaEmbed(holder, { ...spec, signals, data, ...more }, options);
    return view;
  }

  // The value of every select, by the name of its signal.
  get values() {
    return Object.fromEntries(
      bound(this.spec).map(({ name, bind }, place) => [name, bind.options[this.selects[place].selectedIndex]]),
    );
  }

  set values(values) {
    bound(this.spec).forEach(({ name, bind }, place) => {
      this.selects[place].selectedIndex = bind.options.indexOf(values[name]);
    });
  }

  get address() {
    return addressOfChoice(this.name, this.spec, this.values);
  }

  // After the reader changed a select: writes the selection into the address, so that Back works.
  async onSelect() {
    this.isChosen = true;
    await this.touch();
    if (!this.view) return;
    history.pushState(null, "", this.address);
    await this.show(this.values);
    this.describe([]);
  }

  // After the address changed.
  async follow() {
    if (!this.view) {
      if (isAsked(this.name)) this.touch();
      return;
    }
    const { values, faults } = readChoice(this.name, this.spec);
    this.values = values;
    await this.show(values);
    this.describe(faults);
  }

  async show(values) {
    if (!this.view) return;
    for (const [name, value] of Object.entries(values)) this.view.signal(name, value);
    await this.view.runAsync();
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
      png: () => this.titled((view) => view.toImageURL("png", 2)),
      svg: async () => file(await this.titled((view) => view.toSVG()), "image/svg+xml"),
      csv: () => file(csvOf(this.rows(), this.spec, this.address.href), "text/csv"),
    };
    tools.append(
      button("Copy link", `Copy the address of ${this.name} as shown`, () => copy(this.address.href)),
      ...Object.entries(formats).map(([kind, make]) =>
        button(kind.toUpperCase(), `Save ${this.name} as ${kind.toUpperCase()}`, () => save(kind, make)),
      ),
    );
  }

  // The result of `make` for a view on the page's background colour with title, machines and address.
  async titled(make) {
    const { names } = this.spec.usermeta;
    const machines = [...new Set(this.rows().map(({ machine }) => machine).filter(Boolean))];
    const [page, caption] = [document.querySelector("h1"), this.figure.querySelector("figcaption")];
    const sentence = caption.textContent.split(/[.?:]\s/, 1)[0];
    const title = {
      text: `${page.firstChild.textContent.trim()}: ${sentence}`,
      subtitle: [machines.map((name) => names[name] ?? name).join(", "), this.address.href].filter(Boolean),
      anchor: "start",
      color: { signal: "ink" },
      subtitleColor: { signal: "quiet" },
    };
    const holder = document.createElement("div");
    holder.className = "hp-coming";
    this.part("view").append(holder);
    const background = getComputedStyle(document.body).backgroundColor;
    const view = await this.embed(holder, this.part("scroll").clientWidth, { title, background });
    try {
      return await make(view);
    } finally {
      view.finalize();
      holder.remove();
    }
  }
}

// Whether the address has a selection of the chart.
function isAsked(chart) {
  return [...new URLSearchParams(location.search).keys()].some((key) => key.startsWith(`${chart}.`));
}

// A tooltip of the values that a point has, as HTML; `escaped` makes HTML of any value.
function tooltipOf(value, escaped) {
  if (typeof value !== "object" || value === null) return escaped(value);
  const missing = [null, undefined, "", "null", "undefined", "NaN"];
  const rows = Object.entries(value).filter(([, one]) => !missing.includes(one));
  const cells = ([key, one]) => `<tr><td class="key">${escaped(key)}</td><td class="value">${escaped(one)}</td></tr>`;
  return `<table>${rows.map(cells).join("")}</table>`;
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
