// All episodes of a run as known to the host: from the trainer's index, from files without an index, and after
// truncation; and text search.
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import type * as promises from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EpisodeIndexReader } from '../../../../../extension/vscode/run-files/episodes/episode-index-reader';
import {
  indexOfFile,
  passes,
  searchFile,
  textPatterns,
  type EpisodeScanner,
} from '../../../../../extension/vscode/run-files/episodes/episode-scan';
import { readHeads } from '../../../../../extension/vscode/run-files/episodes/episode-heads';
import { invalidActions, textHash } from '../../../../../extension/run-data/episode-index-line';
import type { EpisodeTable } from '../../../../../extension/run-data/episode-table';
import { episodesFile, runFiles } from '../../../../../extension/run-data/run-file-names';
import { type Episode } from '../../../../../extension/run-data/episode';
import { EpisodeIndexLog } from '../../../../../extension/trainer/store/episode-index-log';
import { LineLog } from '../../../../../extension/trainer/store/line-log';
import { episodesOf } from '../../../../e2e/preview/data';
import { reinterpret } from '../../../../support/partial';

/** Hook that runs while the file sizes are read. */
let meanwhile: () => void = () => undefined;
vi.mock('node:fs/promises', async original => {
  const real = await original<typeof promises>();
  const opendir: typeof real.opendir = async (...args) => {
    const entries = await real.readdir(String(args[0]), { withFileTypes: true });
    meanwhile();
    meanwhile = () => undefined;
    return reinterpret<Awaited<ReturnType<typeof real.opendir>>>(entries);
  };
  return { ...real, opendir };
});

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-episodes-'));
  mkdirSync(join(folder, runFiles.episodes));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const path = (name: string) => join(folder, name);
const few = (step: number, mode: 'train' | 'val' = 'train') => episodesOf(step, mode, 2, 3);
const old = new Date(Date.now() - 60_000);

/** Appends episodes as the trainer does, and to the index if one is given. */
function write(episodes: Episode[], index?: EpisodeIndexLog): void {
  const { mode, step } = episodes[0];
  const log = new LineLog(path(episodesFile(mode, step)), { fsync: 'explicit' });
  const from = log.offset;
  const written = episodes.map(episode => [episode, log.append(episode)] as const);
  log.close();
  index?.append(mode, step, from, written);
  utimesSync(path(episodesFile(mode, step)), old, old);
}
const indexLog = () => new EpisodeIndexLog(path(runFiles.episodeIndex), path);

/** The worker's functions, called in this thread; records the indexed files. */
function scanner(): EpisodeScanner & { indexed: string[] } {
  const indexed: string[] = [];
  return {
    indexed,
    index: async (file, from) => (indexed.push(`${file.mode} ${file.step} ${from}`), indexOfFile(file, from)),
    search: async (files, terms, found) => {
      const patterns = textPatterns(terms);
      files.forEach((file, i) => found(Int32Array.from(searchFile(file, patterns)), (i + 1) / files.length));
      return true;
    },
    end: () => undefined,
  };
}
const ids = ({ table }: { table: EpisodeTable }) => Array.from({ length: table.rows }, (_, row) => table.row(row).id);
const idsOf = (...steps: Episode[][]) => steps.flat().map(({ id }) => id);

describe('the index of a run', () => {
  it("uses the trainer's index; no file is scanned", async () => {
    const log = indexLog();
    write(few(1), log);
    write(few(1, 'val'), log);
    const scan = scanner();
    const index = new EpisodeIndexReader(folder, null, scan);
    await index.update();
    expect(ids(index)).toEqual(idsOf(few(1), few(1, 'val')));
    expect([scan.indexed, index.read]).toEqual([[], 1]);
    write(few(2), log);
    await index.update();
    expect(ids(index)).toEqual(idsOf(few(1), few(1, 'val'), few(2)));
    expect(index.epoch).toBe(0);
    log.close();
    for (const [row, episode] of few(1).entries()) {
      expect(index.table.row(row)).toEqual({
        id: episode.id,
        step: 1,
        mode: 'train',
        group_id: episode.group_id,
        member: episode.member,
        tag: episode.tag,
        success: episode.success,
        score: episode.score,
        reward: episode.reward,
        advantage: episode.advantage === null ? null : Math.fround(episode.advantage),
        turns: episode.turns.length,
        tokens: episode.tokens.mask.filter(bit => bit === 1).length,
        invalid: invalidActions(episode),
        kept: episode.kept,
        seed: episode.seed,
      });
      expect(index.table.column('seed')[row]).toBe(episode.seed);
      expect(index.table.column('first')[row]).toBe(textHash(episode.turns[0].state));
      expect(await index.episode(episode)).toEqual(episode);
    }
    expect(await index.episode({ step: 1, mode: 'train', id: 'train-000001-g009-m00' })).toBeNull();
  });

  it('loses nothing that is written while it is read', async () => {
    const log = indexLog();
    write(few(1), log);
    const scan = scanner();
    const index = new EpisodeIndexReader(folder, null, scan);
    meanwhile = () => write(few(2), log);
    await index.update();
    await index.update();
    log.close();
    expect(ids(index)).toEqual(idsOf(few(1), few(2)));
    expect(scan.indexed).toEqual([]);
  });

  it('is built from the files when there is no trainer index, newest first, and kept', async () => {
    write(few(1));
    write(few(2));
    writeFileSync(path('episodes/step-000003.jsonl'), `no episode\n${JSON.stringify(few(3)[0])}\n{"torn`);
    utimesSync(path('episodes/step-000003.jsonl'), old, old);
    const storage = path('kept');
    const scan = scanner();
    const index = new EpisodeIndexReader(folder, storage, scan);
    const shares: number[] = [];
    await index.update(() => shares.push(index.read));
    expect(scan.indexed).toEqual(['train 3 0', 'train 2 0', 'train 1 0']);
    expect(ids(index)).toEqual(idsOf(few(3).slice(0, 1), few(2), few(1)));
    expect(await index.episode(few(3)[0])).toEqual(few(3)[0]);
    expect(shares).toHaveLength(3);
    expect([...shares].sort((a, b) => a - b)).toEqual(shares);
    const again = scanner();
    const reopened = new EpisodeIndexReader(folder, storage, again);
    await reopened.update();
    expect(ids(reopened).sort()).toEqual(ids(index).sort());
    expect(again.indexed).toEqual([`train 3 ${Buffer.byteLength(JSON.stringify(few(3)[0])) + 12}`]); // the torn line only
  });

  it('waits for the trainer when a file is recent', async () => {
    write(few(1));
    utimesSync(path(episodesFile('train', 1)), new Date(), new Date());
    const index = new EpisodeIndexReader(folder, null, scanner());
    expect(await index.update()).toBe(true);
    expect(index.table.rows).toBe(0);
    utimesSync(path(episodesFile('train', 1)), old, old);
    expect(await index.update()).toBe(false);
    expect(index.table.rows).toBe(6);
  });

  it('follows a file that grows in several writes', async () => {
    const log = indexLog();
    const episodes = few(1, 'val');
    write(episodes.slice(0, 2), log);
    const index = new EpisodeIndexReader(folder, null, scanner());
    await index.update();
    write(episodes.slice(2), log);
    log.close();
    await index.update();
    expect([ids(index), index.epoch]).toEqual([idsOf(episodes), 0]);
    expect(await index.episode(episodes[5])).toEqual(episodes[5]);
  });

  it('is rebuilt when a resume removed steps, and the trainer drops their index entries', async () => {
    const log = indexLog();
    write(few(1), log);
    write(few(2), log);
    log.close();
    const index = new EpisodeIndexReader(folder, null, scanner());
    await index.update();
    rmSync(path(episodesFile('train', 2)));
    await index.update();
    expect([ids(index), index.epoch]).toEqual([idsOf(few(1)), 1]);
    const resumed = indexLog();
    write(few(2).slice(0, 4), resumed);
    resumed.close();
    await index.update();
    expect(ids(index)).toEqual(idsOf(few(1), few(2).slice(0, 4)));
    expect(readFileSync(path(runFiles.episodeIndex), 'utf8').split('\n')).toHaveLength(3);
  });

  it('works without a writable index, and skips damaged lines', async () => {
    mkdirSync(path(runFiles.episodeIndex));
    const log = indexLog();
    write(few(1), log);
    log.close();
    rmSync(path(runFiles.episodeIndex), { recursive: true });
    writeFileSync(path(runFiles.episodeIndex), '{"mode":"train","step":1,"from":0,"to":5,"tags":[],"columns":{}}\nx\n');
    const index = new EpisodeIndexReader(folder, null, scanner());
    await index.update();
    expect(ids(index)).toEqual(idsOf(few(1)));
  });

  it('skips a file larger than any trainer writes, and reads the others', async () => {
    write(few(1));
    const sparse = path(episodesFile('train', 2));
    writeFileSync(sparse, '');
    truncateSync(sparse, 2 ** 40); // a sparse file, uses no disk space
    utimesSync(sparse, old, old);
    const scan = scanner();
    const index = new EpisodeIndexReader(folder, null, scan);
    await index.update();
    expect([ids(index), scan.indexed, index.read]).toEqual([idsOf(few(1)), ['train 1 0'], 1]);
    const refusal =
      'episodes/step-000002.jsonl has 1099511627776 bytes, more than the limit of 17179869184 bytes for a log: remove the file';
    expect(() => indexOfFile({ path: sparse, mode: 'train', step: 2 }, 0)).toThrow(refusal);
    await expect(readHeads(sparse)).rejects.toThrow(refusal);
  });

  it('does not read a line from a file that has become shorter', async () => {
    const log = indexLog();
    write(few(1), log);
    log.close();
    const [first] = few(1);
    truncateSync(path(episodesFile('train', 1)), Buffer.byteLength(JSON.stringify(first)) + 1);
    utimesSync(path(episodesFile('train', 1)), old, old);
    const index = new EpisodeIndexReader(folder, null, scanner());
    await index.update();
    expect(ids(index)).toEqual([first.id]);
  });
});

describe('a search', () => {
  const search = async (episodes: Episode[], ...terms: [string, boolean?][]) => {
    const log = indexLog();
    write(episodes, log);
    log.close();
    const index = new EpisodeIndexReader(folder, null, scanner());
    await index.update();
    const found: number[] = [];
    const rows = Int32Array.from({ length: index.table.rows }, (_, row) => row);
    await index.search(
      rows,
      terms.map(([value, not = false]) => ({ value, not })),
      part => found.push(...part),
    );
    return found.map(row => index.table.row(row).member);
  };
  const group = (texts: string[]) =>
    texts.map((raw, member): Episode => {
      const [episode] = episodesOf(1, 'train', 1, 1);
      const turns = episode.turns
        .slice(0, 1)
        .map(turn => ({ ...turn, raw, thought: 'elsewhere', info: { note: 'hidden' } }));
      return {
        ...episode,
        id: `train-000001-g000-m0${member}`,
        member,
        turns,
        messages: [{ role: 'user', content: 'said' }],
      };
    });

  it('finds words in answers and states in any case, but not in names, notes or messages', async () => {
    const episodes = group(['I am STUCK here', 'stück “ok”', 'a "quoted" word\nand a line', 'back\\slash', 'nothing']);
    expect(await search(episodes, ['stuck'])).toEqual([0]);
    for (const [term, members] of [
      ['am stuck HERE', [0]],
      ['STÜCK', [1]],
      ['“OK”', [1]],
      ['"quoted"', [2]],
      ['and a', [2]],
      ['nand', []],
      ['back\\S', [3]],
      ['raw', []],
      ['thought', []],
      ['elsewhere', []],
      ['hidden', []],
      ['said', []],
      ['null', []],
      ['######', [0, 1, 2, 3, 4]],
    ] as const) {
      rmSync(path(runFiles.episodes), { recursive: true });
      mkdirSync(path(runFiles.episodes));
      expect([term, await search(episodes, [term])]).toEqual([term, members]);
    }
  });

  it('requires all terms, and excludes negated ones', async () => {
    expect(await search(group(['a wall', 'a box', 'a wall and a box']), ['wall'], ['box', true])).toEqual([0]);
  });

  it('equals a case-insensitive search of states and answers for any text', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', 'B', '"', '\\', '\n', 'é', 'ß', ':', '{', 'n', '😀', '\u0001'),
      maxLength: 12,
    });
    const word = fc.string({
      unit: fc.constantFrom('a', 'b', '"', '\\', 'É', ':', '{', 'n', '😀'),
      minLength: 1,
      maxLength: 3,
    });
    fc.assert(
      fc.property(text, text, text, word, (state, raw, other, value) => {
        const line = JSON.stringify({ tag: other, turns: [{ state, raw, thought: other, info: { [other]: other } }] });
        const expected = [state, raw].some(each => each.toLowerCase().includes(value.toLowerCase()));
        const bytes = Buffer.from(line, 'utf8').toString('latin1');
        expect(passes(bytes, textPatterns([{ value, not: false }]))).toBe(expected);
      }),
      { seed: 20260203, numRuns: 2000 },
    );
  });
});

it('invalid actions are those unknown to the environment, and answers without an action', () => {
  const [{ turns, ...rest }] = few(1);
  const turn = { ...turns[0], actions_left: 10, raw: '', thought: '', answer: '' };
  const of = (parsed: string[], executed: string[]) =>
    invalidActions({ ...rest, turns: [{ ...turn, parsed, executed }] });
  expect([of(['Up'], ['Up']), of(['Jump', 'Up'], ['Up']), of(['Jump', 'Hop'], []), of([], [])]).toEqual([0, 1, 2, 1]);
});

it('an index line of the trainer equals a scan of its file', () => {
  const log = indexLog();
  write(few(1), log);
  log.close();
  appendFileSync(path('episodes/x'), '');
  const stored: unknown = JSON.parse(readFileSync(path(runFiles.episodeIndex), 'utf8'));
  expect(indexOfFile({ path: path(episodesFile('train', 1)), mode: 'train', step: 1 }, 0)).toEqual(stored);
});
