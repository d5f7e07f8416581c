// `ragen env`: environments without a run. `list` lists them, `check` checks one against the contract, `play` plays
// episodes: interactively, by a program over JSON lines (--stdio), or complete transcripts of given actions (--input).
import type { Command } from 'commander';
import { checkEnvironment } from '../../environments/tools/contract-process';
import { environmentSpec } from '../../environments/tools/environment-sources';
import { listEnvironments } from '../../environments/tools/environment-list';
import { Session } from '../../environments/tools/play-session';
import { serveSession } from '../../environments/tools/play-stdio';
import { playInTerminal } from '../../environments/tools/play-terminal';
import { transcriptsOf } from '../../environments/tools/transcripts';
import type { ContractReport, ListedEnvironment } from '../../protocol/environment-tools';
import { UserError } from '../../common/user-error';
import type { ConfigProblem } from '../../trainer/config/config-error';
import { applyOverrides } from '../../trainer/config/overrides';
import { emptyMap, toPlain } from '../../trainer/config/yaml-tree';
import { answer } from '../answer';
import { inputName, parseCases, readInput } from '../models/cases';
import { withCommon, type CommonFlags } from '../runs/serve';
import { workspaceOf } from '../runs/start';

interface CheckFlags extends CommonFlags {
  set: string[];
  seeds: string;
  steps: string;
  timeout: string;
}

interface PlayFlags extends CommonFlags {
  input?: string;
  seed?: string;
  set: string[];
  stdio?: boolean;
}

/** Adds the group and returns it, so that further subcommands can be added. */
export function addEnv(program: Command): Command {
  const env = program.command('env').description('environments: list, check and play them');

  withCommon(env.command('list').description('list the built-in environments and those of this folder')).action(
    (flags: CommonFlags) =>
      answer(flags, async () => {
        const listed = await listEnvironments(workspaceOf(flags.workspace));
        return { document: listed, plainText: listed.map(formatListed).join('\n') };
      }),
  );

  withCommon(env.command('check').description('check an environment against the environment contract'))
    .argument('<environment>', 'a built-in environment, or the path of its file')
    .option('--set <key=value>', 'a value of its env_config; may be given several times', collect, [])
    .option('--seeds <n>', 'episodes of random play', '8')
    .option('--steps <n>', 'maximum actions per episode', '60')
    .option('--timeout <ms>', 'time limit of one call, unless the environment sets a longer one', '10000')
    .addHelpText(
      'after',
      `
Exit code 1 where a check failed. Output with --json: {"environment", "source", "checks": [{"name", "state": "passed",
"failed" or "skipped", "evidence", "at": "file:line"}, …]}.`,
    )
    .action((name: string, flags: CheckFlags) =>
      answer(flags, async () => {
        const workspace = workspaceOf(flags.workspace);
        const spec = await environmentSpec(name, configOf(flags.set), workspace);
        const report = await checkEnvironment(spec, workspace, {
          seeds: count(flags.seeds, '--seeds'),
          steps: count(flags.steps, '--steps'),
          timeoutMs: count(flags.timeout, '--timeout'),
        });
        const failed = report.checks.filter(({ state }) => state === 'failed').length;
        const sentence = `${report.environment}: ${failed} of ${report.checks.length} checks failed`;
        return { document: report, plainText: formatCheck(report), ...(failed > 0 && { failed: sentence }) };
      }),
    );

  withCommon(env.command('play').description('play an environment, or print transcripts of given episodes'))
    .argument('[environment]', 'a built-in environment, or the path of its file')
    .option('--seed <n>', 'seed of the episode', '1')
    .option('--set <key=value>', 'a value of its env_config; may be given several times', collect, [])
    .option('--input <file>', 'JSON array of episodes to play; - for standard input')
    .option('--stdio', 'requests and replies as JSON lines, for programs')
    .addHelpText(
      'after',
      `
Input: [{"env": "sokoban", "config": {…}, "seed": 10000, "actions": [id, name or text, …]}, …]. Output with --json:
[{"observation", "steps": [{"observation", "reward", "terminated", "truncated", "info"}, …]} or {"error"}, …].`,
    )
    .action((name: string | undefined, flags: PlayFlags) =>
      flags.input === undefined ? play(name, flags) : replay(flags),
    );

  return env;
}

/** Collects an option that can be given several times. */
export const collect = (value: string, before: string[]): string[] => [...before, value];

const replay = (flags: PlayFlags): Promise<void> =>
  answer(flags, async () => {
    const cases = parseCases(await readInput(flags.input!), inputName(flags.input!));
    const transcripts = await transcriptsOf(cases, workspaceOf(flags.workspace));
    return { document: transcripts, plainText: transcripts.map(transcript => JSON.stringify(transcript)).join('\n') };
  });

async function play(name: string | undefined, flags: PlayFlags): Promise<void> {
  let session: Session | undefined;
  try {
    if (name === undefined)
      throw new UserError('play: no environment is named: give one of ragen env list, a file, or --input');
    if (!/^\d+$/.test(flags.seed!)) throw new UserError(`--seed is ${flags.seed}: give a whole number from 0 on`);
    const spec = await environmentSpec(name, configOf(flags.set), workspaceOf(flags.workspace));
    session = await Session.open(spec, Number(flags.seed));
    await (flags.stdio ? serveSession(session) : playInTerminal(session));
  } catch (error) {
    await answer({ json: flags.json }, () => Promise.reject(error));
  } finally {
    await session?.close();
  }
}

const marks = { passed: '✓', failed: '✗', skipped: '–' } as const;

function formatCheck({ source, checks }: ContractReport): string {
  return checks
    .map(
      ({ name, state, evidence, at }) =>
        `${marks[state]} ${name}\n  ${evidence}${at !== undefined && at !== source ? ` (${at})` : ''}`,
    )
    .join('\n');
}

function count(text: string, option: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new UserError(`${option} is ${text}: give a whole number from 1 on`);
  return Number(text);
}

function formatListed({ env_type, actions, has_solver, config, missing }: ListedEnvironment): string {
  const takes = actions ? Object.values(actions).join(', ') : 'text';
  const about = missing ?? `takes ${takes}${has_solver ? '; has a solver' : ''}`;
  const keys = config && `\n${' '.repeat(15)}${Object.keys(config).join(', ')}`;
  return `${env_type.padEnd(14)} ${about}${keys ?? ''}`;
}

/** The env_config from `--set` options. Throws a UserError. */
export function configOf(values: readonly string[]): Record<string, unknown> {
  const problems: ConfigProblem[] = [];
  const known = { isKnown: () => true, advise: () => '' };
  const tree = applyOverrides(emptyMap({ override: '' }), values, known, problems);
  if (problems.length > 0) throw new UserError(problems[0].message.replace(/^config:/, '--set:'));
  return toPlain(tree) as Record<string, unknown>;
}
