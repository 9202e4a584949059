/** The figures of a view: those of its queries, taken together. */

import { duration, known, moment } from "./format.js";

/** What is said where a figure would be no measure. */
export const IDLE = "idle: all input is answered, and none has come for 10 s";

/**
 * Views by name, in the order of the answer of `/v1/history`, without generators. Its last query makes its rows; what it reads, its first.
 * @param {Array<Object>} queries
 * @returns {Map<string, Object>}
 */
export function byView(queries) {
  const groups = new Map();
  for (const query of queries.filter((one) => !one.generates)) groups.set(query.view, [...(groups.get(query.view) ?? []), query]);
  return new Map([...groups].map(([view, parts]) => [view, together(view, parts)]));
}

/** Where event time is, and how far behind the clock; that distance says nothing while there is no input. */
export function watermark(figures, now) {
  if (!known(figures?.watermark_ms)) return "none";
  const since = figures.idle ? "idle" : `${duration(now - figures.watermark_ms)} ago`;
  return `${moment(figures.watermark_ms)} UTC, ${since}`;
}

function together(view, parts) {
  const last = parts.find((one) => one.name === view) ?? parts.at(-1);
  const worst = parts.find((one) => !one.well) ?? last;
  const troubled = parts.filter((one) => one.error).sort((a, b) => b.error_ms - a.error_ms)[0] ?? last;
  return {
    ...last,
    view,
    parts,
    state: worst.state,
    well: worst.well,
    idle: parts.every((one) => one.idle),
    rows_in_per_s: parts[0].rows_in_per_s,
    lag: sum(parts, "lag"),
    latency_ms: sum(parts, "latency_ms"),
    batch_ms: Math.max(...parts.map((one) => one.batch_ms ?? 0)) || last.batch_ms,
    watermark_ms: least(parts, "watermark_ms"),
    late: sum(parts, "late"),
    rejected: sum(parts, "rejected"),
    restarts: sum(parts, "restarts"),
    state_rows: sum(parts, "state_rows"),
    state_bytes: sum(parts, "state_bytes"),
    error: troubled.error,
    error_ms: troubled.error_ms,
    failing: parts.some((one) => one.failing),
  };
}

function sum(parts, figure) {
  const values = parts.map((one) => one[figure]).filter(known);
  return values.length ? values.reduce((total, one) => total + one, 0) : null;
}

function least(parts, figure) {
  const values = parts.map((one) => one[figure]).filter(known);
  return values.length ? Math.min(...values) : null;
}
