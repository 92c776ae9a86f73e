// Material requests its search index on every page. This script delays the request until the reader opens
// the search, so it must run before Material's script.
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
