// A select of the pairs of machines, of which the page shows one at a time; the address names it.
const KEY = "pair";

export function watchPairs() {
  const boxes = [...document.querySelectorAll(".hp-pair")];
  if (boxes.length < 2) return;
  const form = document.createElement("form");
  form.className = "hp-controls";
  form.setAttribute("aria-label", "Which machines are compared");
  const label = form.appendChild(document.createElement("label"));
  label.append("machines");
  const select = label.appendChild(document.createElement("select"));
  select.name = KEY;
  for (const { dataset } of boxes) select.add(new Option(dataset.pair));
  boxes[0].before(form);

  const show = () => boxes.forEach((box, place) => {
    box.hidden = place !== select.selectedIndex;
  });
  const follow = () => {
    const asked = new URLSearchParams(location.search).get(KEY);
    select.selectedIndex = Math.max(boxes.findIndex(({ dataset }) => dataset.pair === asked), 0);
    show();
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  select.addEventListener("change", () => {
    const address = new URL(location.href);
    if (select.selectedIndex) address.searchParams.set(KEY, select.value);
    else address.searchParams.delete(KEY);
    history.pushState(null, "", address);
    show();
  });
  addEventListener("popstate", follow);
  follow();
}
