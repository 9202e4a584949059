/** Statements within a text: where they begin and end, and where an error is. */

const QUOTED = ["'", '"', "`"].map((quote) => `${quote}(?:[^${quote}\\\\]|\\\\[\\s\\S]|${quote}${quote})*${quote}?`);
const TOKEN = new RegExp(["--[^\\n]*", "/\\*[\\s\\S]*?(?:\\*/|$)", ...QUOTED, "\\$\\$[\\s\\S]*?(?:\\$\\$|$)", ";"].join("|"), "g");
const PLACE = /^line (\d+), column (\d+)/;

/**
 * The statements of a text, with `;` between them; those within quotes and comments are none.
 * @param {string} text
 * @returns {Array<{start: number, end: number, text: string}>}
 */
export function statements(text) {
  const found = [];
  let start = 0;
  const add = (end) => {
    if (text.slice(start, end).trim()) found.push({ start, end, text: text.slice(start, end) });
    start = end + 1;
  };
  for (const { 0: token, index } of text.matchAll(TOKEN)) if (token === ";") add(index);
  add(text.length);
  return found;
}

/** The statement at a place, or the last one before it. */
export function statementAt(text, place) {
  const all = statements(text);
  return all.find((one) => place <= one.end) ?? all.at(-1);
}

/**
 * Where the service says that an error is: from the first letter to the end of the word.
 * @param {string} text what was sent
 * @param {string} where `line 2, column 15, in FROM`
 * @returns {{start: number, end: number}|null}
 */
export function placeOf(text, where) {
  const told = where?.match(PLACE);
  if (!told) return null;
  const [line, column] = [Number(told[1]), Number(told[2])];
  const lines = text.split("\n");
  if (line > lines.length) return null;
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  // The service counts characters, and a text of JavaScript has two units for some of them.
  const start = before + [...lines[line - 1]].slice(0, column - 1).join("").length;
  const word = text.slice(start).match(/^(\w+|\S)/)?.[0] ?? "";
  return { start, end: start + word.length };
}
