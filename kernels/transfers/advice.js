// The adviser in the browser: the same computation as cost.py, adviser.py and answers.py, on the exported file.

const REACH = 3.0;
const COUNT_WEIGHT = 0.5;
const METRIC = "host_time";
const SIGMAS = 1.96;
const OTHER_PLACE_ERROR = 0.05;
const LEVER = 4;
const FEWER = 16;
const MOSTLY_BYTES = 4;
// A way is notably faster than another if it is this many times as fast.
export const NOTABLE = 1.1;
const LINE_BYTES = 128;
const VECTOR_BYTES = 16;

function piece(cost, size) {
  const isBelow = size <= cost.cliff;
  let at = cost.sizes.map((_, i) => i).filter((i) => cost.sizes[i] <= cost.cliff === isBelow);
  if (!at.length) at = cost.sizes.map((_, i) => i);
  const sizes = at.map((i) => cost.sizes[i]);
  const seconds = at.map((i) => cost.piece_s[i]);
  const last = sizes.length - 1;
  if (size <= sizes[0] || last === 0) return seconds[0] * Math.max(1, size / sizes[0]);
  const found = sizes.findIndex((known) => known >= size);
  const right = found < 0 ? last : Math.max(found, 1);
  const line = (i) => seconds[i] + ((seconds[i] - seconds[i - 1]) / (sizes[i] - sizes[i - 1])) * (size - sizes[i]);
  if (size > sizes[last]) return Math.max(line(right), seconds[last] + (size - sizes[last]) * cost.byte_s);
  const before = right > 1 ? line(right - 1) : seconds[0];
  const after = right < last ? line(right + 1) : (seconds[last] * size) / sizes[last];
  return Math.min(line(right), Math.max(before, after));
}

function correction(cost, size, count) {
  let total = 0;
  let weights = REACH ** -4;
  for (const [nearSize, nearCount, logRatio] of cost.misfits) {
    if (nearSize <= cost.cliff !== size <= cost.cliff) continue;
    const square = Math.log2(size / nearSize) ** 2 + (COUNT_WEIGHT * Math.log2(count / nearCount)) ** 2;
    if (square < 1e-12) return logRatio;
    weights += square ** -2;
    total += logRatio * square ** -2;
  }
  return total / weights;
}

const fitted = (cost, size, count) => cost.latency_s + count * piece(cost, size);

// Whether the measured cells determine the time of `count` pieces of `size` bytes.
export function covers(cost, size, count) {
  const bySize = new Map();
  for (const [known, number] of cost.misfits) bySize.set(known, [...(bySize.get(known) ?? []), number]);
  const counts = [...bySize.values()];
  const [fewest, most] = [Math.min(...counts.flat()), Math.max(...counts.flat())];
  if (counts.some((some) => Math.max(...some) >= LEVER * Math.min(...some))) return count >= fewest / FEWER;
  if (most === 1) return count === 1;
  const isNear = fewest / LEVER <= count && count <= LEVER * most;
  return isNear && Math.min(...bySize.keys()) / LEVER <= size && size <= LEVER * Math.max(...bySize.keys());
}

// Seconds that a byte of these pieces takes at least; 0 without a limit.
function byteSeconds(cost, size, count) {
  if (!cost.byte_s) return 0;
  const larger = cost.misfits
    .filter(([known]) => known >= size)
    .map(([known, number, log]) => [known * number, fitted(cost, known, number) * Math.exp(log)]);
  let reached = larger.filter(([bytes]) => bytes >= size * count).map(([bytes, time]) => time / bytes);
  if (!reached.length) {
    const large = larger.filter(([, time]) => time >= MOSTLY_BYTES * cost.latency_s);
    reached = large.map(([bytes, time]) => (time - cost.latency_s) / bytes);
  }
  return Math.max(cost.byte_s, reached.length ? Math.min(...reached) : 0);
}

// Seconds of `count` pieces of `size` bytes.
export function seconds(cost, size, count) {
  const corrected = fitted(cost, size, count) * Math.exp(correction(cost, size, count));
  return Math.max(corrected, size * count * byteSeconds(cost, size, count));
}

// The largest of 128, 16 and 1 B that divides the size; 128 for an equal part of a cache line.
export function alignmentOf(size) {
  if (size >= VECTOR_BYTES && LINE_BYTES % size === 0) return LINE_BYTES;
  return [LINE_BYTES, VECTOR_BYTES, 1].find((unit) => size % unit === 0);
}

function canDo(way, job) {
  const isVectored = job.alignment >= VECTOR_BYTES && !way.variant.includes("bulk");
  if (way.direction !== job.direction || (way.alignment > job.alignment && !isVectored)) return false;
  if (way.moves === "rows") return job.host !== "scattered" && job.device !== "scattered";
  return way.moves === "any" || job.device === "packed";
}

// Sorts the situations of a variant by their likeness to the job's.
function distance(way, job) {
  const layouts = (way.host !== job.host) + (way.device !== job.device);
  return [way.is_busy !== job.is_busy, way.alignment > job.alignment, layouts, -way.alignment];
}

function isLess(one, other) {
  const place = one.findIndex((value, i) => value !== other[i]);
  return place >= 0 && one[place] < other[place];
}

function adviceOf(way, job) {
  const cost = way.costs[METRIC];
  const [isOtherState, isBetterAligned, layouts] = distance(way, job);
  const isSamePlace = job.count === 1 || (!isOtherState && !isBetterAligned && layouts === 0);
  const cells = cost.misfits.slice(0, cost.measured_here);
  const isMeasured = isSamePlace && cells.some(([size, count]) => size === job.size && count === job.count);
  let error = isMeasured ? cost.noise : Math.hypot(cost.noise, cost.error);
  if (!isSamePlace) error = Math.hypot(error, OTHER_PLACE_ERROR);
  const time = seconds(cost, job.size, job.count);
  const reach = Math.exp(SIGMAS * error);
  const by = (metric) => {
    const other = way.costs[metric];
    return other && covers(other, job.size, job.count) ? seconds(other, job.size, job.count) : null;
  };
  return {
    variant: way.variant,
    title: way.title,
    seconds: time,
    low: time / reach,
    high: time * reach,
    error,
    isMeasured,
    submit: by("submit_time"),
    cpu: by("cpu_time"),
    gpu: by("gpu_time"),
  };
}

function asOnePiece(job) {
  const isOnePiece = job.count === 1 || (job.host === "packed" && job.device === "packed");
  return isOnePiece ? { ...job, size: job.size * job.count, count: 1, host: "packed", device: "packed" } : job;
}

function ableWays(adviser, job, memory) {
  return adviser.ways.filter((way) => (memory === "any" || way.memory === memory) && canDo(way, job) && METRIC in way.costs);
}

// Of each variant that can do the job in a time that is known its situation that is most like the job's.
function nearestWays(adviser, job, memory) {
  const nearest = new Map();
  for (const way of ableWays(adviser, job, memory)) {
    if (!covers(way.costs[METRIC], job.size, job.count)) continue;
    const known = nearest.get(way.variant);
    if (!known || isLess(distance(way, job), distance(known, job))) nearest.set(way.variant, way);
  }
  return nearest;
}

// All ways that can do the job from this kind of memory or from `any`, fastest first.
export function advise(adviser, asked, memory = "pinned") {
  const job = asOnePiece(asked);
  const ways = [...nearestWays(adviser, job, memory).values()];
  return ways.map((way) => adviceOf(way, job)).sort((a, b) => a.seconds - b.seconds);
}

// Factors between the two values on each axis, the largest first: their order is that of the distances.
const factors = (...axes) => axes.map(([one, other]) => Math.max(one / other, other / one)).sort((a, b) => b - a);

const nearest = (found) => found.reduce((kept, one) => (kept && !isLess(one.key, kept.key) ? kept : one), null);

// Whether size, number and payload are within the way's measured ones, or up to `near` beyond.
function isNear({ ways, near }, variant, { size, count, direction }) {
  const alike = ways.filter((way) => way.variant === variant && way.direction === direction && METRIC in way.costs);
  const cells = alike.flatMap((way) => way.costs[METRIC].misfits);
  const within = (asked, known) => Math.min(...known) / near <= asked && asked <= Math.max(...known) * near;
  return (
    within(size, cells.map(([known]) => known)) &&
    within(count, cells.map(([, number]) => number)) &&
    within(size * count, cells.map(([known, number]) => known * number))
  );
}

// The advices of ways that were measured near the job; empty if one that was not is notably faster.
export function answers(adviser, asked, memory = "pinned") {
  const job = asOnePiece(asked);
  const advices = advise(adviser, asked, memory);
  const near = advices.filter(({ variant }) => isNear(adviser, variant, job));
  return near.length && near[0].seconds <= NOTABLE * advices[0].seconds ? near : [];
}

// Ways that can do the job but were not measured near it.
export function leftOut(adviser, asked, memory = "pinned") {
  const answered = new Set(answers(adviser, asked, memory).map(({ variant }) => variant));
  const able = ableWays(adviser, asOnePiece(asked), memory).map(({ variant }) => variant);
  return [...new Set(able)].filter((variant) => !answered.has(variant));
}

// The measured cell nearest to the job of the ways that can do it; null without such a way. Cells with the job's
// state of the stream and layouts come first, and the fastest of equally near ones.
export function nearestCell(adviser, asked, memory = "pinned") {
  const job = asOnePiece(asked);
  const cells = ableWays(adviser, job, memory).flatMap((way) => {
    const cost = way.costs[METRIC];
    const [isOtherState, , layouts] = distance(way, job);
    return cost.misfits.slice(0, cost.measured_here).map(([size, count]) => {
      const time = seconds(cost, size, count);
      const key = [isOtherState, layouts, ...factors([size, job.size], [count, job.count]), time];
      return { key, variant: way.variant, size, count, seconds: time };
    });
  });
  return nearest(cells);
}

// Whether the job is a list in a pool that the GPU's translations do not cover, and that its pieces do not fill.
export function isPoolTooLarge({ reach, near }, { size, count, host, pool }) {
  return host === "scattered" && count > 1 && pool > Math.max(reach ?? 0, near * size * count);
}

// The gather of another study that is nearest to the job; null without one.
export function nearestGather({ gathers }, { size, count, pool, direction }) {
  if (direction !== "h2d") return null;
  return nearest(gathers.map((one) => ({ ...one, key: factors([one.size, size], [one.count, count], [one.pool, pool]) })));
}

// Probability that `best` is faster than `second`.
export function certainty(best, second) {
  const z = Math.log(second.seconds / best.seconds) / Math.hypot(best.error, second.error);
  return 1 / (1 + Math.exp(-1.702 * z));
}
