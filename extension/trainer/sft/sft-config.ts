// Configuration of supervised fine-tuning: verl's keys (sft_trainer.yaml) for data, model, optimizer and schedule, and
// the key `demonstrations`, which says how the training data is created. Files and overrides are composed as for a run.
// The default values are in media/presets/sft.yaml.
import { z } from 'zod';
import { compose, findConfig, unknownConfig } from '../config/compose';
import { ConfigError } from '../config/config-error';
import type { ConfigProblem } from '../config/config-error';
import { configHash } from '../config/config-hash';
import { interpolate } from '../config/interpolation';
import { applyOverrides } from '../config/overrides';
import { devices } from '../../engine/session/devices';
import { expectation, schemaAt } from '../../common/json-schema';
import type { JsonSchema } from '../../common/json-schema';
import { once } from '../../common/once';
import { appendAll } from '../../common/lists';
import { count } from '../config/schema-policy';
import { didYouMean } from '../../common/suggest';
import { nodeAt, toPlain } from '../config/yaml-tree';
import type { MapNode } from '../config/yaml-tree';

const share = z.number().min(0).max(1);

const sftSchema = z
  .strictObject({
    demonstrations: z
      .strictObject({
        config_name: z
          .string()
          .describe(
            'Name of the configuration that defines the environments and the turn protocol of the demonstrations.',
          ),
        overrides: z.array(z.string()).describe('Overrides of the configuration config_name, in command-line syntax.'),
        tags: z
          .array(z.string())
          .min(1)
          .nullable()
          .describe('Tags of the demonstrated environments; null means all tags that the configuration trains on.'),
        seed: z
          .int()
          .min(0)
          .describe('First seed of the demonstrated levels; should be far from the seeds of training and validation.'),
        max_depth: count('Maximum number of actions in a solution; levels with longer solutions are skipped.'),
      })
      .describe('Environments and configuration of the demonstrations.'),
    data: z
      .strictObject({
        train_size: count('Demonstrations to train on, shared evenly among the tags.'),
        val_size: count('Demonstrations to validate on; their levels are not trained on.'),
        train_batch_size: count('Demonstrations per optimizer step.'),
        micro_batch_size_per_gpu: count(
          'Micro-batch size: a pass processes at most this number times max_length tokens.',
        ),
        max_length: count('Maximum tokens of a demonstration; longer ones are dropped.'),
      })
      .describe('Number and maximum length of the demonstrations.'),
    model: z
      .strictObject({
        partial_pretrain: z.string().min(1).describe('Initial model, as in model_path.'),
        lora_rank: z.int().min(0).describe('Rank of the adapters; 0 trains all weights.'),
        lora_alpha: z.number().positive().describe('Scale of the adapters.'),
        lora_dropout: share.lt(1).describe("Dropout on the adapters' inputs during training."),
        target_modules: z.union([z.string(), z.array(z.string())]).describe('Linear layers with adapters.'),
        enable_gradient_checkpointing: z.boolean().describe('Recompute activations in the backward pass.'),
      })
      .describe('Model and adapters to train.'),
    optim: z
      .strictObject({
        lr: z.number().positive().describe('Peak learning rate of AdamW.'),
        betas: z.tuple([share.lt(1), share.lt(1)]).describe('Decay rates of the two moments of AdamW.'),
        weight_decay: z.number().min(0).describe('Decoupled weight decay of AdamW.'),
        warmup_steps_ratio: share.describe('Share of the steps over which the learning rate rises from zero.'),
        clip_grad: z
          .number()
          .positive()
          .describe('Maximum global norm of the gradients; larger gradients are scaled down to this norm.'),
        lr_scheduler: z.enum(['constant', 'linear', 'cosine']).describe('Learning rate schedule after the warm-up.'),
      })
      .describe('AdamW optimizer.'),
    trainer: z
      .strictObject({
        default_local_dir: z.string().min(1).describe('Output folder, relative to the workspace.'),
        experiment_name: z
          .string()
          .min(1)
          .describe('Subfolder name; by default the name of the demonstrated configuration.'),
        total_epochs: count('Passes over the demonstrations.'),
        total_training_steps: z.int().min(1).nullable().describe('Maximum steps; null trains for all epochs.'),
        save_freq: z.int().min(-1).describe('Steps between checkpoints; 0 or -1 saves one after each epoch.'),
        test_freq: z
          .int()
          .min(-1)
          .describe('Steps between measurements of the validation loss; 0 or -1 measures it after each epoch.'),
        max_ckpt_to_keep: count('Number of newest checkpoints to keep.'),
        seed: z.int().min(0).describe('Seed of the sample order and of new adapters.'),
      })
      .describe('Steps, checkpoints and outputs of the training.'),
    workbench: z
      .strictObject({
        device: z.enum(devices).describe('Device of the model.'),
        threads: z.int().min(0).describe('CPU threads of the model; 0 for one per core.'),
      })
      .describe('Settings of RAGEN Workbench.'),
  })
  .describe('Configuration of supervised fine-tuning.');

export type SftConfig = z.infer<typeof sftSchema>;

const jsonSchema = once(() => z.toJSONSchema(sftSchema, { io: 'input' }) as JsonSchema);

/**
 * Keys of verl that have no effect here, because they configure GPUs, FSDP, or data files in formats that are not used
 * here.
 */
const ignored = [
  'trainer.nnodes',
  'trainer.n_gpus_per_node',
  'trainer.logger',
  'trainer.project_name',
  'ulysses_sequence_parallel_size',
];

export interface SftSource {
  configName: string;
  configFile?: string;
  overrides: readonly string[];
  presetFolders: readonly string[];
}

/** Loads and validates a fine-tuning configuration. Throws a ConfigError with all problems. */
export function loadSftConfig(source: SftSource): { config: SftConfig; hash: string; notes: string[] } {
  const problems: ConfigProblem[] = [];
  const file = source.configFile ?? findConfig(source.configName, source.presetFolders);
  if (file === undefined)
    throw new ConfigError([{ key: '', message: unknownConfig(source.configName, source.presetFolders) }]);
  const { tree } = compose(file, source.presetFolders, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  const isKnown = (path: readonly string[]): boolean =>
    ignored.includes(path.join('.')) || schemaAt(jsonSchema(), path) !== undefined;
  const overridden = applyOverrides(tree, source.overrides, { isKnown, advise }, problems);
  const root = interpolate(overridden, problems);
  const { kept, notes } = withoutIgnored(root);
  const parsed = sftSchema.safeParse(toPlain(kept));
  if (!parsed.success)
    appendAll(
      problems,
      parsed.error.issues.flatMap(issue => problemsOf(issue, kept)),
    );
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  return { config: parsed.data, hash: configHash(parsed.data), notes };
}

function advise(path: readonly PropertyKey[], name: string): string {
  return didYouMean(name, Object.keys(schemaAt(jsonSchema(), path)?.properties ?? {}), 'remove it');
}

function problemsOf(issue: z.core.$ZodIssue, root: MapNode): ConfigProblem[] {
  const key = issue.path.join('.');
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map(name => {
      const path = [...issue.path, name];
      const message = `config: ${path.join('.')} is not a key of fine-tuning: ${advise(issue.path, name)}`;
      return { key: path.join('.'), message, ...nodeAt(root, path)?.location };
    });
  const wanted = expectation(schemaAt(jsonSchema(), issue.path) ?? {});
  const node = nodeAt(root, issue.path);
  const message = node
    ? `config: ${key} is ${JSON.stringify(toPlain(node))}: use ${wanted}`
    : `config: ${key} is missing: add it (${wanted})`;
  return [{ key, message, ...node?.location }];
}

function withoutIgnored(root: MapNode): { kept: MapNode; notes: string[] } {
  const notes: string[] = [];
  const strip = (map: MapNode, prefix: string): MapNode => ({
    ...map,
    entries: new Map(
      [...map.entries].flatMap(([name, child]) => {
        const key = prefix + name;
        if (ignored.includes(key)) {
          notes.push(`config: ${key} has no effect here`);
          return [];
        }
        return [[name, child.kind === 'map' ? strip(child, `${key}.`) : child] as const];
      }),
    ),
  });
  return { kept: strip(root, ''), notes };
}
