// @vitest-environment happy-dom
// The Live page: tokens in their turns, the switch to the next episode, following switched off, and the text between
// rollouts.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { liveEpisode, liveRun, liveTags, liveTokens } from '../../../../extension/protocol/live-page';
import type { WatchedEpisode } from '../../../../extension/protocol/trainer-link';
import type { LazyPicture } from '../../../../webview/components/lazy-picture';
import { startLive } from '../../../../webview/live/page';
import { formatSigned } from '../../../../webview/shared/format';
import { phaseLabels } from '../../../../webview/live/phase-labels';
import { episodesOf, runAt } from '../../../e2e/preview/data';
import { liveHost, watchedEpisode } from '../../../e2e/preview/live-host';
import type { LiveScenario } from '../../../e2e/preview/live-host';
import { freshPage, pageHost, press, settle } from '../page-host';
import type { PageHost } from '../page-host';
import { watchedGame } from '../../../e2e/preview/roles-host';

let root: HTMLElement;
beforeEach(() => (root = freshPage()));
afterEach(() => vi.useRealTimers());

async function open(scenario: LiveScenario, kept?: unknown): Promise<PageHost> {
  const host = pageHost(liveHost(scenario), kept);
  startLive(host, root);
  await settle();
  return host;
}
const all = (selector: string): string[] => [...root.querySelectorAll(selector)].map(each => each.textContent ?? '');
const episode = episodesOf(13, 'train').filter(({ turns }) => turns.length > 2)[0];
const at = (turns: number, tokens?: number): WatchedEpisode => watchedEpisode(episode, turns, tokens);
const facts = (): string => root.querySelector('.live-facts')!.textContent;

it('appends tokens to the existing ones, first of the thought, then of the answer', async () => {
  const host = await open('playing');
  host.send(liveEpisode, { episode: at(1, 3) });
  const turn = root.querySelectorAll('.live-turn')[1];
  const first = turn.querySelector('.token');
  const { tokens } = at(1, 200).turns[1];
  host.send(liveTokens, { id: episode.id, turn: 2, at: 3, tokens: tokens.slice(3) });
  expect(turn.querySelector('.token')).toBe(first); // existing elements stay
  const said = (block: string) => turn.querySelector(`.${block}`)!.textContent;
  const [thought, answer] = `<think>${tokens.map(({ text }) => text).join('')}`.split(/(?<=<\/think>)/);
  expect([said('thought'), said('answer')]).toEqual([thought, answer]);
  expect(turn.querySelector('.caret')).not.toBeNull();

  host.send(liveEpisode, { episode: at(2) });
  expect(turn.querySelector('.caret')).toBeNull();
  expect(turn.querySelector('.outcome')!.textContent).toContain('reward');
  expect([...turn.querySelectorAll('.chip')].map(chip => chip.textContent)).toEqual(episode.turns[1].executed);
});

it('drops tokens of a turn or an episode that it does not show', async () => {
  const host = await open('playing');
  host.send(liveEpisode, { episode: at(1, 3) });
  const before = root.textContent;
  const tokens = [{ text: 'stray', logprob: -1 }];
  host.send(liveTokens, { id: 'train-000099-g000-m00', turn: 2, at: 3, tokens });
  host.send(liveTokens, { id: episode.id, turn: 1, at: 3, tokens });
  expect(root.textContent).toBe(before);
});

it('keeps a finished episode visible for a moment, then shows the next', async () => {
  const host = await open('playing');
  host.send(liveEpisode, { episode: at(episode.turns.length) });
  expect(root.querySelector('.verdict')!.textContent).toMatch(/^(Solved|Not solved) · return/);
  const { reward, penalty } = at(episode.turns.length);
  expect(root.querySelector('.verdict')!.textContent).toContain(
    `return ${formatSigned(reward)} · score ${formatSigned(reward + penalty)}`,
  );
  expect([...root.querySelectorAll('.earned')].at(-1)!.textContent).toContain(`return ${formatSigned(reward)}`);
  vi.useFakeTimers();
  const next = { ...at(0, 2), id: 'train-000013-g005-m01', group_id: 5 };
  host.send(liveEpisode, { episode: next });
  expect(facts()).toContain(`group ${episode.group_id}`);
  vi.advanceTimersByTime(3000);
  expect(facts()).toContain('group 5');
  expect(root.querySelectorAll('.live-turn')).toHaveLength(1);
});

it('names the role of each turn, and shows returns and outcome by role', async () => {
  const host = await open('playing');
  host.send(liveEpisode, { episode: watchedGame(3) });
  vi.useFakeTimers();
  vi.advanceTimersByTime(3000);
  expect(all('.live-turn h3')).toEqual(['Turn 1, first', 'Turn 2, second']);
  host.send(liveEpisode, { episode: watchedGame() });
  expect(all('.live-turn h3')).toEqual(['Turn 1, first', 'Turn 2, second', 'Turn 3, first']);
  expect(all('.earned').map(text => /return.*/.exec(text)![0])).toEqual([
    'return of first 0',
    'return of second −1',
    'return of first +1',
  ]);
  expect(root.querySelector('.verdict')!.textContent).toBe(
    'Solved · first ✓ return +1, score +1 · second ✗ return −1, score −1',
  );
});

it('stays with the episode while following is off, until it is on again', async () => {
  const host = await open('playing');
  host.send(liveEpisode, { episode: at(1, 3) });
  press('f');
  host.send(liveEpisode, { episode: { ...at(0, 2), id: 'train-000013-g005-m01', group_id: 5 } });
  expect(facts()).toContain(`group ${episode.group_id}`);
  expect(root.querySelector('.live-phase')!.textContent).toContain('Another episode is running');
  expect(root.querySelector('[aria-pressed]')!.getAttribute('aria-pressed')).toBe('false');
  press('f');
  expect(facts()).toContain('group 5');
  expect(host.getState()).toMatchObject({ view: { follow: true } });
});

it("shows the trainer's activity between rollouts, above the last episode", async () => {
  const host = await open('playing');
  host.send(liveEpisode, { episode: at(episode.turns.length) });
  host.send(liveEpisode, { episode: null });
  host.send(liveRun, { run: runAt(12, 200, { phase: 'update' }) });
  expect(root.querySelector('.live-phase')!.textContent).toMatch(/^Updating the policy/);
  expect(root.querySelector('.verdict')).not.toBeNull();
});

it('without an episode it explains why, and what can be done', async () => {
  const host = await open('paused');
  expect(all('.notice h2')).toEqual(['The run is paused']);
  root.querySelector<HTMLElement>('.notice vscode-button')!.click();
  expect(host.sent).toContainEqual({ method: 'live/command', params: { command: 'resume' } });
  host.send(liveEpisode, { episode: at(0, 2) });
  expect(all('.notice')).toEqual([]);
  expect(root.querySelectorAll('.live-turn')).toHaveLength(1);
});

it('requests the selected tag, and the stored one', async () => {
  const kept = { folder: '/runs/one', schema: 1, view: { tag: 'FrozenLake', follow: true } };
  const asked: unknown[] = [];
  const memory = liveHost('playing');
  const host = pageHost({ answer: (method, params) => (asked.push(params), memory.answer(method, params)) }, kept);
  startLive(host, root);
  await settle();
  const choice = root.querySelector<HTMLElement & { value: string }>('vscode-dropdown')!;
  choice.value = '';
  choice.dispatchEvent(new Event('change'));
  await settle();
  expect(asked).toEqual([{ tag: 'FrozenLake' }, {}]);
});

it('an answer that did not parse, and unknown actions, are shown as such', async () => {
  const host = await open('playing');
  const { turns, ...rest } = at(2);
  const changed = turns.map((turn, i) => ({
    ...turn,
    outcome: { ...turn.outcome!, answer: i === 0 ? null : 'fly', executed: [] },
  }));
  host.send(liveEpisode, { episode: { ...rest, turns: changed } });
  expect(all('.warning').slice(0, 2)).toEqual([
    'The answer could not be parsed; no action was executed.',
    'The answer contains no valid action.',
  ]);
});

it('says that tokens of a trainer on another machine cannot be shown, unless it is connected', async () => {
  const host = await open('elsewhere');
  expect(root.textContent).toContain('The trainer runs on another machine');
  expect(root.textContent).toContain('Tokens are shown only by an editor on node-7');
  host.send(liveTags, { tags: ['FrozenLake'] });
  expect(root.textContent).toContain('Environments of step 13 are being reset.');
});

it('every phase and every state has a text', () => {
  const phases = ['rollout', 'update', 'validation', 'checkpoint', 'download', 'idle'];
  const titles = phases.map(phase => phaseLabels(runAt(12, 200, { phase }), false, true).title);
  const states = (['paused', 'stopping', 'stopped', 'finished', 'failed', 'starting'] as const).map(
    state => phaseLabels(runAt(12, 200, { state }), false, true).title,
  );
  expect(new Set([...titles, ...states]).size).toBe(12);
  const rollout = (chosen: boolean) => phaseLabels(runAt(12, 200, { phase: 'rollout' }), chosen, true).text;
  expect([rollout(false), rollout(true)]).toEqual([
    'Environments of step 13 are being reset.',
    'Environments of step 13 are being reset. If no episode appears, no environment of this step has the selected tag.',
  ]);
  expect(phaseLabels({ ...runAt(12, 200), live: false }, false, true)).toMatchObject({ action: 'resume' });
});

it('shows the pictures of the states, below their texts', async () => {
  const host = await open('playing');
  const url = 'data:image/png;base64,AAAA';
  const pictured = at(1, 3);
  Object.assign(pictured.turns[0], { state: 'Look: <image>', pictures: [url] });
  Object.assign(pictured.turns[1], { state: '<image>', pictures: [null] });
  host.send(liveEpisode, { episode: pictured });
  const states = [...root.querySelectorAll('.live-turn .live-state')];
  const shown = states.map(state => [
    state.textContent.trim(),
    [...state.querySelectorAll<LazyPicture>('lazy-picture')].map(({ src }) => src),
  ]);
  expect(shown).toEqual([
    ['Look:', [url]],
    ['<image>', []],
  ]);
});
