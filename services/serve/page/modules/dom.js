/** Elements from text: what is data becomes text nodes and attributes, and never markup. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element. Attributes whose value is a function listen to the event of that name, others are set as text;
 * `true` sets an empty one, `false`, `null` and `undefined` none.
 * @param {string} tag
 * @param {Object<string, unknown>} [attributes]
 * @param {...(Node|string|number|null|undefined|false|Array)} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** As `h`, of SVG. @returns {SVGElement} */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(Infinity).filter(there).map((one) => (one instanceof Node ? one : String(one))));
  return element;
}

function there(child) {
  return child !== null && child !== undefined && child !== false;
}

/** Sets the text of an element where it is another one: what is unchanged stays selected and focused. */
export function say(element, text) {
  const wanted = text === null || text === undefined ? "" : String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/**
 * A button that does nothing while it is busy, and keeps the focus: `disabled` would lose it.
 * @param {HTMLButtonElement} button
 * @param {boolean} so
 */
export function busy(button, so) {
  if (so) button.setAttribute("aria-disabled", "true");
  else button.removeAttribute("aria-disabled");
}
