// @vitest-environment happy-dom
// The playback of an episode without a page: frames, movements of the player, pictures, and the bytes of a GIF.
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { paletteOf } from '../../../../extension/common/palette';
import { framePainter, movieSize, wrapped } from '../../../../webview/episodes/player/frame-picture';
import { encodeGif } from '../../../../webview/episodes/player/gif';
import { gifMovie, webmMovie } from '../../../../webview/episodes/player/movie';
import {
  frameMs,
  movePlayer,
  playbackFrames,
  speedAfter,
  type PlayerCommand,
} from '../../../../webview/episodes/player/playback';
import type { Theme } from '../../../../webview/shared/theme';
import { episodesOf } from '../../../e2e/preview/data';
import { partial } from '../../../support/partial';

const theme = partial<Theme>({
  ...{ kind: 'dark', palette: paletteOf('dark'), background: '#1f1f1f', foreground: '#cccccc' },
  ...{ muted: '#9d9d9d', border: '#2b2b2b', fontFamily: 'sans-serif' },
});
const episode = episodesOf(140, 'train')[2];

/** A canvas context that records drawn texts, and whose pixels depend on everything drawn since the last background. */
function fakeContext() {
  const texts: string[] = [];
  let drawn = 0;
  const note = (...inputs: unknown[]) => (drawn = (drawn * 31 + JSON.stringify(inputs).length) % 65536);
  const context = {
    ...{ font: '', fillStyle: '', strokeStyle: '', lineWidth: 1, globalAlpha: 1, textBaseline: '' },
    ...{ save() {}, restore() {}, scale() {}, translate() {}, setLineDash() {}, stroke() {}, strokeRect() {} },
    fill: () => note('fill'),
    fillRect: (...box: number[]) => (box[2] === movieSize.width && box[3] > 100 ? (drawn = 0) : note(box)),
    fillText(text: string) {
      texts.push(text);
      note(text);
    },
    measureText: (text: string) => ({ width: text.length * 8 }),
    getImageData(_x: number, _y: number, width: number, height: number) {
      const data = new Uint8ClampedArray(width * height * 4).fill(255);
      for (let i = 0; i < data.length; i += 4) data[i] = (drawn + (i % 7)) % 256;
      return { data };
    },
  };
  // eslint-disable-next-line no-restricted-syntax -- a fake of the methods that the painter calls
  return { context: context as unknown as CanvasRenderingContext2D, texts };
}
beforeEach(() => {
  vi.stubGlobal(
    'Path2D',
    class {
      rect() {}
      arc() {}
    },
  );
});

describe('the frames of an episode', () => {
  it('are one per turn with the state before it, and the final state', () => {
    const frames = playbackFrames(episode);
    expect(frames.map(({ state }) => state)).toEqual([...episode.turns.map(({ state }) => state), episode.final_state]);
    expect(frames.map(({ previous }) => previous)).toEqual([null, ...frames.slice(0, -1).map(({ state }) => state)]);
    expect(frames[0].title).toBe(`Turn 1 of ${episode.turns.length}`);
    expect(frames.at(-1)).toMatchObject({ title: 'End', turn: null });
    expect(frames.at(-1)!.running).toBeCloseTo(episode.reward, 9);
  });

  it('of an episode without turns are its final state', () => {
    expect(playbackFrames({ ...episode, turns: [] }).map(({ title, previous }) => [title, previous])).toEqual([
      ['End', null],
    ]);
  });

  it('are shown for a time that the speed divides, the last one longer', () => {
    expect([frameMs(0, 3, 1), frameMs(0, 3, 4), frameMs(2, 3, 1), frameMs(2, 3, 0.5)]).toEqual([1600, 400, 2800, 5600]);
    expect([speedAfter(1, 1), speedAfter(4, 1), speedAfter(0.5, -1), speedAfter(3, -1)]).toEqual([2, 4, 0.5, 0.5]);
  });
});

describe('the player', () => {
  it('advances to the end and stops, or starts again in a loop', () => {
    const playing = { frame: 1, isPlaying: true };
    expect(movePlayer(playing, 'advance', 3, false)).toEqual({ frame: 2, isPlaying: true });
    expect(movePlayer({ frame: 2, isPlaying: true }, 'advance', 3, false)).toEqual({ frame: 2, isPlaying: false });
    expect(movePlayer({ frame: 2, isPlaying: true }, 'advance', 3, true)).toEqual({ frame: 0, isPlaying: true });
    expect(movePlayer({ frame: 0, isPlaying: true }, 'advance', 1, true)).toEqual({ frame: 0, isPlaying: false });
    expect(movePlayer({ frame: 2, isPlaying: false }, 'toggle', 3, false)).toEqual({ frame: 0, isPlaying: true });
  });

  it('stays within the frames and moves by hand only when paused, whatever it is told', () => {
    const command = fc.oneof(
      fc.constantFrom<PlayerCommand>('toggle', 'pause', 'next', 'previous', 'first', 'last', 'advance'),
      fc.record({ to: fc.double({ min: -1e6, max: 1e6, noNaN: true }) }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.boolean(), fc.array(command), (frames, loop, commands) => {
        let player = { frame: 0, isPlaying: false };
        for (const each of commands) {
          const next = movePlayer(player, each, frames, loop);
          expect(Number.isInteger(next.frame) && next.frame >= 0 && next.frame < frames).toBe(true);
          if (each !== 'toggle' && each !== 'advance') expect(next.isPlaying).toBe(false);
          if (each === 'advance' && !player.isPlaying) expect(next).toBe(player);
          player = next;
        }
      }),
    );
  });
});

describe('a picture of a frame', () => {
  it('has the title, the thought, the actions and the rewards', () => {
    const { context, texts } = fakeContext();
    framePainter(episode, theme)(context, 0);
    const [turn] = episode.turns;
    expect(texts[0]).toBe(`Turn 1 of ${episode.turns.length}`);
    expect(texts.join(' ')).toContain(turn.thought!.split(' ').slice(0, 3).join(' '));
    expect(texts).toContain(turn.parsed[0]);
    expect(texts.some(text => /^reward [+−]?[\d.]+ · return [+−]?[\d.]+$/.test(text))).toBe(true);
    expect(texts.at(-1)).toBe(episode.id);
  });

  it('shortens a long thought and breaks long words', () => {
    const { context, texts } = fakeContext();
    const turns = [{ ...episode.turns[0], thought: 'x'.repeat(100_000) }];
    framePainter({ ...episode, turns }, theme)(context, 0);
    expect(texts.length).toBeLessThan(40);
    expect(texts.some(text => text.endsWith('…'))).toBe(true);
  });

  it('wraps text without losing or reordering a character that is not blank', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\n', '😀') });
    fc.assert(
      fc.property(text, fc.integer({ min: 2, max: 12 }), (given, width) => {
        const lines = wrapped(given, width, part => part.length);
        expect(lines.join('').replace(/\s/g, '')).toBe(given.replace(/\s/g, ''));
        for (const line of lines) expect(line.length).toBeLessThanOrEqual(width);
      }),
    );
  });
});

describe('a GIF', () => {
  const size = { width: 8, height: 4 };
  const paint = (frame: number) => {
    const data = new Uint8ClampedArray(size.width * size.height * 4).fill(255);
    for (let i = 0; i < data.length; i += 4) data.set([(frame * 80) % 256, (i * 2) % 256, 32], i);
    return data;
  };
  const encode = (loop: boolean, frames = 12) =>
    encodeGif({ ...size, frames, loop, paint, delayMs: at => 100 + at * 10 });

  it('has equal bytes for equal pixels', () => {
    const bytes = encode(true);
    expect(Buffer.from(bytes).equals(Buffer.from(encode(true)))).toBe(true);
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(
      '620aa01fb841a329cc388813e6ea6b1743060d6f863930f10e4808e99a3b2e1a',
    );
  });

  it('has its size, its delays, one palette, and repeats only in a loop', () => {
    const bytes = Buffer.from(encode(true));
    expect([bytes.toString('latin1', 0, 6), bytes.readUInt16LE(6), bytes.readUInt16LE(8)]).toEqual(['GIF89a', 8, 4]);
    const delays: number[] = [];
    for (let at = bytes.indexOf('21f904', 'hex'); at >= 0; at = bytes.indexOf('21f904', at + 1, 'hex'))
      delays.push(bytes.readUInt16LE(at + 4));
    expect(delays).toEqual(Array.from({ length: 12 }, (_, i) => 10 + i));
    expect(bytes.includes('NETSCAPE2.0')).toBe(true);
    expect(Buffer.from(encode(false)).includes('NETSCAPE2.0')).toBe(false);
    expect(bytes.at(-1)).toBe(0x3b);
  });

  it('of an episode has a frame per turn and one for the end', async () => {
    const getContext = vi.spyOn(HTMLCanvasElement.prototype, 'getContext');
    getContext.mockImplementation(() => fakeContext().context);
    const make = async () => Buffer.from((await gifMovie(episode, theme, { speed: 2, loop: true })).bytes);
    const bytes = await make();
    let frames = 0;
    for (let at = bytes.indexOf('21f904', 'hex'); at >= 0; at = bytes.indexOf('21f904', at + 1, 'hex')) frames++;
    expect(frames).toBe(episode.turns.length + 1);
    expect((await make()).equals(bytes)).toBe(true);
    getContext.mockRestore();
  });
});

describe('a WebM video', () => {
  it('is refused in one sentence where the browser engine cannot record', async () => {
    vi.stubGlobal('MediaRecorder', undefined);
    const made = webmMovie(episode, theme, { speed: 1, loop: false }, () => undefined, new AbortController().signal);
    await expect(made).rejects.toThrow(
      'This window cannot record WebM, because its browser engine has no MediaRecorder: export a GIF.',
    );
  });
});
