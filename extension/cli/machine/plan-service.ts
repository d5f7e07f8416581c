// Serves configuration checks and run plans to the editor: JSON-RPC over standard input and output
// (protocol/planning.ts). Nothing is cached between requests, so a changed file counts from the next request on. When
// standard input ends, the service returns.
import { ResponseError } from 'vscode-jsonrpc/node';
import { checkConfig, failedCode, planConfig, type ConfigQuestion, type PlanFailure } from '../../protocol/planning';
import { UserError } from '../../common/user-error';
import { providerStates } from '../../engine/session/devices';
import { clearedWriter } from '../../node/cleared-writer';
import { onRequest, stdioMessages } from '../../node/stdio-messages';
import { ConfigError } from '../../trainer/config/config-error';
import { loadConfig, overrideConfig } from '../../trainer/config/load-config';
import type { LoadedConfig } from '../../trainer/config/loaded-config';
import { planRun } from '../../trainer/plan/run-plan';
import { checkpointNamed, openCheckpoint } from '../../trainer/store/checkpoint';
import { RunFolder } from '../../trainer/store/run-folder';
import { resolvedConfig } from '../configuration/resolved-config';
import { presetFolders } from '../options/workspace';
import { configOfFork } from '../run-lifecycle/fork-run';
import { loadAgain, refuseOtherHash } from '../run-lifecycle/make-run';

/** Serves requests until standard input ends. */
export async function servePlanner(): Promise<void> {
  const connection = stdioMessages(process.stdin, process.stdout, clearedWriter);
  const check = async (asked: ConfigQuestion) => ({
    config: resolvedConfig(asked.overrides, asked.workspace, await loaderOf(asked)).config,
  });
  onRequest(connection, checkConfig, check, errorOf);
  onRequest(
    connection,
    planConfig,
    async asked => {
      const { rates, workspace, overrides, configName, configFile, run: earlier } = asked;
      const question = {
        ...{ workspace, overrides, presetFolders: presetFolders(workspace), load: await loaderOf(asked) },
        configName: configName ?? earlier,
        ...(configFile !== undefined && { configFile }),
        ...(rates && { rates }),
      };
      const { run, loaded } = await planRun(question, 'plan');
      return { run, config: loaded.config };
    },
    errorOf,
  );
  const closed = new Promise<void>(resolve => connection.onClose(resolve));
  connection.listen();
  void providerStates().catch(() => undefined); // the first plan then need not search for devices
  await closed;
}

/** Returns a function that loads the configuration with the given overrides. */
async function loaderOf({ workspace, configName, configFile, run, checkpoint }: ConfigQuestion) {
  if (run === undefined) {
    const source = { configName, configFile, workspace, presetFolders: presetFolders(workspace) };
    return (overrides: readonly string[]): LoadedConfig => loadConfig({ ...source, overrides });
  }
  const folder = RunFolder.find(workspace, run);
  const { manifest } = folder;
  refuseOtherHash(manifest);
  if (checkpoint !== undefined) {
    // The checksums of the checkpoint are checked at the start; here, they would delay every change of the form.
    const { from } = configOfFork(folder, workspace, await openCheckpoint(folder.file(checkpointNamed(checkpoint))));
    return (overrides: readonly string[]): LoadedConfig => overrideConfig(from.config, overrides);
  }
  return (overrides: readonly string[]): LoadedConfig => loadAgain(manifest, { overrides, workspace });
}

function errorOf(error: unknown): ResponseError<PlanFailure> {
  const { message, stack } = error as Error;
  if (!(error instanceof UserError)) process.stderr.write(`${stack}\n`);
  return new ResponseError(failedCode, message, { problems: error instanceof ConfigError ? [...error.problems] : [] });
}
