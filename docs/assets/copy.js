// Buttons that copy: a command, code, the address of a heading or of a chart.
import { element } from "./choice.js";

const SHOWN_MS = 1600;

const status = element("p", { className: "hp-said", role: "status" });
document.body.append(status);
let pending;

function announce(text) {
  status.textContent = text;
  clearTimeout(pending);
  pending = setTimeout(() => (status.textContent = ""), SHOWN_MS);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text); // over plain HTTP, there is no clipboard
    announce("Copied");
  } catch {
    announce("The browser does not allow copying");
  }
}

export const button = (text, label, onclick) => element("button", { type: "button", className: "hp-button", ariaLabel: label, onclick }, text);

export function offerCopies(part) {
  for (const code of part.querySelectorAll("code[data-copy]")) {
    code.after(button("Copy", `Copy ${code.textContent}`, () => copy(code.textContent)));
  }
  for (const block of part.querySelectorAll(".hp-fragment .highlight")) {
    block.prepend(button("Copy", "Copy the code", () => copy(block.querySelector("pre").innerText)));
  }
  for (const link of part.querySelectorAll("a.headerlink")) {
    const name = link.parentElement.firstChild.textContent.trim();
    link.setAttribute("aria-label", `Copy the address of ${name}`);
    link.title = "Copy the address";
    link.addEventListener("click", () => copy(link.href));
  }
}
