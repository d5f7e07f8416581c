// Places the image features of pictures in the tokens of a conversation, and computes the position of each token along
// time, rows and columns (M-RoPE, Qwen2-VL, arXiv 2409.12191, §2.1). Pictures are placed by where their tokens begin,
// not by token id, so an image token that the model itself wrote stays text.
import type { ShownFeatures } from '../../engine/training-samples';

/** A picture, or a tile of a picture, in a conversation. Its tokens are consecutive, one per feature. */
export interface PlacedPicture {
  /** Index of the first token. */
  start: number;
  /** Index of the first feature. */
  feature: number;
  /** Number of features. */
  count: number;
  /** Features in a row, for models whose positions have several axes. */
  columns?: number;
}

/**
 * Returns the features and positions of `length` tokens. The pictures are in the order of their tokens. With several
 * axes, a picture takes as many positions as its longer side has features.
 * @throws if a picture's tokens overlap the picture before it, or exceed the conversation
 */
export function showFeatures(length: number, pictures: readonly PlacedPicture[]): ShownFeatures {
  const features = new Int32Array(length).fill(-1);
  const positions = new Int32Array(3 * length);
  let [token, position] = [0, 0];
  const place = (row: number, column: number): void => {
    [0, row, column].forEach((offset, axis) => (positions[axis * length + token] = position + offset));
    token++;
  };
  const text = (end: number): void => {
    for (; token < end; position++) place(0, 0);
  };
  for (const { start, feature, count, columns } of pictures) {
    if (start < token || start + count > length)
      throw new Error(
        `pictures: the tokens from ${start} to ${start + count} do not follow token ${token} within ${length} tokens`,
      );
    text(start);
    for (let i = 0; i < count; i++) features[start + i] = feature + i;
    if (columns === undefined) {
      text(start + count);
      continue;
    }
    for (let i = 0; i < count; i++) place(Math.floor(i / columns), i % columns);
    position += Math.max(columns, count / columns);
  }
  text(length);
  return { features, positions };
}
