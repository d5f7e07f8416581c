// Places the image features of pictures in the tokens of a conversation, and computes the position of each token along
// time, rows and columns (M-RoPE, Qwen2-VL, arXiv 2409.12191, §2.1). Pictures are placed by where their tokens begin,
// not by token id, so an image token that the model itself wrote stays text.
import type { ShownFeatures } from '../../engine/training-samples';

/** A picture in a conversation. Its tokens are consecutive, one per feature, row by row. */
export interface PlacedPicture {
  /** Index of the picture's first token. */
  start: number;
  /** Index of the picture's first feature. */
  feature: number;
  /** Features along each side. */
  rows: number;
  columns: number;
}

/**
 * Returns the features and positions of `length` tokens. The pictures are in the order of their tokens. A picture takes
 * as many positions as its longer side has features.
 * @throws if a picture's tokens overlap the picture before it, or exceed the conversation
 */
export function showFeatures(length: number, pictures: readonly PlacedPicture[]): ShownFeatures {
  const features = new Int32Array(length).fill(-1);
  const positions = new Int32Array(3 * length);
  const place = (token: number, axes: readonly [number, number, number]): void =>
    axes.forEach((position, axis) => (positions[axis * length + token] = position));
  let [token, position] = [0, 0];
  for (const { start, feature, rows, columns } of pictures) {
    if (start < token || start + rows * columns > length)
      throw new Error(
        `pictures: the tokens ${start} to ${start + rows * columns} do not follow token ${token} within ${length} tokens`,
      );
    for (; token < start; token++, position++) place(token, [position, position, position]);
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++, token++) {
        features[token] = feature + row * columns + column;
        place(token, [position, position + row, position + column]);
      }
    position += Math.max(rows, columns);
  }
  for (; token < length; token++, position++) place(token, [position, position, position]);
  return { features, positions };
}
