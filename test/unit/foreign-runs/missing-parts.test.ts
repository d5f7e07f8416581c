// A run of each trainer whose files, columns or fields are incomplete: what is missing is named, with the setting that
// writes it, and what is there is shown.
import { cpSync, readFileSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { statusSchema } from '../../../extension/run-data/run-status-file';
import { attachOnce, samples, type Attached } from '../../support/attached';
import { dataPage, parquetFile, plainTexts, type Column } from '../../support/parquet-file';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();
const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written
const leftOutOf = ({ folder }: Attached): string =>
  (statusSchema.parse(JSON.parse(readFileSync(folder.file('status.json'), 'utf8'))).left_out ?? []).join('\n');

/** Attaches a changed copy of a sample. `change` gets a function that returns the path of a file of the copy. */
async function changed(sample: string, change: (at: (name: string) => string) => void): Promise<Attached> {
  const copy = join(workspace(), 'run');
  cpSync(join(samples, sample), copy, { recursive: true });
  change(name => join(copy, name));
  for (const entry of readdirSync(copy, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) utimesSync(join(entry.parentPath, entry.name), old, old);
  return attachOnce(workspace(), copy);
}

/** Removes fields from every line of a file of JSON lines. */
function without(file: string, ...fields: string[]): void {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const rest = lines.map(line => {
    const record = JSON.parse(line) as Record<string, unknown>;
    for (const field of fields) delete record[field];
    return `${JSON.stringify(record)}\n`;
  });
  writeFileSync(file, rest.join(''));
}

const texts = (name: string): Column => ({ name, pages: [dataPage(plainTexts(['a', 'b']), 2)] });
const numbers = (name: string): Column => ({ name, type: 5, pages: [dataPage(Buffer.alloc(16), 2)] });

describe('TRL', () => {
  const newest = 'completions/completions_00003.parquet';

  it.each([
    ['completion', [texts('prompt'), numbers('reward'), numbers('advantage')], 'column completion'],
    ['prompt', [texts('completion'), numbers('reward'), numbers('advantage')], 'column prompt'],
  ])('completions without the column %s', async (_, columns, named) => {
    const run = await changed('trl/trl-1.16', at => writeFileSync(at(newest), parquetFile(columns, { rows: 2 })));
    expect(run.missing.join('\n')).toContain(
      `${named} of ${newest}: log_completions=True of TRL 0.28 to 1.16 writes it`,
    );
    expect(Object.keys(run.episodes)).toEqual(['step-000001', 'step-000002']);
    expect(leftOutOf(run)).toContain('2 lines of the rollouts could not be read, so these rollouts are not shown: a rollout has the columns prompt and completion and one for each reward function, which log_completions=True writes'); // prettier-ignore
  });

  it('completions without a column of a reward function: no reward is made up', async () => {
    const columns = [texts('prompt'), texts('completion'), numbers('advantage')];
    const run = await changed('trl/trl-1.16', at => writeFileSync(at(newest), parquetFile(columns, { rows: 2 })));
    expect(Object.keys(run.episodes)).toEqual(['step-000001', 'step-000002']);
    expect(leftOutOf(run)).toContain('2 lines of the rollouts');
    expect(run.missing.filter(text => text.startsWith('column '))).not.toEqual([]);
  });

  it('without completions and without TensorBoard', async () => {
    const { missing, metrics } = await changed('trl/trl-1.16', at => rmSync(at('completions'), { recursive: true }));
    expect(missing.join('\n')).toMatch(/rollouts: set log_completions=True\nmetrics between.*report_to="tensorboard"/);
    expect(metrics).toHaveLength(3);
  });
});

describe('verl', () => {
  it('dumps without step: the file’s name has it', async () => {
    const { episodes } = await changed('verl/rollout_data', at => {
      for (const step of [1, 2, 3]) without(at(`${step}.jsonl`), 'step');
    });
    expect(Object.keys(episodes)).toEqual(['step-000001', 'step-000002', 'step-000003']);
  });

  it('dumps without score, uid and acc', async () => {
    const run = await changed('verl/rollout_data', at => without(at('3.jsonl'), 'score', 'uid', 'acc'));
    expect(run.missing.join('\n')).toContain('rewards in 3.jsonl: its lines have no number score, as verl writes');
    expect(run.missing.join('\n')).toContain('success in 3.jsonl: return acc in the dict of the reward function');
    expect(run.missing.join('\n')).toContain('prompt groups in 3.jsonl: verl writes uid from 0.9 on');
    expect(Object.keys(run.episodes)).toEqual(['step-000001', 'step-000002']);
    expect(leftOutOf(run)).toContain(
      '4 lines of the rollouts could not be read, so these rollouts are not shown: a rollout has the fields input, output and score, which trainer.rollout_data_dir writes',
    );
  });

  it('only a configuration', async () => {
    const { missing } = await changed('verl', at => {
      for (const name of [
        'verl_examples',
        'rollout_data',
        'rollout_data_legacy_0.8',
        'validation_data',
        'train.log',
        'tensorboard_log',
      ])
        rmSync(at(name), { recursive: true });
    });
    for (const key of ['trainer.logger=["console","file"]', 'trainer.rollout_data_dir', 'trainer.validation_data_dir'])
      expect(missing.join('\n')).toContain(key);
  });
});

it('RAGEN: an evaluation whose lines have no reward', async () => {
  const run = await changed('ragen', at => {
    const file = at('eval/val_rollouts_20261122_100300.jsonl');
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('"total_reward"', '"other"'));
  });
  expect(Object.keys(run.episodes)).toEqual(['val-000001', 'val-000002']);
  expect(leftOutOf(run)).toContain('a rollout has the fields messages and metadata.total_reward');
});

it('VAGEN: a dump without pictures, and an evaluation without messages', async () => {
  const dump = await changed('vagen/rollout_data', at => rmSync(at('image_1'), { recursive: true }));
  expect(dump.missing.join('\n')).toContain('pictures: set trainer.log_image.enable=true');
  expect(dump.missing.join('\n')).toContain('VAGEN writes no uid; equal prompts are one group');
  const copy = 'eval_frozenlake/tag_frozenlake_test/FrozenLake_seed_0/messages.json';
  rmSync(join(workspace(), 'run'), { recursive: true });
  const { missing } = await changed('vagen/rollouts', at => rmSync(at(copy)));
  expect(missing.join('\n')).toContain('texts of 1 of 1 rollouts: messages.json');
});

const primeRl = 'outputs/frozenlake--qwen3-0.6b--a1b2c3';
it('prime-rl: without metrics, and traces without rewards', async () => {
  const run = await changed('prime-rl', at => {
    rmSync(at(`${primeRl}/metrics.jsonl`));
    const file = at(`${primeRl}/rollouts/step_3/train/effective/traces.jsonl`);
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('"rewards"', '"other"'));
  });
  expect(run.missing.join('\n')).toContain('metrics: do not set --no-monitors.file');
  expect(Object.keys(run.episodes)).not.toContain('step-000003');
  expect(leftOutOf(run)).toContain('a rollout has the nodes and rewards of a trace, which are written unless');
});

it('verifiers: rows without a reward', async () => {
  const folder = 'frozenlake--openai--gpt-4.1-mini/abc12345';
  const run = await changed('verifiers/outputs/evals', at => without(at(`${folder}/results.jsonl`), 'reward'));
  expect(run.episodes).toEqual({});
  expect(leftOutOf(run)).toContain('4 lines of the rollouts');
  expect(leftOutOf(run)).toContain('or prompt, completion and reward');
});

it('SkyRL: without metrics, and evaluations without a score', async () => {
  const run = await changed('skyrl', at =>
    without(at('exports/dumped_evals/global_step_3_evals/frozenlake_test.jsonl'), 'score'),
  );
  expect(run.missing.join('\n')).toContain('metrics: set trainer.logger="tensorboard"');
  expect(leftOutOf(run)).toContain(
    'input_prompt, output_response and score, which trainer.dump_eval_results=true writes',
  );
});

it('tinker-cookbook: without summaries, and summaries without rewards', async () => {
  const bare = await changed('tinker-cookbook/frozenlake-run', at => {
    for (const step of [0, 1, 2]) rmSync(at(`iteration_00000${step}`), { recursive: true });
  });
  expect(bare.missing.join('\n')).toContain('rollouts: set rollout_json_export=True');
  rmSync(join(workspace(), 'run'), { recursive: true });
  const run = await changed('tinker-cookbook/frozenlake-run', at => {
    rmSync(at('metrics.jsonl'));
    without(at('iteration_000002/train_rollout_summaries.jsonl'), 'total_reward');
  });
  expect(run.missing.join('\n')).toContain('metrics: give the log_path of the run');
  expect(leftOutOf(run)).toContain('total_reward and steps, which rollout_json_export=True writes');
});

it('TensorBoard and JSON lines: what such files lack', async () => {
  expect((await changed('openrlhf', () => undefined)).missing.join('\n')).toContain(
    'rollouts: TensorBoard files contain none',
  );
  rmSync(join(workspace(), 'run'), { recursive: true });
  const run = await changed('openai-messages', at => {
    const file = at('rollouts.jsonl');
    writeFileSync(file, `${readFileSync(file, 'utf8').trimEnd()}\n{"step":3,"messages":[]}\n`);
  });
  expect(run.missing.join('\n')).toContain('metrics: lines with a step and numbers');
});
