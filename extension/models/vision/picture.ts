// A decoded picture, and limits on the files that pictures are decoded from. The limits hold before anything is
// decoded, so that a small file cannot claim gigabytes of memory.

/** RGB, 8 bits per channel. */
export interface Picture {
  width: number;
  height: number;
  /** [height, width, 3] */
  pixels: Uint8Array;
}

/** Maximum number of bytes of a file. */
export const maxPictureBytes = 32 * 2 ** 20;
/** Maximum width and height, and maximum product of both. */
const maxPictureSide = 16_384;
const maxPicturePixels = 2 ** 24;

/** A picture cannot be decoded; the message is a clause without a subject, such as "is truncated: …". */
export class PictureError extends Error {
  override readonly name = 'PictureError';
}

/** Throws a PictureError if a picture has too many pixels to be decoded. */
export function checkPictureSize(width: number, height: number): void {
  if (Math.max(width, height) > maxPictureSide || width * height > maxPicturePixels)
    throw new PictureError(
      `has ${width} × ${height} pixels, and at most ${maxPictureSide} a side and ${maxPicturePixels} in all are decoded: send a smaller picture`,
    );
}
