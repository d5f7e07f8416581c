// In-memory host for the Episodes page: a run whose states are pictures of 512 × 512 pixels, in one prompt group with
// ten turns per episode. Runs in the browser only, because a canvas encodes the pictures.
import { episodeOpen, episodesExport, episodesReady, type EpisodeRef } from '../../../extension/protocol/episodes-page';
import { addToIndex, indexLine } from '../../../extension/run-data/episode-index-line';
import { EpisodeTable } from '../../../extension/run-data/episode-table';
import type { Episode } from '../../../extension/run-data/episode';
import { episodesOf, runAt } from './data';
import type { MemoryHost } from './memory-host';

const turns = 10;
const [side, tiles] = [512, 8];
const tile = side / tiles;

export function picturedHost(members: number): MemoryHost {
  const episodes = episodesOf(140, 'train', 1, members).map(episode => ({
    ...episode,
    turns: Array.from({ length: turns }, (_, i) => ({ ...episode.turns[i % episode.turns.length], turn: i + 1 })),
  }));
  const table = new EpisodeTable();
  const line = indexLine('train', 140, 0);
  for (const episode of episodes) addToIndex(line, episode, line.to + 1, 0);
  table.addLine(line);
  const answers: Record<string, (params: never) => unknown> = {
    [episodesReady.method]: () => ({ run: runAt(140, 200), epoch: 0, read: 1, rows: table.slice(0) }),
    [episodeOpen.method]: ({ id }: EpisodeRef): Episode => {
      const episode = episodes.find(each => each.id === id)!;
      const pictures = (turn: number): string[] => [boardOf(episode.member * (turns + 1) + turn)];
      return {
        ...episode,
        turns: episode.turns.map(turn => ({ ...turn, state: '<image>', pictures: pictures(turn.turn) })),
        final_state: '<image>',
        final_pictures: pictures(turns + 1),
      };
    },
    [episodesExport.method]: () => true,
  };
  return {
    answer(method, params) {
      const answer = answers[method];
      if (!answer) throw new Error(`preview: no answer to ${method}`);
      return answer(params as never);
    },
  };
}

/** Four textured tiles beside each other; drawn once. */
let texture: HTMLCanvasElement | undefined;

function textured(): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [4 * tile, tile];
  const context = canvas.getContext('2d')!;
  const grain = tile / 16;
  for (const [kind, hue] of [200, 215, 30, 120].entries())
    for (let dot = 0; dot < 256; dot++) {
      context.fillStyle = `hsl(${hue} 40% ${60 + ((dot * dot * 7 + kind) % 23)}%)`;
      context.fillRect(kind * tile + (dot % 16) * grain, Math.floor(dot / 16) * grain, grain, grain);
    }
  return canvas;
}

/** Draws a board of textured tiles; boards of different numbers differ. Returns a data URL. */
function boardOf(number: number): string {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = side;
  const context = canvas.getContext('2d')!;
  let random = (number + 1) * 48_271;
  const next = (most: number): number => (random = (random * 16_807) % 2_147_483_647) % most;
  for (let at = 0; at < tiles ** 2; at++) {
    const kind = next(20) < 16 ? 0 : next(4);
    const [x, y] = [(at % tiles) * tile, Math.floor(at / tiles) * tile];
    context.drawImage((texture ??= textured()), kind * tile, 0, tile, tile, x, y, tile, tile);
  }
  context.fillStyle = 'crimson';
  context.beginPath();
  context.arc((next(tiles) + 0.5) * tile, (next(tiles) + 0.5) * tile, tile / 3, 0, 2 * Math.PI);
  context.fill();
  return canvas.toDataURL('image/png');
}
