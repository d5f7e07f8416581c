// In-memory answers for the New Run page: some fields of the form, two kept engines, and a plan.
import {
  newRunCheck,
  newRunPlan,
  newRunReady,
  type Field,
  type FieldGroup,
  type NewRunChoice,
  type NewRunForm,
  type PlannedRun,
} from '../../../extension/protocol/new-run-page';

const field = (
  key: string,
  title: string,
  help: string,
  kind: Field['kind'] = 'number',
  choices: string[] = [],
): Field => ({
  ...{ key, title, help, kind, choices },
});
const rollout = 'actor_rollout_ref.rollout';
const groups: FieldGroup[] = [
  {
    title: 'Run',
    fields: [
      field('trainer.experiment_name', 'Name', 'Name of the run.', 'text'),
      field('trainer.total_training_steps', 'Steps', 'Number of training steps.'),
    ],
  },
  {
    title: 'Model',
    fields: [
      field('model_path', 'Model', 'A bundled model, a folder, or a model of the hub.', 'text'),
      field('lora.rank', 'LoRA rank', 'Rank of the adapters; 0 trains all parameters.'),
      field(
        'workbench.device',
        'Device',
        'Device of the model. auto uses a GPU if the GPU is faster than the CPU and gives matching results.',
        'choice',
        ['auto', 'cpu', 'webgpu', 'cuda'],
      ),
      field('micro_batch_size_per_gpu', 'Micro-batch size', 'Episodes per pass with gradient.'),
    ],
  },
  {
    title: 'Episodes',
    fields: [
      field(`${rollout}.temperature`, 'Temperature', 'Temperature of sampling in training.'),
      field('agent_proxy.enable_think', 'Reasoning', 'Ask the model to reason before it answers.', 'flag'),
    ],
  },
  {
    title: 'Algorithm',
    fields: [
      field('algorithm.adv_estimator', 'Advantage estimator', 'How advantages are estimated.', 'choice', [
        ...['gae', 'grpo', 'rloo'],
      ]),
      field(`${rollout}.rollout_filter_metric`, 'Group score', 'Score by which groups are filtered.', 'choice', [
        ...['reward_variance', 'reward', 'entropy', 'entropy_variance'],
      ]),
    ],
  },
];

const form: NewRunForm = {
  presets: [{ id: 'quickstart', name: 'quickstart', description: 'Learns a small frozen lake in minutes on a CPU.' }],
  folders: [{ path: '/work', name: 'work' }],
  groups,
  engines: [
    {
      name: 'cluster',
      url: 'https://gpu-host:8000',
      about: 'Qwen/Qwen3-8B · 4.1 k tokens/s · round trip 3.14 ms · tested 2026-01-02',
      abilities: { critic: false, keepsVersions: false },
    },
    {
      name: 'fsdp',
      url: 'http://10.0.0.7:8000',
      about: 'not tested',
      abilities: { critic: null, keepsVersions: null },
    },
  ],
  chosen: null,
  prefill: null,
};

/** Values of fields whose control would otherwise be empty. */
const values: Record<string, string> = {
  'trainer.experiment_name': 'quickstart',
  'trainer.total_training_steps': '24',
  model_path: 'ragen-tiny',
  'lora.rank': '8',
  'workbench.device': 'auto',
  micro_batch_size_per_gpu: '64',
  'actor_rollout_ref.rollout.temperature': '1',
  'algorithm.adv_estimator': 'grpo',
  'actor_rollout_ref.rollout.rollout_filter_metric': 'reward_variance',
};

function planned(choice: NewRunChoice): PlannedRun {
  const engine = form.engines.find(({ name }) => name === choice.engine);
  const groups = choice.groups ?? { train: { QuickFrozenLake: 16 }, val: { QuickFrozenLake: 64 } };
  return {
    values: { ...values, ...choice.values },
    tags: [{ tag: 'QuickFrozenLake', environment: 'frozen_lake' }],
    groups,
    engine: engine ? { url: engine.url, model: 'Qwen/Qwen3-8B' } : null,
    estimate: {
      ...{
        model: { path: 'ragen-tiny', parameters: 372_864, trained: 'adapters' },
        fits: true,
        remedy: null,
        notes: [],
      },
      ...{ peak: { phase: 'checkpoint', bytes: 2 ** 30 }, available: 2 ** 34 },
      rows: [{ what: 'weights', bytes: 2 ** 28, how: '373 k parameters × 4 bytes', phase: 'loading' }],
      time: { step_s: 6, generation_s: 2.8, total_s: 144, basis: engine ? 'rates' : 'assumed', run: null },
      remote: engine ? { rates: { basis: 'given' } } : null,
    },
    problems: [],
    sweepRuns: choice.sweep && 6,
    yaml: engine
      ? `defaults:\n  - quickstart\n  - _self_\nworkbench:\n  engine: tinker\n  engine_url: ${engine.url}\n`
      : '',
  };
}

/** Answers by method. */
export const newRunAnswers: Record<string, (params: never) => unknown> = {
  [newRunReady.method]: () => form,
  [newRunCheck.method]: (choice: NewRunChoice) => ({ ...planned(choice), estimate: null }),
  [newRunPlan.method]: planned,
};
