// Converts the records of verifiers, which prime-rl stores too: episodes of version 1 (a graph of messages with token
// ids), and the rows of version 0 (prompt and completion). Source: verifiers 0.4.0, v1/episode.py, trace.py, graph.py;
// legacy/types.py.
import { isRecord } from '../common/json';
import type { ChatMessage, ForeignEpisode, MessageTokens } from './adapter';
import { chatMessages, messageOf, mostMessages } from './chat-turns';
import { numbersIn } from './json-rows';
import { requireVersion } from './peek';

/**
 * Converts an episode, or a trace of releases before 2026-08-21; null if the record is neither. The reward of a rollout
 * that failed before it was rewarded is 0.
 */
export function tracedRollout(record: Record<string, unknown>): ForeignEpisode | null {
  const traces = Array.isArray(record['traces']) ? record['traces'] : Array.isArray(record['nodes']) ? [record] : [];
  const trained = traces.filter(isRecord).filter(trace => inner(trace, 'agent', 'trainable') !== false);
  const [trace] = trained;
  const task = isRecord(record['task']) ? record['task'] : trace?.['task'];
  const info = isRecord(trace?.['info']) ? trace['info'] : {};
  const env = inner(record, 'env', 'name') ?? inner(record, 'env', 'id') ?? info['env_name'];
  const seed = isRecord(task) && isRecord(task['data']) ? inner(task['data'], 'info', 'seed') : undefined;
  const { error } = errorIn(record['errors'] ?? trace?.['errors']);
  const about = {
    group: String(inner(record, 'group', 'id') ?? info['group_id'] ?? (isRecord(task) ? (task['hash'] ?? '') : '')),
    tag: typeof env === 'string' ? env : 'rollout',
    ...(Number.isSafeInteger(seed) && { seed: seed as number }),
    ...(error !== undefined && { error }),
  };
  const hasFailed = error !== undefined && Array.isArray(record['traces']);
  if (trace === undefined) return hasFailed ? { ...about, messages: promptOf(task), reward: 0, success: null } : null;
  requireVersion('verifiers', 'version', trace['version'], [1]);
  if (!Array.isArray(trace['nodes'])) return null;
  const messages = longestPath(trace['nodes']);
  if (messages.length === 0) return null;
  const metrics = isRecord(trace['metrics']) ? numbersIn(trace['metrics']) : {};
  const success = metrics['success'];
  const stop = trace['stop_condition'];
  const parts = rewardParts(trace['rewards']);
  const reward = parts.length === 0 ? Number.NaN : parts.reduce((sum, { score, weight }) => sum + score * weight, 0);
  const scores = Object.fromEntries(parts.map(({ name, score }) => [`components/${name}`, score]));
  return {
    ...about,
    messages,
    reward: error !== undefined && Number.isNaN(reward) ? 0 : reward,
    success: success === undefined ? null : success > 0,
    terminated: trace['is_completed'] === true,
    truncated: trace['is_truncated'] === true || (typeof stop === 'string' && /max_turns|length|timeout/.test(stop)),
    metrics: { ...metrics, ...numbersIn(scores) },
  };
}

/** Returns the prompt of a task as messages. */
function promptOf(task: unknown): ChatMessage[] {
  const prompt = isRecord(task) && isRecord(task['data']) ? task['data']['prompt'] : undefined;
  return typeof prompt === 'string' ? [{ role: 'user', content: prompt }] : chatMessages(prompt);
}

/** Converts a row of version 0; null if the record is none. */
export function legacyRollout(record: Record<string, unknown>): ForeignEpisode | null {
  const { prompt, completion, reward, example_id, task, error, metrics } = record;
  if (typeof reward !== 'number' || completion === undefined || prompt === undefined) return null;
  const figures = isRecord(metrics) ? numbersIn(metrics) : {};
  return {
    group: String(example_id ?? JSON.stringify(prompt)),
    tag: typeof task === 'string' ? task : 'rollout',
    messages: [...chatMessages(prompt), ...asResponses(completion)],
    reward,
    success: 'success' in figures ? figures['success'] > 0 : null,
    terminated: record['is_completed'] === true,
    truncated: record['is_truncated'] === true,
    ...(Number.isSafeInteger(example_id) && { seed: example_id as number }),
    metrics: figures,
    ...(typeof error === 'string' && { error }),
  };
}

const asResponses = (completion: unknown): ChatMessage[] =>
  typeof completion === 'string' ? [{ role: 'assistant', content: completion }] : chatMessages(completion);

/** Returns `record[outer][key]` if both exist. */
function inner(record: Record<string, unknown>, outer: string, key: string): unknown {
  const found = record[outer];
  return isRecord(found) ? found[key] : undefined;
}

/** Returns the rewards of a trace; a reward without a number has the score NaN. */
function rewardParts(rewards: unknown): { name: string; score: number; weight: number }[] {
  return Object.entries(isRecord(rewards) ? rewards : {}).map(([name, each]) => {
    if (typeof each === 'number') return { name, score: each, weight: 1 };
    const { score, weight } = isRecord(each) ? each : {};
    return {
      name,
      score: typeof score === 'number' ? score : Number.NaN,
      weight: typeof weight === 'number' ? weight : 1,
    };
  });
}

function errorIn(errors: unknown): { error?: string } {
  const [first] = Array.isArray(errors) ? (errors as unknown[]) : [];
  if (first === undefined) return {};
  return { error: typeof first === 'string' ? first : JSON.stringify(first) };
}

/** Returns the messages from the root to the last leaf. Several leaves are branches of the conversation. */
function longestPath(nodes: readonly unknown[]): ChatMessage[] {
  const path: ChatMessage[] = [];
  for (let at: number | undefined = nodes.length - 1; at !== undefined && path.length < mostMessages;) {
    const node: unknown = nodes[at];
    if (!isRecord(node)) break;
    const message = isRecord(node['message']) ? messageOf(node['message']) : null;
    if (message) path.push({ ...message, sampled: node['sampled'] === true, ...tokensOf(node) });
    const parent: unknown = node['parent'];
    // A parent precedes its children, so a forged cycle ends here.
    at =
      Number.isSafeInteger(parent) && (parent as number) >= 0 && (parent as number) < at
        ? (parent as number)
        : undefined;
  }
  return path.reverse();
}

function tokensOf(node: Record<string, unknown>): { tokens?: MessageTokens } {
  const { token_ids, mask, logprobs, advantages } = node;
  if (!Array.isArray(token_ids) || !Array.isArray(mask) || token_ids.length === 0 || token_ids.length !== mask.length)
    return {};
  if (!token_ids.every(id => Number.isSafeInteger(id))) return {};
  const numbers = (list: unknown): number[] | undefined =>
    Array.isArray(list) && list.length > 0 && list.every(value => Number.isFinite(value))
      ? (list as number[])
      : undefined;
  const own = numbers(advantages);
  return {
    tokens: {
      ids: token_ids as number[],
      mask: mask.map(bit => bit === true || bit === 1),
      logprobs: numbers(logprobs) ?? [],
      ...(own && { advantages: own }),
    },
  };
}
