// Encodes frames as an animated GIF with gifenc. All frames share one palette of 256 colours, so that colours do not
// flicker. The palette is computed from at most eight frames, which bounds the memory for long episodes. Pure: equal
// pixels give equal bytes.
import { applyPalette, GIFEncoder, quantize } from 'gifenc';

export interface GifSource {
  readonly width: number;
  readonly height: number;
  /** Number of frames, at least 1. */
  readonly frames: number;
  /** Whether the animation repeats forever; otherwise it is played once. */
  readonly loop: boolean;
  /** Returns the RGBA pixels of a frame. Frames of the palette are requested twice. */
  paint(frame: number): Uint8ClampedArray;
  /** Returns how long a frame is shown, in milliseconds; the format rounds to hundredths of a second. */
  delayMs(frame: number): number;
}

const colours = 256;
const sampledFrames = 8;

/** Returns the bytes of the GIF file. */
export function encodeGif({ width, height, frames, loop, paint, delayMs }: GifSource): Uint8Array<ArrayBuffer> {
  const palette = quantize(sampledPixels(frames, paint), colours);
  const gif = GIFEncoder();
  for (let frame = 0; frame < frames; frame++) {
    const index = applyPalette(paint(frame), palette);
    const first = frame === 0 ? { palette, repeat: loop ? 0 : -1 } : {};
    gif.writeFrame(index, width, height, { ...first, delay: delayMs(frame) });
  }
  gif.finish();
  return gif.bytes();
}

/** Returns the pixels of evenly distributed frames, including the first and the last frame. */
function sampledPixels(frames: number, paint: GifSource['paint']): Uint8ClampedArray {
  const count = Math.min(frames, sampledFrames);
  const chosen = Array.from({ length: count }, (_, i) => Math.round((i * (frames - 1)) / Math.max(1, count - 1)));
  const first = paint(chosen[0]);
  const pixels = new Uint8ClampedArray(first.length * count);
  chosen.forEach((frame, i) => pixels.set(i === 0 ? first : paint(frame), i * first.length));
  return pixels;
}
