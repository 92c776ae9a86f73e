// Runs the script of a widget when it comes into view; until then, and without it, a table is shown.
const LOAD_AHEAD_PX = 200;

async function load(figure) {
  const address = (name) => new URL(figure.dataset[name], location.href);
  const [{ show }, response] = await Promise.all([import(address("script")), fetch(address("source"))]);
  if (!response.ok) throw new Error(`${response.url}: ${response.status}`);
  const view = document.createElement("div");
  show(view, await response.json(), figure.dataset.widget);
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
