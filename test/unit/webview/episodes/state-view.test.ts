// @vitest-environment happy-dom
// A state with pictures, in a run of this trainer and in one of another.
import { render } from 'lit';
import { expect, it } from 'vitest';
import type { LazyPicture } from '../../../../webview/components/lazy-picture';
import type { Theme } from '../../../../webview/shared/theme';
import { stateView } from '../../../../webview/episodes/reader/state-view';
import { episodesOf } from '../../../e2e/preview/data';

const [own] = episodesOf(140, 'train');
const foreign = { ...own, turns: own.turns.map(turn => ({ ...turn, actions_left: null })) };
const url = 'data:image/png;base64,AAAA';

function shown(state: string, pictures?: (string | null)[], episode = foreign as typeof own) {
  const root = document.createElement('div');
  render(stateView(state, null, episode, { theme: {} as Theme, raw: true, tokens: false }, pictures), root);
  const sources = [...root.querySelectorAll<LazyPicture>('lazy-picture.state-picture')].map(({ src }) => src);
  return { text: root.textContent?.trim(), sources };
}

it('a picture replaces the word that stands for it; a missing one stays a word', () => {
  expect(shown('Before [image] between [image] after', [null, url])).toEqual({
    text: 'Before [image] between  after',
    sources: [url],
  });
  expect(shown('[image]', [url])).toEqual({ text: '', sources: [url] });
  expect(shown('[image]')).toEqual({ text: '[image]', sources: [] });
  expect(shown('[image]', [null])).toEqual({ text: '[image]', sources: [] });
});

it('in a run of this trainer, only <image> stands for a picture', () => {
  expect(shown('The sign says [image]: <image>', [url], own)).toEqual({
    text: 'The sign says [image]:',
    sources: [url],
  });
  expect(shown('<image> or [image]', [url])).toEqual({ text: '<image> or', sources: [url] });
});
