/** JSON whose numbers keep their digits: those that a double of JavaScript would change stay as they were written. */

/** Rows from their text. A number that would change is what `JSON.rawJSON` makes: it prints, and compares, by its digits. */
export function parsed(text) {
  return JSON.parse(text, kept);
}

function kept(_name, value, context) {
  // A browser that gives no source has no way to keep it either.
  if (typeof value !== "number" || !context?.source || !JSON.rawJSON) return value;
  return digits(context.source) === digits(String(value)) ? value : JSON.rawJSON(context.source);
}

/** Those that tell one value from another: without sign, point, exponent and the zeros around. */
function digits(written) {
  return written.replace(/e.*/i, "").replace(/[-.]/g, "").replace(/^0+|0+$/g, "");
}

/** The digits of a number that was kept as it was written; null of anything else. */
export function written(value) {
  return JSON.isRawJSON?.(value) ? value.rawJSON : null;
}
