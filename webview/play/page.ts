// The Play page: the user plays an environment in the model's place. The host owns the session and replies to each
// request with its state; the page shows the state and the key bindings. One request at a time: keys pressed meanwhile
// are dropped, not queued.
import type { PlayDo, PlayReply, PlaySession, Shown } from '../../extension/protocol/environment-tools';
import { playCommand, playDo, playReady, playStale } from '../../extension/protocol/play-page';
import { h, replaceChildren, setAttribute, setText, type Child } from '../shared/dom';
import { formatNumber, formatSigned } from '../shared/format';
import { messageOf, type Host } from '../shared/host';
import { isTyping } from '../shared/keyboard';
import { notice, skeleton } from '../shared/notices';
import { viewState } from '../shared/state';
import { button, textField } from '../shared/toolkit';
import { actionKeys, shownKey } from './action-keys';
import { observationView } from './observation';
import { sideView } from './side';

export function startPlay(host: Host, root: HTMLElement): void {
  const state = viewState(host, 1, {});
  let reply: PlayReply | undefined;
  /** The step whose state is shown; undefined for the newest. */
  let looked: number | undefined;
  let stale: string | undefined;
  let busy = false;
  /** The actions that currently have buttons, serialized. */
  let drawn = '';

  const answer = textField({
    label: 'Your answer',
    placeholder: 'Type an answer, then press Enter',
    class: 'answer',
    onInput: () => undefined,
  });
  answer.addEventListener('keydown', event => {
    if ((event as KeyboardEvent).key !== 'Enter') return;
    event.preventDefault();
    void act(answer.value);
  });
  const send = button({ label: 'Answer', primary: true, onClick: () => void act(answer.value) });
  const seed = textField({
    label: 'Seed',
    class: 'seed',
    title: 'Seed of the episode; press Enter to start it',
    onInput: () => undefined,
  });
  seed.addEventListener('keydown', event => {
    if ((event as KeyboardEvent).key !== 'Enter') return;
    event.preventDefault();
    if (/^\d{1,15}$/.test(seed.value.trim())) void ask({ do: 'restart', seed: Number(seed.value) });
  });

  const tool = (label: string, key: string, hint: string, onClick: () => void) =>
    button({ label, title: `${hint} ( ${key} )`, onClick });
  const tools = {
    another: tool('New seed', 'n', 'Start an episode with another seed', () => wishes['n']()),
    restart: tool('Restart', 'r', 'Restart this episode', () => wishes['r']()),
    undo: tool('Undo', 'u', 'Undo the last action', () => wishes['u']()),
    hint: tool('Hint', 'h', 'Show what the solver would do', () => wishes['h']()),
    solve: tool('Solve', 'Shift+S', 'Let the solver play to the end', () => wishes['S']()),
    reload: tool('Reload', 'l', 'Rebuild the source and replay this episode with it', () => wishes['l']()),
  };
  const title = h('h1');
  const hash = h('span', { class: 'muted version', title: 'Version: the hash of its code' });
  const top = h(
    'header',
    { class: 'play-top' },
    title,
    hash,
    h('label', { class: 'seed-label' }, h('span', { class: 'muted' }, 'seed'), seed),
    h('span', { class: 'tools' }, tools.another, tools.restart, tools.undo, tools.hint, tools.solve),
    h(
      'span',
      { class: 'tools tools-end' },
      tools.reload,
      button({
        label: 'Source',
        title: 'Open the environment’s file',
        onClick: () => host.notify(playCommand, { command: 'source' }),
      }),
      button({
        label: 'Check',
        title: 'Check the environment against the contract',
        onClick: () => host.notify(playCommand, { command: 'check' }),
      }),
    ),
  );
  const message = h('div', { class: 'play-message', role: 'alert' });
  const board = h('main', { class: 'play-board' });
  const outcome = h('div', { class: 'play-outcome', role: 'status' });
  const controls = h('div', { class: 'play-controls' });
  const side = h('aside', { class: 'play-side', 'aria-label': 'Episode' });
  const layout = h(
    'div',
    { class: 'play' },
    top,
    message,
    h('div', { class: 'play-main' }, board, outcome, controls),
    side,
  );

  function load(): void {
    if (!reply) replaceChildren(root, skeleton('skeleton-play', 3, 'Starting the environment'));
    host.request(playReady, null).then(show, fail);
  }

  function fail(error: unknown): void {
    const again = { label: 'Try again', run: load };
    replaceChildren(
      root,
      notice({ kind: 'error', title: 'The environment could not be started', text: messageOf(error), action: again }),
    );
  }

  async function ask(asked: PlayDo): Promise<void> {
    if (busy) return;
    setBusy(true);
    try {
      show(await host.request(playDo, asked));
      if (asked.do === 'reload') stale = undefined;
    } catch (error) {
      fail(error);
    } finally {
      setBusy(false);
    }
    draw();
  }

  async function act(action: number | string): Promise<void> {
    const session = reply?.session;
    if (!session || session.over || busy) return;
    const before = session.steps.length;
    await ask({ do: 'act', action });
    if ((reply?.session?.steps.length ?? 0) > before) answer.value = '';
    if (typeof action === 'string' && session.actions.length === 0) answer.focus();
  }

  function setBusy(now: boolean): void {
    busy = now;
    setAttribute(layout, 'aria-busy', now ? 'true' : null);
  }

  function show(newest: PlayReply): void {
    reply = newest;
    looked = undefined;
    state.keepFolder(document.body.dataset.run ?? '');
    draw();
  }

  function draw(): void {
    if (!reply) return;
    const { session, error } = reply;
    if (!session) return drawNothing(error);
    if (layout.parentElement !== root) replaceChildren(root, layout);
    drawTop(session);
    drawMessage(error);
    const viewed = looked ?? session.steps.length;
    const states: Shown[] = [session.first, ...session.steps];
    replaceChildren(board, observationView(states[viewed], states[viewed - 1]));
    drawOutcome(session, viewed);
    drawControls(session);
    replaceChildren(side, ...sideView(session, viewed, { view }));
    const list = side.querySelector('.steps');
    if (list && looked === undefined) list.scrollTop = list.scrollHeight;
  }

  function drawNothing(error: PlayReply['error']): void {
    const action = { label: 'Reload', run: () => void ask({ do: 'reload' }) };
    const text = error?.message ?? 'The environment did not start.';
    replaceChildren(root, notice({ kind: 'error', title: 'The environment does not load', text, action }));
  }

  function drawTop({ environment, version, seed: now, has_solver, steps, over }: PlaySession): void {
    if (document.activeElement !== seed) seed.value = String(now);
    setText(title, environment);
    setText(hash, version.slice(0, 8));
    setEnabled(tools.restart, steps.length > 0);
    setEnabled(tools.undo, steps.length > 0);
    setEnabled(tools.hint, !over);
    setEnabled(tools.solve, !over);
    for (const tool of [tools.hint, tools.solve]) setAttribute(tool, 'hidden', has_solver ? null : '');
    setAttribute(tools.another, 'appearance', over ? 'primary' : 'secondary');
    setAttribute(tools.reload, 'appearance', stale === undefined ? 'secondary' : 'primary');
  }

  function drawMessage(error: PlayReply['error']): void {
    const open =
      error?.at !== undefined &&
      link('Open the line', () => host.notify(playCommand, { command: 'source', at: error.at }));
    const changed = !error &&
      stale !== undefined && [
        `${stale} was saved. `,
        link('Reload', () => void ask({ do: 'reload' })),
        ' replays this episode on the new code.',
      ];
    replaceChildren(
      message,
      ...(error ? [h('p', { class: 'problem' }, error.message, open && ' ', open)] : []),
      changed && h('p', {}, ...changed),
    );
  }

  function drawOutcome(session: PlaySession, viewed: number): void {
    const step = viewed > 0 ? session.steps[viewed - 1] : undefined;
    const total = session.steps.slice(0, viewed).reduce((sum, { reward }) => sum + reward, 0);
    const facts = Object.entries(step?.info ?? {}).map(([key, value]) =>
      h(
        'span',
        { class: 'fact' },
        h('span', { class: 'muted' }, `${key} `),
        typeof value === 'number' ? formatNumber(value) : JSON.stringify(value),
      ),
    );
    const end = step?.terminated ? 'Terminated' : step?.truncated ? 'Truncated' : undefined;
    const success = step?.info['success'];
    const endClass = success === true ? 'end success' : success === false ? 'end missed' : 'end';
    const hint: Child =
      session.hint !== undefined &&
      h(
        'p',
        { class: 'hint' },
        h('span', { class: 'muted' }, 'Solver '),
        session.hint === null ? 'finds no way from here' : session.hint.join(' · ') || 'has nothing left to do',
      );
    replaceChildren(
      outcome,
      h(
        'p',
        { class: 'outcome-line' },
        looked !== undefined &&
          viewed < session.steps.length &&
          h(
            'span',
            { class: 'past' },
            `After step ${viewed} of ${session.steps.length} `,
            link('back to now', () => view(session.steps.length)),
          ),
        step && h('span', {}, 'reward ', h('strong', {}, formatSigned(step.reward))),
        h('span', {}, 'return ', h('strong', {}, formatSigned(total))),
        end !== undefined && h('span', { class: endClass }, end),
        ...facts,
      ),
      hint,
    );
  }

  function drawControls(session: PlaySession): void {
    setAttribute(answer, 'readonly', session.over ? '' : null);
    setEnabled(send, !session.over);
    const form = JSON.stringify(session.actions);
    if (form !== drawn) {
      drawn = form;
      replaceChildren(controls, ...(session.actions.length === 0 ? [answer, send] : actionButtons(session.actions)));
    }
    for (const element of controls.querySelectorAll<HTMLElement>('.action')) setEnabled(element, !session.over);
  }

  function actionButtons(actions: PlaySession['actions']): HTMLElement[] {
    const keys = actionKeys(actions);
    return actions.map(({ id, name }) => {
      const own = keys.get(id)!.map(shownKey);
      const hint = `${name} (${id})${own.length > 0 ? `: ${own.join(', ')}` : ''}`;
      const key = own.length > 0 && h('kbd', { 'aria-hidden': 'true' }, own[0]);
      const element = h('button', { class: 'action', type: 'button', title: hint }, key, name);
      element.addEventListener('click', () => void act(id));
      return element;
    });
  }

  function view(step: number): void {
    looked = step === reply?.session?.steps.length ? undefined : step;
    draw();
  }

  /** Makes a handler, for keys and buttons, that sends a request if it currently makes sense. */
  const wish = (asked: (session: PlaySession) => PlayDo | false) => () => {
    const what = reply?.session && asked(reply.session);
    if (what) void ask(what);
  };
  const undo = wish(({ steps }) => steps.length > 0 && { do: 'undo' });
  const wishes: Record<string, () => void> = {
    n: wish(({ seed }) => ({ do: 'restart', seed: another(seed) })),
    r: wish(() => ({ do: 'restart' })),
    u: undo,
    Backspace: undo,
    h: wish(({ has_solver, over }) => has_solver && !over && { do: 'hint' }),
    S: wish(({ has_solver, over }) => has_solver && !over && { do: 'solve' }),
    l: wish(() => ({ do: 'reload' })),
  };
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event)) return;
    const session = reply?.session;
    if (!session) return;
    const named = session.actions.find(({ id }) => actionKeys(session.actions).get(id)!.includes(event.key));
    if (!named && !Object.hasOwn(wishes, event.key)) return;
    event.preventDefault();
    if (named) void act(named.id);
    else wishes[event.key]();
  });

  host.onNotify(playStale, ({ file }) => {
    stale = file;
    draw();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') load();
  });
  load();
}

/** A seed that was probably not played before: the next one. */
const another = (seed: number): number => seed + 1;

/** Uses `aria-disabled`, because a focused element with `disabled` swallows all keys, including the editor's. */
function setEnabled(element: HTMLElement, enabled: boolean): void {
  setAttribute(element, 'aria-disabled', enabled ? null : 'true');
}

function link(label: string, run: () => void): HTMLElement {
  const element = h('button', { class: 'plain link', type: 'button' }, label);
  element.addEventListener('click', run);
  return element;
}
