// Measures what a server of the Tinker API supports, and how fast it samples. The models that are created for these
// measurements are unloaded at the end, even if the inspection ends early. A run that connects to a server makes the
// same measurements, except that of the speed (server-probe.ts).
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../../common/user-error';
import { WeightsUncertain } from '../../engine/weights-uncertain';
import { unwatched } from '../../engine/work-units';
import { abortable } from '../../node/abortable';
import type { MeasuredEngine } from '../../protocol/engine-report';
import { ServerModel } from './server-model';
import { probeServer } from './server-probe';
import { openSession, plainSampling, SampleRequests } from './server-session';
import { ServerRefusal } from './server-refusal';
import { TinkerConnection } from './tinker-connection';

export interface InspectionOptions {
  /** URL without a trailing slash. */
  url: string;
  key: string | null;
  /** The base model's name on the server. */
  model: string;
  /** LoRA rank of the models that are created. */
  rank: number;
  /** Whether to try to create a critic. */
  critic: boolean;
  /** Maximum milliseconds of one HTTP request; computations may take longer. */
  requestMs: number;
  /** Abort this signal to end the inspection early; `inspectServer` then throws the signal's abort reason. */
  signal: AbortSignal;
  /** Called at the start of each phase with a description of the phase. */
  onPhase(phase: string): void;
}

/** Number of rows that are sampled to measure the speed, and maximum number of tokens per row. */
const [rows, rowTokens] = [8, 32];
/** The prompt of each sampled row; every vocabulary contains these ids. */
const prompt = [1, 2, 3, 4, 5, 6, 7, 8];
/** Maximum milliseconds of a server outage, and maximum milliseconds for unloading the models at the end. */
const [outageMs, unloadMs] = [10_000, 5000];
/** Parts of the model that get adapters: all parts that the local engine supports. */
const parts = { train_attn: true, train_mlp: true, train_unembed: false };

/**
 * Inspects a server.
 * @throws UserError with reason and remedy, if the server cannot be used; the abort reason of `signal` when it is
 * aborted
 */
export async function inspectServer(options: InspectionOptions): Promise<MeasuredEngine> {
  const { url, key, signal, requestMs } = options;
  const connection = new TinkerConnection({
    ...{ url, key, timeoutMs: requestMs, outageMs, connections: rows + 2 },
    onOutage: () => undefined,
  });
  const inspection = new Inspection(connection, options);
  try {
    return await abortable(signal, inspection.run());
  } catch (error) {
    if (!(error instanceof WeightsUncertain)) throw error;
    throw new UserError(`engine: ${url} lost the model of the inspection (${error.message}): see the server’s log`);
  } finally {
    await Promise.race([inspection.unload(), sleep(unloadMs, undefined, { ref: false })]);
    await connection.close();
  }
}

type Create = (number: number, role: 'policy' | 'critic') => Promise<ServerModel>;

class Inspection {
  private readonly created: ServerModel[] = [];
  private readonly requests: SampleRequests;

  constructor(
    private readonly connection: TinkerConnection,
    private readonly options: InspectionOptions,
  ) {
    this.requests = new SampleRequests(connection, options.url);
  }

  async run(): Promise<MeasuredEngine> {
    const { connection } = this;
    const { url, model: base, rank, onPhase } = this.options;
    const session = await openSession(connection);
    onPhase('creating a model');
    const create = async (number: number, role: 'policy' | 'critic'): Promise<ServerModel> => {
      const model = await ServerModel.create(connection, url, { session, number, base, rank, seed: 1, parts, role });
      this.created.unshift(model); // at the front, so that a critic is unloaded before the policy
      return model;
    };
    const model = await create(0, 'policy');
    onPhase('measuring losses and versions');
    const draw: SampleRequests['draw'] = (...about) => this.requests.draw(...about);
    const { reduction, keepsVersions } = await probeServer(model, draw, url);
    onPhase('measuring the sampling rate');
    const sampler = await model.publish(1);
    const sampling = await this.rate(sampler);
    if (this.options.critic) onPhase('trying a critic');
    const critic = this.options.critic ? await this.tryCritic(create) : null;
    return {
      model: base,
      lora: { rank, alpha: model.alpha },
      reduction,
      keeps_versions: keepsVersions,
      critic,
      sampling,
    };
  }

  /**
   * Unloads the created models. If the server refuses, it drops the models later, because it receives no more
   * heartbeats.
   */
  async unload(): Promise<void> {
    const unloaded = this.created.splice(0).map(model => model.unload());
    await Promise.allSettled(unloaded);
  }

  /**
   * Measures how fast the server samples all rows concurrently. Samples one round before the measurement, because the
   * server may need time to prepare.
   */
  private async rate(sampler: string): Promise<MeasuredEngine['sampling']> {
    const round = async (seed: number): Promise<number> => {
      const sequences = await Promise.all(
        Array.from({ length: rows }, (_, row) =>
          this.requests.sample(sampler, prompt, plainSampling(rowTokens, seed + row)),
        ),
      );
      return sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
    };
    await round(1);
    const began = performance.now();
    const tokens = await round(1 + rows);
    const seconds = (performance.now() - began) / 1000;
    return { rows, tokens, seconds, tokens_per_s: tokens / seconds };
  }

  /**
   * Finds out whether the server offers critics. A server that does not know the role `critic` creates a policy
   * instead, which returns no values.
   */
  private async tryCritic(create: Create): Promise<MeasuredEngine['critic']> {
    try {
      const critic = await create(1, 'critic');
      await critic.values([{ ids: Int32Array.from(prompt), mask: Uint8Array.from(prompt, Math.sign) }], unwatched);
      return { offered: true, reason: null };
    } catch (error) {
      if (error instanceof ServerRefusal) return { offered: false, reason: error.detail };
      if (error instanceof WeightsUncertain || error instanceof UserError)
        return { offered: false, reason: 'the model that the server created as critic returns no values' };
      throw error;
    }
  }
}
