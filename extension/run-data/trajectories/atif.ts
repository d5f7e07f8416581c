// An episode as a trajectory in ATIF, the Agent Trajectory Interchange Format of Harbor and Terminal-Bench, version 1.4
// (RFC 0001 of the Harbor project). System message and first state are steps; each turn is a step of the agent, whose
// observation is the message with the next state. Pure functions.
import type { Episode, EpisodeTurn } from '../episode';
import type { Manifest } from '../run-manifest';
import { episodeFacts } from './chat-lines';
import type { RoleEpisode } from './role-episodes';

export const atifVersion = 'ATIF-v1.4';

interface AtifStep {
  readonly step_id: number;
  readonly source: 'system' | 'user' | 'agent';
  readonly message: string;
  readonly reasoning_content?: string;
  readonly observation?: { results: { content: string }[] };
  readonly metrics?: Record<string, unknown>;
  readonly extra?: Record<string, unknown>;
}

export interface AtifTrajectory {
  readonly schema_version: typeof atifVersion;
  readonly session_id: string;
  readonly agent: { name: string; version: string; model_name?: string };
  readonly steps: readonly AtifStep[];
  readonly final_metrics: Record<string, unknown>;
  readonly extra: Record<string, unknown>;
}

/**
 * Returns the trajectory of an episode, or of one role in it. Rewards, penalties and actions are under `extra`, as ATIF has no
 * fields for them.
 */
export function atifTrajectory(
  manifest: Pick<Manifest, 'id' | 'model' | 'versions' | 'trainer'>,
  episode: RoleEpisode,
): AtifTrajectory {
  const { role, messages, turns, final_state, reward, penalty, score, success } = episode;
  const first = messages.findIndex(({ role }) => role === 'assistant');
  const before = first < 0 ? messages : messages.slice(0, first);
  const steps: Omit<AtifStep, 'step_id'>[] = before.map(({ role, content }) => ({
    source: role === 'system' ? 'system' : 'user',
    message: content,
  }));
  // In other context modes than `full`, the chat lacks turns; their observations are then the states themselves.
  const states = messages.slice(Math.max(first, 0)).filter(({ role }) => role !== 'assistant');
  const isComplete = messages.filter(({ role }) => role === 'assistant').length === turns.length;
  turns.forEach((turn, i) => {
    const next = turns[i + 1]?.state ?? final_state;
    const observed = (isComplete ? states[i]?.content : undefined) ?? next;
    steps.push(agentStep(episode, turn, role !== undefined && observed === '' ? undefined : observed));
  });
  const tokens = turns.reduce((sum, { span: [from, to] }) => sum + to - from, 0);
  return {
    schema_version: atifVersion,
    session_id: `${manifest.id}/${episode.id}${role === undefined ? '' : `/${role}`}`,
    agent: agentOf(manifest),
    steps: steps.map((step, i) => ({ step_id: i + 1, ...step })),
    final_metrics: {
      ...(tokens > 0 && { total_completion_tokens: tokens }),
      total_steps: steps.length,
      extra: { reward, penalty, score, success },
    },
    extra: episodeFacts(manifest, episode),
  };
}

/** Returns the program that ran the agent, and its model; the files of another trainer do not name the model. */
function agentOf({ model, versions, trainer }: Pick<Manifest, 'model' | 'versions' | 'trainer'>) {
  const model_name = model.path.split(/[/\\]/).at(-1) || model.path;
  return {
    name: trainer?.name ?? 'ragen-workbench',
    version: (trainer ? trainer.version : versions.ragen_workbench) ?? 'unknown',
    ...(model_name !== '' && { model_name }),
  };
}

function agentStep({ tokens }: Episode, turn: EpisodeTurn, observed: string | undefined): Omit<AtifStep, 'step_id'> {
  const { raw, thought, executed, parsed, reward, penalty, components, component_reward, finish } = turn;
  const [from, to] = turn.span;
  const ids = tokens.ids.slice(from, to);
  const logprobs = tokens.logprobs.slice(from, to);
  const start = tokens.starts?.findLast(each => each <= from) ?? 0;
  return {
    source: 'agent',
    message: raw,
    ...(thought !== null && { reasoning_content: thought }),
    ...(observed !== undefined && { observation: { results: [{ content: observed }] } }),
    metrics: {
      ...(ids.length > 0 && { prompt_tokens: from - start, completion_tokens: ids.length, completion_token_ids: ids }),
      ...(ids.length > 0 && logprobs.every(value => value !== null) && { logprobs }),
      extra: { reward, penalty, ...(components && { components, component_reward }) },
    },
    extra: { actions: executed, parsed_actions: parsed, finish, ...(turn.calls && { tool_calls: turn.calls }) },
  };
}
