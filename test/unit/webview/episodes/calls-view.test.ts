// @vitest-environment happy-dom
// Tool calls on the Episodes page, in traces and in other texts.
import { render } from 'lit';
import { expect, it } from 'vitest';
import { actionOutcomes } from '../../../../extension/run-data/action-outcomes';
import { callLine, callText, type ToolCallRecord } from '../../../../extension/run-data/tool-call';
import { traceOf } from '../../../../extension/vscode/traces/trace-text';
import { callsView } from '../../../../webview/episodes/reader/calls-view';
import { lakeEpisode } from '../../vscode/traces/lake-episode';

const calls: ToolCallRecord[] = [
  { name: 'lookup', arguments: { item: '<b>drum</b>' }, result: '<img src=x onerror=alert(1)>', error: false, ms: 12 },
  { name: '', arguments: {}, result: 'Error: the tool call has no name.', error: true, ms: 0 },
];

it('shows name, arguments, result and duration of each call as text, and marks failures', () => {
  const root = document.createElement('div');
  render(callsView(calls), root);
  expect(root.querySelector('ol')?.getAttribute('aria-label')).toBe('2 tool calls');
  const items = [...root.querySelectorAll('li')];
  expect(items.map(item => item.querySelector('code')?.textContent)).toEqual([
    'lookup({"item":"<b>drum</b>"})',
    'unreadable call',
  ]);
  expect(items.map(item => item.querySelector('pre')?.textContent)).toEqual(calls.map(({ result }) => result));
  expect(items.map(item => item.dataset.failed)).toEqual(['false', 'true']);
  expect(items[0].textContent).toContain('12 ms');
  expect(root.querySelector('img, b')).toBeNull();
});

it('names calls instead of their action', () => {
  const episode = lakeEpisode();
  const turn = { ...episode.turns[0], calls };
  expect(actionOutcomes(turn, false)).toEqual(calls.map(call => ({ name: callText(call), reason: null })));
  const { text } = traceOf({ ...episode, turns: [turn, ...episode.turns.slice(1)] }, 'lake', null);
  expect(text).toContain(
    'called lookup({"item":"<b>drum</b>"}) returned "<img src=x onerror=alert(1)>" (12 ms)\ncalled unreadable call failed "Error: the tool call has no name." (0 ms)\n',
  );
  expect(callLine(calls[1])).toBe('unreadable call failed "Error: the tool call has no name." (0 ms)');
});
