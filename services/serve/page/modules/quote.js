/** Names and values within statements. */

/** A name, quoted: whatever it holds, it is one name. */
export function name(text) {
  return `\`${text.replaceAll("\\", "\\\\").replaceAll("`", "\\`")}\``;
}

/** A value as a literal of the dialect. */
export function literal(value) {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}
