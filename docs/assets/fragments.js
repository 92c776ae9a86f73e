// Folded evidence: fetched when it is opened first, and opened when a link leads into it.
import { offerCopies } from "./copy.js";

const FOLDED = "details[data-fragment]";
const loading = new WeakMap(); // details -> promise of its content

export function watchFolds() {
  for (const fold of document.querySelectorAll(FOLDED)) {
    const link = fold.querySelector("summary a"); // for those without a script
    link.replaceWith(...link.childNodes);
    fold.addEventListener("toggle", () => fold.open && load(fold));
  }
  addEventListener("hashchange", openTarget);
  openTarget();
}

function load(fold) {
  // Printing opens every fold; what nobody has asked for is not printed.
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
    for (const image of content.querySelectorAll("img")) {
      image.src = new URL(image.getAttribute("src"), address).href;
    }
    // Markdown that embeds something is to be copied to other sites.
    for (const code of content.querySelectorAll(".hp-badge code")) {
      code.textContent = code.textContent.replace(/\]\(([^)]+)\)/g, (_, found) => `](${new URL(found, address)})`);
    }
    const alone = document.createElement("a");
    alone.href = address;
    alone.textContent = "On a page of its own";
    const line = document.createElement("p");
    line.append(alone);
    box.replaceChildren(...content.childNodes, line);
    offerCopies(box);
    fold.dataset.loaded = "";
  } catch (error) {
    box.textContent = `${address.pathname} could not be loaded: ${error.message}`;
    loading.delete(fold);
  }
  box.removeAttribute("aria-busy");
}

// The id of what is folded begins with that of its fold and a hyphen.
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
    return ""; // no address of this site
  }
}

async function openTarget() {
  const id = targetId();
  const there = id && document.getElementById(id);
  const fold = there ? there.closest(FOLDED) : id && foldOf(id);
  for (let around = fold || there; around; around = around.parentElement) {
    if (around.localName === "details") around.open = true;
  }
  if (!fold) return;
  await load(fold);
  const target = document.getElementById(id) ?? fold;
  target.classList.add("hp-target");
  target.scrollIntoView();
}
