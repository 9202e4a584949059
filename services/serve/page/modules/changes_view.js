/** What is shown of changes: filters, the log or the table, and a chart of one column. */

import { chart } from "./chart.js";
import { h, say } from "./dom.js";
import { columnsOf, delta, Fold } from "./fold.js";
import { cell, count, numeric, short } from "./format.js";
import { heading, value } from "./results.js";
import { question } from "./why.js";

const MOST_LINES = 500;
const MOST_ROWS = 20000;
const MOST_POINTS = 600;
const EVERY_MS = 150;

export class ChangesView {
  /**
   * @param {HTMLElement} place
   * @param {Array<{name: string, type: string}>} columns
   * @param {string} view that WHY can be asked of; `""`: it is none
   * @param {string} dialect of conditions on the columns
   */
  constructor(place, columns, view, dialect) {
    this.view = view;
    this.dialect = dialect;
    this.columns = columnsOf(columns);
    this.fold = new Fold(MOST_ROWS);
    this.log = [];
    this.points = [];
    this.seen = { inserted: 0, retracted: 0 };
    this.waiting = [];
    this.paused = false;
    this.table = h("div", { class: "wrap" });
    this.counted = h("span", { class: "faint", role: "status" });
    this.chart = null;
    place.replaceChildren(this.controls(), this.chartPlace, this.table);
    this.timer = setInterval(() => this.draw(), EVERY_MS);
    this.stale = true;
  }

  controls() {
    const redraw = () => (this.stale = true);
    const option = (one) => h("option", { value: one.name }, one.name);
    const forms = [h("option", { value: "log" }, "changelog"), h("option", { value: "table" }, "table")];
    this.mode = h("select", { "aria-label": "form", change: redraw }, forms);
    this.column = h("select", { "aria-label": "column to filter by", change: redraw }, this.columns.map(option));
    this.filter = h("input", { type: "search", placeholder: "filter by value", "aria-label": "filter by value", input: redraw });
    this.pause = h("button", { type: "button", "aria-pressed": "false", click: () => this.toggle() }, "Pause");
    const numbers = this.columns.filter((one) => numeric(one.type));
    const none = h("option", { value: "" }, "no chart");
    this.drawn = h("select", { "aria-label": "chart of", change: () => this.plot() }, none, numbers.map(option));
    this.chartPlace = h("div", { class: "charts one" });
    return h("div", { class: "bar" }, this.mode, this.column, this.filter, this.drawn, this.pause, this.counted);
  }

  /** @param {Array<Object>} rows the next changes; while it is paused they wait */
  add(rows) {
    this.waiting.push(...rows);
    if (!this.paused) this.take();
  }

  take() {
    const at = Date.now();
    for (const row of this.waiting) {
      this.fold.add(row);
      this.log.push(row);
      this.points.push({ at, row });
      this.seen[delta(row) > 0 ? "inserted" : "retracted"] += 1;
    }
    this.waiting = [];
    this.log.splice(0, this.log.length - MOST_LINES);
    this.points.splice(0, this.points.length - MOST_POINTS);
    this.stale = true;
  }

  toggle() {
    this.paused = !this.paused;
    say(this.pause, this.paused ? "Continue" : "Pause");
    this.pause.setAttribute("aria-pressed", String(this.paused));
    if (!this.paused) this.take();
    this.stale = true;
  }

  /** Whether a row is asked for: its column holds the text. */
  wanted(row) {
    return cell(row[this.column.value]).toLowerCase().includes(this.filter.value.toLowerCase());
  }

  plot() {
    this.chart?.close();
    this.chartPlace.replaceChildren();
    this.chart = this.drawn.value ? chart(this.drawn.value, [this.drawn.value], short, { clock: false }) : null;
    if (this.chart) this.chartPlace.append(this.chart.element);
    this.stale = true;
  }

  draw() {
    const waits = this.paused && this.waiting.length ? `, ${count(this.waiting.length)} wait` : "";
    const cut = this.fold.cut ? `; only the last ${count(MOST_ROWS)} rows are folded` : "";
    say(this.counted, `${count(this.seen.inserted)} inserted, ${count(this.seen.retracted)} retracted${waits}${cut}`);
    if (!this.stale || getSelection().type === "Range") return;
    this.stale = false;
    this.table.replaceChildren(this.mode.value === "table" ? this.folded() : this.changelog());
    if (this.chart) this.drawChart();
  }

  changelog() {
    const shown = this.log.filter((row) => this.wanted(row)).reverse();
    const marked = (row) => (delta(row) > 0 ? { values: row, mark: "+1", kind: "in" } : { values: row, mark: "-1", kind: "out" });
    return this.rows("change", shown.map(marked));
  }

  folded() {
    const shown = [...this.fold.current()].filter(({ values }) => this.wanted(values)).slice(-MOST_LINES);
    return this.rows("times", shown.map(({ values, times }) => ({ values, mark: String(times), kind: "" })));
  }

  rows(first, shown) {
    const head = h("tr", {}, h("th", { scope: "col" }, first), this.columns.map(heading));
    const cells = (values) => this.columns.map((one) => value(one, values));
    const line = ({ values, mark, kind }) =>
      h("tr", { class: kind }, h("td", { class: "mono" }, mark, this.why(values)), cells(values));
    return h("table", { class: "table changes" }, h("thead", {}, head), h("tbody", {}, shown.map(line)));
  }

  /** The question why a row is there. */
  why(values) {
    if (!this.view) return null;
    return [" ", question(this.view, this.columns, values, this.dialect)];
  }

  /** Insertions in the order in which they came. */
  drawChart() {
    const values = this.points
      .filter(({ row }) => delta(row) > 0 && this.wanted(row) && row[this.drawn.value] !== null)
      .map(({ row }) => Number(cell(row[this.drawn.value])));
    this.chart.set(values.map((_, place) => place + 1), values);
  }

  close() {
    clearInterval(this.timer);
    this.chart?.close();
  }
}
