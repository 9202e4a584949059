/** Names and values within statements, in the dialect of what they are about: `"timeplus"` or `"risingwave"`. */

import { written } from "./exact.js";

/** A name, quoted: whatever it holds, it is one name. */
export function name(text, dialect = "timeplus") {
  if (dialect === "risingwave") return `"${text.replaceAll('"', '""')}"`;
  return `\`${text.replaceAll("\\", "\\\\").replaceAll("`", "\\`")}\``;
}

/** A value as a literal of the dialect; RisingWave's plain texts have no escapes, those behind an E have. */
export function literal(value, dialect = "timeplus") {
  if (value === null || value === undefined) return "NULL";
  if (written(value) !== null) return written(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const escaped = dialect === "risingwave" && text.includes("\\") ? "E" : "";
  return `${escaped}'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}
