// Plays a program with scripted replies in place of a policy: a real environment process, a real rollout and the
// tokenizer of Qwen2.5.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { EnvironmentProcessPool } from '../../../../extension/environments/client/process-pool';
import type { GeneratedRow, GenerationRow } from '../../../../extension/engine/generation-calls';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { AgentProxy } from '../../../../extension/trainer/rollout/agent-proxy';
import type { RolloutEpisode } from '../../../../extension/trainer/rollout/rollout-batch';
import { buildEntry } from '../../../support/bundles';
import { corridorOptions } from '../../trainer/rollout/scripted-rollout';

/** The beginning of a program in JavaScript: `ask` calls the policy with one message and returns the reply. */
export const askPolicy = `
  const ask = async content => {
    const response = await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', {
      method: 'POST',
      body: JSON.stringify({ messages: [{ role: 'user', content }] }),
    });
    return (await response.json()).choices[0].message.content;
  };
`;

export interface PlayedProgram {
  episode: RolloutEpisode;
  /** Text of ids, with special tokens. */
  decode(ids: ArrayLike<number>): string;
}

export class ProgramPlayer {
  private readonly tokenizer = readTokenizer('test/golden/chat/qwen2.5');

  private constructor(
    private readonly entry: string,
    /** Folder in which programs run. */
    readonly folder: string,
  ) {}

  static async open(): Promise<ProgramPlayer> {
    return new ProgramPlayer(await buildEntry(), mkdtempSync(join(tmpdir(), 'ragen programs-')));
  }

  close(): void {
    rmSync(dirname(this.entry), { recursive: true });
    rmSync(this.folder, { recursive: true });
  }

  /**
   * Plays one episode.
   * @param script returns the reply to a prompt; `call` counts from 1
   * @param config further keys of env_config
   */
  async play(
    command: readonly string[],
    script: (prompt: string, call: number) => string,
    config: Record<string, unknown> = {},
  ): Promise<PlayedProgram> {
    const pool = await EnvironmentProcessPool.start(
      { entry: this.entry, variables: process.env, stepTimeoutMs: 20_000, onNotice: () => undefined },
      { Agent: 1 },
    );
    try {
      const source = resolve('envs/program/index.ts');
      const spec = { tag: 'Agent', env_type: 'program', source, config: { command, folder: this.folder, ...config } };
      const { environments, error } = await pool.load([spec]);
      if (error) throw new Error(error.message);
      const options = corridorOptions();
      const train = { env_groups: 1, group_size: 1, env_configs: { tags: ['Agent'], n_groups: [1] } };
      const proxy = new AgentProxy(this.generator(script), pool, this.tokenizer, {
        ...options,
        agent_proxy: { ...options.agent_proxy, max_turn: 6 },
        rollout: { ...options.rollout, max_model_len: 8000, response_length: 200 },
        es_manager: { ...options.es_manager, train },
        custom_envs: { Agent: { max_actions_per_traj: 6 } },
        max_failed_episodes_share: 1,
      });
      const { episodes } = await proxy.rollout({ mode: 'train', step: 1, environments, seed: 3 });
      const decode = (ids: ArrayLike<number>) => this.tokenizer.decode(Array.from(ids), { special: true });
      return { episode: episodes[0], decode };
    } finally {
      await pool.stop();
    }
  }

  private generator(script: (prompt: string, call: number) => string) {
    const turns = new Map<string, number>();
    const rows = new Map<string, number[]>();
    return {
      generate: async (asked: readonly GenerationRow[]): Promise<GeneratedRow[]> =>
        asked.map(({ row, append }) => {
          const call = (turns.get(row) ?? 0) + 1;
          turns.set(row, call);
          const prompt = [...(rows.get(row) ?? []), ...append];
          const text = script(this.tokenizer.decode(prompt, { special: true }), call);
          const ids = [...this.tokenizer.encode(text), this.tokenizer.stopTokenIds[0]];
          rows.set(row, [...prompt, ...ids]);
          return { row, ids, logprobs: ids.map(() => -0.5), finish: 'stop' };
        }),
      release: (released: readonly string[]) => released.forEach(row => rows.delete(row)),
    };
  }
}
