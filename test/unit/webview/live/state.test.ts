// The changes of the Live page's state, without a page: which episode is in view, and which tokens are taken.
import { describe, expect, it } from 'vitest';
import type { WatchedEpisode } from '../../../../extension/protocol/trainer-link';
import { paletteOf } from '../../../../extension/common/palette';
import { reduce, type LiveEvent } from '../../../../webview/live/reducer';
import { firstSettings, initialState, lingers, type LiveState } from '../../../../webview/live/state';
import { splitThought } from '../../../../webview/live/turn';
import type { Theme } from '../../../../webview/shared/theme';
import { episodesOf, runAt } from '../../../e2e/preview/data';
import { watchedEpisode } from '../../../e2e/preview/live-host';

const theme = { kind: 'dark', palette: paletteOf('dark') } as Theme;
const stored = episodesOf(13, 'train').filter(({ turns }) => turns.length > 2)[0];
const at = (turns: number, tokens?: number): WatchedEpisode => watchedEpisode(stored, turns, tokens);
const over = at(stored.turns.length);
const other: WatchedEpisode = { ...at(0, 2), id: 'train-000013-g005-m01' };
const after = (...events: LiveEvent[]): LiveState => events.reduce(reduce, initialState(firstSettings, theme));
const connected = (episode: WatchedEpisode | null): LiveEvent => ({
  type: 'connected',
  snapshot: { run: runAt(12, 200), tags: [], choice: {}, episode },
});
const shown = ({ shown: episode }: LiveState): string | undefined => episode?.id;

describe('which episode is in view', () => {
  it('switches to another episode at once, unless the one in view has just ended', () => {
    expect(shown(after(connected(at(1, 3)), { type: 'episode', episode: other }))).toBe(other.id);
    const waiting = after(connected(over), { type: 'episode', episode: other });
    expect([shown(waiting), lingers(waiting)]).toEqual([over.id, true]);
    const next = reduce(waiting, { type: 'lingered' });
    expect([shown(next), lingers(next)]).toEqual([other.id, false]);
  });

  it('stays without following, and catches up when following is on again', () => {
    const staying = after(connected(at(1, 3)), { type: 'follow', on: false }, { type: 'episode', episode: other });
    expect([shown(staying), lingers(staying)]).toEqual([stored.id, false]);
    expect(shown(reduce(staying, { type: 'follow', on: true }))).toBe(other.id);
  });

  it('keeps the last episode between rollouts and after a reconnection', () => {
    const between = after(connected(over), { type: 'episode', episode: null });
    expect([shown(between), between.received]).toEqual([over.id, null]);
    expect(shown(reduce(between, connected(null)))).toBe(over.id);
  });
});

describe('tokens', () => {
  const tokens = [{ text: 'new', logprob: -1 }];

  it('replace the end of the newest turn, and leave the earlier state as it was', () => {
    const before = after(connected(at(1, 3)));
    const next = reduce(before, { type: 'tokens', id: stored.id, turn: 2, at: 2, tokens });
    expect(next.shown!.turns[1].tokens).toEqual([...at(1, 3).turns[1].tokens.slice(0, 2), ...tokens]);
    expect(before.shown!.turns[1].tokens).toEqual(at(1, 3).turns[1].tokens);
    expect(next.shown!.turns[0]).toBe(before.shown!.turns[0]);
  });

  it('of another episode, or of a turn that is over, change nothing', () => {
    const before = after(connected(at(1, 3)));
    expect(reduce(before, { type: 'tokens', id: other.id, turn: 2, at: 3, tokens })).toBe(before);
    expect(reduce(before, { type: 'tokens', id: stored.id, turn: 1, at: 3, tokens })).toBe(before);
  });

  it('belong to the thought up to its end mark, which may be spread over tokens', () => {
    const split = (...texts: string[]) => splitThought(texts.map(text => ({ text, logprob: 0 })));
    expect(split('I', ' go')).toEqual({ length: 2, ended: false });
    expect(split('I', ' go</', 'think', '>', '<answer>')).toEqual({ length: 4, ended: true });
    expect(split('a</think>')).toEqual({ length: 1, ended: true });
  });
});
