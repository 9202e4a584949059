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
  graph.setGraph({ rankdir: direction, nodesep: 16, ranksep: 56, marginx: 8, marginy: 8 });
  for (const { name } of nodes) graph.setNode(name, { ...BOX });
  const drawn = edges.filter(({ from, to }) => graph.hasNode(from) && graph.hasNode(to));
  for (const { from, to } of drawn) graph.setEdge(from, to, {});
  arrange(graph);
  const { width, height } = graph.graph();
  return {
    width: nodes.length ? width : 0,
    height: nodes.length ? height : 0,
    boxes: new Map(nodes.map(({ name }) => [name, graph.node(name)])),
    lines: drawn.map(({ from, to }) => graph.edge(from, to).points),
  };
}
