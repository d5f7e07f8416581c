// LoRA adapters as folders in PEFT format: adapter_config.json and adapter_model.safetensors, with tensors named
// base_model.model.<module>.lora_A.weight [r, in] and .lora_B.weight [out, r]. Modules have the names of transformers 5;
// the names of earlier versions are read too. An adapter is rejected if one of its options makes PEFT compute something other than x·(W + scale·B·A)ᵀ; the error names the option. The name and shape of
// every tensor are checked against the base model. PEFT defines the keys and their defaults in
// src/peft/tuners/lora/config.py (github.com/huggingface/peft).
import { join } from 'node:path';
import { z } from 'zod';
import { UserError } from '../../common/user-error';
import { fileSystem, storeError } from '../../node/files';
import type { FileSystem } from '../../node/files';
import { readRegular } from '../../node/regular-file';
import { SafetensorsFile } from '../weights/safetensors';
import { safetensorsParts } from '../weights/safetensors-writer';
import type { DecoderConfig } from '../decoder/decoder-config';
import type { EncoderConfig } from '../vision/encoder-config';
import { isOfDecoder, storedNames, transformersName } from '../vision/stored-names';
import { choosesAll, factorName, loraModules, loraSpecs, withoutAdapter } from './lora';
import type { LoraOptions } from './lora';
import { Weights } from '../weights/weights';

export const adapterConfigName = 'adapter_config.json';
export const adapterWeightsName = 'adapter_model.safetensors';
/** Prefix of the names of an adapter's tensors. */
export const peftPrefix = 'base_model.model.';

/**
 * An adapter in memory: its options and its factors. The factors have the names and shapes that `loraSpecs` returns.
 */
export interface Adapter {
  lora: LoraOptions;
  factors: Weights;
  /** Whether the adapter has factors of the vision encoder or its projection; by default, it has none. */
  adaptsEncoder?: boolean;
}

/** The model of an adapter. */
export interface AdapterBase {
  config: DecoderConfig;
  /** Used only in errors. */
  folder: string;
  /** The model's vision encoder; undefined for models that read text only. */
  encoder?: EncoderConfig | undefined;
}

/**
 * Modules outside the decoder layers. An adapter that contains one of them, as factors or in modules_to_save, is
 * rejected.
 */
const modulesToSave = ['lm_head', 'embed_tokens'];

const targetSchema = z.union([z.string(), z.array(z.string())]).nullish();
const configSchema = z.looseObject({
  peft_type: z.string(),
  base_model_name_or_path: z.string().nullish(),
  r: z.number().int().positive().default(8),
  lora_alpha: z.number().default(8),
  lora_dropout: z.number().min(0).max(1).nullish(),
  use_rslora: z.boolean().nullish(),
  target_modules: targetSchema,
  exclude_modules: targetSchema,
  layers_to_transform: z.unknown().optional(),
  init_lora_weights: z.unknown().optional(),
});
type PeftConfig = z.infer<typeof configSchema>;

const merged = "merge the adapter into its base with peft's merge_and_unload, and use the merged model";
/**
 * Keys that change an adapter's computation. A key is rejected unless its value is empty or equals the value given
 * here.
 */
const neutral: Readonly<Record<string, unknown>> = {
  bias: 'none',
  lora_bias: false,
  use_dora: false,
  use_qalora: false,
  modules_to_save: null,
  rank_pattern: {},
  alpha_pattern: {},
  layer_replication: null,
  target_parameters: null,
  trainable_token_indices: null,
  alora_invocation_tokens: null,
  use_bdlora: null,
  arrow_config: null,
  kasa_config: null,
  monteclora_config: null,
  velora_config: null,
};
/**
 * Initialisations that do not change the base weights. All other initialisations, such as PiSSA and OLoRA, change the
 * base weights and are rejected.
 */
const plainInitializations: readonly unknown[] = [undefined, null, true, false, 'gaussian', 'orthogonal', 'eva'];

/**
 * Reads an adapter for the base in `base.folder`. The returned `targets` value is `all-linear`, or the shortest list of
 * names that selects the adapter's modules. With use_rslora, PEFT's scale is alpha/√r, so the returned `alpha` is
 * multiplied by √r.
 * @throws UserError that names the file, the invalid key or tensor, and the remedy
 */
export async function readAdapter(folder: string, base: AdapterBase, fs: FileSystem = fileSystem): Promise<Adapter> {
  const config = await readConfig(folder, fs);
  const file = await SafetensorsFile.open(await weightsFile(folder, fs), fs);
  try {
    const names = tensorNames(file, base);
    const adaptsEncoder = [...file.tensors.keys()].some(tensor => !isOfDecoder(names.get(tensor) ?? ''));
    const encoder = adaptsEncoder ? base.encoder : undefined;
    const { modules, tensors } = modulesOf(file, names, config, { ...base, encoder });
    const lora = {
      rank: config.r,
      alpha: config.use_rslora ? config.lora_alpha * Math.sqrt(config.r) : config.lora_alpha,
      dropout: config.lora_dropout ?? 0,
      targets: shortestTargets(base.config, encoder, modules),
    };
    const factors = new Weights(loraSpecs(base.config, lora, encoder));
    for (const { name, dims } of factors.specs) {
      const tensor = tensors.get(name)!;
      const shape = file.tensors.get(tensor)!.shape;
      if (shape.join() !== dims.join())
        throw new UserError(
          `${file.file}: the tensor ${tensor} has the shape [${shape.join(', ')}], but for ${base.folder} at rank ${config.r} the shape must be [${dims.join(', ')}]: ${ownBase(config)}`,
        );
      const data = await file.readFloats(tensor);
      const bad = data.findIndex(x => !Number.isFinite(x));
      if (bad >= 0)
        throw new UserError(
          `${file.file}: the tensor ${tensor} is damaged (element ${bad} is ${data[bad]}): download the adapter again`,
        );
      factors.view(name).set(data);
    }
    return { lora, factors, ...(adaptsEncoder && { adaptsEncoder }) };
  } finally {
    await file.close();
  }
}

/**
 * Returns the contents of the files of an adapter folder, by file name.
 * @param base name of the base model, stored in the configuration
 * @param model the base model; required for vision-language models and for options with `exclude`
 */
export function adapterFiles(
  { lora, factors }: Adapter,
  base: string,
  model?: Pick<AdapterBase, 'config' | 'encoder'>,
): Record<string, Uint8Array> {
  const tensors = factors.specs.map(({ name, dims }) => ({
    name: peftPrefix + transformersName(model?.config ?? {}, name),
    shape: dims,
    data: factors.view(name),
  }));
  // Only keys that every version of PEFT supports are written. `all-linear` is expanded to names, because not every
  // reader supports it.
  const { targets, exclude = null } = lora;
  const modules = [...new Set(factors.specs.map(({ name }) => moduleOf(name)))];
  const names = choosesAll(targets) ? lastNames(modules) : targets;
  const config = {
    alpha_pattern: {},
    auto_mapping: null,
    base_model_name_or_path: base,
    bias: 'none',
    fan_in_fan_out: false,
    inference_mode: true,
    init_lora_weights: true,
    layers_pattern: null,
    layers_to_transform: null,
    lora_alpha: lora.alpha,
    lora_dropout: lora.dropout,
    modules_to_save: null,
    peft_type: 'LORA',
    r: lora.rank,
    rank_pattern: {},
    revision: null,
    target_modules: model && (exclude !== null || model.encoder) ? exactNames(model, modules) : names,
    task_type: 'CAUSAL_LM',
    use_dora: false,
    use_rslora: false,
  };
  return {
    [adapterConfigName]: Buffer.from(`${JSON.stringify(config, null, 2)}\n`),
    [adapterWeightsName]: Buffer.concat(safetensorsParts(tensors)),
  };
}

async function readConfig(folder: string, fs: FileSystem): Promise<PeftConfig> {
  const file = join(folder, adapterConfigName);
  let json: unknown;
  try {
    json = JSON.parse((await readRegular(file, fs)).toString('utf8'));
  } catch (error) {
    if (error instanceof SyntaxError)
      throw new UserError(
        `${file}: the file is not JSON (${error.message.replace(/\s+/g, ' ')}): download the adapter again`,
      );
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new UserError(
        `${folder}: the folder has no ${adapterConfigName}: choose the folder of a LoRA adapter in PEFT format`,
      );
    throw storeError('read', file, error);
  }
  const type = (json as { peft_type?: unknown } | null)?.peft_type;
  if (typeof type === 'string' && type !== 'LORA')
    throw new UserError(`${file}: peft_type is ${JSON.stringify(type)}, which is not supported: use a LORA adapter`);
  const parsed = configSchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new UserError(
      `${file}: ${issue.path.join('.') || 'content'}: ${issue.message}: use the ${adapterConfigName} of a LoRA adapter`,
    );
  }
  const config = parsed.data;
  const refused = Object.keys(neutral).find(key => !isNeutral(config[key], neutral[key]));
  const key = refused ?? (plainInitializations.includes(config.init_lora_weights) ? undefined : 'init_lora_weights');
  if (key !== undefined)
    throw new UserError(`${file}: ${key} is ${JSON.stringify(config[key])}, which is not supported: ${merged}`);
  return config;
}

const isNeutral = (value: unknown, expected: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === false ||
  value === expected ||
  (typeof value === 'object' && Object.keys(value).length === 0);

async function weightsFile(folder: string, fs: FileSystem): Promise<string> {
  const names = await fs.readdir(folder).catch((error: unknown) => {
    throw storeError('read', folder, error);
  });
  if (names.includes(adapterWeightsName)) return join(folder, adapterWeightsName);
  const remedy = names.includes('adapter_model.bin')
    ? 'save the adapter with safe_serialization=True'
    : 'choose the folder of a LoRA adapter';
  throw new UserError(`${folder}: the folder has no ${adapterWeightsName}: ${remedy}`);
}

/**
 * Returns the parameter names of all factors that an adapter of the base may have, by the names that their tensors may
 * have.
 */
function tensorNames({ tensors }: SafetensorsFile, { config, encoder }: AdapterBase): Map<string, string> {
  const names = new Map<string, string>();
  for (const module of loraModules(config, 'all-linear', { encoder }))
    for (const name of [factorName(module, 'A'), factorName(module, 'B')]) {
      const known = [transformersName(config, name), ...(encoder ? storedNames(name) : [name])];
      const present = known.find(candidate => tensors.has(peftPrefix + candidate)) ?? known[0];
      names.set(peftPrefix + present, name);
    }
  return names;
}

/**
 * Returns the modules whose two factors are in the file, in parameter order, and the name of the tensor of each factor.
 * Throws for unknown or missing tensors.
 */
function modulesOf(
  { file, tensors }: SafetensorsFile,
  names: ReadonlyMap<string, string>,
  config: PeftConfig,
  base: AdapterBase,
): { modules: string[]; tensors: ReadonlyMap<string, string> } {
  for (const name of tensors.keys()) {
    if (names.has(name)) continue;
    const whole = modulesToSave.find(module => name.includes(module));
    if (whole !== undefined)
      throw new UserError(
        `${file}: the tensor ${name} changes ${whole}, for which adapters are not supported: ${merged}`,
      );
    throw new UserError(
      `${file}: the tensor ${name} belongs to no linear layer of ${base.folder} that supports adapters: ${ownBase(config)}`,
    );
  }
  const known = loraModules(base.config, 'all-linear', { encoder: base.encoder });
  const tensorOf = new Map([...names].map(([tensor, name]) => [name, tensor]));
  const present = new Set([...tensors.keys()].map(name => moduleOf(names.get(name)!)));
  if (present.size === 0) throw new UserError(`${file}: the file has no tensors: download the adapter again`);
  const chosen = new Set(chosenModules(known, config, base.config));
  for (const module of known) {
    if (!present.has(module) && !chosen.has(module)) continue;
    const missing = (['A', 'B'] as const)
      .map(factor => tensorOf.get(factorName(module, factor))!)
      .find(x => !tensors.has(x));
    if (missing !== undefined)
      throw new UserError(`${file}: the tensor ${missing} is missing, so the adapter is incomplete: download it again`);
  }
  return { modules: known.filter(module => present.has(module)), tensors: tensorOf };
}

/**
 * Returns the modules that must have factors according to the configuration; empty if target_modules is not a list of
 * plain names. Regular expressions and layer restrictions only control where PEFT creates factors. With such options,
 * the adapter's modules are those whose factors are in the file.
 */
function chosenModules(known: readonly string[], config: PeftConfig, decoder: DecoderConfig): readonly string[] {
  const { target_modules: targets, exclude_modules: exclude, layers_to_transform: layers } = config;
  if (!Array.isArray(targets) || (exclude?.length ?? 0) > 0 || (layers ?? null) !== null) return [];
  const full = (module: string): string => transformersName(decoder, module);
  return known.filter(module => targets.some(name => full(module) === name || full(module).endsWith(`.${name}`)));
}

const shortestTargets = (
  config: DecoderConfig,
  encoder: EncoderConfig | undefined,
  modules: readonly string[],
): LoraOptions['targets'] =>
  modules.length === loraModules(config, 'all-linear', { encoder }).length
    ? 'all-linear'
    : exactNames({ config, encoder }, modules);

/**
 * Returns names that select exactly these modules in PEFT: for each the last or the last two name components, or the full
 * name if other modules of the model end with them. PEFT compares the names with those of all modules, so a number alone
 * would select layers and blocks too.
 */
function exactNames(
  { config, encoder }: Pick<AdapterBase, 'config' | 'encoder'>,
  modules: readonly string[],
): readonly string[] {
  const chosen = new Set(modules);
  const others = [...loraModules(config, 'all-linear', { encoder }), ...withoutAdapter(encoder)].filter(
    module => !chosen.has(module),
  );
  const nameOf = (module: string): string => {
    const parts = module.split('.');
    const isExact = (name: string): boolean =>
      !/^\d+$/.test(name) && !others.some(other => other.endsWith(`.${name}`) || other === name);
    return (
      [parts.slice(-1), parts.slice(-2)].map(end => end.join('.')).find(isExact) ?? transformersName(config, module)
    );
  };
  return [...new Set(modules.map(nameOf))];
}

/** Returns the distinct last name components, such as `q_proj` for model.layers.0.self_attn.q_proj. */
const lastNames = (modules: readonly string[]): string[] => [
  ...new Set(modules.map(module => module.slice(module.lastIndexOf('.') + 1))),
];

const moduleOf = (factor: string): string => factor.replace(/\.lora_[AB]\.weight$/, '');

const ownBase = ({ base_model_name_or_path: base }: PeftConfig): string =>
  base
    ? `use the adapter with the base model it was made for, ${base}`
    : 'use the adapter with the base model it was made for';
