// Material asks for the index of its search on every page. Here the request waits until search is
// opened. This runs before Material's own script.
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
