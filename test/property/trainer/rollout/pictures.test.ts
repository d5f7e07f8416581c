// The path of an observation's pictures, from the message of an environment process to a request to a model: bounds of
// the message, admission to the run's store, marks of a prompt, parts of an API request, and pictures for pages. Files
// are damaged, cut off, extended, animated, CMYK, of 16 bits, narrow or huge, and marks and pictures differ in number.
// Whatever the environment sends, an observation is admitted complete or refused in one clause.
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { PNG } from 'pngjs';
import { afterAll, describe, expect, it } from 'vitest';
import { pictureType } from '../../../../extension/common/picture-type';
import { plainMark, splitAtMarks, withMarks, withPlainMarks } from '../../../../extension/common/picture-mark';
import { PictureError } from '../../../../extension/models/vision/picture';
import { pictureFiles, storedPictureUrl } from '../../../../extension/node/episode-pictures';
import { PictureStore, pictureName } from '../../../../extension/node/picture-store';
import { largestImages, mostImages, stateProblem } from '../../../../extension/protocol/environment-message-bounds';
import { mostStatePictures } from '../../../../extension/run-data/episode';
import { isStoredPicture } from '../../../../extension/run-data/run-file-names';
import {
  anthropicMessage,
  completionsMessage,
  picturedMessages,
} from '../../../../extension/trainer/evaluation/api-images';
import { ObservedPictures } from '../../../../extension/trainer/rollout/observed-pictures';

const run = mkdtempSync(join(tmpdir(), 'ragen-pictures-'));
afterAll(() => rmSync(run, { recursive: true, force: true }));

const golden = (name: string): Buffer => readFileSync(`test/golden/vision/pictures/${name}`);
const blank = (width: number, height: number): Buffer => PNG.sync.write(new PNG({ width, height }));
/** The header of a PNG file, with some of its bytes replaced. */
const withHeader = (changes: Record<number, number>): Buffer => {
  const bytes = Buffer.from(golden('tiny.png'));
  for (const [at, byte] of Object.entries(changes)) bytes[Number(at)] = byte;
  return bytes;
};
const files = [
  ...['tiny.png', 'palette.png', 'one-bit.png', 'tiny-jpeg.jpg', 'progressive.jpg', 'cmyk.jpg'].map(golden),
  ...[blank(1, 10_000), blank(10_000, 1), withHeader({ 24: 16 }), withHeader({ 16: 127, 20: 127 })],
  ...[Buffer.alloc(0), Buffer.from('GIF89a'), Buffer.from('<svg onload="x"/>')],
];
const file = fc
  .record({
    original: fc.constantFrom(...files),
    cut: fc.option(fc.nat(), { freq: 3 }),
    changes: fc.array(fc.record({ at: fc.nat(), byte: fc.nat(255) }), { maxLength: 3 }),
    more: fc.uint8Array({ maxLength: 20 }),
  })
  .map(({ original, cut, changes, more }) => {
    const bytes = Buffer.from(original);
    for (const { at, byte } of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte;
    const kept = cut === null ? bytes : bytes.subarray(0, cut % (bytes.length + 1));
    return new Uint8Array(Buffer.concat([kept, more]));
  });
const whole = fc.constantFrom(...files.slice(0, 5), blank(1, 10_000)).map(bytes => new Uint8Array(bytes));
/** Texts with marks, parts of marks, and characters that marks of prompts consist of. */
const text = fc
  .array(
    fc.oneof(
      fc.constant(plainMark),
      fc.string(),
      fc.constantFrom('<image', '[image]', '\u0002', '\u0002x a.png 1 1\u0002'),
    ),
    {
      maxLength: 6,
    },
  )
  .map(pieces => pieces.join(''));

type WirePart = { text?: string; image_url?: { url: string }; source?: { data: string } };
const bytesIn = ({ image_url, source }: WirePart): Buffer[] => {
  const data = source?.data ?? image_url?.url.replace(/^data:image\/(?:png|jpeg);base64,/, '');
  return data === undefined ? [] : [Buffer.from(data, 'base64')];
};

/** Checks the whole path of an observation. Returns whether it was admitted. */
async function follow(shown: string, images: readonly Uint8Array[]): Promise<boolean> {
  const store = new PictureStore(run);
  const message = { episode: 'e', observation: shown, version: 'v', images: [...images] };
  expect(stateProblem(message)).toBeUndefined();
  const pictures = await new ObservedPictures(store).admit(shown, images).catch((error: unknown) => error);
  if (!Array.isArray(pictures)) {
    expect(pictures).toBeInstanceOf(PictureError);
    expect((pictures as Error).message).toMatch(/^has [^\n]+: [^\n]+$/);
    return false;
  }
  const marked = pictures as Awaited<ReturnType<ObservedPictures['admit']>>;
  expect(marked.map(({ name }) => name)).toEqual(images.map(pictureName));
  const prompt = withMarks(shown, marked);
  expect(withPlainMarks(prompt)).toBe(shown);
  expect(splitAtMarks(prompt).filter(part => typeof part !== 'string')).toEqual(marked);
  const [sent] = await picturedMessages([{ role: 'user', content: prompt }], name => store.read(name, 2 ** 25));
  for (const wire of [completionsMessage(sent), anthropicMessage(sent)]) {
    const parts: WirePart[] = typeof wire.content === 'string' ? [{ text: wire.content }] : wire.content;
    expect(parts.flatMap(bytesIn)).toEqual(images.map(image => Buffer.from(image)));
    const words = images.length > 0 ? shown.split(plainMark).filter(piece => piece.trim() !== '') : [shown];
    expect(parts.flatMap(part => part.text ?? [])).toEqual(words);
  }
  for (const [i, { name }] of marked.entries()) {
    const url = await storedPictureUrl(run, name);
    expect(url === null).toBe(pictureType(images[i]) === undefined); // pages refuse what is too large to show
    const shownFiles = await pictureFiles(run, { mode: 'val', step: 0 }, [name]);
    expect(shownFiles).toEqual(url === null ? [] : [join(run, 'pictures', name)]);
  }
  return true;
}

describe('an observation', () => {
  it('with any files and marks is admitted complete, or refused in one clause', async () => {
    const outcomes = { admitted: 0, refused: 0 };
    const observed = fc.tuple(text, fc.array(file, { maxLength: 4 }), fc.boolean());
    await fc.assert(
      fc.asyncProperty(observed, async ([words, images, isMarked]) => {
        const shown = isMarked ? words.replaceAll(plainMark, '') + images.map(() => plainMark).join(' then ') : words;
        outcomes[(await follow(shown, images)) ? 'admitted' : 'refused']++;
      }),
      { numRuns: 200, examples: [[['A picture.', [new Uint8Array(golden('tiny.png'))], true]]] }, // at least one is stored
    );
    expect(Math.min(outcomes.admitted, outcomes.refused)).toBeGreaterThan(20);
    for (const name of readdirSync(join(run, 'pictures'))) {
      expect(isStoredPicture(name)).toBe(true);
      expect(pictureName(readFileSync(join(run, 'pictures', name)))).toBe(name);
    }
  });

  it('is admitted if its files are whole and it has one mark per picture', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.string({ maxLength: 5 }), whole), { maxLength: 5 }), async pieces => {
        const words = pieces.map(([word]) => word.replaceAll('<', '('));
        const shown = words.map(word => `${word}${plainMark}`).join('');
        expect(
          await follow(
            shown,
            pieces.map(([, image]) => image),
          ),
        ).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  it('has at most as many pictures as an episode file may name', async () => {
    const png = new Uint8Array(blank(1, 1));
    const admit = (count: number): Promise<unknown> =>
      new ObservedPictures(new PictureStore(run)).admit(plainMark.repeat(count), Array<Uint8Array>(count).fill(png));
    expect(await admit(mostStatePictures)).toHaveLength(mostStatePictures);
    await expect(admit(mostStatePictures + 1)).rejects.toThrow(
      new PictureError('has 257 pictures, and at most 256 are kept: send fewer'),
    );
  });
});

describe('a message of an environment process', () => {
  const problemOf = (images: unknown): string | undefined =>
    stateProblem({ episode: 'e', observation: '', version: 'v', images });
  const refused = 'has images that are invalid or exceed the size limit';

  it('is bounded in the number and in the bytes of its images', () => {
    const empty = new Uint8Array(0);
    expect(problemOf(Array<Uint8Array>(mostImages).fill(empty))).toBeUndefined();
    expect(problemOf(Array<Uint8Array>(mostImages + 1).fill(empty))).toBe(refused);
    const half = new Uint8Array(largestImages / 2);
    expect(problemOf([half, half])).toBeUndefined();
    expect(problemOf([half, half, Uint8Array.of(0)])).toBe(refused);
  });

  it('has no images but byte arrays', () => {
    fc.assert(
      fc.property(fc.anything(), value => {
        const isValid =
          value === undefined || (Array.isArray(value) && value.every(each => each instanceof Uint8Array));
        expect(problemOf(value) === undefined).toBe(isValid);
      }),
    );
  });
});
