// Folded evidence: fetched on first opening, and opened when a link points into it.
import { element } from "./choice.js";
import { offerCopies } from "./copy.js";

const FOLDED = "details[data-fragment]";
const loading = new WeakMap(); // details -> promise of its content

export function watchFolds() {
  for (const fold of document.querySelectorAll(FOLDED)) {
    const link = fold.querySelector("summary a"); // for readers without scripts
    link.replaceWith(...link.childNodes);
    fold.addEventListener("toggle", () => fold.open && load(fold));
  }
  // Printing opens every section; the style sheet prints those that the reader has opened.
  for (const summary of document.querySelectorAll("details.hp-section > summary")) {
    const section = summary.parentElement;
    summary.addEventListener("click", () => section.toggleAttribute("data-opened", !section.open));
  }
  addEventListener("hashchange", openTarget);
  openTarget();
}

function load(fold) {
  // Printing opens every fold; folds that the reader has not opened are not printed.
  if (matchMedia("print").matches) return Promise.resolve();
  if (!loading.has(fold)) loading.set(fold, fill(fold));
  return loading.get(fold);
}

async function fill(fold) {
  const address = new URL(fold.dataset.fragment, location.href);
  const box = fold.querySelector(".hp-fragment") ?? fold.appendChild(document.createElement("div"));
  box.className = "hp-fragment";
  box.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(address);
    if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const content = page.querySelector("main");
    for (const link of content.querySelectorAll("a[href]")) {
      link.href = new URL(link.getAttribute("href"), address).href;
    }
    const separate = element("a", { href: address }, "Open as a separate page");
    box.replaceChildren(...content.childNodes, element("p", {}, separate));
    offerCopies(box);
    box.dispatchEvent(new CustomEvent("hp-loaded", { bubbles: true }));
    fold.dataset.loaded = "";
  } catch (error) {
    box.textContent = `${address.pathname} could not be loaded: ${error.message}`;
    loading.delete(fold);
  }
  box.removeAttribute("aria-busy");
}

// Ids inside a fold begin with the fold's id and a hyphen.
function foldOf(id) {
  const folds = [...document.querySelectorAll(`${FOLDED}[id]`)];
  return folds
    .filter((fold) => id === fold.id || id.startsWith(`${fold.id}-`))
    .sort((one, other) => other.id.length - one.id.length)[0];
}

function targetId() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return ""; // the fragment is not valid percent-encoding
  }
}

async function openTarget() {
  const id = targetId();
  const element = id && document.getElementById(id);
  const fold = element ? element.closest(FOLDED) : id && foldOf(id);
  for (let ancestor = fold || element; ancestor; ancestor = ancestor.parentElement) {
    if (ancestor.localName !== "details") continue;
    ancestor.open = true;
    ancestor.toggleAttribute("data-opened", true);
  }
  if (!fold) {
    if (element && element.closest("details")) element.scrollIntoView(); // its place has changed
    return;
  }
  await load(fold);
  const target = document.getElementById(id) ?? fold;
  target.classList.add("hp-target");
  target.scrollIntoView();
  target.dispatchEvent(new CustomEvent("hp-shown", { bubbles: true }));
}
