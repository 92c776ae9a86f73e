// Buttons that copy: a command, code, the address of a heading or of a chart.
const SHOWN_MS = 1600;

const status = document.createElement("p");
status.className = "hp-said";
status.setAttribute("role", "status");
document.body.append(status);
let pending;

function announce(text) {
  status.textContent = text;
  clearTimeout(pending);
  pending = setTimeout(() => (status.textContent = ""), SHOWN_MS);
}

export async function copy(text) {
  try {
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else copySelected(text);
    announce("Copied");
  } catch {
    announce("The browser does not allow copying");
  }
}

// Browsers give pages over plain HTTP no clipboard API.
function copySelected(text) {
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  if (!isCopied) throw new Error("not copied");
}

export function button(text, label, onClick) {
  const element = document.createElement("button");
  element.type = "button";
  element.className = "hp-button";
  element.textContent = text;
  element.setAttribute("aria-label", label);
  element.addEventListener("click", onClick);
  return element;
}

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
