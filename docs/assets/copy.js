// Buttons that copy: a command, code, the address of a heading or of a chart.
const SHOWN_MS = 1600;

const said = document.createElement("p");
said.className = "hp-said";
said.setAttribute("role", "status");
document.body.append(said);
let pending;

function say(text) {
  said.textContent = text;
  clearTimeout(pending);
  pending = setTimeout(() => (said.textContent = ""), SHOWN_MS);
}

export async function copy(text) {
  try {
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else copySelected(text);
    say("Copied");
  } catch {
    say("The browser does not let this page copy");
  }
}

// Pages that come over HTTP from another machine have no clipboard.
function copySelected(text) {
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("not copied");
}

export function button(words, name, press) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "hp-button";
  made.textContent = words;
  made.setAttribute("aria-label", name);
  made.addEventListener("click", press);
  return made;
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
