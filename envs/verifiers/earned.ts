// What an episode of verifiers has earned: the rewards and metrics of its agents' traces, as pure functions.
import type { EndedTrace, RunEnd } from './served-run';

/** Reasons of verifiers for which a limit, not the task, ended a trace. */
const limits = new Set(['max_turns', 'max_input_tokens', 'max_output_tokens', 'max_total_tokens', 'compaction_failed']);

/**
 * Returns the reward: the mean of the agents' rewards, where an agent's reward is the sum of its weighted rewards.
 * @param agents names of the agents that count; null for all that the environment trains
 * @throws Error if no such agent was scored
 */
export function earnedBy(end: RunEnd, agents: readonly string[] | null): number {
  const scored = counted(end, agents).filter(({ rewards }) => Object.keys(rewards).length > 0);
  if (scored.length === 0) throw new Error(whyUnscored(end, agents));
  const sums = scored.map(({ rewards }) => Object.values(rewards).reduce((sum, value) => sum + value, 0));
  return sums.reduce((sum, value) => sum + value, 0) / sums.length;
}

/** Returns the rewards and metrics of the agents by name, each averaged over the agents that have it. */
export function valuesOf(end: RunEnd, agents: readonly string[] | null): Record<string, number> {
  const values = new Map<string, number[]>();
  for (const { rewards, metrics } of counted(end, agents))
    for (const [name, value] of [...Object.entries(metrics), ...Object.entries(rewards)])
      values.set(name, [...(values.get(name) ?? []), value]);
  return Object.fromEntries(
    [...values].map(([name, each]) => [name, each.reduce((sum, value) => sum + value, 0) / each.length]),
  );
}

/** Whether a limit ended one of the traces. */
export const isCutOff = ({ traces }: RunEnd): boolean =>
  traces.some(({ isTrained, stopped }) => isTrained && stopped !== null && limits.has(stopped));

const counted = ({ traces }: RunEnd, agents: readonly string[] | null): EndedTrace[] =>
  traces.filter(({ agent, isTrained }) => (agents ? agents.includes(agent) : isTrained));

function whyUnscored({ traces, error }: RunEnd, agents: readonly string[] | null): string {
  if (error !== undefined) return `The episode failed on the verifiers server: ${error}`;
  const names = [...new Set(traces.map(({ agent }) => agent))].join(', ');
  return agents
    ? `No agent of env_config.agents (${agents.join(', ')}) has a reward: the episode's agents are ${names || 'none'}`
    : `No agent of the episode has a reward: the episode's agents are ${names || 'none'}`;
}
