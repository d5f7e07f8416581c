// Schema of the reward components of an environment tag (docs/environments/rewards.md). The key `rewards` has no default
// value, so the configurations of runs without components stay as they are.
import { z } from 'zod';
import { count } from './schema-policy';

const weight = z
  .number()
  .describe('Weight of the component in the reward; negative for a penalty, 0 to measure the component only.');

const componentName = z.string().regex(/^[A-Za-z_][\w-]{0,63}$/, 'letters, digits, underscores and hyphens');

const thoughtLength = z
  .strictObject({
    weight,
    min: count('Smallest length of a thought, in words, that has the value 1.').default(10),
    max: count('Largest length of a thought, in words, that has the value 1.').default(60),
  })
  .describe('Whether the length of the thought is in a target range, 0 to 1; null is off.');

const grounding = z
  .strictObject({ weight })
  .describe("How much of the state's words, numbers and coordinates the thought names correctly, 0 to 1; null is off.");

const repetition = z
  .strictObject({ weight, size: count('Number of adjacent words that are compared.').default(3) })
  .describe('How much of the thought repeats earlier parts of it, 0 to 1; null is off.');

const format = z
  .strictObject({ weight })
  .describe(
    'Whether the answer follows prompt_format and all its actions are valid, 0 or 1 (VAGEN: weight 0.5); null is off.',
  );

const observation = z
  .strictObject({ weight })
  .describe(
    "How far the answer's description of the state agrees with the true state, 0 to 1, if the answer follows prompt_format (VAGEN: weight 0.5); null is off.",
  );

const prediction = z
  .strictObject({ weight })
  .describe(
    "How far the answer's prediction agrees with the true state after its actions, 0 to 1, if the answer follows prompt_format (VAGEN: weight 0.5); null is off.",
  );

const models = z
  .array(z.string())
  .min(1)
  .max(2)
  .describe('Names of one or two models in model_info. With two, the value is the mean of their scores.');

/** Limits of the requests to models behind APIs. @param of who sends the requests, such as `component` */
export const requestLimits = (of: string) => ({
  max_concurrency: count('Maximum concurrent requests to a model.').default(8),
  max_requests: count(`Maximum requests of this ${of} in a run; null is no limit.`).nullish(),
  max_tokens: count(`Maximum input and output tokens of this ${of} in a run; null is no limit.`).nullish(),
  max_cost: z
    .number()
    .positive()
    .nullish()
    .describe(
      `Maximum cost of this ${of} in a run, in the currency of the models' price_per_million; null is no limit.`,
    ),
});

/** Limits of a judge's requests. */
const limits = {
  ...requestLimits('component'),
  wait_s: z
    .number()
    .positive()
    .describe('Seconds for which a rollout that is otherwise complete waits for judges; then the component is missing.')
    .default(300),
};

const scale = z.number().positive().describe('Best score that a judge can give; the value is the score divided by it.');

const judge = z
  .strictObject({
    weight,
    rubric: z.string().min(1).describe('Path of the rubric, a Markdown or text file.'),
    models,
    scale: scale.default(10),
    ...limits,
  })
  .describe('Scores complete episodes by a rubric.');

const stateJudge = z
  .strictObject({
    prompt: z
      .string()
      .min(1)
      .nullish()
      .describe(
        'Path of the criteria by which descriptions are compared with true states, a Markdown or text file; null uses the built-in criteria.',
      ),
    models,
    scale: scale.default(1),
    ...limits,
  })
  .describe(
    'Models that score observation and prediction if descriptions are sentences (docs/environments/states.md). Budgets hold for each of the two components.',
  );

export const rewards = z
  .strictObject({
    file: z
      .string()
      .min(1)
      .nullish()
      .describe(
        'Path of a rewards file. null uses the file beside your environment, such as envs/guess.rewards.ts beside envs/guess.ts, if it exists.',
      ),
    weights: z
      .record(componentName, z.number())
      .default({})
      .describe("Weights that replace the code's default weights, by component."),
    thought_length: thoughtLength.nullish(),
    grounding: grounding.nullish(),
    repetition: repetition.nullish(),
    format: format.nullish(),
    observation: observation.nullish(),
    prediction: prediction.nullish(),
    state_judge: stateJudge.nullish(),
    judges: z
      .record(componentName, judge)
      .default({})
      .describe('Components whose value is the score of models behind an API, by name of the component.'),
  })
  .describe('Components of the reward that score the complete answer (docs/environments/rewards.md).');

/** Settings of a judge component, `custom_envs.<tag>.rewards.judges.<name>`. */
export type JudgeSettings = z.infer<typeof judge>;

/** Settings of the judge of descriptions, `custom_envs.<tag>.rewards.state_judge`. */
export type StateJudgeSettings = z.infer<typeof stateJudge>;

/** Settings of a tag's reward components, `custom_envs.<tag>.rewards`. */
export type RewardSettings = z.infer<typeof rewards>;
