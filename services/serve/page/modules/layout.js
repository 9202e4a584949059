/** Where the boxes of a graph stand, by dagre. */

import { Graph, layout as arrange } from "../vendor/dagre.esm.js";

export const BOX = { width: 176, height: 58 };

/**
 * @param {Array<{name: string}>} nodes
 * @param {Array<{from: string, to: string}>} edges
 * @param {"LR"|"TB"} direction
 * @returns {{width: number, height: number, boxes: Map<string, {x: number, y: number}>, lines: Array<Array<{x: number, y: number}>>}}
 */
export function placed(nodes, edges, direction) {
  const graph = new Graph({ multigraph: false });
  graph.setGraph({ rankdir: direction, nodesep: 16, ranksep: 56, marginx: 8, marginy: 24 });
  for (const { name } of nodes) graph.setNode(name, { ...BOX });
  const drawn = edges.filter(({ from, to }) => graph.hasNode(from) && graph.hasNode(to));
  for (const { from, to } of drawn) graph.setEdge(from, to, {});
  arrange(graph);
  const { width, height } = graph.graph();
  return {
    width: nodes.length ? width : 0,
    height: nodes.length ? height : 0,
    boxes: new Map(nodes.map(({ name }) => [name, graph.node(name)])),
    lines: drawn.map(({ from, to }) => between(graph.node(from), graph.edge(from, to).points, graph.node(to), direction)),
  };
}

/** From the side of a box that rows leave by to the one that they come in by: a line meets no box of its own rank. */
function between(from, points, to, direction) {
  const inner = points.slice(1, -1);
  if (direction === "LR") return [{ x: from.x + BOX.width / 2, y: from.y }, ...inner, { x: to.x - BOX.width / 2, y: to.y }];
  return [{ x: from.x, y: from.y + BOX.height / 2 }, ...inner, { x: to.x, y: to.y - BOX.height / 2 }];
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
