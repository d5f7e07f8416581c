// Checks an environment against its contract by playing it. First, random play plays the reference episodes. Then the
// same episodes are played again: in new instances, alternately with other episodes, and in the same instance after a
// reset. The solver's plans are played too. Everything is seeded, so failures are reproducible.
// docs/environments/writing-your-own.md lists the requirements under the same names.
import type { EnvironmentDefinition } from '../../../../envs/api/environment';
import { actionsDoSomething, closes, refusesAfterEnd, rendersPurely } from './call-requirements';
import { plural, round, Skip } from './evidence';
import { Violation } from './environment-instance';
import { RandomPlay, type ContractOptions, type Reference } from './random-play';
import { interleaved, membersBeginAlike, replays, resetsAnew } from './replay-requirements';
import { scoresPurely } from './score-requirement';
import { statesPurely } from './state-requirement';
import { solves } from './solver-requirement';

export interface ContractResult {
  name: string;
  state: 'passed' | 'failed' | 'skipped';
  evidence: string;
  /**
   * Stack of the error that the environment threw, with positions in the bundle; undefined if the environment threw no
   * error.
   */
  stack?: string;
}

/**
 * Number of requirements on which all later requirements depend: the requirements on return values, and the requirement
 * that the same seed and actions give the same episode. If one of these requirements fails, all later requirements are
 * skipped.
 */
const groundwork = 8;

/** Checks a definition under a configuration. Returns one result per requirement, in a fixed order. */
export async function checkContract(
  definition: EnvironmentDefinition,
  config: Record<string, unknown>,
  options: ContractOptions,
): Promise<ContractResult[]> {
  return new Contract(new RandomPlay(definition, config, options)).check();
}

class Contract {
  private readonly results: ContractResult[] = [];

  constructor(private readonly play: RandomPlay) {}

  async check(): Promise<ContractResult[]> {
    await this.explore();
    await this.play.releaseAll();
    await this.run('the same seed and actions give the same episode', () => replays(this.play));
    await this.run('members of a group start from the same state', () => membersBeginAlike(this.play));
    await this.run('concurrent episodes do not affect each other', () => interleaved(this.play));
    await this.run('reset starts a new episode, also after the end', () => resetsAnew(this.play));
    await this.run('a step after the end is rejected', () => refusesAfterEnd(this.play));
    await this.run('every action has an effect', async () => actionsDoSomething(this.play));
    await this.run('render shows the state and does not change it', () => rendersPurely(this.play));
    await this.run('solve solves the episode and does not change the state', () => solves(this.play));
    await this.run('state describes the state and does not change it', () => statesPurely(this.play));
    await this.run('score functions return numbers and do not change the state', () => scoresPurely(this.play));
    await this.run('close ends an episode at any time', () => closes(this.play));
    await this.play.releaseReferences();
    return this.results;
  }

  /**
   * Checks one requirement and adds its result. Skips the requirement if one of the first `groundwork` requirements has
   * failed.
   */
  private async run(name: string, requirement: () => Promise<string | Skip>): Promise<void> {
    const failed = this.results.slice(0, groundwork).find(({ state }) => state === 'failed');
    if (failed) {
      const evidence = `Skipped because an earlier check failed: ${failed.name}.`;
      return void this.results.push({ name, state: 'skipped', evidence });
    }
    try {
      const outcome = await requirement();
      if (outcome instanceof Skip) this.results.push({ name, state: 'skipped', evidence: outcome.why });
      else this.results.push({ name, state: 'passed', evidence: outcome });
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      this.results.push({ name, state: 'failed', evidence: error.evidence, stack: error.stackOfCause });
    } finally {
      await this.play.releaseAll();
    }
  }

  /** Plays the reference episodes and adds the results of the requirements on return values. */
  private async explore(): Promise<void> {
    const found = await this.play.explore();
    const { references, stepsPlayed, coverage } = this.play;
    const played = `${plural(references.length, 'seed')}, ${plural(stepsPlayed, 'action')} of random play`;
    const rewards = [...new Set(references.flatMap(({ steps }) => steps.map(({ reward }) => reward)))];
    rewards.sort((a, b) => a - b);
    const passed: Record<Violation['requirement'], [name: string, evidence: string]> = {
      calls: ['every call returns', `${played}.`],
      observation: ['observations are text, or text with PNG images', `${played}.`],
      reward: [
        'rewards are finite numbers',
        `Seen: ${rewards.slice(0, 8).map(round).join(', ')}${rewards.length > 8 ? ', …' : ''}.`,
      ],
      flags: ['terminated and truncated are true or false', endings(references)],
      info: ['info is plain data', `Keys: ${infoKeys(references)}.`],
      actions: [
        'actions are named by integer ids',
        coverage.size > 0 ? `${coverage.size} named.` : 'The environment takes text.',
      ],
      roles: ['each turn belongs to a declared role', rolesSeen(references)],
    };
    for (const [requirement, [name, evidence]] of Object.entries(passed)) {
      const violation = found.get(requirement as Violation['requirement']);
      this.results.push(
        violation
          ? { name, state: 'failed', evidence: violation.evidence, stack: violation.stackOfCause }
          : { name, state: 'passed', evidence },
      );
    }
  }
}

function endings(references: readonly Reference[]): string {
  const ended = references.filter(({ instance }) => instance.over).length;
  return `${ended} of ${plural(references.length, 'episode')} ended during random play.`;
}

function rolesSeen(references: readonly Reference[]): string {
  const states = references.flatMap(({ first, steps }) => [first, ...steps]);
  const roles = new Set(states.flatMap(({ role }) => role ?? []));
  return roles.size > 0 ? `Seen: ${[...roles].join(', ')}.` : 'The environment has no roles.';
}

function infoKeys(references: readonly Reference[]): string {
  const keys = new Set(references.flatMap(({ steps }) => steps.flatMap(({ info }) => Object.keys(info))));
  return [...keys].join(', ') || 'none';
}
