// @vitest-environment happy-dom
// Reward components and judgements on the Episodes page and on the Live page: sums, values before weights, the replies
// of judges, and scores that contain them.
import { render } from 'lit';
import { beforeEach, expect, it } from 'vitest';
import { componentSum, componentValues } from '../../../../webview/components/reward-components';
import { startEpisodes } from '../../../../webview/episodes/page';
import { judgementsView } from '../../../../webview/episodes/reader/judgements-view';
import { startLive } from '../../../../webview/live/page';
import { formatSigned } from '../../../../webview/shared/format';
import { liveEpisode } from '../../../../extension/protocol/live-page';
import { episodesOf, hostileTexts } from '../../../e2e/preview/data';
import { liveHost, watchedEpisode } from '../../../e2e/preview/live-host';
import { scoredEpisode } from '../../../e2e/preview/scored-episode';
import { freshPage, pageHost, settle } from '../page-host';

let root: HTMLElement;
beforeEach(() => (root = freshPage()));
const texts = (selector: string): string[] =>
  [...root.querySelectorAll(selector)].map(each => each.textContent.replaceAll(/\s+/g, ' ').trim());

it('an episode shows the components of each turn and of its end, and what each judge replied', async () => {
  startEpisodes(pageHost('scored'), root);
  await settle();
  root.querySelector('.episode-row')!.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  await settle();
  const shown = episodesOf(140, 'train').map(scoredEpisode)[0];
  expect(root.querySelector('.episode-title h2')!.textContent).toBe(shown.id);
  expect(texts('.turn:not(.final) .components')).toEqual(
    shown.turns.map(({ components }) => `grounding+0.500repetition${formatSigned(components!.repetition)}`),
  );
  expect(texts('.turn-answer .reward')[0]).toContain('components +0.0625');
  expect(texts('.final .components')).toEqual([`clarity+0.750directness${formatSigned(-0.25)}`]);
  expect(texts('.judgement summary')).toEqual([
    'clarity, judged by judge: 0.750 cost 0.00100',
    'clarity, judged by other: no score',
  ]);
  expect(texts('.judgement pre')).toEqual(['Each move is explained. Score: 7.5', 'no answer within 300 s']);
  const score = root.querySelector('.facts div')!;
  expect(score.textContent).toContain(formatSigned(shown.score));
  expect(score.getAttribute('title')).toContain(`components ${formatSigned(shown.component_reward!)}:`);
});

it('the Live page adds the components to the score', async () => {
  const host = pageHost(liveHost('playing'));
  startLive(host, root);
  await settle();
  const episode = scoredEpisode(episodesOf(13, 'train').find(({ turns }) => turns.length > 2)!);
  const { component_reward, components, reward, penalty } = episode;
  const watched = watchedEpisode(episode, episode.turns.length);
  host.send(liveEpisode, { episode: { ...watched, component_reward, components } });
  expect(texts('.verdict')[0]).toContain(`score ${formatSigned(reward + penalty + component_reward!)}`);
  expect(texts('.live-turn .components')).toHaveLength(episode.turns.length);
  expect(texts('.live-end .components')).toEqual([`clarity+0.750directness${formatSigned(-0.25)}`]);
});

it('nothing is shown without components, and texts stay plain text', () => {
  render([componentSum({}), componentValues({}), judgementsView({})], root);
  expect(root.textContent.trim()).toBe('');
  const judgement = { model: hostileTexts[1], score: 0.5, text: hostileTexts[2], cached: true, tokens: 0, cost: 0 };
  render(
    [
      componentValues({ components: { [hostileTexts[0]]: 1 } }),
      judgementsView({ judgements: { [hostileTexts[0]]: [judgement] } }),
    ],
    root,
  );
  for (const text of hostileTexts.slice(0, 3)) expect(root.textContent).toContain(text);
  expect(root.querySelector('img, script, b, svg')).toBeNull();
});
