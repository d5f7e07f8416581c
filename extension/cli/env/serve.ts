// `ragen env serve`: serves environments over HTTP with OpenEnv's and VAGEN's protocols until interrupted. The API key
// comes from an environment variable, because other users of the machine can see command lines.
import type { Command } from 'commander';
import type { EnvironmentSpec } from '../../protocol/environment-link';
import { secrets } from '../../node/secrets';
import { UserError } from '../../common/user-error';
import { startEnvironmentServer } from '../../environments/server/http-server';
import { builtInTypes, environmentSpec } from '../../environments/tools/environment-sources';
import { installation } from '../../node/installation';
import { EnvironmentProcess } from '../../environments/client/environment-process';
import { environmentVariables } from '../../environments/client/environment-variables';
import { logNotice } from '../../trainer/run/run-environments';
import { answer, type Answer } from '../output/answer';
import { collect, configOf } from '../options/environment-options';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';

interface ServeFlags extends CommonFlags {
  host: string;
  port: number;
  maxSessions: number;
  maxClientSessions?: number;
  maxConnections?: number;
  maxClientConnections?: number;
  sessionTimeout: number;
  stepTimeout: number;
  maxBody: number;
  apiKeyEnv?: string;
  set: string[];
  allowConfig?: boolean;
}

const atLeast =
  (least: number, isInteger: boolean) =>
  (text: string): number => {
    const value = Number(text);
    if (text.trim() !== '' && value >= least && Number.isFinite(value) && (!isInteger || Number.isInteger(value)))
      return value;
    throw new UserError(
      `env serve: ${text} is not a number: give a ${isInteger ? 'whole ' : ''}number of at least ${least}`,
    );
  };

export function addEnvServe(group: Command): void {
  withCommon(
    group.command('serve').description('serve environments over HTTP, with the protocols of OpenEnv and VAGEN'),
  )
    .argument(
      '[environments...]',
      'built-in environments or files (default: all built-in); requests without the name of an environment use the first one',
    )
    .option('--host <address>', 'address to listen on; any address but loopback requires --api-key-env', '127.0.0.1')
    .option('--port <number>', 'port; 0 selects a free port', atLeast(0, true), 8000)
    .option('--max-sessions <number>', 'maximum number of open sessions', atLeast(1, true), 64)
    .option(
      '--max-client-sessions <number>',
      'maximum number of open sessions per client address (default: --max-sessions)',
      atLeast(1, true),
    )
    .option(
      '--max-connections <number>',
      'maximum number of connections (default: 512, or more with a larger --max-sessions)',
      atLeast(1, true),
    )
    .option(
      '--max-client-connections <number>',
      'maximum number of connections per client address (default: 256, or more with a larger --max-sessions)',
      atLeast(1, true),
    )
    .option('--session-timeout <seconds>', 'idle time after which a session is closed', atLeast(0.1, false), 3600)
    .option('--step-timeout <seconds>', 'time limit of one call into an environment', atLeast(0.1, false), 60)
    .option('--max-body <mebibytes>', 'maximum size of a request', atLeast(0.001, false), 16)
    .option(
      '--api-key-env <name>',
      'name of the environment variable that contains the key; clients must send this key',
    )
    .option(
      '--set <key=value>',
      'a key of env_config, with its value; allowed only if one environment is served',
      collect,
      [],
    )
    .option('--allow-config', 'let clients set env_config; some values make environments read files or start programs')
    .action((environments: string[], flags: ServeFlags) => answer(flags, () => serve(environments, flags)));
}

/** Starts the server, which then runs until it is interrupted. */
async function serve(environments: readonly string[], flags: ServeFlags): Promise<Answer> {
  if (flags.apiKeyEnv !== undefined) secrets.name(flags.apiKeyEnv);
  const apiKey = flags.apiKeyEnv === undefined ? undefined : process.env[flags.apiKeyEnv];
  if (flags.apiKeyEnv !== undefined && !apiKey)
    throw new UserError(
      `env serve: the environment variable ${flags.apiKeyEnv} is not set: set it to the key that clients must send`,
    );
  const offered = await offeredBy(environments, flags);
  secrets.nameAllIn(offered);
  const variables = environmentVariables(offered, installation.environments);
  if (flags.apiKeyEnv !== undefined) delete variables[flags.apiKeyEnv]; // environments must not see the server's key
  const pool = await EnvironmentProcess.start({
    entry: installation.environmentHost,
    variables,
    stepTimeoutMs: flags.stepTimeout * 1000,
    onNotice: logNotice,
  });
  try {
    const server = await startEnvironmentServer({
      pool,
      offered,
      apiKey,
      host: flags.host,
      port: flags.port,
      allowConfig: flags.allowConfig ?? false,
      maxSessions: flags.maxSessions,
      maxClientSessions: flags.maxClientSessions,
      sessionTimeoutMs: flags.sessionTimeout * 1000,
      maxBodyBytes: Math.floor(flags.maxBody * 2 ** 20),
      limits: {
        ...(flags.maxConnections !== undefined && { maxConnections: flags.maxConnections }),
        ...(flags.maxClientConnections !== undefined && { maxClientConnections: flags.maxClientConnections }),
      },
      onError: line => process.stderr.write(`${line}\n`),
    });
    const end = () => void server.close().then(() => pool.stop());
    try {
      if (environments.length > 0) for (const name of server.sessions.names) await server.sessions.environment(name);
    } catch (error) {
      await server.close();
      throw error instanceof UserError ? error : new UserError((error as Error).message);
    }
    process.once('SIGINT', end).once('SIGTERM', end);
    const { names } = server.sessions;
    return {
      document: { url: server.url, environments: names, key: apiKey !== undefined },
      plainText: [
        `Serving at ${server.url}, ${apiKey === undefined ? 'without a key' : `with the key in ${flags.apiKeyEnv}`}; Ctrl-C ends the server.`,
        ...names.map(name => `  ${server.url}/${encodeURIComponent(name)}`),
      ].join('\n'),
    };
  } catch (error) {
    await pool.stop();
    throw error;
  }
}

/**
 * Returns the requested environments, by default all built-in environments. An environment in a file is served under
 * the file's base name, or under its folder's name if the file is called index.
 */
async function offeredBy(environments: readonly string[], { set, workspace }: ServeFlags): Promise<EnvironmentSpec[]> {
  const named = environments.length > 0 ? environments : builtInTypes();
  if (set.length > 0 && environments.length !== 1)
    throw new UserError(
      `env serve: --set ${set[0]} needs exactly one environment, but ${named.length} are served: name one environment`,
    );
  const config = configOf(set);
  const offered: EnvironmentSpec[] = [];
  for (const name of named) {
    const tag = name.replace(/([\\/]index)?\.[cm]?ts$/, '').replace(/^.*[\\/]/, '');
    const same = offered.find(spec => spec.tag === tag);
    if (same)
      throw new UserError(`env serve: ${same.env_type} and ${name} are both called ${tag}: serve only one of them`);
    offered.push({ ...(await environmentSpec(name, config, workspaceOf(workspace))), env_type: name, tag });
  }
  return offered;
}
