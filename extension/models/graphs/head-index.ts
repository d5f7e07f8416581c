// Index arrays for packed attention. A projection has one row per pair of token and head. The arrays define how these
// rows are copied into blocks of sequences, and how the results are copied back.
interface Block {
  /** Index of the packed token in each slot, [outer, inner, length]; −1 for empty slots. */
  places: Int32Array;
  outer: number;
  inner: number;
  length: number;
}

/**
 * Returns index arrays over the rows (token, head) of a projection. `forward` has one array per block, in the order
 * [outer, kvHeads, inner, groups, length]. `back` [n·heads] contains the slot of each row; slots are numbered
 * consecutively over all blocks.
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
              // The slot of the dummy token may be any empty slot, because empty slots have no gradient.
              back[token] = offset + at;
            }
          }
    offset += at;
    return index;
  });
  return { forward, back };
}
