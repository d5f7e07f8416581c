// The Live page: one episode of a running run as it grows, token by token, then the next one. The host sends updates;
// the page decides what stays in view. While following, it scrolls with new content and switches to the next episode
// shortly after one ends; otherwise it stays in place. Between rollouts it shows the trainer's phase.
import { liveCommand, liveEpisode, liveReady, liveRun, liveTags, liveTokens } from '../../extension/protocol/live-page';
import type { LiveSnapshot } from '../../extension/protocol/live-page';
import type { RunSummary } from '../../extension/protocol/pages';
import { progressOf } from '../../extension/run-data/run-progress';
import { replaceTail } from '../../extension/common/lists';
import type { WatchedEpisode } from '../../extension/protocol/trainer-link';
import { h, replaceChildren, setAttribute, setText } from '../shared/dom';
import { formatSigned } from '../shared/format';
import { messageOf, type Host } from '../shared/host';
import { onKeys } from '../shared/keyboard';
import { notice, skeleton } from '../shared/notices';
import { statusDot } from '../shared/run-status';
import { viewState } from '../shared/state';
import { onThemeChange, readTheme } from '../shared/theme';
import { button, dropdown } from '../shared/toolkit';
import { phaseLabels } from './phase-labels';
import { stateView, TurnView } from './turn';

/** Milliseconds for which a finished episode stays in view. */
const lingerMs = 2500;
/** Maximum distance in pixels from the end of the page that still counts as the end. */
const nearEnd = 24;

export function startLive(host: Host, root: HTMLElement): void {
  const state = viewState(host, 1, { tag: '', follow: true });
  let run: RunSummary | undefined;
  let tags: string[] = [];
  /** The latest episode sent by the host; null between rollouts. */
  let received: WatchedEpisode | null = null;
  let shown: WatchedEpisode | undefined;
  let turns: TurnView[] = [];
  let theme = readTheme();
  let lingering: ReturnType<typeof setTimeout> | undefined;
  /** The tags currently offered for selection, serialized. */
  let offered = '';

  const title = h('h1');
  const dot = statusDot();
  const steps = h('span', { class: 'muted' });
  const choice = h('span', { class: 'choice' });
  const follow = button({
    label: 'Follow',
    title: 'Follow new tokens and switch to the next episode ( f )',
    onClick: () => setFollow(!state.value.follow),
  });
  const phase = h('p', { class: 'live-phase', role: 'status' });
  const facts = h('p', { class: 'live-facts' });
  const list = h('div', { class: 'live-turns' });
  const end = h('div', { class: 'live-end' });
  const spoken = h('p', { class: 'visually-hidden', role: 'status' });
  const top = h(
    'header',
    { class: 'live-top' },
    title,
    dot.element,
    steps,
    h(
      'span',
      { class: 'live-tools' },
      choice,
      follow,
      button({
        label: 'Episodes',
        title: 'Open the stored episodes of the run ( e )',
        onClick: () => command('episodes'),
      }),
    ),
  );
  const main = h('main', { class: 'live-main', tabindex: '0', 'aria-label': 'Episode' }, phase, facts, list, end);
  const empty = h('main', { class: 'live-main live-empty' });
  const layout = h('div', { class: 'live' }, top, main, spoken);

  const command = (name: 'episodes' | 'pause' | 'resume' | 'log'): void => host.notify(liveCommand, { command: name });

  function load(): void {
    if (!run) replaceChildren(root, skeleton('skeleton-live', 3, 'Connecting to the run'));
    const { tag } = state.value;
    host.request(liveReady, tag === '' ? {} : { tag }).then(begin, fail);
  }

  function fail(error: unknown): void {
    const again = { label: 'Try again', run: load };
    const text = messageOf(error);
    replaceChildren(root, notice({ kind: 'error', title: 'Could not connect to the run', text, action: again }));
  }

  function begin(snapshot: LiveSnapshot): void {
    ({ run, tags } = snapshot);
    received = snapshot.episode;
    state.keepFolder(run.folder);
    replaceChildren(root, layout);
    showChoice();
    setFollow(state.value.follow);
    if (received) show(received);
    draw();
  }

  /** Switches to the latest episode, at once or after the finished one has been in view long enough. */
  function advance(): void {
    if (!received || received.id === shown?.id) {
      if (received) show(received);
      return draw();
    }
    if (shown && !state.value.follow) return draw();
    if (shown?.over) lingering ??= setTimeout(showNext, lingerMs);
    else showNext();
    draw();
  }

  function showNext(): void {
    clearTimeout(lingering);
    lingering = undefined;
    if (received) show(received);
    draw();
  }

  /** Draws the available part of an episode. */
  function show(episode: WatchedEpisode): void {
    if (episode.id !== shown?.id) {
      turns = [];
      list.replaceChildren();
    }
    shown = episode;
    let running = 0;
    episode.turns.forEach((turn, i) => {
      if (!turns[i]) {
        turns[i] = new TurnView(episode, turn, theme);
        list.append(turns[i].element);
      }
      running += turn.outcome?.reward ?? 0;
      turns[i].update(turn, running);
    });
    drawFacts(episode);
    drawEnd(episode);
    scroll();
  }

  function drawFacts({
    id,
    mode,
    step,
    tag,
    group_id,
    member,
    seed,
    environment,
    turns: { length },
  }: WatchedEpisode): void {
    const part = (label: string, value: string, hint?: string) =>
      h('span', { title: hint ?? null }, h('span', { class: 'muted' }, `${label} `), value);
    const kind = mode === 'val' ? `validation after step ${step}` : `step ${step}`;
    replaceChildren(
      facts,
      h('strong', { title: id }, tag),
      h('span', {}, kind),
      part('seed', String(seed)),
      part('group', String(group_id)),
      part('member', String(member)),
      part('version', environment.version.slice(0, 8), 'Hash of the environment’s code'),
      length === 0 && h('span', { class: 'muted' }, 'being reset'),
    );
  }

  function drawEnd(episode: WatchedEpisode): void {
    if (!episode.over) return end.replaceChildren();
    const { success, reward, penalty, error } = episode;
    const outcomeLabel = error !== undefined ? 'Ended by an environment error' : success ? 'Solved' : 'Not solved';
    const value = `return ${formatSigned(reward)} · score ${formatSigned(reward + penalty)}`;
    replaceChildren(
      end,
      stateView(episode, episode.turns.length, theme),
      h('p', { class: success ? 'verdict success' : 'verdict' }, h('strong', {}, outcomeLabel), ` · ${value}`),
      error !== undefined && h('p', { class: 'warning' }, error),
    );
    setText(spoken, `${outcomeLabel}, ${value}`);
  }

  function draw(): void {
    if (!run) return;
    setText(title, run.name);
    dot.update(run);
    const { unit, done, of } = progressOf(run.status);
    setText(steps, `${unit} ${done} of ${of}`);
    if (!shown) {
      drawNothing(run);
      return;
    }
    if (main.parentElement !== layout) layout.replaceChild(main, empty);
    const waits = received === null;
    const next = !waits && received!.id !== shown.id;
    const { title: what, text } = phaseLabels(run, isTagChosen());
    setText(
      phase,
      waits
        ? `${what}. ${text}`
        : next && !state.value.follow
          ? 'Another episode is running: turn on Follow to see it.'
          : '',
    );
  }

  function drawNothing(now: RunSummary): void {
    const { title: what, text, action } = phaseLabels(now, isTagChosen());
    const labels = { resume: 'Resume', episodes: 'Episodes', log: 'Log' };
    const offer = action && { label: labels[action], run: () => command(action) };
    replaceChildren(empty, notice({ kind: 'empty', title: what, text, action: offer }));
    if (empty.parentElement !== layout) layout.replaceChild(empty, main);
  }

  function showChoice(): void {
    const form = tags.join();
    if (form === offered) return;
    offered = form;
    const { tag } = state.value;
    const control = dropdown({
      label: 'Environment tag to watch',
      choices: [['', 'All tags'], ...tags.map((name): [string, string] => [name, name])],
      value: tags.includes(tag) ? tag : '',
      onChange(chosen) {
        state.change({ tag: chosen });
        load();
      },
    });
    replaceChildren(choice, tags.length > 1 && control);
  }

  const isTagChosen = (): boolean => tags.includes(state.value.tag);

  function setFollow(on: boolean): void {
    state.change({ follow: on });
    Object.assign(follow, { appearance: on ? 'primary' : 'secondary' }); // the toolkit reads the attribute only once
    setAttribute(follow, 'aria-pressed', String(on));
    if (!on) {
      clearTimeout(lingering);
      lingering = undefined;
      return draw();
    }
    advance();
    scroll();
  }

  function scroll(): void {
    if (state.value.follow) main.scrollTop = main.scrollHeight;
  }

  // Scrolling back stops following.
  let [at, high] = [0, 0];
  main.addEventListener('scroll', () => {
    const back = main.scrollTop < at - 1 && main.scrollHeight >= high;
    const atEnd = main.scrollHeight - main.scrollTop - main.clientHeight < nearEnd;
    [at, high] = [main.scrollTop, main.scrollHeight];
    if (back && !atEnd && state.value.follow) setFollow(false);
  });

  host.onNotify(liveRun, message => {
    ({ run } = message);
    draw();
  });
  host.onNotify(liveTags, message => {
    ({ tags } = message);
    showChoice();
  });
  host.onNotify(liveEpisode, ({ episode }) => {
    received = episode;
    advance();
  });
  host.onNotify(liveTokens, ({ id, turn, at: from, tokens }) => {
    const newest = received?.id === id ? received.turns.at(-1) : undefined;
    if (!newest || newest.turn !== turn || newest.outcome) return;
    replaceTail(newest.tokens, from, tokens);
    if (shown?.id === id) show(received!);
  });
  onThemeChange(now => {
    theme = now;
    const episode = shown;
    shown = undefined;
    if (episode) show(episode);
  });
  onKeys(document, { f: () => setFollow(!state.value.follow), e: () => command('episodes') });
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') load();
  });
  load();
}
