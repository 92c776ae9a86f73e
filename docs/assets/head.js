// Runs before the page is built and before Material's script.

// What the reader chose for all pages of the site. Material's script calls these functions.
globalThis.__md_scope = new URL(document.currentScript.dataset.base, location);
globalThis.__md_get = (key, storage = localStorage, scope = __md_scope) =>
  JSON.parse(storage.getItem(`${scope.pathname}.${key}`));
globalThis.__md_set = (key, value, storage = localStorage, scope = __md_scope) => {
  try {
    storage.setItem(`${scope.pathname}.${key}`, JSON.stringify(value));
  } catch {} // a browser may store nothing
};

// Material requests its search index on every page. Delay the request until the reader opens the search.
(() => {
  const { open, send } = XMLHttpRequest.prototype;
  const opened = new Promise((resolve) => {
    document.addEventListener("change", (event) => {
      if (event.target.id === "__search" && event.target.checked) resolve();
    });
  });
  const waiting = new WeakSet();
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    if (String(url).endsWith("search/search_index.json")) waiting.add(this);
    return open.call(this, method, url, ...rest);
  };
  XMLHttpRequest.prototype.send = function (...body) {
    if (waiting.has(this)) opened.then(() => send.apply(this, body));
    else send.apply(this, body);
  };
})();
