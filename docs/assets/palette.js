// Shows a page in the palette that the reader chose, before anything is visible.
for (const [key, value] of Object.entries(__md_get("__palette")?.color ?? {})) {
  document.body.setAttribute(`data-md-color-${key}`, value);
}
