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

export const ratio = (value) => `${0.9 < value && value < 1.1 ? value.toFixed(3) : digits(value)}×`;

const plain = (value) => (typeof value === "number" ? String(Number(value.toPrecision(6))) : value);

const FORMATS = {
  seconds,
  digits,
  ratio,
  plain,
  whole: (value) => value.toFixed(0).replace(/\B(?=(\d{3})+$)/g, "\u202f"),
  percent: (value) => `${0 < value && value < 0.001 ? digits(value * 100, 1) : (value * 100).toFixed(value >= 0.1 ? 0 : 1)} %`,
  yes: (value) => (value ? "yes" : "no"),
};

// `value` of a chart's data as text; empty for a missing value.
export function write(value, kind) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  return typeof value === "number" ? FORMATS[kind](value) : String(value);
}
