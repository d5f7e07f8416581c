// @vitest-environment happy-dom
import { describe, expect, it } from 'vitest';
import { episodeOpen, episodesGrew, episodesReady } from '../../../extension/protocol/pages';
import { startEpisodes } from '../../../webview/episodes/page';
import { episodesOf, hostileTexts, runAt } from '../../e2e/preview/data';
import type { Scenario } from '../../e2e/preview/memory-host';
import { freshPage, pageHost, press, settle } from './page-host';

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

describe('the list', () => {
  it('shows the newest training step by groups, and only what fits the screen', async () => {
    const { root, rows, text } = await open('running');
    expect(text('.step-name')).toBe('step 140');
    expect(text('.group-row')).toMatch(/^group 0 CoordSokoban\d+\/16 solved · std [\d.]+$/);
    expect(rows().length).toBeLessThan(50);
    expect(root.querySelector<HTMLElement>('.list-body')!.style.height).toBe(`${(128 + 8) * 24}px`);
    const solved = episodes.filter(episode => episode.success).length;
    expect(text('.list-facts')).toBe(`128 episodes · ${((solved / 128) * 100).toFixed(1)} % success`);
  });

  it('filters as it is typed', async () => {
    const { filter, rows, text } = await open('running');
    await filter('success:true group:0');
    expect(rows()).toHaveLength(episodes.filter(episode => episode.success && episode.group_id === 0).length);
    await filter('group:99');
    expect([rows().length, text('.list-facts')]).toEqual([0, '0 of 128 episodes']);
    await filter('sucess:true');
    expect(text('.filter-problem')).toContain('“sucess” is no field');
    expect(text('.list-facts')).toContain('128 episodes');
  });

  it('lists several steps by the filter', async () => {
    const { root, filter, host } = await open('running');
    await filter('step:138..139 member:0 group:0');
    expect([...root.querySelectorAll('.step-row span:first-child')].map(each => each.textContent)).toEqual([
      'step 139',
      'step 138',
    ]);
    expect(host.asked.filter(method => method === episodesReady.method)).toHaveLength(3);
    expect(root.querySelector('.step-name')!.textContent).toBe('steps by filter');
  });

  it('looks into the texts of the episodes that pass otherwise', async () => {
    const { filter, host, rows } = await open('running');
    await filter('group:0 text:"GET STUCK"');
    await settle();
    const expected = episodes.filter(
      episode => episode.group_id === 0 && episode.turns.some(turn => turn.raw.includes('get stuck')),
    );
    expect(rows()).toHaveLength(expected.length);
    expect(expected.length).toBeGreaterThan(0);
    expect(expected.length).toBeLessThan(16);
    expect(host.asked.filter(method => method === episodeOpen.method)).toHaveLength(16);
    await filter('group:0 text:"get stuck" text:wall');
    expect(host.asked.filter(method => method === episodeOpen.method)).toHaveLength(16);
  });

  it('goes through the steps and to the validation', async () => {
    const { root, text } = await open('running');
    press('[');
    await settle();
    expect(text('.step-name')).toBe('step 139');
    press(']');
    await settle();
    expect(text('.step-name')).toBe('step 140');
    click(root.querySelector('.swap vscode-button'));
    await settle();
    expect(text('.step-name')).toBe('validation 140');
  });

  it('offers a new step and does not jump to it', async () => {
    const { root, host, text } = await open('running');
    host.send(episodesGrew, { run: runAt(141, 200), steps: [{ step: 141, mode: 'train' }] });
    expect([text('.step-name'), text('.newer')]).toEqual(['step 140', '1 newer']);
    click(root.querySelector('[title="Newest step, 141"]'));
    await settle();
    expect(text('.step-name')).toBe('step 141');
  });

  it('moves the choice by arrow keys', async () => {
    const { root, title } = await open('running');
    const list = root.querySelector('.list')!;
    press('ArrowDown', list);
    press('ArrowDown', list);
    await settle();
    expect(title()).toBe('train-000140-g000-m01');
    press('End', list);
    await settle();
    expect(title()).toBe('train-000140-g007-m15');
    press('Home', list);
    await settle();
    expect(title()).toBe('train-000140-g000-m00');
    expect(root.querySelector(`#${list.getAttribute('aria-activedescendant')}`)!.getAttribute('aria-selected')).toBe(
      'true',
    );
  });
});

describe('an episode', () => {
  it('is shown as turns, with what came of it', async () => {
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

  it('strikes out what was not executed and says why', async () => {
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
    expect(root.querySelector('.turn-head .warning')!.textContent).toBe('cut at the length limit');
  });

  it('gives way to its group’s next member by j and k, in the list too', async () => {
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

  it('shows raw text and tokens by keys, and keeps that', async () => {
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
    expect(host.getState()).toMatchObject({ schema: 1, view: { raw: true, tokens: true, open: episodes[0].id } });
  });

  it('shades tokens at most 35 %', async () => {
    const { root, choose } = await open('running');
    await choose(0);
    press('x');
    const shades = [...root.querySelectorAll<HTMLElement>('.token')].map(each =>
      Number(/, ([\d.]+)\)/.exec(each.getAttribute('style') ?? '')?.[1] ?? 0),
    );
    expect(Math.max(...shades)).toBeGreaterThan(0.2);
    expect(Math.max(...shades)).toBeLessThanOrEqual(0.35);
  });

  it('is opened again after a reload of the window, with step and filter', async () => {
    const view = {
      selected: { step: 30, mode: 'train' },
      open: 'train-000030-g001-m04',
      filter: 'group:1',
      raw: false,
      tokens: false,
    };
    const { title, text, rows } = await open('running', { folder: '/runs/one', schema: 1, view });
    expect([text('.step-name'), title(), rows().length]).toEqual(['step 30', 'train-000030-g001-m04', 16]);
  });

  it('that cannot be read says so, and can be asked for again', async () => {
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

describe('the page', () => {
  it('says that episodes come with the first step, and takes them when they do', async () => {
    const { host, text } = await open('empty');
    expect(text('.notice')).toContain('No episodes yet');
    host.send(episodesGrew, { run: runAt(1, 200), steps: [{ step: 1, mode: 'train' }] });
    await settle();
    expect(host.asked).toEqual([episodesReady.method, episodesReady.method]);
  });

  it('shows an error and asks again', async () => {
    const root = freshPage();
    const host = pageHost('running');
    host.refuse(episodesReady.method, 'run x: its folder is gone: close this page');
    startEpisodes(host, root);
    await settle();
    expect(root.querySelector('[role="alert"]')!.textContent).toContain('its folder is gone');
    host.accept(episodesReady.method);
    click(root.querySelector('vscode-button'));
    await settle();
    expect(root.querySelectorAll('.episode-row').length).toBeGreaterThan(10);
  });

  it('leaves hostile texts texts', async () => {
    const { root, choose } = await open('hostile');
    for (const index of [0, 1, 2, 3]) {
      await choose(index);
      press('r');
      press('r');
      expect(root.querySelector('img, script, iframe, style, [onload], [onerror], [srcdoc], a')).toBeNull();
    }
    const seen = root.textContent!;
    expect(hostileTexts.filter(text => seen.includes(text)).length).toBeGreaterThan(5);
  });
});
