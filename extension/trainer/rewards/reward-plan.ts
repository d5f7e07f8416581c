// The reward components of an environment tag and their weights: the components that the environment's code declares,
// and the built-in components that the configuration switches on. Invariant: a tag without components has no plan, and
// its episodes are scored exactly as if components did not exist.
import type { StateForm } from '../../../envs/api/state-forms';
import type { AnsweredTurn, ComponentValues } from '../../../envs/api/rewards';
import { grounding } from '../../../envs/api/rewards/grounding';
import { repetition } from '../../../envs/api/rewards/repetition';
import { stateAgreement } from '../../../envs/api/rewards/described-state';
import { thoughtLength } from '../../../envs/api/rewards/thought-length';
import { didYouMean } from '../../common/suggest';
import { UserError } from '../../common/user-error';
import type { LoadedEnvironment, Scores } from '../../protocol/environment-link';
import type { RewardSettings } from '../config/schema-rewards';
import { judgedParts } from './state-judge';
import { stateForm, type DescribedPart, type PromptFormat } from '../rollout/prompt-format';

export interface RewardPlan {
  /** Weight of each component, by name. */
  weights: ReadonlyMap<string, number>;
  /** Names of the components that judges score. */
  judges: readonly string[];
  /** Parts of answers that the judge of states scores. */
  judgedParts: readonly DescribedPart[];
  /** Which score functions the environment's code has. */
  scores: Scores;
  /** Returns the values of the built-in components for a turn. */
  builtIn(turn: BuiltInTurn): ComponentValues;
}

/** What the built-in components score. */
export interface BuiltInTurn extends Pick<AnsweredTurn, 'state' | 'thought'> {
  /** Whether the answer follows the prompt format, and all its actions are valid. */
  format_right: boolean;
  /** Descriptions of the state before and after the actions; undefined if the prompt format has none. */
  observation?: string | undefined;
  prediction?: string | undefined;
  /** The true states; undefined if the environment was not asked for them. */
  true_state?: string;
  true_next_state?: string;
}

/** Names of the built-in components; each is a key of `custom_envs.<tag>.rewards`. */
export const builtInComponents = [
  'thought_length',
  'grounding',
  'repetition',
  'format',
  'observation',
  'prediction',
] as const;

type Declared = Pick<LoadedEnvironment, 'tag' | 'source' | 'components' | 'scores'>;

/**
 * Returns why the configured components of a tag do not fit the environment's code, as one sentence; undefined if they
 * fit.
 */
export function componentProblem(
  { tag, source, components = {} }: Declared,
  settings: RewardSettings | null | undefined,
): string | undefined {
  const declared = Object.keys(components);
  const at = `config: custom_envs.${tag}.rewards`;
  const unknown = Object.keys(settings?.weights ?? {}).find(name => !declared.includes(name));
  if (unknown !== undefined) {
    const builtIn = builtInComponents.find(name => name === unknown);
    const otherwise = builtIn
      ? `set the weight of this built-in component with rewards.${builtIn}.weight`
      : declared.length > 0
        ? `use one of ${declared.join(', ')}`
        : 'declare it in components of the environment or of its rewards file';
    return `${at}.weights.${unknown} is the weight of a component that ${source} does not declare: ${didYouMean(unknown, declared, otherwise)}`;
  }
  const judged = Object.keys(settings?.judges ?? {});
  const shared = judged.find(name => declared.includes(name) || builtInComponents.some(other => other === name));
  if (shared !== undefined) return `${at}.judges.${shared} has the name of another component: rename the judge`;
  const twice = builtInComponents.find(name => settings?.[name] && declared.includes(name));
  if (twice !== undefined)
    return `${at}.${twice} switches on a built-in component, but ${source} declares a component of the same name: rename the component in the code, or set ${twice} to null`;
  return undefined;
}

/**
 * Returns the plan of a tag; undefined if it has no components.
 * @param format the prompt format of the tag
 * @throws UserError if the configured components do not fit the environment's code
 */
export function rewardPlan(
  environment: Declared,
  settings: RewardSettings | null | undefined,
  format: PromptFormat | null = null,
): RewardPlan | undefined {
  const problem = componentProblem(environment, settings);
  if (problem !== undefined) throw new UserError(problem);
  const { components = {}, scores = { turn: false, episode: false } } = environment;
  const { weights: chosen = {}, thought_length: length, grounding: grounded } = settings ?? {};
  const { repetition: repeated, format: formatted, observation, prediction } = settings ?? {};
  const form = format && stateForm(format);
  const weights = new Map(Object.entries({ ...components, ...chosen }));
  for (const name of builtInComponents) {
    const own = settings?.[name];
    if (own) weights.set(name, own.weight);
  }
  const judged = Object.entries(settings?.judges ?? {});
  for (const [name, { weight }] of judged) weights.set(name, weight);
  if (weights.size === 0) return undefined;
  const parts = judgedParts({ prompt_format: format, rewards: settings });
  const builtIn: RewardPlan['builtIn'] = turn => {
    const named = grounded ? grounding(turn) : undefined;
    return {
      ...(length && { thought_length: thoughtLength(turn, length) }),
      ...(named !== undefined && { grounding: named }),
      ...(repeated && { repetition: repetition(turn, repeated) }),
      ...(formatted && { format: Number(turn.format_right) }),
      ...(observation && described('observation', form, turn, turn.observation, turn.true_state)),
      ...(prediction && described('prediction', form, turn, turn.prediction, turn.true_next_state)),
    };
  };
  return { weights, judges: judged.map(([name]) => name), judgedParts: parts, scores, builtIn };
}

/**
 * Returns how far a description agrees with the true state, as a component. There is no value if the answer departs from
 * the format, or if descriptions are sentences, which only a judge can compare.
 */
function described(
  name: DescribedPart,
  form: StateForm | null,
  { format_right }: BuiltInTurn,
  text: string | undefined,
  truth: string | undefined,
): ComponentValues {
  if (!format_right || !form || form === 'natural_language' || text === undefined || truth === undefined) return {};
  return { [name]: stateAgreement(form, text, truth) };
}

/** Returns the weighted sum of component values. */
export const weightedSum = ({ weights }: Pick<RewardPlan, 'weights'>, values: ComponentValues): number =>
  Object.entries(values).reduce((sum, [name, value]) => sum + (weights.get(name) ?? 0) * value, 0);
