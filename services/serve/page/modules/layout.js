/** Where the boxes of a graph stand: each connected part by dagre, under one another; many that are alike, in blocks. */

import { Graph, layout as arrange } from "../vendor/dagre.esm.js";

export const BOX = { width: 176, height: 58 };
const GAP = 16;
const MARGIN = { x: 8, y: 24 };
const ALIKE = 6; // as many stand in a column; more of them, in a block
const COLUMNS = { LR: 4, TB: 2 };

/**
 * @param {Array<{name: string}>} nodes
 * @param {Array<{from: string, to: string}>} edges
 * @param {"LR"|"TB"} direction
 * @returns {{width: number, height: number, boxes: Map<string, {x: number, y: number}>, frames: Array<Object>,
 *   lines: Array<Array<{x: number, y: number}>>}} boxes by their middle; frames: around blocks, by their corner
 */
export function placed(nodes, edges, direction) {
  const around = neighbours(nodes, edges);
  const parts = connected(around);
  const all = { width: 0, height: MARGIN.y, boxes: new Map(), frames: [], lines: [] };
  for (const part of parts.filter((names) => names.length > 1)) {
    const made = arranged(part, around, direction);
    const down = (at) => ({ ...at, y: at.y + all.height });
    for (const [name, at] of made.boxes) all.boxes.set(name, down(at));
    all.frames.push(...made.frames.map(down));
    all.lines.push(...made.lines.map((points) => points.map(down)));
    all.width = Math.max(all.width, made.width);
    all.height += made.height + 2 * GAP;
  }
  // What has no lines stands below, row by row.
  const alone = parts.filter((names) => names.length === 1).flat();
  const columns = Math.max(Math.floor((all.width - 2 * MARGIN.x + GAP) / (BOX.width + GAP)), COLUMNS[direction]);
  alone.forEach((name, place) => all.boxes.set(name, inGrid(place, columns, MARGIN.x, all.height)));
  all.height += Math.ceil(alone.length / columns) * (BOX.height + GAP) + MARGIN.y - GAP;
  all.width = Math.max(all.width, Math.min(alone.length, columns) * (BOX.width + GAP) - GAP + 2 * MARGIN.x);
  return nodes.length ? all : { ...all, width: 0, height: 0 };
}

/** One connected part: its own height and width, places from its corner. */
function arranged(names, around, direction) {
  const blocks = blocksOf(names, around, direction);
  const blockOf = new Map(blocks.flatMap((block) => block.names.map((name) => [name, block.id])));
  const idOf = (name) => blockOf.get(name) ?? `node ${name}`;
  const graph = new Graph({ multigraph: false });
  graph.setGraph({ rankdir: direction, nodesep: GAP, ranksep: 56, marginx: MARGIN.x, marginy: 0 });
  for (const name of names) if (!blockOf.has(name)) graph.setNode(idOf(name), { ...BOX });
  for (const { id, width, height } of blocks) graph.setNode(id, { width, height });
  for (const name of names) for (const user of around.get(name)[1]) graph.setEdge(idOf(name), idOf(user), {});
  arrange(graph);
  const boxes = new Map(names.filter((name) => !blockOf.has(name)).map((name) => [name, graph.node(idOf(name))]));
  const frames = blocks.map(({ id, names: members, width, height, columns }) => {
    const corner = { x: graph.node(id).x - width / 2, y: graph.node(id).y - height / 2 };
    members.forEach((name, place) => boxes.set(name, inGrid(place, columns, corner.x + GAP / 2, corner.y + GAP / 2)));
    return { ...corner, width, height };
  });
  const lines = graph.edges().map((edge) => between(graph.node(edge.v), graph.edge(edge).points, graph.node(edge.w), direction));
  const { width, height } = graph.graph();
  return { width, height, boxes, frames, lines };
}

/** The names of each part whose nodes lines connect, in the order of the nodes. */
function connected(around) {
  const seen = new Set();
  const parts = [];
  for (const first of around.keys()) {
    if (seen.has(first)) continue;
    const part = [first];
    seen.add(first);
    for (const name of part) part.push(...around.get(name).flat().filter((next) => !seen.has(next) && seen.add(next)));
    parts.push(part);
  }
  return parts;
}

/** @returns {Map<string, [string[], string[]]>} name → what it reads and what reads it */
export function neighbours(nodes, edges) {
  const around = new Map(nodes.map(({ name }) => [name, [[], []]]));
  for (const { from, to } of edges) {
    if (!around.has(from) || !around.has(to)) continue;
    around.get(from)[1].push(to);
    around.get(to)[0].push(from);
  }
  return around;
}

/** Many that read the same and are read by the same: one line leads to all of them, and one away. */
function blocksOf(names, around, direction) {
  const alike = new Map();
  for (const name of names) {
    const key = JSON.stringify(around.get(name).map((side) => side.toSorted()));
    alike.set(key, [...(alike.get(key) ?? []), name]);
  }
  return [...alike.values()]
    .filter((members) => members.length > ALIKE)
    .map((members, number) => {
      const columns = Math.min(Math.ceil(members.length / ALIKE), COLUMNS[direction]);
      const rows = Math.ceil(members.length / columns);
      return { id: `block ${number}`, names: members, columns, width: columns * (BOX.width + GAP), height: rows * (BOX.height + GAP) };
    });
}

function inGrid(place, columns, left, top) {
  const [column, row] = [place % columns, Math.floor(place / columns)];
  return { x: left + column * (BOX.width + GAP) + BOX.width / 2, y: top + row * (BOX.height + GAP) + BOX.height / 2 };
}

/** From the side of a box that rows leave by to the one that they come in by: a line meets no box of its own rank. */
function between(from, points, to, direction) {
  const inner = points.slice(1, -1);
  if (direction === "LR") return [{ x: from.x + from.width / 2, y: from.y }, ...inner, { x: to.x - to.width / 2, y: to.y }];
  return [{ x: from.x, y: from.y + from.height / 2 }, ...inner, { x: to.x, y: to.y - to.height / 2 }];
}

/** A line through points that bends in the direction of the graph. @returns {string} the `d` of a path */
export function curve(points, direction) {
  const bend = (a, b) => {
    const [x, y] = [(a.x + b.x) / 2, (a.y + b.y) / 2];
    return direction === "LR" ? `C${x} ${a.y} ${x} ${b.y} ${b.x} ${b.y}` : `C${a.x} ${y} ${b.x} ${y} ${b.x} ${b.y}`;
  };
  // Of boxes in neighbouring ranks the one point between says nothing.
  const kept = points.length === 3 ? [points[0], points[2]] : points;
  return `M${kept[0].x} ${kept[0].y}${kept.slice(1).map((to, place) => bend(kept[place], to)).join("")}`;
}
