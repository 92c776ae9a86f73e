// Draws a chart when it is first touched, or when the address selects something in it. Until then, it is a picture
// of what its menus begin with.
import { csvOf, tableOf } from "./chart_data.js";
import { addressOfChoice, element, isAsked, readChoice } from "./choice.js";
import { button, copy } from "./copy.js";

export async function read(address, how) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  return response[how]();
}

let loading;
function engine() {
  loading ??= new Promise((loaded, failed) => {
    const onerror = () => failed(new Error("vega.js could not be loaded"));
    document.head.append(element("script", { src: new URL("vega.js", import.meta.url), onload: loaded, onerror }));
  });
  return loading;
}

// Puts a view of a Vega-Lite specification into `box` once it has been drawn. A content policy may forbid to compile
// functions, as Vega does unless it interprets expressions (ast). Links of marks are addresses from `root`.
export async function show(box, spec, root) {
  await engine();
  const holder = element("div", { className: "hp-coming", ariaHidden: "true" }); // the surrounding box has the text
  box.append(holder);
  await vegaEmbed(holder, spec, {
    mode: "vega-lite",
    ast: true,
    actions: false,
    hover: false,
    logLevel: 1, // errors only
    renderer: "svg",
    loader: { baseURL: root.href.replace(/\/$/, "") },
    tooltip: { formatTooltip: tooltipOf },
  });
  holder.className = "hp-live";
  box.replaceChildren(holder);
}

class Chart {
  spec = null;
  isChosen = false; // by the menus, not by the address
  drawing = null;

  constructor(figure) {
    this.figure = figure;
    this.name = figure.dataset.chart;
    this.root = new URL(figure.dataset.root, location.href);
    this.part = (name) => figure.querySelector(`.hp-${name}`);
    this.selects = [...this.part("controls").querySelectorAll("select")];
    for (const select of this.selects) select.disabled = false;
    this.part("quiet")?.removeAttribute("hidden"); // a picture has no marks to click
    this.part("controls").addEventListener("change", () => this.onSelect());
    this.part("data").addEventListener("toggle", () => this.describe()); // printing opens it, too
    for (const kind of ["pointerenter", "pointerdown", "focusin"]) figure.addEventListener(kind, () => this.touch());
    addEventListener("popstate", () => this.follow());
    if (isAsked(this.name)) this.touch();
  }

  touch() {
    this.drawing ??= this.start();
    return this.drawing;
  }

  async start() {
    try {
      this.spec = await read(new URL(this.figure.dataset.spec, location.href), "json");
      if (!this.isChosen) this.obeyAddress();
      this.offerTools();
    } catch (error) {
      this.fail(error);
    }
    await this.draw();
  }

  // Without a drawing, the picture stays, which shows what the menus begin with.
  fail(error) {
    this.part("controls").reset();
    this.part("view").querySelector(".hp-coming")?.remove();
    this.part("note").textContent = `This chart could not be drawn: ${error.message}`;
    console.error(error);
  }

  get menus() {
    return this.spec.usermeta.selects.map(({ label, column, options, chosen }) => ({ name: label, column, options, value: options[chosen] }));
  }

  // The value of every menu by its name.
  get values() {
    return Object.fromEntries(this.menus.map(({ name, options }, place) => [name, options[this.selects[place].selectedIndex]]));
  }

  get address() {
    return addressOfChoice(this.name, this.menus, this.values, this.figure.id);
  }

  // Rows that have the chosen values; those without a value in a menu's column belong to every choice.
  get rows() {
    const values = this.values;
    const fits = (row) => this.menus.every(({ name, column }) => row[column] === null || row[column] === values[name]);
    return this.spec.data.values.filter(fits);
  }

  obeyAddress() {
    const { values, faults } = readChoice(this.name, this.menus);
    this.menus.forEach(({ name, options }, place) => (this.selects[place].selectedIndex = options.indexOf(values[name])));
    this.part("note").textContent = faults.join(" ");
  }

  // After the reader changed a menu: writes the choice into the address, so that Back works.
  async onSelect() {
    this.isChosen = true;
    this.part("note").textContent = "";
    const isNew = !this.drawing;
    await this.touch();
    if (!isNew) await this.draw();
    if (this.isDrawn) history.pushState(null, "", this.address);
  }

  // After the address changed.
  async follow() {
    if (!this.drawing && !isAsked(this.name)) return;
    await this.touch();
    if (!this.spec) return;
    this.obeyAddress();
    await this.draw();
  }

  async draw() {
    if (!this.spec) return;
    this.isDrawn = false;
    try {
      const values = this.rows;
      if (!values.length) this.part("note").textContent = "Nothing was measured with this choice.";
      await show(this.part("view"), { ...this.spec, data: { values } }, this.root);
      this.describe();
      this.isDrawn = true;
    } catch (error) {
      this.fail(error);
    }
  }

  // The shown rows as a table, if it is unfolded.
  describe() {
    const details = this.part("data");
    details.querySelector(".hp-table")?.remove();
    if (this.spec && details.open) details.append(tableOf(this.rows, this.spec.usermeta.columns, this.root));
    else if (details.open) this.touch();
  }

  offerTools() {
    const save = () => {
      const chosen = Object.entries(this.values).map(([name, value]) => `${name}=${value}`);
      const name = [this.figure.dataset.study, this.name, ...chosen].join("-").replace(/[^\w.=+-]+/g, "_").slice(0, 150);
      const href = URL.createObjectURL(new Blob([csvOf(this.rows, this.address.href)], { type: "text/csv" }));
      element("a", { download: `${name}.csv`, href }).click();
    };
    this.part("tools").append(
      button("Copy link", `Copy the address of ${this.name} as shown`, () => copy(this.address.href)),
      button("CSV", `Save ${this.name} as CSV`, save),
    );
  }
}

// A tooltip of the values that a point has, as HTML; `escaped` makes HTML of any value.
function tooltipOf(value, escaped) {
  const missing = [null, undefined, "", "null", "undefined", "NaN"];
  const rows = Object.entries(value).filter(([, one]) => !missing.includes(one));
  const cells = ([key, one]) => `<tr><td class="key">${escaped(key)}</td><td class="value">${escaped(one)}</td></tr>`;
  return `<table>${rows.map(cells).join("")}</table>`;
}

export function watchCharts() {
  for (const figure of document.querySelectorAll(".hp-chart")) new Chart(figure);
}
