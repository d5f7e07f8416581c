// A decoded picture, and limits on the files that pictures are decoded from. The limits hold before anything is
// decoded, so that a small file cannot claim gigabytes of memory.

/** RGB, 8 bits per channel. */
export interface Picture {
  width: number;
  height: number;
  /** [height, width, 3] */
  pixels: Uint8Array;
}

/** Limits: bytes of a file, width and height, and their product. */
export const maxPictureBytes = 32 * 2 ** 20;
export const maxPictureSide = 16_384;
export const maxPicturePixels = 2 ** 24;

/** A picture cannot be decoded; the message is a clause without a subject, such as "is truncated: …". */
export class PictureError extends Error {
  override readonly name = 'PictureError';
}
