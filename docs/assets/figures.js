// Numbers as the pages write them: the same as analysis/base/quantities.py.
const PREFIXES = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

export function digits(value, significant = 3) {
  if (value === 0) return "0";
  return value.toFixed(Math.max(significant - 1 - Math.floor(Math.log10(Math.abs(value))), 0));
}

export function seconds(value) {
  if (value === 0) return "0 s";
  const [scale, prefix] = PREFIXES.find(([scale]) => Math.abs(value) >= scale) ?? PREFIXES.at(-1);
  return `${digits(value / scale, 4)} ${prefix}s`;
}
