// Recognises PNG and JPEG files by their first bytes, and reads their size in pixels from their headers (PNG, RFC 2083;
// JPEG, ITU-T T.81). Nothing is decoded. Files of unknown origin are only shown as pictures if this file accepts them.

/** Maximum bytes and maximum width and height of a picture that is shown. */
export const mostPictureBytes = 4 * 2 ** 20;
export const mostPicturePixels = 4096;

export interface PictureType {
  /** Ending of the file's name. */
  type: 'png' | 'jpg';
  width: number;
  height: number;
}

const png = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

/** Returns type and size of a picture; undefined if the bytes are no PNG or JPEG file, or exceed the limits. */
export function pictureType(bytes: Uint8Array): PictureType | undefined {
  if (bytes.length > mostPictureBytes) return undefined;
  const found = pngType(bytes) ?? jpegType(bytes);
  const isShown = (size: number): boolean => size > 0 && size <= mostPicturePixels;
  return found && isShown(found.width) && isShown(found.height) ? found : undefined;
}

function pngType(bytes: Uint8Array): PictureType | undefined {
  if (bytes.length < 33 || !png.every((byte, i) => bytes[i] === byte)) return undefined;
  const view = viewOf(bytes);
  const ihdr = 0x49484452;
  if (view.getUint32(8) !== 13 || view.getUint32(12) !== ihdr) return undefined;
  return { type: 'png', width: view.getUint32(16), height: view.getUint32(20) };
}

/** Reads the segments of a JPEG file up to its frame header. */
function jpegType(bytes: Uint8Array): PictureType | undefined {
  if (bytes.length < 4 || bytes[0] !== 0xff || bytes[1] !== 0xd8 || bytes[2] !== 0xff) return undefined;
  const view = viewOf(bytes);
  for (let at = 2; at + 9 <= bytes.length && bytes[at] === 0xff;) {
    const marker = bytes[at + 1];
    if (marker === 0xff) {
      at++; // a fill byte
      continue;
    }
    if (marker === 0xd9 || marker === 0xda) return undefined; // pixels before a frame header
    // All markers from C0 to CF begin a frame, except Huffman tables, a reserved one and arithmetic conditioning.
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker))
      return { type: 'jpg', width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    at += 2 + Math.max(2, view.getUint16(at + 2));
  }
  return undefined;
}

/** Returns the ending of the name of a file that has been recognised as PNG or JPEG. */
export const pictureEnding = (bytes: Uint8Array): PictureType['type'] => (bytes[0] === 0xff ? 'jpg' : 'png');

/** Returns the media type of a file that has been recognised as PNG or JPEG. */
export const mediaType = (bytes: Uint8Array): string => (bytes[0] === 0xff ? 'image/jpeg' : 'image/png');

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength);
