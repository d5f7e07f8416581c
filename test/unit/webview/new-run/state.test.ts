// The changes of the New Run page's state, without a page: kept choices, and where problems are shown.
import { expect, it } from 'vitest';
import type { FormProblem, NewRunChoice, NewRunForm } from '../../../../extension/protocol/new-run-page';
import { reduce, type NewRunEvent } from '../../../../webview/new-run/reducer';
import { canStart, emptyPlan, firstChoice, initialState, placedProblems } from '../../../../webview/new-run/state';
import type { NewRunState } from '../../../../webview/new-run/state';

const form: NewRunForm = {
  presets: [
    { id: 'quickstart', name: 'quickstart', description: '' },
    { id: 'own', name: 'own', description: '' },
  ],
  folders: [{ path: '/w', name: 'w' }],
  engines: [{ name: 'gpu', url: 'http://gpu', about: '', abilities: { critic: null, keepsVersions: null } }],
  chosen: null,
  prefill: null,
  groups: [{ title: 'Run', fields: [{ key: 'steps', title: 'Steps', help: '', kind: 'number', choices: [] }] }],
};
const kept: NewRunChoice = {
  preset: 'own',
  folder: '/w',
  engine: '',
  values: { steps: '7' },
  overrides: '',
  groups: null,
  sweep: null,
};
const after = (choice: NewRunChoice, ...events: NewRunEvent[]): NewRunState =>
  [{ type: 'connected', form } as const, ...events].reduce(reduce, initialState(choice));
const planned = (...problems: FormProblem[]): NewRunEvent => ({ type: 'planned', plan: { ...emptyPlan, problems } });

it('keeps choices whose preset and folder exist, and takes the first ones otherwise', () => {
  expect(after(kept).choice).toEqual(kept);
  expect(after({ ...kept, folder: '/gone' }).choice).toEqual(kept);
  expect(after({ ...kept, preset: 'gone' }).choice).toEqual({ ...firstChoice, preset: 'quickstart', folder: '/w' });
});

it('shows the configuration of a run to duplicate, with the run as the starting point', () => {
  const preset = { id: 'run:first', name: 'run first', description: '' };
  const prefill = { preset, folder: '/w', values: { steps: '3' }, overrides: 'a.b=1' };
  const state = after({ ...kept, groups: { train: {}, val: {} } }, planned(), { type: 'prefilled', prefill });
  expect(state.choice).toEqual({ ...kept, preset: 'run:first', values: { steps: '3' }, overrides: 'a.b=1' });
  expect(state.form!.presets.at(-1)).toEqual(preset);
  expect(state.planned).toBeNull(); // the values of the earlier starting point are no longer known
  expect(reduce(state, { type: 'prefilled', prefill }).form!.presets).toHaveLength(3);
});

it('keeps the chosen engine while it exists, and selects a new one on request', () => {
  const chosen = (engine: string, ...events: NewRunEvent[]) => after({ ...kept, engine }, ...events).choice.engine;
  expect([chosen('gpu'), chosen('gone')]).toEqual(['gpu', '']);
  const { engines } = form;
  expect(chosen('', { type: 'engines', list: { engines, chosen: 'gpu' } })).toBe('gpu');
  expect(chosen('', { type: 'engines', list: { engines, chosen: null } })).toBe('');
  expect(chosen('gpu', { type: 'engines', list: { engines: [], chosen: null } })).toBe('');
});

it('shows a problem at its field, at the environments, or above the form, once', () => {
  const state = after(
    kept,
    planned(
      { key: 'steps', message: 'use an integer' },
      { key: 'es_manager.train.env_groups', message: 'no group' },
      { key: 'other', message: 'use an integer' },
      { key: '', message: 'too large' },
    ),
    { type: 'refused', message: 'the disk is full' },
  );
  const { byKey, ofGroups, others } = placedProblems(state);
  expect([...byKey]).toEqual([['steps', 'use an integer']]);
  expect([ofGroups, others]).toEqual(['no group', ['too large', 'the disk is full']]);
});

it('starts without problems, once', () => {
  const ready = after(kept, planned());
  expect(canStart(ready)).toBe(true);
  expect(canStart(reduce(ready, { type: 'starting' }))).toBe(false);
  expect(canStart(after(kept, planned({ key: '', message: 'no' })))).toBe(false);
  expect(canStart(initialState(kept))).toBe(false);
});

it('keeps the last values when a plan fails, and clears a refused start with the next change', () => {
  const failed = after(
    kept,
    { type: 'planned', plan: { ...emptyPlan, yaml: 'a: 1' } },
    { type: 'unplanned', message: 'x' },
  );
  expect([failed.planned?.yaml, failed.planned?.problems, failed.waiting]).toEqual([
    'a: 1',
    [{ key: '', message: 'x' }],
    false,
  ]);
  const changed = reduce({ ...failed, refused: 'why' }, { type: 'changed', part: { preset: 'own' } });
  expect([changed.refused, changed.waiting]).toEqual(['', true]);
});
