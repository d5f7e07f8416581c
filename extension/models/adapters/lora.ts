// LoRA: a frozen linear layer W [out, in] gets two trained factors, A [rank, in] and B [out, rank]. The layer then
// computes x·(W + alpha/rank · B·A)ᵀ. Names, layout, layer selection and initialisation follow PEFT
// (github.com/huggingface/peft), so adapters are interchangeable with PEFT. Only linear layers can have adapters: the
// projections of the decoder layers, and the linear layers of a vision encoder and its projection.
import { UserError } from '../../common/user-error';
import type { AdapterOptions } from '../../engine/load-options';
import type { RandomStream } from '../../engine/sampling/random-stream';
import { parameterSpecs } from '../decoder/decoder-config';
import type { DecoderConfig, ParameterSpec } from '../decoder/decoder-config';
import { encoderSpecs } from '../vision/encoder-config';
import type { EncoderConfig } from '../vision/encoder-config';
import { transformersName } from '../vision/stored-names';
import type { Weights } from '../weights/weights';

/** Options of adapters: rank, alpha, dropout and target layers. */
export type LoraOptions = AdapterOptions;

/** Returns whether `targets` is 'all-linear', in upper or lower case as in PEFT. */
export const choosesAll = (targets: LoraOptions['targets']): targets is string =>
  typeof targets === 'string' && targets.toLowerCase() === 'all-linear';

/** Returns alpha / rank, the number by which B·A is multiplied. */
export const loraScale = (lora: Pick<LoraOptions, 'alpha' | 'rank'>): number => lora.alpha / lora.rank;

/** What is left out of the choice of layers, and whose layers are added to it. */
export interface LoraScope {
  exclude?: LoraOptions['exclude'];
  /** The vision encoder whose layers may get adapters; by default, only the decoder's may. */
  encoder?: EncoderConfig | undefined;
}

/**
 * Returns the full names of the linear layers that `targets` selects and `exclude` does not, such as
 * model.layers.0.self_attn.q_proj, in parameter order, the decoder's first. A list entry selects every layer whose name in
 * transformers equals the entry, or ends with a dot and the entry. A string other than 'all-linear' is a regular
 * expression that must match the complete name in transformers.
 * @throws UserError that names the pattern, if a pattern is not a valid regular expression, selects nothing, or selects a
 * module for which PEFT supports adapters, but this trainer does not
 */
export function loraModules(
  config: DecoderConfig,
  targets: LoraOptions['targets'],
  { exclude, encoder }: LoraScope = {},
): string[] {
  const modules = linearSpecs(config, encoder).map(({ name }) => moduleOf(name));
  const left = exclude ? patternsOf('exclude_modules', exclude) : [];
  const isLeft = (module: string): boolean => !left.some(({ matches }) => matches(transformersName(config, module)));
  if (choosesAll(targets)) return someOf(modules.filter(isLeft), exclude);
  const patterns = patternsOf('target_modules', targets);
  for (const { pattern, matches } of patterns) {
    const refused = withoutAdapter(encoder).find(module => isLeft(module) && matches(transformersName(config, module)));
    if (refused !== undefined)
      throw new UserError(
        `LoRA: target_modules ${show(pattern)} selects ${transformersName(config, refused)}, for which adapters are not supported: use all-linear or layers such as q_proj`,
      );
    if (!modules.some(module => matches(transformersName(config, module))))
      throw new UserError(
        `LoRA: target_modules ${show(pattern)} selects none of the model's linear layers: use all-linear or names among ${shortNames(modules)}`,
      );
  }
  if (patterns.length === 0)
    throw new UserError(`LoRA: target_modules is empty: set it to all-linear or to names among ${shortNames(modules)}`);
  const isChosen = (module: string): boolean =>
    isLeft(module) && patterns.some(({ matches }) => matches(transformersName(config, module)));
  return someOf(modules.filter(isChosen), exclude);
}

/** Returns the modules. Throws a UserError if there are none, because `exclude` matches all of them. */
function someOf(modules: string[], exclude: LoraOptions['exclude']): string[] {
  if (modules.length > 0) return modules;
  throw new UserError(
    `LoRA: exclude_modules ${JSON.stringify(exclude)} leaves none of the layers that target_modules selects: exclude fewer layers`,
  );
}

/**
 * Returns the names and shapes of the factors: for each module `${module}.lora_A.weight` [rank, in], then
 * `${module}.lora_B.weight` [out, rank]. `encoder`: the vision encoder whose layers may get adapters.
 */
export function loraSpecs(config: DecoderConfig, lora: LoraOptions, encoder?: EncoderConfig): ParameterSpec[] {
  const chosen = new Set(loraModules(config, lora.targets, { exclude: lora.exclude, encoder }));
  return linearSpecs(config, encoder).flatMap(({ name, dims: [out, from] }) => {
    const module = moduleOf(name);
    if (!chosen.has(module)) return [];
    return [
      { name: factorName(module, 'A'), dims: [lora.rank, from] },
      { name: factorName(module, 'B'), dims: [out, lora.rank] },
    ];
  });
}

/** Returns the parameter name of factor A or B of a module. */
export const factorName = (module: string, factor: 'A' | 'B'): string => `${module}.lora_${factor}.weight`;

/**
 * Initialises the factors like PEFT. A is drawn uniformly between −1/√in and 1/√in (Kaiming with a = √5). B is zero, so
 * that a new adapter has no effect. Parameters of `weights` that are not factors stay unchanged.
 */
export function initializeLora(weights: Weights, stream: RandomStream): void {
  for (const { name, dims } of weights.specs) {
    const view = weights.view(name);
    if (name.endsWith('.lora_B.weight')) view.fill(0);
    if (!name.endsWith('.lora_A.weight')) continue;
    const bound = 1 / Math.sqrt(dims[1]);
    for (let i = 0; i < view.length; i++) view[i] = bound * (2 * stream.uniform() - 1);
  }
}

/** Returns the specs of the linear layers that can have an adapter; weights are [out, in]. */
function linearSpecs(config: DecoderConfig, encoder?: EncoderConfig): ParameterSpec[] {
  const left = new Set(withoutAdapter(encoder));
  const specs = [...parameterSpecs(config), ...(encoder ? encoderSpecs(encoder) : [])];
  return specs.filter(({ name, dims }) => dims.length === 2 && !left.has(moduleOf(name)));
}

/**
 * Returns the modules for which PEFT supports adapters, but this trainer does not: embeddings, the output head and
 * convolutions, whose weights are stored with more than two axes.
 */
export const withoutAdapter = (encoder: EncoderConfig | undefined): string[] => [
  'model.embed_tokens',
  'lm_head',
  ...(encoder ? encoderSpecs(encoder) : [])
    .filter(({ name, stored }) => stored !== undefined || /pos_embed|position_embedding/.test(name))
    .map(({ name }) => moduleOf(name)),
];

const moduleOf = (weight: string): string => weight.slice(0, -'.weight'.length);

interface Pattern {
  pattern: string;
  matches: (module: string) => boolean;
}

/** Returns the patterns of a list of names or of a regular expression; `key` is used only in errors. */
const patternsOf = (key: string, given: string | readonly string[]): Pattern[] =>
  typeof given === 'string' ? [byFullMatch(key, given)] : given.map(byNameOrSuffix);

function byFullMatch(key: string, pattern: string): Pattern {
  let expression: RegExp;
  try {
    expression = new RegExp(`^(?:${pattern})$`);
  } catch (error) {
    const remedy = key === 'target_modules' ? 'use all-linear or a list of names' : 'use a list of names';
    throw new UserError(
      `LoRA: ${key} ${show(pattern)} is not a valid regular expression (${(error as Error).message}): ${remedy}`,
    );
  }
  return { pattern, matches: module => expression.test(module) };
}

const byNameOrSuffix = (pattern: string): Pattern => ({
  pattern,
  matches: module => module === pattern || module.endsWith(`.${pattern}`),
});

const show = (pattern: string): string => JSON.stringify(pattern);

const shortNames = (modules: readonly string[]): string =>
  [...new Set(modules.map(module => module.slice(module.lastIndexOf('.') + 1)))].join(', ');
