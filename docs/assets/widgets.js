// Runs the script of a widget when it comes into view; until then, and without it, a table is shown.
const LOAD_AHEAD_PX = 200;

// Keeps what differs from the start in the address, as `<widget>.<name>`, and calls `update` after each
// change. Each input has a name, a start, a field, and options if it takes no other values.
function keepInAddress(form, widget, inputs, update) {
  const follow = () => {
    const asked = new URLSearchParams(location.search);
    for (const { name, start, field, options } of inputs) {
      const value = asked.get(`${widget}.${name}`);
      field.value = value !== null && (!options || options.includes(value)) ? value : start;
    }
    update();
  };
  form.addEventListener("input", () => {
    const address = new URL(location.href);
    for (const { name, start, field } of inputs) {
      if (field.value === start) address.searchParams.delete(`${widget}.${name}`);
      else address.searchParams.set(`${widget}.${name}`, field.value);
    }
    address.hash = `widget-${widget}`;
    history.replaceState(null, "", address);
    update();
  });
  addEventListener("popstate", follow);
  follow();
}

async function load(figure) {
  const address = (name) => new URL(figure.dataset[name], location.href);
  const [{ show }, response] = await Promise.all([import(address("script")), fetch(address("source"))]);
  if (!response.ok) throw new Error(`${response.url}: ${response.status}`);
  const view = document.createElement("div");
  show(view, await response.json(), figure.dataset.widget, keepInAddress);
  figure.querySelector(".hp-view").replaceChildren(view);
}

export function watchWidgets() {
  const seen = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        seen.unobserve(target);
        load(target).catch((error) => {
          target.querySelector(".hp-note").textContent = `This part could not be loaded: ${error.message}`;
          console.error(error);
        });
      }
    },
    { rootMargin: `${LOAD_AHEAD_PX}px` },
  );
  for (const figure of document.querySelectorAll(".hp-widget[data-script]")) seen.observe(figure);
}
