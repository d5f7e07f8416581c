// @vitest-environment happy-dom
import { describe, expect, it, vi } from 'vitest';
import { addToIndex, indexLine } from '../../../../extension/run-data/episode-index-line';
import { EpisodeTable } from '../../../../extension/run-data/episode-table';
import {
  episodeOpen,
  episodesDataSet,
  episodesFound,
  episodesGrew,
  episodesReady,
  episodesSearch,
  episodeTrace,
} from '../../../../extension/protocol/episodes-page';
import { startEpisodes } from '../../../../webview/episodes/page';
import { episodesOf, hostileTexts, runAt } from '../../../e2e/preview/data';
import type { Scenario } from '../../../e2e/preview/memory-host';
import { freshPage, pageHost, press, settle } from '../page-host';

async function open(scenario: Scenario, kept?: unknown) {
  const root = freshPage();
  const host = pageHost(scenario, kept);
  startEpisodes(host, root);
  await settle();
  const rows = () => [...root.querySelectorAll<HTMLElement>('.episode-row')];
  const choose = async (index: number) => {
    click(rows()[index]);
    await settle();
  };
  const filter = async (line: string) => {
    const field = root.querySelector<HTMLElement & { value: string }>('.filter')!;
    field.value = line;
    field.dispatchEvent(new Event('input'));
    await settle();
  };
  const text = (selector: string) => root.querySelector(selector)?.textContent ?? '';
  const title = () => text('.episode-title h2');
  return { root, host, rows, choose, filter, text, title };
}
const click = (element: Element | null | undefined) =>
  element!.dispatchEvent(new MouseEvent('click', { bubbles: true }));
const episodes = episodesOf(140, 'train');

/** A message that a step's episodes have arrived. */
const grown = (step: number, from: number) => {
  const table = new EpisodeTable();
  const line = indexLine('train', step, 0);
  for (const episode of episodesOf(step, 'train')) addToIndex(line, episode, line.to + 1, 0);
  table.addLine(line);
  return { run: runAt(step, 200), epoch: 0, read: 1, from, rows: table.slice(0) };
};
/** The preview's run: 20 steps of 128 training episodes, two validations. */
const trained = 2560;
const all = trained + 256;

describe('the list', () => {
  it('shows the training episodes of all steps by groups, newest first, and renders only visible rows', async () => {
    const { root, rows, text } = await open('running');
    expect(text('.step-name')).toBe('step 140');
    expect(text('.step-row')).toBe('step 140128 episodes');
    expect(text('.group-row')).toMatch(/^group 0 CoordSokoban\d+\/16 solved · std [\d.]+$/);
    expect(rows().length).toBeLessThan(50);
    expect(root.querySelector<HTMLElement>('.list-body')!.style.height).toBe(`${(trained + 20 * 9) * 24}px`);
    expect(text('.list-facts')).toMatch(/^2560 episodes · [\d.]+ % success$/);
  });

  it('says above it which rollouts of another trainer are not shown', async () => {
    const { host, root } = await open('running');
    expect(root.querySelector('.left-out')).toBeNull();
    const sentence = '3 rollouts of step 2 are not shown';
    host.send(episodesGrew, { ...grown(141, trained), run: runAt(141, 200, { left_out: [sentence] }) });
    await settle();
    expect(root.querySelector('.side-head .left-out')!.textContent).toBe(`▲ Not everything is shown${sentence}`);
  });

  it('of a run of another trainer is exported as a data set: the listed episodes', async () => {
    const { root, host, filter } = await open('running');
    const trainer = { name: 'verl', adapter: 'verl', source: '/runs/verl' };
    host.send(episodesGrew, { ...grown(141, trained), run: { ...runAt(141, 200), trainer } });
    await settle();
    await filter('return>=1 turns:2');
    click([...root.querySelectorAll('.list-summary *')].find(each => each.textContent.trim() === 'Export data set…'));
    const [{ params }] = host.sent.filter(({ method }) => method === episodesDataSet.method);
    expect(params).toEqual({ filter: 'mode:train return>=1 turns:2' });
  });

  it('distinguishes episodes that are alone in their group by seed and, if there are several, by tag', async () => {
    const rowsOf = async (tags: string[]) => {
      const table = new EpisodeTable();
      const line = indexLine('val', 140, 0);
      const alone = episodesOf(140, 'val').slice(0, 4);
      alone.forEach((episode, i) =>
        addToIndex(
          line,
          { ...episode, group_id: i, member: 0, seed: 10_144 + i, tag: tags[i % tags.length] },
          line.to + 1,
          0,
        ),
      );
      table.addLine(line);
      const root = freshPage();
      const answer = () => ({ run: runAt(140, 200), epoch: 0, read: 1, rows: table.slice(0) });
      startEpisodes(pageHost({ answer }), root);
      await settle();
      return [...root.querySelectorAll('.episode-row .place')].map(place => place.textContent?.trim());
    };
    expect(await rowsOf(['Lake'])).toEqual(['seed 10144', 'seed 10145', 'seed 10146', 'seed 10147']);
    expect(await rowsOf(['Lake', 'Bandit'])).toEqual(
      ['Lake', 'Bandit', 'Lake', 'Bandit'].map((tag, i) => `seed ${10_144 + i} ${tag}`),
    );
  });

  it('never leaves out the column by which a narrow list is sorted', async () => {
    const { root } = await open('running');
    const left = () => [...root.querySelectorAll('.list-head .optional')].map(head => head.getAttribute('aria-label'));
    expect(left()).toEqual(['Sort by return', 'Sort by inv. (invalid actions)']);
    const counts = () =>
      new Set([...root.querySelectorAll('.episode-row')].map(row => row.querySelectorAll('.optional').length));
    expect(counts()).toEqual(new Set([2]));
    click(root.querySelector('[aria-label="Sort by return"]'));
    await settle();
    expect([left(), counts()]).toEqual([['Sort by score', 'Sort by inv. (invalid actions)'], new Set([2])]);
  });

  it('filters all steps while typing', async () => {
    const { filter, rows, text } = await open('running');
    await filter('success:true group:0 step:140');
    expect(rows()).toHaveLength(episodes.filter(episode => episode.success && episode.group_id === 0).length);
    await filter('step:138..139 member:0 group:0');
    expect([...document.querySelectorAll('.step-row span:first-child')].map(each => each.textContent)).toEqual([
      'step 139',
      'step 138',
    ]);
    await filter('group:99');
    expect([rows().length, text('.list-facts')]).toEqual([0, '0 of 2560 episodes']);
    expect(text('.side .notice h2')).toBe('No episode matches the filter');
    click(document.querySelector('.side .notice vscode-button'));
    await settle();
    expect([document.querySelector('.side .notice'), text('.list-facts')]).toEqual([
      null,
      expect.stringMatching(/^2560 episodes/),
    ]);
    await filter('id:g000-m02 step:140');
    expect(text('.group-row')).toMatch(/^group 0 CoordSokoban1 of 16 shown · \d+\/16 solved · std [\d.]+$/);
    await filter('sucess:true');
    expect(text('.filter-problem')).toContain('“sucess” is not a field');
    expect(text('.list-facts')).toContain('2560 episodes');
    await filter('mode:val');
    expect(text('.list-facts')).toContain('256 of 2816 episodes');
  });

  it('has the host search the texts of the otherwise matching episodes, each once', async () => {
    const { filter, host, rows } = await open('running');
    await filter('group:0 step:140 text:"GET STUCK"');
    const expected = episodes.filter(
      episode => episode.group_id === 0 && episode.turns.some(turn => turn.raw.includes('get stuck')),
    );
    expect(rows()).toHaveLength(expected.length);
    expect(expected.length).toBeGreaterThan(0);
    expect(expected.length).toBeLessThan(16);
    await filter('group:0 step:140 success:true text:"GET STUCK"');
    expect(rows()).toHaveLength(expected.filter(episode => episode.success).length);
    expect(host.asked.filter(method => method === episodesSearch.method)).toHaveLength(1);
    await filter('group:0 step:139..140 text:"GET STUCK"');
    expect(host.asked.filter(method => method === episodesSearch.method)).toHaveLength(2);
  });

  it('lists results of a search before it ends', async () => {
    const { filter, host, rows, text } = await open('running');
    const clock = vi.spyOn(performance, 'now').mockReturnValue(1000); // the list updates periodically
    host.hold(episodesSearch.method);
    await filter('text:"get stuck"');
    expect([rows().length, text('.list-facts')]).toEqual([0, '0 of 2560 episodes · searched 0 %']);
    host.send(episodesFound, { search: 1, found: Int32Array.of(0), share: 0.125 }); // soon: it is not listed yet
    expect([rows().length, text('.list-facts')]).toEqual([0, '0 of 2560 episodes · searched 0 %']);
    clock.mockReturnValue(2000);
    host.send(episodesFound, { search: 1, found: Int32Array.of(1), share: 0.25 });
    host.send(episodesFound, { search: 99, found: Int32Array.of(2), share: 1 });
    await settle();
    expect([rows().length, text('.list-facts')]).toMatchObject([2, expect.stringContaining('searched 25.0 %')]);
    clock.mockRestore();
  });

  it('sorts by its column heads and returns to step order', async () => {
    const { root, rows, text } = await open('running');
    const head = () => root.querySelector<HTMLElement>('.list-head [aria-label="Sort by tokens"]')!;
    const tokens = () => rows().map(row => Number(row.querySelectorAll('.number')[3].textContent));
    click(head());
    await settle();
    expect(head().textContent).toBe('tokens ↓');
    expect(root.querySelector('.group-row, .step-row')).toBeNull();
    expect(tokens()).toEqual([...tokens()].sort((a, b) => b - a));
    click(head());
    await settle();
    expect(tokens()).toEqual([...tokens()].sort((a, b) => a - b));
    expect(text('.episode-row .place')).toMatch(/^\d+ \d·\d+ (FrozenLake|CoordSokoban)$/);
    click(head());
    await settle();
    expect(root.querySelector('.group-row')).not.toBeNull();
  });

  it('moves through the steps', async () => {
    const { text } = await open('running');
    press('[');
    await settle();
    expect(text('.step-name')).toBe('step 139');
    press(']');
    await settle();
    expect(text('.step-name')).toBe('step 140');
  });

  it('adds new episodes without moving the visible rows', async () => {
    const { root, host, choose, text, title } = await open('running');
    await choose(2);
    const list = root.querySelector('.list')!;
    list.scrollTop = 24 * 500;
    list.dispatchEvent(new Event('scroll'));
    const first = () => text('.step-name');
    const before = first();
    host.send(episodesGrew, grown(141, all));
    await settle();
    expect([first(), title()]).toEqual([before, episodes[2].id]);
    expect(text('.list-facts')).toMatch(/^2688 episodes/);
    click(root.querySelector('[aria-label="Newest step"]'));
    await settle();
    expect(first()).toBe('step 141');
  });

  it('reloads when rows are void', async () => {
    const { host } = await open('running');
    host.send(episodesGrew, { ...grown(141, all), epoch: 1 });
    await settle();
    expect(host.asked.filter(method => method === episodesReady.method)).toHaveLength(2);
  });

  it('moves the selection by arrow keys', async () => {
    const { root, title } = await open('running');
    const list = root.querySelector('.list')!;
    press('ArrowDown', list);
    await settle();
    expect(title()).toBe('train-000140-g000-m01');
    press('End', list);
    await settle();
    expect(title()).toBe('train-000121-g007-m15');
    press('Home', list);
    await settle();
    expect(title()).toBe('train-000140-g000-m00');
    expect(root.querySelector(`#${list.getAttribute('aria-activedescendant')}`)!.getAttribute('aria-selected')).toBe(
      'true',
    );
  });
});

describe('an episode', () => {
  it('is the newest step’s first if none is remembered; it is not remembered and does not move the list', async () => {
    const { root, host, rows, title } = await open('running');
    expect([title(), rows()[0].getAttribute('aria-selected')]).toEqual(['train-000140-g000-m00', 'true']);
    expect(JSON.stringify(host.getState() ?? {})).not.toContain('train-000140-g000-m00');
    expect(root.querySelector('.reading')).toBeNull();
    expect(document.activeElement).toBe(document.body);
  });

  it('is shown as turns with their outcomes', async () => {
    const { root, choose, title, text } = await open('running');
    await choose(2);
    const episode = episodes[2];
    expect(title()).toBe(episode.id);
    expect(root.querySelectorAll('.turn:not(.final)')).toHaveLength(episode.turns.length);
    expect(text('.thought')).toBe(episode.turns[0].thought);
    expect([...root.querySelectorAll('.turn:not(.final)')][0].querySelectorAll('.chip')).toHaveLength(
      episode.turns[0].parsed.length,
    );
    expect(root.querySelector('.board')!.getAttribute('aria-label')).toMatch(/^Sokoban board, 6 × 6/);
    expect(root.querySelectorAll('.board .changed').length).toBeGreaterThan(0);
    expect(text('.turn .reward')).toMatch(/^reward −0\.\d+return −0\.\d+$/);
    expect(text('.prompt')).toContain('You are solving the sokoban puzzle.');
  });

  it('strikes out actions that were not executed and says why', async () => {
    const index = episodes.findIndex(
      episode => episode.group_id === 0 && episode.turns.some(turn => turn.parsed.includes('Jump')),
    );
    const { root, choose } = await open('running');
    await choose(index);
    const refused = root.querySelector('.chip.refused')!;
    expect(refused.querySelector('s')!.textContent).toBe('Jump');
    expect(refused.textContent).toBe('Jumpnot an action of this environment');
    expect(root.querySelector('.reward .warning')!.textContent).toBe('penalty −0.100');
  });

  it('shows the raw text of an answer that did not parse', async () => {
    const found = episodes.find(episode => episode.turns.some(turn => turn.thought === null))!;
    const { root, filter, choose } = await open('running');
    await filter(`id:${found.id}`);
    await choose(0);
    expect(root.querySelector('.unparsed pre')!.textContent).toBe(found.turns.find(turn => turn.thought === null)!.raw);
    expect(root.querySelector('.turn-head .warning')!.textContent).toBe('truncated at the length limit');
  });

  it('switches to the next member of its group by j and k, in the list too', async () => {
    const { root, choose, title } = await open('running');
    await choose(2);
    press('j');
    await settle();
    expect(title()).toBe('train-000140-g000-m03');
    press('k');
    press('k');
    await settle();
    expect(title()).toBe('train-000140-g000-m01');
    expect(root.querySelector('.episode-row[aria-selected="true"] .member')!.textContent).toBe('1');
    press('k');
    press('k');
    await settle();
    expect(title()).toBe('train-000140-g000-m00');
    click(root.querySelectorAll('.member-button')[5]);
    await settle();
    expect(title()).toBe('train-000140-g000-m05');
    expect(root.querySelectorAll('[aria-current]')).toHaveLength(1);
  });

  it('shows raw text and tokens by keys, and remembers that', async () => {
    const { root, host, choose } = await open('running');
    await choose(0);
    expect(root.querySelector('.tokens')).toBeNull();
    press('r');
    press('x');
    expect(root.querySelector('.turn-answer .raw')!.textContent).toBe(episodes[0].turns[0].raw);
    expect(root.querySelector('.state-text')!.textContent).toBe(episodes[0].turns[0].state);
    const [from, to] = episodes[0].turns[0].span;
    expect([...root.querySelector('.tokens')!.children].map(each => each.textContent)).toEqual(
      episodes[0].tokens.ids.slice(from, to).map(String),
    );
    expect(host.getState()).toMatchObject({ schema: 2, view: { raw: true, tokens: true, open: episodes[0].id } });
  });

  it('opens as a trace in the editor by its button and by o', async () => {
    const { root, host } = await open('running');
    press('o');
    click([...root.querySelectorAll('.episode-tools *')].find(each => each.textContent === 'Open trace'));
    const named = { method: episodeTrace.method, params: { step: 140, mode: 'train', id: episodes[0].id } };
    expect(host.sent.filter(({ method }) => method === episodeTrace.method)).toEqual([named, named]);
  });

  it('shades tokens with at most 35 % opacity', async () => {
    const { root, choose } = await open('running');
    await choose(0);
    press('x');
    const shades = [...root.querySelectorAll<HTMLElement>('.token')].map(each =>
      Number(/, ([\d.]+)\)/.exec(each.getAttribute('style') ?? '')?.[1] ?? 0),
    );
    expect(Math.max(...shades)).toBeGreaterThan(0.2);
    expect(Math.max(...shades)).toBeLessThanOrEqual(0.35);
  });

  it('is restored after a reload of the window, with order and filter', async () => {
    const view = { open: 'train-000130-g001-m04', filter: 'group:1 step:130', sort: { by: 'reward', down: true } };
    const { title, rows, root } = await open('running', { folder: '/runs/one', schema: 2, view });
    expect([title(), rows().length]).toEqual(['train-000130-g001-m04', 16]);
    expect(root.querySelector('.list-head [aria-pressed="true"]')!.textContent).toBe('return ↓');
  });

  it('that cannot be read shows the error and a retry', async () => {
    const { root, host, choose, text, title } = await open('running');
    host.refuse(episodeOpen.method, 'episodes/step-000140.jsonl line 3 is no JSON: the file was cut');
    await choose(2);
    expect(text('.episode-pane [role="alert"]')).toContain('episodes/step-000140.jsonl line 3 is no JSON');
    host.accept(episodeOpen.method);
    click(root.querySelector('.episode-pane vscode-button'));
    await settle();
    expect(title()).toBe('train-000140-g000-m02');
  });
});

describe('the playback', () => {
  const timers = { toFake: ['setTimeout' as const, 'clearTimeout' as const] };
  const still = (reduce: boolean) =>
    vi.stubGlobal('matchMedia', (query: string) => ({ matches: reduce && query.includes('reduced-motion') }));
  const play = async (kept?: unknown) => {
    const page = await open('running', kept);
    await page.choose(2);
    vi.useFakeTimers(timers);
    press('p');
    vi.useRealTimers();
    await settle();
    return page;
  };
  const turns = episodes[2].turns.length;

  it('shows turn after turn with thought and actions, and stops at the end', async () => {
    still(false);
    const { root, choose, text } = await open('running');
    await choose(2);
    vi.useFakeTimers(timers);
    try {
      press('p');
      await settle();
      for (let turn = 1; turn <= turns; turn++) {
        expect(text('.player-title')).toBe(`Turn ${turn} of ${turns}`);
        expect(text('.player .thought')).toBe(episodes[2].turns[turn - 1].thought);
        expect(root.querySelectorAll('.player .chip')).toHaveLength(episodes[2].turns[turn - 1].parsed.length);
        vi.advanceTimersByTime(1600);
      }
      expect(text('.player-title')).toBe('End');
      expect(text('.player-buttons')).toContain('Pause');
      vi.advanceTimersByTime(2800);
      expect(text('.player-buttons')).toContain('Play');
    } finally {
      vi.useRealTimers();
    }
  });

  it('waits for the user if the system asks for less motion', async () => {
    still(true);
    const { text } = await play();
    expect([text('.player-title'), text('.player-buttons').includes('Play')]).toEqual([`Turn 1 of ${turns}`, true]);
    press(' ');
    expect(text('.player-buttons')).toContain('Pause');
    press(' ');
  });

  it('moves by keys and the slider, and remembers speed and loop', async () => {
    still(true);
    const { root, host, text } = await play();
    expect(document.activeElement).toBe(root.querySelector('.episode-pane')); // not the list, which has its own keys
    press('ArrowRight');
    expect(text('.player-title')).toBe(`Turn 2 of ${turns}`);
    press('End');
    expect([text('.player-title'), text('.player .thought')]).toEqual(['End', expect.stringMatching(/\.$/)]);
    press('ArrowLeft');
    expect(text('.player-title')).toBe(`Turn ${turns} of ${turns}`);
    const slider = root.querySelector<HTMLInputElement>('.player-position')!;
    slider.value = '0';
    slider.dispatchEvent(new Event('input'));
    expect(text('.player-title')).toBe(`Turn 1 of ${turns}`);
    press('+');
    press('l');
    expect(host.getState()).toMatchObject({ view: { reading: 'playback', speed: 2, loop: true } });
    press(' ', root.querySelector('.player-buttons vscode-button')!); // the button handles the key itself
    expect(text('.player-buttons')).toContain('Play');
    press('j');
    await settle();
    expect(root.querySelector('.player')!.getAttribute('aria-label')).toContain(episodes[3].id);
    expect(text('.player-title')).toMatch(/^Turn 1 of/);
  });

  it('says why a video cannot be recorded', async () => {
    still(true);
    const { root, text } = await play();
    click(
      [...root.querySelectorAll('.player-controls vscode-button')].find(each => each.textContent?.includes('Export')),
    );
    click([...document.querySelectorAll('.menu-item')].find(each => each.textContent?.includes('WebM')));
    await settle();
    expect(text('.player-status')).toContain('This window cannot record WebM');
  });
});

describe('a prompt group side by side', () => {
  it('has one column per member and one row per turn, with differences marked', async () => {
    const { root, choose, text } = await open('running');
    await choose(2);
    press('g');
    await settle();
    expect(root.querySelectorAll('.grid-head')).toHaveLength(16);
    expect(text('.grid-head.current')).toMatch(/^[✓✗]member 2score [+−\d.]+.*reference$/);
    expect(text('.grid-shared')).toContain('same state in all episodes');
    const cells = [...root.querySelectorAll('.grid-cell[data-turn="1"]')];
    expect(cells).toHaveLength(16);
    const acts = (cell: Element) =>
      [...cell.querySelectorAll('.chip:not(.refused)')].map(each => each.textContent).join();
    cells.forEach(cell => {
      const different = acts(cell) !== acts(cells[2]);
      expect(cell.querySelector('.actions.different') !== null).toBe(different);
      expect(cell.classList.contains('parts')).toBe(different);
    });
    expect(cells[2].querySelector('mark:not(.state-text mark)')).toBeNull();
    expect(root.querySelectorAll('.thought mark').length).toBeGreaterThan(5);
  });

  it('changes the reference member by j and k', async () => {
    const { root, choose, text } = await open('running');
    await choose(0);
    press('g');
    await settle();
    press('j');
    await settle();
    expect(text('.grid-head.current .grid-title')).toBe('member 1');
    click(root.querySelectorAll('.grid-head')[5]);
    await settle();
    expect(text('.grid-head.current .grid-title')).toBe('member 5');
    press('e');
    await settle();
    expect(text('.episode-title h2')).toBe('train-000140-g000-m05');
  });
});

describe('a prompt over training', () => {
  it('steps through the validations that played it, beside the first', async () => {
    const { root, filter, choose, text } = await open('running');
    await filter('mode:val step:140 tag:lake');
    await choose(1);
    press('t');
    await settle();
    const titles = () => [...root.querySelectorAll('.grid-title')].map(each => each.textContent);
    expect(titles()).toEqual([expect.stringMatching(/^step 12\d$/), 'validation 140']);
    expect(text('.where')).toMatch(/^validation 140 · (\d+) of \1 · \d+\/\d+ solved · mean return/);
    const before = [...root.querySelectorAll('.against vscode-button')].find(
      each => each.textContent === 'Previous occurrence',
    );
    click(before);
    await settle();
    expect(titles()).toEqual([expect.stringMatching(/^(step 1[34]\d|validation 130)$/), 'validation 140']);
    const slider = root.querySelector<HTMLInputElement>('.timeline input')!;
    slider.value = '0';
    slider.dispatchEvent(new Event('input'));
    await settle();
    expect(titles()).toEqual([expect.stringMatching(/^step 12\d$/)]);
    press(']');
    await settle();
    expect(text('.where')).toMatch(/ · 2 of \d+ · /);
    expect(titles()).toHaveLength(2);
  });

  it('says when there is nothing to compare', async () => {
    const { choose, text } = await open('early');
    await choose(0);
    press('t');
    await settle();
    expect(text('.notice')).toContain('This prompt appears only at step 1.');
  });
});

describe('the page', () => {
  it('says that episodes arrive with the first step, and shows them when they do', async () => {
    const { host, text } = await open('empty');
    expect(text('.notice')).toContain('No episodes yet');
    host.send(episodesGrew, grown(1, 0));
    await settle();
    expect(text('.list-facts')).toMatch(/^128 episodes/);
  });

  it('shows an error and retries', async () => {
    const root = freshPage();
    const host = pageHost('running');
    host.refuse(episodesReady.method, 'the folder of run x no longer exists: close this page');
    startEpisodes(host, root);
    await settle();
    expect(root.querySelector('[role="alert"]')!.textContent).toContain('no longer exists');
    host.accept(episodesReady.method);
    click(root.querySelector('vscode-button'));
    await settle();
    expect(root.querySelectorAll('.episode-row').length).toBeGreaterThan(10);
  });

  it('shows hostile texts as plain text', async () => {
    const { root, choose } = await open('hostile');
    for (const index of [0, 1, 2, 3]) {
      await choose(index);
      press('r');
      press('r');
      expect(root.querySelector('img, script, iframe, style, [onload], [onerror], [srcdoc], a')).toBeNull();
    }
    const seen = root.textContent;
    expect(hostileTexts.filter(text => seen.includes(text)).length).toBeGreaterThan(5);
  });
});
