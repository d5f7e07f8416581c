// @vitest-environment happy-dom
// The New Run page: typed values become the request, the plan's answer is shown, and a refused plan cannot start.
import { beforeEach, describe, expect, it, vi } from 'vitest';
import {
  newRunCheck,
  newRunConnect,
  newRunEngines,
  newRunPlan,
  newRunPrefill,
  newRunReady,
  newRunSave,
  newRunStart,
} from '../../../../extension/protocol/new-run-page';
import type { NewRunChoice, NewRunForm, PlannedRun } from '../../../../extension/protocol/new-run-page';
import { startNewRun } from '../../../../webview/new-run/page';
import { freshPage, pageHost } from '../page-host';

const form: NewRunForm = {
  presets: [
    { id: 'quickstart', name: 'quickstart', description: 'A first run.' },
    { id: '/w/own.yaml', name: 'own', description: 'own.yaml' },
  ],
  folders: [{ path: '/w', name: 'w' }],
  engines: [
    {
      name: 'gpu',
      url: 'http://gpu:8000',
      about: 'a/b · 900 tokens/s',
      abilities: { critic: false, keepsVersions: false },
    },
  ],
  chosen: null,
  prefill: null,
  groups: [
    {
      title: 'Run',
      fields: [
        { key: 'trainer.total_training_steps', title: 'Steps', help: 'Training steps.', kind: 'number', choices: [] },
        { key: 'model_path', title: 'Model', help: 'The model.', kind: 'text', choices: [] },
        { key: 'workbench.device', title: 'Device', help: 'Where.', kind: 'choice', choices: ['auto', 'cpu'] },
        { key: 'actor_rollout_ref.rollout.temperature', title: 'T', help: 'Warmth.', kind: 'number', choices: [] },
        { key: 'algorithm.adv_estimator', title: 'A', help: 'How.', kind: 'choice', choices: ['grpo', 'gae'] },
        { key: 'agent_proxy.enable_think', title: 'Reasoning', help: 'It reasons.', kind: 'flag', choices: [] },
      ],
    },
  ],
};
const planned = (choice: NewRunChoice): PlannedRun => {
  const steps = choice.values['trainer.total_training_steps'] ?? '24';
  const problems = steps === 'none' ? [{ key: 'trainer.total_training_steps', message: 'use an integer' }] : [];
  return {
    values: {
      ...{ model_path: 'tiny', 'workbench.device': 'auto', 'algorithm.adv_estimator': 'grpo' },
      'actor_rollout_ref.rollout.temperature': '1',
      'trainer.total_training_steps': '24',
      'agent_proxy.enable_think': 'true',
      ...choice.values,
    },
    tags: [
      { tag: 'Lake', environment: 'frozen_lake' },
      { tag: 'Bandit', environment: 'bandit' },
    ],
    engine: choice.engine === '' ? null : { url: 'http://gpu:8000', model: 'a/b' },
    groups: choice.groups ?? { train: { Lake: 8 }, val: { Lake: 16 } },
    estimate:
      problems.length > 0
        ? null
        : {
            ...{ model: { path: 'tiny', parameters: 400_000, trained: 'all' }, fits: true, remedy: null, rows: [] },
            notes: steps === '7' ? ['config: a key is auto: set it to null'] : [],
            ...{ peak: { phase: 'policy update', bytes: 2 ** 30 }, available: 2 ** 33 },
            time: {
              ...{ step_s: 4, generation_s: 1.5, total_s: 96 },
              ...(choice.engine === ''
                ? { basis: 'measured', run: { id: 'r', name: 'first' } }
                : { basis: 'rates', run: null }),
            },
            remote: choice.engine === '' ? null : { rates: { basis: choice.engine === 'gpu' ? 'given' : 'assumed' } },
          },
    problems,
    sweepRuns: choice.sweep ? 4 : null,
    yaml: `steps: ${steps}\n`,
  };
};

let root: HTMLElement;
let host: ReturnType<typeof pageHost>;
let choices: NewRunChoice[];

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  root = freshPage();
  choices = [];
  host = pageHost({
    answer(method: string, params: unknown) {
      if (method === newRunReady.method) return form;
      choices.push(params as NewRunChoice);
      if (method === newRunCheck.method) return { ...planned(params as NewRunChoice), estimate: null };
      return method === newRunPlan.method ? planned(params as NewRunChoice) : null;
    },
  });
  startNewRun(host, root);
  await settled();
});

/** Waits for answers and for debounced changes. */
async function settled(): Promise<void> {
  for (let i = 0; i < 6; i++) await Promise.resolve();
  await vi.advanceTimersByTimeAsync(500);
  for (let i = 0; i < 6; i++) await Promise.resolve();
}
const field = (key: string) => root.querySelector<HTMLElement>(`.field[data-key="${key}"]`)!;
const control = (key: string) =>
  field(key).querySelector<HTMLElement & { value: string; checked: boolean }>('.field-control > :first-child')!;
function type(key: string, value: string): void {
  control(key).value = value;
  control(key).dispatchEvent(new Event('input'));
}
const button = (label: string) =>
  [...root.querySelectorAll<HTMLElement>('vscode-button')].find(({ textContent }) => textContent === label)!;
const steps = 'trainer.total_training_steps';

it('shows the first preset with its values and estimated resources', () => {
  expect(control(steps).value).toBe('24');
  expect(control('agent_proxy.enable_think').checked).toBe(true);
  expect(root.querySelectorAll('.changed')).toHaveLength(0);
  const estimate = root.querySelector('.estimate')!.textContent;
  expect(estimate).toContain('1.0 GiB of 8.0 GiB in the policy update');
  expect(estimate).toContain('about 4.00 s');
  expect(estimate).toContain('based on run “first”');
  expect(root.querySelector('.yaml')!.textContent).toBe('steps: 24\n');
});

it('shows notes about a valid configuration', async () => {
  expect(root.querySelector('.estimate')!.textContent).not.toContain('a key is auto');
  type(steps, '7');
  await settled();
  expect(root.querySelector('.estimate')!.textContent).toContain('a key is auto: set it to null');
});

it('requests a plan once for a typed value, marks the value, and resets it', async () => {
  const before = choices.length;
  type(steps, '1');
  type(steps, '12');
  await settled();
  expect(choices.slice(before).map(({ values }) => values)).toEqual([{ [steps]: '12' }, { [steps]: '12' }]); // check, plan
  expect(field(steps).classList.contains('changed')).toBe(true);
  expect(root.querySelector('.yaml')!.textContent).toBe('steps: 12\n');
  field(steps).querySelector<HTMLElement>('.reset')!.click();
  await settled();
  expect(choices.at(-1)!.values).toEqual({});
  expect(control(steps).value).toBe('24');
});

it('does not treat its own writes to a control as input', async () => {
  control('agent_proxy.enable_think').dispatchEvent(new Event('change')); // as the toolkit does
  await settled();
  expect(choices.at(-1)!.values).toEqual({});
});

it('shows the shape of the form until the values are known', async () => {
  const again = freshPage();
  host.hold(newRunReady.method);
  startNewRun(host, again);
  await settled();
  expect(again.querySelectorAll('.skeleton-form .skeleton-block').length).toBeGreaterThan(5);
  const values = freshPage();
  host.release(newRunReady.method);
  host.hold(newRunCheck.method);
  host.setState(undefined);
  startNewRun(host, values);
  await settled();
  expect(values.querySelectorAll('.field .skeleton-block').length).toBeGreaterThan(5);
  expect(values.querySelector(`.field[data-key="${steps}"] vscode-text-field`)).toBeNull();
});

it('shows the values before the estimate', async () => {
  host.hold(newRunPlan.method);
  const again = freshPage();
  startNewRun(host, again);
  root = again;
  await settled();
  expect(control(steps).value).toBe('24');
  expect(root.querySelector('.estimate .skeleton-block')).not.toBeNull();
  expect(button('Start run').getAttribute('aria-disabled')).toBeNull();
});

it('shows an error at its field and leads there instead of starting', async () => {
  type(steps, 'none');
  await settled();
  expect(field(steps).querySelector('.problem')!.textContent).toBe('use an integer');
  expect(root.querySelector('.trouble')!.textContent).toBe('');
  const before = host.asked.length;
  expect(button('Start run').title).toBe('Correct Steps to start');
  expect(button('Start run').getAttribute('aria-disabled')).toBeNull();
  const focused = vi.spyOn(control(steps), 'focus');
  button('Start run').click();
  root.querySelector<HTMLElement>('.obstacle .link')!.click();
  await settled();
  expect(focused).toHaveBeenCalledTimes(2);
  expect(host.asked.slice(before)).not.toContain(newRunStart.method);
});

it('removes an error as soon as its value changes', async () => {
  type(steps, 'none');
  await settled();
  host.hold(newRunCheck.method);
  type(steps, '5');
  await settled();
  expect(field(steps).querySelector<HTMLElement>('.problem')!.hidden).toBe(true);
  expect(root.querySelector('.obstacle')).toBeNull();
});

it('waits for a pending check before it starts, and does not start if the check fails', async () => {
  type(steps, '5');
  button('Start run').click();
  expect(host.asked).not.toContain(newRunStart.method);
  await settled();
  expect(host.asked.filter(method => method === newRunStart.method)).toHaveLength(1);
  expect(choices.some(({ values }) => values[steps] === '5')).toBe(true);
  type(steps, 'none');
  button('Start run').click();
  await settled();
  expect(host.asked.filter(method => method === newRunStart.method)).toHaveLength(1);
});

it('starts with the entered values, and says why when it cannot', async () => {
  type(steps, '3');
  await settled();
  host.refuse(newRunStart.method, 'the disk is full');
  button('Start run').click();
  await settled();
  expect(root.querySelector('.trouble')!.textContent).toBe('the disk is full');
  host.accept(newRunStart.method);
  button('Start run').click();
  await settled();
  expect(choices.at(-1)!.values).toEqual({ [steps]: '3' });
  expect(host.asked.at(-1)).toBe(newRunStart.method);
});

it('shows a run to duplicate, and sends its other overrides', async () => {
  const preset = { id: 'run:first', name: 'run first', description: 'As run first.' };
  host.send(newRunPrefill, { preset, folder: '/w', values: { [steps]: '9' }, overrides: 'a.b=1' });
  await settled();
  expect(choices.at(-1)).toMatchObject({ preset: 'run:first', values: { [steps]: '9' }, overrides: 'a.b=1' });
  expect(control(steps).value).toBe('9');
  expect(control('overrides').value).toBe('a.b=1');
  type('overrides', 'a.b=2');
  await settled();
  expect(choices.at(-1)!.overrides).toBe('a.b=2');
});

it('selects environments by tag', async () => {
  const count = root.querySelector<HTMLElement & { value: string }>('[aria-label="Validation groups of Lake"]')!;
  count.value = '4';
  count.dispatchEvent(new Event('input'));
  await settled();
  expect(choices.at(-1)!.groups).toEqual({ train: { Lake: 8 }, val: { Lake: 4 } });
  const add = root.querySelector<HTMLElement & { value: string }>('[aria-label="Add an environment"]')!;
  add.value = 'Bandit';
  add.dispatchEvent(new Event('change'));
  await settled();
  expect(choices.at(-1)!.groups!.train).toEqual({ Lake: 8, Bandit: 1 });
  expect(root.querySelectorAll('.environments tbody tr')).toHaveLength(2);
});

it('saves the entered values, and restores them', async () => {
  type(steps, '7');
  await settled();
  button('Save as YAML…').click();
  expect(host.sent.at(-1)).toMatchObject({ method: newRunSave.method, params: { values: { [steps]: '7' } } });
  const again = freshPage();
  startNewRun(host, again);
  root = again;
  await settled();
  expect(control(steps).value).toBe('7');
});

describe('a run on a kept engine', () => {
  const choose = async (value: string) => {
    const control = root.querySelector<HTMLElement & { value: string }>('[aria-label="Engine (workbench.engine)"]')!;
    control.value = value;
    control.dispatchEvent(new Event('change'));
    await settled();
    return control;
  };
  const off = (key: string) => field(key).querySelector('.field-control > :first-child')!.hasAttribute('disabled');
  const reason = (key: string) => {
    const limit = field(key).querySelector<HTMLElement>('.limit')!;
    return limit.hidden ? '' : limit.textContent;
  };

  it('disables what the engine ignores or supports with one value only, with the reason', async () => {
    expect([off('workbench.device'), reason('workbench.device')]).toEqual([false, '']);
    await choose('gpu');
    expect(choices.at(-1)!.engine).toBe('gpu');
    expect(off('workbench.device')).toBe(true);
    expect(reason('workbench.device')).toBe('The server has its own devices; this setting has no effect.');
    expect(off('actor_rollout_ref.rollout.temperature')).toBe(true);
    expect(reason('actor_rollout_ref.rollout.temperature')).toBe('The server trains at temperature 1.');
    expect(off('model_path')).toBe(false);
    const estimators = [...field('algorithm.adv_estimator').querySelectorAll('vscode-option')];
    expect(estimators.map(option => option.hasAttribute('disabled'))).toEqual([false, true]);
    expect(reason('algorithm.adv_estimator')).toBe('gae needs a critic, which the server does not offer.');
  });

  it('leaves a value that the engine refuses to the user', async () => {
    await choose('gpu');
    type('actor_rollout_ref.rollout.temperature', '0.7');
    await settled();
    expect([off('actor_rollout_ref.rollout.temperature'), reason('actor_rollout_ref.rollout.temperature')]).toEqual([
      false,
      '',
    ]);
  });

  it('shows the server, the memory of this machine, and where the time is from', async () => {
    await choose('gpu');
    const estimate = root.querySelector('.estimate')!.textContent;
    expect(estimate).toContain('http://gpu:8000');
    expect(estimate).toContain('memory of this machine; the server plans its own memory');
    expect(estimate).toContain('estimate from the tested round trip and sampling rate of the engine');
    expect(field('workbench.engine').textContent).toContain('a/b · 900 tokens/s');
  });

  it('connects to a further engine, and selects it when it is kept', async () => {
    const control = await choose('\n');
    expect(host.sent.at(-1)!.method).toBe(newRunConnect.method);
    expect([control.value, choices.at(-1)!.engine]).toEqual(['', '']);
    const engines = [{ name: 'new', url: 'http://new', about: '', abilities: { critic: null, keepsVersions: null } }];
    host.send(newRunEngines, { engines, chosen: 'new' });
    await settled();
    expect(choices.at(-1)!.engine).toBe('new');
    host.send(newRunEngines, { engines: [], chosen: null });
    await settled();
    expect(choices.at(-1)!.engine).toBe('');
  });
});

it('starts a sweep of keys with several values, and removes it', async () => {
  const add = root.querySelector<HTMLElement & { value: string }>('[aria-label="Add a key to the sweep"]')!;
  const write = async (label: string, value: string): Promise<void> => {
    const input = [
      ...root.querySelectorAll<HTMLElement & { value: string }>('[data-key="sweep"] vscode-text-field'),
    ].find(
      each => each.getAttribute('aria-label') === label || each.title === label || each.outerHTML.includes(label),
    )!;
    input.value = value;
    input.dispatchEvent(new Event('input'));
    await settled();
  };
  add.value = 'algorithm.adv_estimator';
  add.dispatchEvent(new Event('change'));
  await settled();
  await write('Values of A', 'grpo, gae');
  await write('A number of seeds', '2');
  expect(choices.at(-1)!.sweep).toEqual({
    grid: [{ key: 'algorithm.adv_estimator', values: 'grpo, gae' }],
    seeds: '2',
    jobs: '1',
  });
  expect(root.querySelector('[data-key="sweep"]')!.textContent).toContain('4 runs');
  expect(button('Start sweep').textContent).toBe('Start sweep');
  root.querySelector<HTMLElement>('[data-key="sweep"] .reset')!.click();
  await settled();
  expect(choices.at(-1)!.sweep).toBeNull();
  expect(button('Start run').textContent).toBe('Start run');
});

it('offers no sweep for a fork', async () => {
  const preset = { id: 'fork:step-000002:r', name: 'first from step 2', description: 'A fork.' };
  host.send(newRunPrefill, { preset, folder: '/w', values: {}, overrides: '' });
  await settled();
  expect(root.querySelector('[data-key="sweep"]')).toBeNull();
});
