// Frames between a trainer and its environment process: messages arrive unchanged, and malformed bytes are refused
// before anything is allocated for their claimed size.
import { describe, expect, test } from 'vitest';
import { frameLimits, framed, FrameError, FrameReader, FrameWriter } from '../../../extension/node/frames';

const read = (...chunks: Buffer[]): unknown[] => {
  const reader = new FrameReader();
  return chunks.flatMap(chunk => [...reader.push(chunk)]);
};

const messages: unknown[] = [
  {
    id: 1,
    method: 'reset',
    episodes: [{ episode: 'ü\ud800\u2028', info: { a: undefined, b: [NaN, -0, Infinity, -Infinity] } }],
  },
  { images: [Uint8Array.of(1, 2, 3), new Uint8Array(0), Uint8Array.of(255)], text: '\0"\\' },
  { $ragen: 'NaN' },
  { $ragen: { $ragen: [0, 1] }, other: { $ragen: undefined } },
  JSON.parse('{"__proto__": {"x": null, "y": {"$ragen": 5}}, "constructor": 1}'),
  [],
  'text',
  null,
];

test('messages arrive unchanged, however the stream is split', () => {
  const writer = new FrameWriter();
  const bytes = Buffer.concat(messages.map(message => writer.frame(message)));
  expect(read(bytes)).toEqual(messages);
  for (const size of [1, 7, 19, 20, 21, 100]) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );
    expect(read(...chunks)).toEqual(messages);
  }
});

describe('malformed bytes', () => {
  const writer = new FrameWriter();
  const [first, second] = [writer.frame({ a: 1 }), writer.frame({ b: 2 })];
  const header = (json: number, binary: number) => {
    const bytes = Buffer.from(first);
    bytes.writeUInt32LE(json, 8);
    bytes.writeUInt32LE(binary, 12);
    return bytes;
  };
  const flipped = Buffer.from(first);
  flipped[flipped.length - 3] ^= 1;
  const json = (text: string | Buffer) => framed(Buffer.from(text), [], 0);

  test.each<[string, Buffer[], RegExp]>([
    ['garbage', [Buffer.alloc(32, 7)], /do not start a message/],
    ['garbage behind a message', [first, Buffer.alloc(32, 7)], /do not start a message/],
    ['a message twice', [first, first], /message 0 in place of message 1/],
    ['a message out of order', [second], /message 1 in place of message 0/],
    ['an enormous length of JSON', [header(2 ** 32 - 1, 0)], /declares 4294967295/],
    ['an enormous length of bytes', [header(2, 2 ** 31)], /declares 2 bytes of JSON and 2147483648/],
    ['a flipped bit', [flipped], /wrong checksum/],
    ['no JSON', [json('{"a":')], /JSON/],
    ['no UTF-8', [json(Buffer.from([0x22, 0xff, 0x22]))], /encoded/],
    ['too many levels', [json('['.repeat(300) + ']'.repeat(300))], /levels/],
    ['too many values', [json(`[${'0,'.repeat(frameLimits.values + 1)}0]`)], /values/],
    ['a number beyond the largest', [json('[1e999]')], /out of range/],
    ['bytes beyond the end', [json('{"$ragen":[0,1]}')], /beyond the end/],
    ['a value of no kind', [json('{"$ragen":"function"}')], /an unknown kind/],
  ])('are refused: %s', (_, chunks, message) => {
    const reader = new FrameReader();
    const all = () => chunks.flatMap(chunk => [...reader.push(chunk)]);
    expect(all).toThrow(FrameError);
    expect(all).toThrow(message); // and nothing is read after it
  });

  test('an incomplete message is waited for, and allocates nothing', () => {
    expect(read(first.subarray(0, 25), first.subarray(25, 26))).toEqual([]);
  });

  test('a message that is too large is not sent, and the next one is', () => {
    const sender = new FrameWriter();
    expect(() => sender.frame('x'.repeat(frameLimits.json))).toThrow(FrameError);
    expect(read(sender.frame('small'))).toEqual(['small']);
  });
});
