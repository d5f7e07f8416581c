// Runs every command of the documentation's code blocks as written, in one workspace, in the order of the pages. Long
// trainings get overrides for one step of a few episodes; names of runs, checkpoints and episodes are replaced by those
// of a run made here. A command that several pages show runs once; of the trainings of one configuration that differ only
// in overrides, one trains and the others are planned. Commands that cannot run are listed with the reason. A new command
// is run by the rule of its name, or fails without one.
import { spawn } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blockCommands, inlineCommands } from './documented-commands';
import type { DocumentedCommand } from './documented-commands';
import { document, killAll, ragen, readRun, until, untilStep } from '../../support/terminal';
import { MlflowPeer } from '../../support/mlflow-peer';
import { TinkerPeer } from '../../support/tinker-peer';
import { RayPeer } from '../../support/ray-peer';
import { groupOverrides, stepOverrides, tinyOverrides } from '../../support/tiny-overrides';
import { makeWorkspace, root } from '../../support/workspace';
import type { Workspace } from '../../support/workspace';

/** Overrides for a step of four short episodes and a validation of one episode per tag. */
const tiny = (validationTags = 1) => tinyOverrides({ groups: 2, validationTags });
const fewDemonstrations = ['data.train_size=8', 'data.val_size=4', 'data.train_batch_size=8', 'trainer.total_epochs=1'];

let workspace: Workspace;
/** Stands for the Ray cluster of the pages. */
let ray: RayPeer;
/** A finished run of three steps with a checkpoint. */
let run = '';
let episode = '';
beforeAll(async () => {
  workspace = makeWorkspace();
  ray = await RayPeer.start();
  const { folder, write } = workspace;
  const args = ['train', '--config-name', 'quickstart', ...tiny(), ...stepOverrides(3)];
  const made = await document<{ folder: string; state: string }>(folder, args);
  expect(made.answer.state, made.stderr).toBe('finished');
  run = basename(made.answer.folder);
  episode = readRun(made.answer.folder).episodes.find(({ id }) => id.startsWith('train'))!.id;
  const guide = readFileSync(join(root, 'docs/environments/writing-your-own.md'), 'utf8');
  const environment = /```ts\n(import [\s\S]*?)```/.exec(guide)![1];
  write('envs/maze/maze.ts', environment);
  write('envs/my-own.ts', environment);
  const guideToStart = readFileSync(join(root, 'docs/GETTING-STARTED.md'), 'utf8');
  write('envs/corridor.ts', /```ts\n(import [\s\S]*?)```/.exec(guideToStart)![1]);
  const tools = readFileSync(join(root, 'docs/environments/tool-calling.md'), 'utf8');
  write('envs/parcels.ts', /```ts\n(import [\s\S]*?)```/.exec(tools)![1]);
  write('config/parcels.yaml', /`config\/parcels\.yaml`:\s+```yaml\n([\s\S]*?)```/.exec(tools)![1]);
  const gateway = readFileSync(join(root, 'docs/GATEWAY.md'), 'utf8');
  write('agent/guess.mjs', /```js\n([\s\S]*?)```/.exec(gateway)![1]);
  write('config/guess.yaml', /`config\/guess\.yaml`[\s\S]*?```yaml\n([\s\S]*?)```/.exec(gateway)![1]);
  for (const name of [
    'agents',
    'config/lake-agent.yaml',
    'config/lake-openai-agent.yaml',
    'config/visual-sokoban.yaml',
  ])
    cpSync(join(root, 'examples', name), join(workspace.folder, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(workspace.folder, 'node_modules')); // the packages of the agents
  const verifiers = readFileSync(join(root, 'docs/environments/verifiers.md'), 'utf8');
  write('config/my-taskset.yaml', /`config\/my-taskset\.yaml`:\s+```yaml\n([\s\S]*?)```/.exec(verifiers)![1]);
  const studies = readFileSync(join(root, 'docs/CASE-STUDIES.md'), 'utf8');
  write('envs/always-right.ts', /```ts\n(import [\s\S]*?)```/.exec(studies)![1]);
  write('config/corridor.yaml', /`config\/corridor\.yaml`:\s+```yaml\n([\s\S]*?)```/.exec(guideToStart)![1]);
  write('rows.jsonl', '{"tokens":[794,440,72]}\n{"tokens":[5,9,12]}\n');
  write('prompts.json', '[{"messages":[{"role":"user","content":"Where am I?"}]}]');
  const half = {
    model_type: 'qwen2',
    hidden_size: 896,
    intermediate_size: 4864,
    num_hidden_layers: 2,
    num_attention_heads: 14,
    num_key_value_heads: 2,
    vocab_size: 151936,
    max_position_embeddings: 32768,
    rms_norm_eps: 1e-6,
    rope_theta: 1e6,
    tie_word_embeddings: true,
    hidden_act: 'silu',
  };
  write('half/config.json', JSON.stringify(half));
});
afterAll(async () => {
  await ray.close();
  await killAll(workspace.folder);
  workspace.remove();
});

/** Replaces placeholder names by existing ones. */
const filled = (words: readonly string[]): string[] =>
  words.map(word =>
    word
      .replace(/^(\d{8}-\d{6}-quickstart(-vision)?-[0-9a-f]{4}|<run>|<id>)$/, run)
      .replace(/^step-\d{6}$/, 'step-000003')
      .replace(/<run>\/checkpoints\/step-\d{6}/, `${run}/checkpoints/step-000003`)
      .replace(/^train-\d{6}-g\d{3}-m\d{2}$/, episode)
      .replace(/^<folder, hub id or ragen-tiny>$/, 'ragen-tiny')
      .replace(/(?<=^sprites_folder=)\.venv\/.*/, join(root, 'test/golden/envs/sprites/stand-ins'))
      .replace('http://ray-head:8265', ray.url),
  );

/** Commands that cannot be run here, with the reason; their configuration is still composed. */
const unrunnable: Record<string, string> = {
  'eval --config-name evaluate_api_llm model_config.model_name=gpt-4o': 'needs a key and the network',
  'train --config-name quickstart-sokoban model_path=HuggingFaceTB/SmolVLM-256M-Instruct es_manager.train.env_configs.tags=[VisualSimpleSokoban] es_manager.val.env_configs.tags=[VisualSimpleSokoban] lora.rank=16 actor_rollout_ref.rollout.max_model_len=4096':
    'needs weights from the hub',
  'train --config-name quickstart-sokoban model_path=HuggingFaceTB/SmolVLM-256M-Instruct es_manager.train.env_configs.tags=[VisualSimpleSokoban] es_manager.val.env_configs.tags=[VisualSimpleSokoban] lora.rank=16 actor_rollout_ref.rollout.max_model_len=4096 actor_rollout_ref.actor.freeze_vision_tower=false':
    'needs weights from the hub',
};

const finishes = async (words: readonly string[], code = [0]) => {
  const said = await ragen(workspace.folder, words);
  expect(code, `ragen ${words.join(' ')}\n${said.stdout}${said.stderr}`).toContain(said.code);
  return said;
};

/** Heat maps need a run whose model reads pictures; unit/trainer/inspection/heat-maps has one. This run's does not. */
const refusesPictures = async (words: readonly string[]) =>
  expect((await finishes(words, [1])).stderr).toContain('show the model no pictures');

/** Starts a run of the preset with fewer episodes and many steps, and returns its id after the first step. */
async function running(): Promise<string> {
  const small = [
    ...groupOverrides('train', [8], 4),
    ...groupOverrides('val', [1], 1),
    'ppo_mini_batch_size=16',
    'micro_batch_size_per_gpu=16',
    'trainer.save_freq=1',
  ];
  const args = ['train', '--config-name', 'quickstart', '--detach', ...small, 'trainer.total_training_steps=500'];
  const { answer } = await document<{ run: string; folder: string }>(workspace.folder, args);
  await untilStep(answer.folder, 1);
  return answer.run;
}

const onRunning = async (words: string[]) => {
  const id = await running();
  await finishes(words.map(word => (word === run ? id : word)));
  await ragen(workspace.folder, ['stop', id]);
};

type Rule = (words: string[]) => Promise<unknown>;

/** Plans a command that names its configuration in its original form, before it is shortened. */
async function plans(words: readonly string[]): Promise<void> {
  if (!words.includes('--config-name') || words.includes('--run')) return;
  await finishes([
    'plan',
    ...words
      .slice(1)
      .filter((word, i, all) => !['--model', '--on'].includes(word) && all[i - 1] !== '--on')
      .map(word => (word === 'ragen-tiny' ? 'model_path=ragen-tiny' : word)),
  ]);
}

/** What has been trained: a configuration, where, and on which model or environment. */
const trained = new Set<string>();

const train: Rule = async words => {
  await plans(words);
  const subject = words
    .filter((word, i) => !word.includes('=') || /^(model_path|custom_envs)/.test(word) || words[i - 1] === '--on')
    .join(' ');
  if (trained.has(subject)) return;
  trained.add(subject);
  await finishes([...words, ...tiny(), ...stepOverrides(1)]);
};

const evaluate: Rule = async words => {
  await plans(words);
  const name = words[words.indexOf('--config-name') + 1];
  const transfer = name === 'eval_transfer';
  await finishes([...words, ...tiny(transfer ? 2 : 1)]);
};

/** How to run a command, by its first words; the first matching rule applies. */
const rules: [string, Rule][] = [
  ['train', train],
  ['eval', evaluate],
  ['sweep', words => sweeps(words)],
  ['claims', words => claims(words)],
  ['sft', words => finishes([...words, ...fewDemonstrations])],
  ['resume', words => stoppedAndResumed(words)],
  ['stop', onRunning],
  ['set', onRunning],
  ['jobs', words => finishes(words)],
  ['plan', words => finishes(words)],
  ['runs', words => finishes(words)],
  ['attach', words => attaches(words)],
  ['diagnose', words => diagnoses(words)],
  ['presets', words => finishes(words)],
  ['config', words => finishes(words)],
  ['doctor', words => finishes(words, words.includes('half') ? [0, 1] : [0])],
  ['score', words => finishes(words)],
  ['generate', words => finishes(words)],
  ['inspect', words => (words.includes('--heat-map') ? refusesPictures(words) : finishes(words))],
  ['export', words => exports(words)],
  ['report', words => finishes([...words, '--force'])],
  ['leaderboard', words => leaderboards(words)],
  ['episodes', words => finishes(words)],
  ['query', words => finishes(words)],
  ['search', words => finishes(words)],
  ['notebook', words => finishes([...words, '--force'])],
  ['engine probe', words => probes(words)],
  ['timeline', words => finishes(words.map(word => word.replace(/^\d+\.\.\d+$/, '1..')))],
  ['env list', words => finishes(words)],
  ['env new', words => finishes(words)],
  ['env observations', words => finishes(words.map(word => word.replace(/^(\d+)\.\.\d+$/, '$1..$1')))],
  ['env check', words => finishes(words)],
  [
    'env play',
    words =>
      words.includes('--input')
        ? given('{"env":"sokoban","config":{"dim_room":[6,6],"num_boxes":1},"seed":10000,"actions":[1,"Right"]}', words)
        : finishes(words),
  ],
  ['env serve', words => serves(words)],
  ['gateway', words => serves(words)],
  ['env versions', words => finishes(words)],
  ['plugin new', words => finishes(words)],
  ['plugin check', words => finishes(words)],
  ['algo', words => given('{"estimator":"grpo","scores":[1,0],"mask":[[1],[1]],"group":[0,0]}', words)],
];

/** Attaches a sample in place of the documented path, and reads it once. */
async function attaches(words: string[]): Promise<void> {
  workspace.write('mapping.yaml', 'fields: {reward: reward}\n');
  const sample = words[1].endsWith('.jsonl') ? 'openai-messages/rollouts.jsonl' : 'verl';
  const path = join(root, 'test/golden/foreign-runs', sample);
  await finishes([words[0], path, ...words.slice(2), '--once']);
}

/** Diagnoses a sample in place of the documented run. */
async function diagnoses(words: string[]): Promise<void> {
  const path = join(root, 'test/golden/foreign-runs/verl');
  const { answer } = await document<{ run: string }>(workspace.folder, ['attach', path, '--once']);
  await finishes([words[0], answer.run, ...words.slice(2)]);
}

/** Probes a simulated server in place of the documented one. */
async function probes(words: string[]): Promise<void> {
  const model = words[words.indexOf('--model') + 1];
  const peer = await TinkerPeer.start({ vocabSize: 32, ...(words.includes('--model') && { offers: [model] }) });
  const args = words.map(word => (/^https?:/.test(word) ? peer.url : word));
  const said = await ragen(workspace.folder, args, 'export GPU_KEY=a-key-of-the-documentation');
  await peer.stop();
  expect(said.code, said.stderr).toBe(0);
}

/** Sends a run to a simulated server in place of the documented one. */
async function exports(words: string[]): Promise<void> {
  if (!words.includes('--mlflow')) return void (await finishes(words));
  const peer = new MlflowPeer();
  const url = await peer.open();
  await finishes(words.map(word => (/^https?:/.test(word) ? url : word)));
  await peer.close();
  expect(peer.metrics.length).toBeGreaterThan(0);
}

/** A leaderboard needs an evaluation. */
async function leaderboards(words: string[]): Promise<void> {
  await evaluate(['eval', '--config-name', 'quickstart', '--model', 'ragen-tiny']);
  await finishes(words);
}

/** The shortened runs of a sweep are not those of its claim, so nothing is saved (claim-metrics tests what is saved). */
async function claims(words: string[]): Promise<void> {
  const saves = words.includes('--save');
  const { stderr } = await finishes(words, [saves ? 1 : 0]);
  if (saves) expect(stderr).toContain(`run ragen sweep ${words[1]} first`);
}

/** On a second call, a sweep recognizes its existing runs and prints no notes about them. */
async function sweeps(words: string[]): Promise<void> {
  const args = [...words, ...tiny(), ...stepOverrides(1)];
  const { stderr } = await finishes(args);
  const notes = stderr.match(/^note: config: .*max_model_len is lowered from \d+ to 2048/gm) ?? [];
  expect(notes).toHaveLength(words[1].startsWith('claim_') ? 0 : 1); // claims are configured for the bundled models
  const again = await finishes(args);
  expect(again.stderr).toMatch(/(\d+) of \1 runs are finished already/);
}

/** Resumes a stopped run; a documented checkpoint becomes the first one, which later steps follow. A fork is stopped too. */
async function stoppedAndResumed(words: string[]): Promise<void> {
  const id = await running();
  await ragen(workspace.folder, ['stop', id]);
  const args = words.map((word, i) => (word === run ? id : words[i - 1] === '--from' ? '1' : word));
  const { answer } = await document<{ run: string }>(workspace.folder, [...args, '--detach']);
  expect(answer.run === id).toBe(!words.includes('--fork'));
  await ragen(workspace.folder, ['stop', answer.run]);
}

async function given(oneCase: string, words: string[]): Promise<void> {
  workspace.write('cases.json', `[${oneCase}]`);
  const { stdout } = await finishes(words);
  expect(stdout).not.toContain('"error"');
}

/** A server counts as started once it prints its address; a documented port may be in use. */
async function serves(words: string[]): Promise<void> {
  const args = words.map((word, i) => (words[i - 1] === '--port' ? '0' : word));
  const port = args.includes('--port') ? [] : ['--port', '0'];
  const child = spawn(process.execPath, [join(root, 'dist/cli.cjs'), ...args, ...port], { cwd: workspace.folder });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', text => (said += text));
  const closed = new Promise(resolve => child.once('close', resolve));
  await until('the server serves', () => {
    if (child.exitCode !== null) throw new Error(said);
    return said.includes('Serving at http://');
  });
  for (const name of args.slice(2).filter(word => /^[a-z]+(_[a-z]+)*$/.test(word)))
    expect(said).toContain(`/${name}\n`);
  child.kill('SIGINT');
  await closed;
}

const commands = blockCommands();
const titled = (all: readonly DocumentedCommand[]) =>
  all.map(({ location, words }) => [words.join(' '), location, words] as const);

test('the pages show commands of every kind', () => {
  const shown = commands.map(({ words }) => words.join(' '));
  const unused = rules
    .map(([name]) => name)
    .filter(name => !shown.some(command => `${command} `.startsWith(`${name} `)));
  expect(unused).toEqual([]);
  expect(Object.keys(unrunnable).filter(command => !shown.includes(command))).toEqual([]);
});

describe('runs as documented', () => {
  const executed = new Set<string>();
  test.each(titled(commands))('ragen %s runs as documented (%s)', { timeout: 240_000 }, async (command, _, words) => {
    if (command in unrunnable) {
      await finishes(['config', ...words.slice(1)]);
      return;
    }
    const rule = rules.find(([name]) => `${command} `.startsWith(`${name} `))?.[1];
    if (!rule) throw new Error(`no rule says how "ragen ${command}" is run: add one, or the reason why it cannot be`);
    const real = filled(words);
    const name = real.join(' ');
    if (executed.has(name)) return;
    await rule(real);
    executed.add(name);
  });
});

describe('names in the text', () => {
  const help = new Map<string, Promise<string>>();
  const helpOf = (words: string[]): Promise<string> => {
    const name = words.join(' ');
    if (!help.has(name))
      help.set(
        name,
        finishes([...words, '--help']).then(({ stdout }) => stdout),
      );
    return help.get(name)!;
  };

  const unique = new Map(inlineCommands().map(command => [command.words.join(' '), command]));
  test.each(titled([...unique.values()]))('ragen %s has existing commands and options (%s)', async (_, __, words) => {
    if (words[0].startsWith('<')) return; // ragen <command> --help
    const group = ['env', 'jobs', 'plugin'].includes(words[0]) && words.length > 1 ? 2 : 1;
    const text = await helpOf(words.slice(0, group));
    for (const option of words.filter(word => /^--[a-z]/.test(word) && word !== '--help'))
      expect(text).toContain(option);
  });

  test.each(
    [...unique.values()].flatMap(({ words }) => {
      const at = words.indexOf('--config-name');
      return at > 0 && !words[at + 1].startsWith('<') ? [words[at + 1]] : [];
    }),
  )('the configuration %s exists', async name => {
    if (name === 'guess') return; // the reader's own, defined on the page
    await finishes(['config', '--config-name', name]);
  });
});
