// VAGEN: training as verl's (verl.ts), with the chat template's markers in the dumps, and evaluations, one folder per
// rollout with messages.json and metrics.json. Pictures are found by their names in the folder of the rollout or dump;
// the paths and URLs in the files are not used (vagen-pictures.ts).
// Source: VAGEN of 2026-07, ray_trainer.py, gym_agent_loop.py, vision_workflow.py.
import { counted } from '../../common/numbers';
import { isRecord } from '../../common/json';
import type { Adapter, ForeignEpisode, ForeignRun, RolloutUnit } from '../adapter';
import { chatMessages } from '../chat-turns';
import { numbersIn } from '../json-rows';
import { firstRecord, stem } from '../peek';
import type { SourceFolder } from '../source-folder';
import { EvaluationPictures, TrainingPictures } from './vagen-pictures';
import { findVerl } from './verl';

const evaluated = /^(?:.*\/)?tag_([^/]+)\/([^/]+)\/metrics\.json$/;

export const vagen: Adapter = {
  id: 'vagen',
  async find(source) {
    const hasEvaluation = source.matching(evaluated).length > 0;
    if (!hasEvaluation && !(await hasVagenDump(source))) return null;
    const training = await findVerl(source, { name: 'VAGEN' });
    const base: ForeignRun = training ?? {
      trainer: { name: 'VAGEN' },
      name: stem(source.path),
      config: {},
      totalSteps: 0,
      found: [],
      evaluation: { episodes: 0 },
      missing: ['metrics: the files of an evaluation contain none'],
      metrics: [],
      rollouts: () => Promise.resolve({ units: [] }),
    };
    return {
      ...base,
      rolloutFields: base.rolloutFields ?? 'a number cumulative_reward in metrics.json',
      found: [
        ...base.found,
        ...(hasEvaluation ? [`evaluation: ${counted(source.matching(evaluated).length, 'rollout')}`] : []),
      ],
      missing: [
        ...base.missing,
        ...withoutMessages(source),
        ...(source.matching(/\.(?:png|jpe?g)$/).length > 0 ? [] : ['pictures: set trainer.log_image.enable=true']),
      ],
      async rollouts() {
        const { units } = await base.rollouts();
        const pictures = new TrainingPictures(source);
        const shown = units.map(unit => pictures.added(unit));
        const own = evaluationUnit(source);
        const isOther = ({ mode, step }: RolloutUnit): boolean => mode !== 'val' || step !== own?.step;
        return { units: own ? [...shown.filter(isOther), own] : shown };
      },
    };
  },
};

/** Returns how many rollouts of an evaluation have no texts. */
function withoutMessages(source: SourceFolder): string[] {
  const all = source.matching(evaluated);
  const bare = all.filter(({ name }) => source.stat(name.replace(/metrics\.json$/, 'messages.json')) === undefined);
  return bare.length > 0
    ? [`texts of ${bare.length} of ${all.length} rollouts: messages.json, which VAGEN writes beside metrics.json`]
    : [];
}

async function hasVagenDump(source: SourceFolder): Promise<boolean> {
  const [newest] = source.matching(/(?:^|\/)\d+\.jsonl$/).slice(-1);
  const record = newest && (await firstRecord(source, newest.name));
  return typeof record?.['input'] === 'string' && 'traj_success' in record && record['input'].includes('<|im_start|>');
}

/** All rollouts of the evaluation, as the validation of step 0. */
function evaluationUnit(source: SourceFolder): RolloutUnit | undefined {
  const found = source.matching(evaluated);
  if (found.length === 0) return undefined;
  const pictures = new EvaluationPictures(source);
  return {
    ...{ mode: 'val', step: 0, files: found.map(({ name }) => name) },
    async *read() {
      for (const { name, match } of found) {
        const metrics = await source.json(name);
        const messages = await source.json(name.replace(/metrics\.json$/, 'messages.json'));
        const rollout = isRecord(metrics) ? rolloutOf(metrics, messages, match[1]) : null;
        yield rollout && pictures.added(rollout, name.slice(0, -'metrics.json'.length));
      }
    },
  };
}

function rolloutOf(metrics: Record<string, unknown>, messages: unknown, tag: string): ForeignEpisode | null {
  const { cumulative_reward, success, terminated, seed, rewards, env_name, rollout_id } = metrics;
  if (typeof cumulative_reward !== 'number') return null;
  const chat = chatMessages(messages);
  const turnRewards = Array.isArray(rewards) ? rewards.filter(reward => typeof reward === 'number') : [];
  const responses = chat.filter(({ role }) => role === 'assistant');
  if (turnRewards.length === responses.length)
    responses.forEach((message, i) => {
      message.reward = turnRewards[i];
    });
  return {
    group: `${typeof env_name === 'string' ? env_name : tag} ${String(seed ?? rollout_id)}`,
    tag: typeof env_name === 'string' ? env_name : tag,
    messages: chat,
    reward: cumulative_reward,
    success: typeof success === 'boolean' ? success : null,
    terminated: terminated === true,
    truncated: terminated === false,
    ...(Number.isSafeInteger(seed) && { seed: seed as number }),
    metrics: numbersIn(metrics, ['seed', 'success', 'terminated', 'cumulative_reward']),
  };
}
