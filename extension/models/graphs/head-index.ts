// The index arrays by which packed attention reads the rows (token, head) of a projection into blocks of sequences, and
// puts the results back.
interface Block {
  /** Packed token of each slot [outer, inner, length], −1 for empty slots. */
  places: Int32Array;
  outer: number;
  inner: number;
  length: number;
}

/**
 * Returns index arrays over the rows (token, head) of a projection: `forward` of each block in the order [outer,
 * kvHeads, inner, groups, length], and `back` [n·heads] with the slot of each row, counted over all blocks.
 */
export function headIndex(
  blocks: readonly Block[],
  n: number,
  dummyToken: number,
  kvHeads: number,
  groups: number,
): { forward: Int32Array[]; back: Int32Array } {
  const heads = kvHeads * groups;
  const back = new Int32Array(n * heads);
  let offset = 0;
  const forward = blocks.map(({ places, outer, inner, length }) => {
    const index = new Int32Array(places.length * heads);
    let at = 0;
    for (let o = 0; o < outer; o++)
      for (let k = 0; k < kvHeads; k++)
        for (let i = 0; i < inner; i++)
          for (let j = 0; j < groups; j++) {
            const head = k * groups + j;
            const row = (o * inner + i) * length;
            for (let s = 0; s < length; s++, at++) {
              const place = places[row + s];
              const token = (place < 0 ? dummyToken : place) * heads + head;
              index[at] = token;
              // Any empty slot may represent the dummy token, because none has a gradient.
              back[token] = offset + at;
            }
          }
    offset += at;
    return index;
  });
  return { forward, back };
}
