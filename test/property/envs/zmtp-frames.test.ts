// Frames of ZeroMQ's protocol: any cut of the stream gives the same frames, and hostile bytes give an error or wait for
// more, but never a frame that is too long.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FrameReader, frameBytes, messageBytes, type Frame } from '../../../envs/verifiers/zmtp-frames';

const frame = fc.record({
  isCommand: fc.boolean(),
  hasMore: fc.boolean(),
  body: fc.oneof(fc.uint8Array({ maxLength: 20 }), fc.uint8Array({ minLength: 250, maxLength: 260 })),
});

/** Cuts bytes at the given places. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const at = [...new Set([0, ...places.map(place => place % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b);
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

const plain = (frames: readonly Frame[]) => frames.map(({ body, ...flags }) => ({ ...flags, body: [...body] }));

test('frames do not depend on the cuts of the stream', () => {
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 6 }), fc.array(fc.nat(), { maxLength: 12 }), (frames, places) => {
      const reader = new FrameReader(1000);
      const read = cut(Buffer.concat(frames.map(frameBytes)), places).flatMap(bytes => reader.push(bytes));
      expect(plain(read)).toEqual(plain(frames));
    }),
  );
});

test('all parts of a message but the last announce another one', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 5 }), parts => {
      const frames = new FrameReader(1000).push(messageBytes(parts));
      expect(plain(frames)).toEqual(
        parts.map((body, index) => ({ isCommand: false, hasMore: index < parts.length - 1, body: [...body] })),
      );
    }),
  );
});

test('arbitrary bytes give frames within the limit, an error, or a wait', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 8 }), chunks => {
      const reader = new FrameReader(16);
      try {
        for (const bytes of chunks)
          for (const { body } of reader.push(bytes)) expect(body.length).toBeLessThanOrEqual(16);
      } catch (error) {
        expect((error as Error).message).toMatch(
          /^sent a frame (of \d+ bytes, expected at most 16|with the unknown flags \d+)$/,
        );
      }
    }),
  );
});
