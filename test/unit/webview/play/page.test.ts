// @vitest-environment happy-dom
import { describe, expect, it } from 'vitest';
import type { NotificationType } from 'vscode-messenger-common';
import type { PlayDo, PlayReply, PlaySession } from '../../../../extension/protocol/environment-tools';
import { playCommand, playDo, playReady, playStale } from '../../../../extension/protocol/play-page';
import { actionKeys } from '../../../../webview/play/action-keys';
import { changedPieces } from '../../../../webview/play/observation';
import { startPlay } from '../../../../webview/play/page';
import type { Host } from '../../../../webview/shared/host';
import { roleSession } from '../../../e2e/preview/roles-host';
import { freshPage, press, settle } from '../page-host';

const step = (name: string, observation: string, more = {}) => ({
  action: 1,
  name,
  observation,
  reward: -0.1,
  terminated: false,
  truncated: false,
  info: {},
  ...more,
});
const session = (more: Partial<PlaySession> = {}): PlaySession => ({
  environment: 'maze',
  source: '/w/envs/maze/maze.ts',
  version: '0123456789abcdef',
  files: [],
  config: { size: 4 },
  seed: 7,
  instruction: 'Reach the goal.',
  legend: { P: 'you' },
  actions: [
    { id: 1, name: 'Left' },
    { id: 4, name: 'Up' },
    { id: 9, name: 'Wait' },
  ],
  has_solver: true,
  first: { observation: '_P\nG_' },
  steps: [],
  total: 0,
  over: false,
  ...more,
});

async function open(replies: PlayReply[]) {
  const root = freshPage();
  const asked: PlayDo[] = [];
  const sent: unknown[] = [];
  const handlers = new Map<string, (params: never) => void>();
  const host: Host = {
    async request(type, params) {
      if (type.method === playDo.method) asked.push(params as PlayDo);
      else expect(type.method).toBe(playReady.method);
      return structuredClone(replies.length > 1 ? replies.shift() : replies[0]) as never;
    },
    notify: (type, params) => void sent.push([type.method, params]),
    onNotify: (type, handler) => void handlers.set(type.method, handler),
    getState: () => undefined,
    setState: () => undefined,
  };
  const send = <P>(type: NotificationType<P>, params: P) => handlers.get(type.method)?.(params as never);
  startPlay(host, root);
  await settle();
  const text = (selector: string) => root.querySelector(selector)?.textContent ?? '';
  const button = (label: string) =>
    [...root.querySelectorAll<HTMLElement>('vscode-button, button')].find(each => each.textContent === label)!;
  return { root, asked, sent, send, text, button };
}

describe('keys', () => {
  it('are arrows and letters for directions, and digits in order for all actions', () => {
    expect([...actionKeys(session().actions)]).toEqual([
      [1, ['ArrowLeft', 'a', '1']],
      [4, ['ArrowUp', 'w', '2']],
      [9, ['3']],
    ]);
    expect(
      actionKeys([
        { id: 0, name: 'push left' },
        { id: 1, name: 'pull left' },
      ]).get(1),
    ).toEqual(['2']);
    expect(actionKeys([{ id: 0, name: 'Upload' }]).get(0)).toEqual(['1']);
  });

  it('act if they have an action, and go to the text field while typing', async () => {
    const { asked, root } = await open([{ id: 0, session: session() }]);
    press('ArrowLeft');
    await settle();
    press('3');
    await settle();
    press('x');
    press('a', root.querySelector('.seed')!);
    await settle();
    expect(asked).toEqual([
      { do: 'act', action: 1 },
      { do: 'act', action: 9 },
    ]);
  });

  it('request only what is possible', async () => {
    const { asked } = await open([{ id: 0, session: session() }]);
    press('u');
    press('h');
    await settle();
    press('n');
    await settle();
    expect(asked).toEqual([{ do: 'hint' }, { do: 'restart', seed: 8 }]);
  });

  it('are dropped while the environment works', async () => {
    const { asked } = await open([{ id: 0, session: session() }]);
    press('ArrowLeft');
    press('ArrowLeft');
    await settle();
    expect(asked).toHaveLength(1);
  });
});

describe('the episode', () => {
  const over = session({
    steps: [step('Left', 'P_\nG_'), step('Up', 'P_\nG_', { reward: 1, terminated: true, info: { success: true } })],
    over: true,
  });

  it('shows the outcome of each action, and accepts none after its end', async () => {
    const { asked, text, root } = await open([{ id: 0, session: over }]);
    expect(text('.outcome-line')).toMatch(/reward \+1\s*return \+0\.900\s*Terminated\s*success true/);
    expect([...root.querySelectorAll('.step-row')].map(row => row.textContent)).toEqual([
      '0seed 7',
      '1Left−0.100',
      '2Upterminated+1',
    ]);
    press('ArrowLeft');
    root.querySelector<HTMLElement>('.action')!.click();
    await settle();
    expect(asked).toEqual([]);
    expect(root.querySelector('.action')!.getAttribute('aria-disabled')).toBe('true');
    expect(root.querySelector('.action')!.hasAttribute('disabled')).toBe(false); // it would swallow the next keys
  });

  it('shows a selected earlier state, with its changes marked', async () => {
    const { root, text } = await open([{ id: 0, session: over }]);
    root.querySelectorAll<HTMLElement>('.step-row')[1].click();
    expect(text('.observation mark')).toBe('P_');
    expect(text('.past')).toContain('After step 1 of 2');
    root.querySelector<HTMLElement>('.past button')!.click();
    expect(root.querySelector('.past')).toBeNull();
  });

  it('shows pictures', async () => {
    const { root } = await open([{ id: 0, session: session({ first: { observation: '<image>', images: ['AAAA'] } }) }]);
    expect(root.querySelector('.observation img')!.getAttribute('src')).toBe('data:image/png;base64,AAAA');
    expect(root.querySelector('.observation pre')).toBeNull();
  });

  it('accepts a typed answer when actions have no names', async () => {
    const { root, asked } = await open([{ id: 0, session: session({ actions: [], has_solver: false }) }]);
    const field = root.querySelector<HTMLElement & { value: string }>('.answer')!;
    field.value = '1 + 1';
    press('Enter', field);
    await settle();
    expect(asked).toEqual([{ do: 'act', action: '1 + 1' }]);
  });

  it('marks changed characters only between boards of the same shape', () => {
    expect(changedPieces('aXc', 'abc')).toEqual([
      { text: 'a', changed: false },
      { text: 'X', changed: true },
      { text: 'c', changed: false },
    ]);
    expect(changedPieces('abc', 'ab')).toEqual([{ text: 'abc', changed: false }]);
    expect(changedPieces('a\nbc', 'ab\nc')).toEqual([{ text: 'a\nbc', changed: false }]);
  });
});

describe('roles', () => {
  it('show whose turn is next, what each has earned, and its instruction first', async () => {
    const { text, root } = await open([{ id: 0, session: roleSession(1) }]);
    expect(text('.turn-of')).toBe('Turn of second');
    expect(text('.outcome-line')).toMatch(/return of first 0\s*return of second 0/);
    const titles = [...root.querySelectorAll('.side-section h2')].map(each => each.textContent);
    expect(titles).toEqual(['Steps (1)', 'Instruction of second', 'Instruction of first', 'Configuration']);
    expect(text('.instruction')).toContain('You play Nim and answer.');
    root.querySelectorAll<HTMLElement>('.step-row')[0].click();
    expect(text('.turn-of')).toBe('Turn of first');
    expect(text('.instruction')).toContain('You play Nim and begin.');
  });

  it('have returns of their own at the end, and no sum over roles', async () => {
    const { text, root } = await open([{ id: 0, session: roleSession(3) }]);
    expect(root.querySelector('.turn-of')).toBeNull();
    expect(text('.outcome-line')).toMatch(/return of first \+1 \(\+1\)\s*return of second −1 \(−1\)\s*Terminated/);
    const rows = [...root.querySelectorAll('.step-row')];
    expect(rows.map(row => row.textContent)).toEqual(['0seed 7', '1first A10', '2second B10', '3first A1terminated+1']);
    expect(rows[3].querySelector('.reward')!.getAttribute('title')).toBe('first +1, second −1');
  });

  it('without instructions of their own play by that of the environment', async () => {
    const plain = roleSession(0);
    const roles = plain.roles!.map(({ name, total }) => ({ name, total }));
    const { root } = await open([{ id: 0, session: { ...plain, roles, instruction: 'Take objects.' } }]);
    expect([...root.querySelectorAll('.instruction')].map(each => each.textContent)).toEqual(['Take objects.']);
  });
});

describe('the code', () => {
  it('that was saved is offered, and its differences are shown', async () => {
    const reloaded = { from: 'x', differences: [{ step: 1, what: 'reward' as const, before: '−1', after: '0' }] };
    const { asked, send, text, button } = await open([
      { id: 0, session: session() },
      { id: 1, session: session({ reloaded }) },
    ]);
    send(playStale, { file: 'envs/maze/maze.ts' });
    expect(text('.play-message')).toContain('envs/maze/maze.ts was saved');
    button('Reload').click();
    await settle();
    expect(asked).toEqual([{ do: 'reload' }]);
    expect(text('.play-message')).toBe('');
    expect(text('.differences')).toContain('step 1 · reward');
  });

  it('that fails is reported with its line, and the session stays', async () => {
    const error = { message: 'environment maze (maze.ts:3) threw "x"', at: '/w/maze.ts:3' };
    const { sent, text, button } = await open([
      { id: 0, session: session() },
      { id: 1, session: session(), error },
    ]);
    press('ArrowLeft');
    await settle();
    expect(text('.problem')).toContain('threw "x"');
    button('Open the line').click();
    expect(sent).toEqual([[playCommand.method, { command: 'source', at: '/w/maze.ts:3' }]]);
  });

  it('that never loaded offers a retry', async () => {
    const { asked, text, button } = await open([
      { id: 0, error: { message: 'does not build' } },
      { id: 1, session: session() },
    ]);
    expect(text('.notice')).toContain('does not build');
    button('Reload').click();
    await settle();
    expect(asked).toEqual([{ do: 'reload' }]);
    expect(text('h1')).toBe('maze');
  });
});
