// `ragen env play`: plays episodes. The actions come from the terminal, from a program that sends and receives JSON
// lines (--stdio), or from a file of cases (--input).
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { environmentSpec } from '../../environments/tools/environment-sources';
import { Session } from '../../environments/tools/play-session';
import { serveSession } from '../../environments/tools/play-stdio';
import { playInTerminal } from '../../environments/tools/play-terminal';
import { transcriptsOf } from '../../environments/tools/transcripts';
import { inputName, parseCases, readInput } from '../input/cases';
import { collect, configOf } from '../options/environment-options';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer } from '../output/answer';

interface PlayFlags extends CommonFlags {
  input?: string;
  seed?: string;
  set: string[];
  stdio?: boolean;
}

export function addEnvPlay(env: Command): void {
  withCommon(env.command('play').description('play an environment, or print transcripts of given episodes'))
    .argument('[environment]', 'name of a built-in environment, or path of an environment file')
    .option('--seed <n>', 'seed of the episode', '1')
    .option(
      '--set <key=value>',
      'a key of the environment’s env_config, with its value; may be given several times',
      collect,
      [],
    )
    .option('--input <file>', 'JSON array of episodes to play; - for standard input')
    .option('--stdio', 'read requests of a program and write replies, as JSON lines on standard input and output')
    .addHelpText(
      'after',
      `
Input: [{"env": "sokoban", "config": {…}, "seed": 10000, "actions": [id, name or text, …]}, …]. Output with --json:
[{"observation", "steps": [{"observation", "reward", "terminated", "truncated", "info"}, …]} or {"error"}, …].`,
    )
    .action((name: string | undefined, flags: PlayFlags) =>
      flags.input === undefined ? play(name, flags) : replay(flags),
    );
}

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
      throw new UserError(
        'play: no environment is named: give a name that ragen env list shows, the path of a file, or --input',
      );
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
