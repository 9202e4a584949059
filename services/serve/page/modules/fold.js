/** A changelog, folded: each row as often as its insertions outnumber its retractions. */

const DELTA = "_tp_delta";

/** +1 of what has no delta: an append-only stream inserts. */
export function delta(row) {
  return row[DELTA] ?? 1;
}

/** The columns of a row without the delta. */
export function columnsOf(columns) {
  return columns.filter((one) => one.name !== DELTA);
}

export class Fold {
  /** @param {number} most rows that are kept; of more, the first ones go */
  constructor(most) {
    this.most = most;
    this.rows = new Map();
    this.cut = false;
  }

  /** @param {Object} row */
  add(row) {
    const { [DELTA]: _, ...values } = row;
    const key = JSON.stringify(values);
    const held = this.rows.get(key) ?? { values, times: 0 };
    held.times += delta(row);
    if (held.times === 0) this.rows.delete(key);
    else this.rows.set(key, held);
    if (this.rows.size > this.most) {
      this.rows.delete(this.rows.keys().next().value);
      this.cut = true;
    }
  }

  /** Rows that are there; one of which only a retraction was seen has been there before. */
  *current() {
    for (const { values, times } of this.rows.values()) if (times > 0) yield { values, times };
  }
}
