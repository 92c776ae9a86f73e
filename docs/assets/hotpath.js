// Draws every chart of a page, and again when the palette or the width changes.
const COMPACT_PX = 620;
const drawn = new WeakMap(); // chart's element -> the running Vega view and how it was drawn

const palette = () => document.body.getAttribute("data-md-color-scheme");

async function readJson(address) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  return response.json();
}

async function draw(box) {
  const root = new URL(box.dataset.root, location.href);
  const width = box.parentElement.clientWidth;
  const before = drawn.get(box)?.view;
  const state = { palette: palette(), width, view: before };
  drawn.set(box, state);
  const [spec, palettes] = await Promise.all([
    readJson(new URL(box.dataset.spec, location.href)),
    readJson(new URL("assets/palettes.json", root)),
  ]);
  if (drawn.get(box) !== state) return; // drawn again meanwhile
  const compact = width < COMPACT_PX;
  const { margin = 80, compactMargin = margin, least = 130 } = spec.usermeta ?? {};
  (spec.spec ?? spec).width = Math.max(least, width - (compact ? compactMargin : margin));
  for (const param of spec.params ?? []) {
    if (param.name === "compact") param.value = compact;
    else if (before && param.bind) param.value = before.signal(param.name);
  }
  before?.finalize();
  const controls = box.closest("figure").querySelector(".hp-controls");
  controls.replaceChildren();
  const { view } = await vegaEmbed(box.firstElementChild, spec, {
    actions: false,
    logLevel: 1, // errors: a selection without any points deserves no warning
    renderer: "svg",
    config: palettes[state.palette],
    bind: controls,
    loader: { baseURL: root.href.replace(/\/$/, "") },
    tooltip: { theme: state.palette === "slate" ? "dark" : "light" },
  });
  state.view = view;
}

function drawAll() {
  for (const box of document.querySelectorAll(".hp-view")) {
    const state = drawn.get(box);
    const width = box.parentElement.clientWidth;
    if (state?.palette === palette() && state.width === width) continue;
    draw(box).catch((error) => {
      box.textContent = `This chart could not be drawn: ${error.message}`;
      console.error(error);
    });
  }
}

let pending;
const drawSoon = () => {
  clearTimeout(pending);
  pending = setTimeout(drawAll, 150);
};

document$.subscribe(drawAll);
new MutationObserver(drawAll).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
addEventListener("resize", drawSoon);
