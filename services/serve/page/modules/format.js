/** Figures, times and names as people read them. */

const UNITS = [
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];
const NOTHING = "–";
const MOST_FITS = 5000;

/** `12,345`; a dash where it is not known. */
export function count(value) {
  return known(value) ? Math.round(value).toLocaleString("en") : NOTHING;
}

/** `0`, `0.25`, `12`, `3.4 k`. */
export function short(value) {
  if (!known(value)) return NOTHING;
  for (const [size, unit] of UNITS) if (Math.abs(value) >= size) return `${(value / size).toPrecision(3)} ${unit}`;
  return Number.isInteger(value) || Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(2)));
}

/** `3.4 k/s` */
export function rate(value) {
  return known(value) ? `${short(value)}/s` : NOTHING;
}

/** `5.1 MB` */
export function bytes(value) {
  return known(value) ? `${short(value)}B`.replace(/^(\S+)B$/, "$1 B") : NOTHING;
}

/** A length of time: `320 ms`, `4.2 s`, `3 min`, `2 h`, `5 d`. */
export function duration(ms) {
  if (!known(ms)) return NOTHING;
  const size = Math.abs(ms);
  if (size < 1000) return `${Math.round(ms)} ms`;
  if (size < 120e3) return `${Number((ms / 1000).toPrecision(2))} s`;
  if (size < 7200e3) return `${Math.round(ms / 60e3)} min`;
  return size < 172800e3 ? `${Math.round(ms / 3600e3)} h` : `${Math.round(ms / 86400e3)} d`;
}

/** A moment in UTC, to the second. */
export function moment(ms) {
  return known(ms) ? new Date(ms).toISOString().slice(0, 19).replace("T", " ") : NOTHING;
}

/** A value of a row: texts as they are, NULL as such, anything else as JSON. */
export function cell(value) {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Whether a column of this type holds numbers. */
export function numeric(type) {
  return /^(u?int|float|decimal)/.test(type.replace(/^nullable\(/, ""));
}

/** Whether it is a number. */
export function known(value) {
  return typeof value === "number" && Number.isFinite(value);
}

let pen = null;
const fits = new Map(); // asked again for each box every few seconds

/** As much of a text as `px` hold, in a font of the page such as `600 13px`; a text that is cut ends in `…`. */
export function fitted(text, font, px) {
  const key = `${font} ${px} ${text}`;
  if (!fits.has(key)) {
    if (fits.size > MOST_FITS) fits.clear();
    pen ??= document.createElement("canvas").getContext("2d");
    pen.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
    const letters = [...text];
    const cut = (count) => (count < letters.length ? `${letters.slice(0, count).join("")}…` : text);
    let count = letters.length;
    while (count > 0 && pen.measureText(cut(count)).width > px) count -= 1;
    fits.set(key, cut(count));
  }
  return fits.get(key);
}
