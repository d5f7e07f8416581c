// LoRA: a frozen linear layer W [out, in] gets two trained factors, A [rank, in] and B [out, rank]. The layer then
// computes x·(W + alpha/rank · B·A)ᵀ. Names, layout, layer selection and initialisation follow PEFT
// (github.com/huggingface/peft), so adapters are interchangeable with PEFT. Only the projections of the decoder layers
// can have adapters; embedding and output head cannot.
import { UserError } from '../../common/user-error';
import type { AdapterOptions } from '../../engine/load-options';
import type { RandomStream } from '../../engine/sampling/random-stream';
import { parameterSpecs } from '../decoder/decoder-config';
import type { DecoderConfig, ParameterSpec } from '../decoder/decoder-config';
import type { Weights } from '../weights/weights';

/** Options of adapters: rank, alpha, dropout and target layers. */
export type LoraOptions = AdapterOptions;

/** Returns whether `targets` is 'all-linear', in upper or lower case as in PEFT. */
export const choosesAll = (targets: LoraOptions['targets']): targets is string =>
  typeof targets === 'string' && targets.toLowerCase() === 'all-linear';

/** Returns alpha / rank, the number by which B·A is multiplied. */
export const loraScale = (lora: Pick<LoraOptions, 'alpha' | 'rank'>): number => lora.alpha / lora.rank;

/** Modules for which PEFT supports adapters, but this trainer does not. */
const withoutAdapter = ['model.embed_tokens', 'lm_head'];

/**
 * Returns the full names of the linear layers that `targets` selects, such as model.layers.0.self_attn.q_proj, in
 * parameter order. A list entry selects every layer whose name equals the entry, or ends with a dot and the entry. A
 * string other than 'all-linear' is a regular expression that must match the complete name.
 * @throws UserError that names the pattern, if the pattern is not a valid regular expression, selects nothing, or
 * selects the embedding or the output head
 */
export function loraModules(config: DecoderConfig, targets: LoraOptions['targets']): string[] {
  const modules = linearSpecs(config).map(({ name }) => moduleOf(name));
  if (choosesAll(targets)) return modules;
  const patterns = typeof targets === 'string' ? [byFullMatch(targets)] : targets.map(byNameOrSuffix);
  for (const { pattern, matches } of patterns) {
    const refused = withoutAdapter.find(matches);
    if (refused !== undefined)
      throw new UserError(
        `LoRA: target_modules ${show(pattern)} selects ${refused}, for which adapters are not supported: use all-linear or layers such as q_proj`,
      );
    if (!modules.some(matches))
      throw new UserError(
        `LoRA: target_modules ${show(pattern)} selects none of the model's linear layers: use all-linear or names among ${shortNames(modules)}`,
      );
  }
  if (patterns.length === 0)
    throw new UserError(`LoRA: target_modules is empty: set it to all-linear or to names among ${shortNames(modules)}`);
  return modules.filter(module => patterns.some(({ matches }) => matches(module)));
}

/**
 * Returns the names and shapes of the factors: for each module `${module}.lora_A.weight` [rank, in], then
 * `${module}.lora_B.weight` [out, rank].
 */
export function loraSpecs(config: DecoderConfig, lora: LoraOptions): ParameterSpec[] {
  const chosen = new Set(loraModules(config, lora.targets));
  return linearSpecs(config).flatMap(({ name, dims: [out, from] }) => {
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
const linearSpecs = (config: DecoderConfig): ParameterSpec[] =>
  parameterSpecs(config).filter(({ name, dims }) => dims.length === 2 && !withoutAdapter.includes(moduleOf(name)));

const moduleOf = (weight: string): string => weight.slice(0, -'.weight'.length);

interface Pattern {
  pattern: string;
  matches: (module: string) => boolean;
}

function byFullMatch(pattern: string): Pattern {
  let expression: RegExp;
  try {
    expression = new RegExp(`^(?:${pattern})$`);
  } catch (error) {
    throw new UserError(
      `LoRA: target_modules ${show(pattern)} is not a valid regular expression (${(error as Error).message}): use all-linear or a list of names`,
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
