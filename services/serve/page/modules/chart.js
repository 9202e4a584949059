/** A chart of figures over time, by uPlot, in the colours of the page. */

import uPlot from "../vendor/uPlot.esm.js";
import { h, say } from "./dom.js";

const HEIGHT = 140;

/**
 * @param {string} title
 * @param {string[]} names of the lines
 * @param {(value: number) => string} format of the values
 * @param {{clock?: boolean}} [how] clock: x are moments in ms; else numbers
 */
export function chart(title, names, format, { clock = true } = {}) {
  const now = names.map(() => h("strong"));
  const place = h("div");
  const element = h("figure", { class: "chart", "aria-label": title }, h("figcaption", {}, title, h("span", {}, now)), place);
  let plot = null;
  let shown = null;
  const redraw = () => {
    plot?.destroy();
    plot = null;
    if (shown !== null) draw(shown);
  };
  const draw = ([x, ...lines]) => {
    const values = [clock ? x.map((ms) => ms / 1000) : x, ...lines];
    if (plot !== null) return plot.setData(values);
    plot = new uPlot(options(names, format, clock, Math.max(place.clientWidth, 120)), values, place);
  };
  const sized = new ResizeObserver(() => plot?.setSize({ width: Math.max(place.clientWidth, 120), height: HEIGHT }));
  sized.observe(place);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw);
  return {
    element,
    /** @param {number[]} x @param {...number[]} lines */
    set(x, ...lines) {
      shown = [x, ...lines];
      lines.forEach((values, line) => say(now[line], `${names.length > 1 ? `${names[line]} ` : ""}${format(values.at(-1))}`));
      draw(shown);
    },
    /** It is shown no more. */
    close() {
      sized.disconnect();
      dark.removeEventListener("change", redraw);
      plot?.destroy();
    },
  };
}

/** `14:05`, with seconds where ticks are closer than a minute; in UTC, as everywhere on the page. */
function clockTimes(_plot, ticks) {
  const seconds = ticks.length > 1 && ticks[1] - ticks[0] < 60;
  return ticks.map((s) => new Date(s * 1000).toISOString().slice(11, seconds ? 19 : 16));
}

function options(names, format, clock, width) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour("--faint"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: `11px ${colour("--sans")}`,
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: clock }, y: { range: (_plot, low, high) => [Math.min(low ?? 0, 0), Math.max(high ?? 1, 1e-6) * 1.05] } },
    axes: [
      { ...axis, space: 70, size: 26, values: clock ? clockTimes : undefined },
      { ...axis, size: 58, values: (_plot, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...names.map((label, place) => ({ label, stroke: colour(`--series-${place + 1}`), width: 1.5, points: { show: false } })),
    ],
  };
}
