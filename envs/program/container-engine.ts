// Finds the program that runs containers: the first of podman and docker that answers and has the image. A docker client
// without its daemon is installed on many machines, so being installed is not enough.
import { execFile } from 'node:child_process';
import { MissingDependency } from '../api/environment';
import { programEnvironment, variablesFor } from '../api/program-environment';

const engines = ['podman', 'docker'] as const;
export type Engine = (typeof engines)[number];

/** Milliseconds that an engine may take to answer. */
const answerTimeoutMs = 30_000;

/**
 * Returns the engine that runs containers of an image.
 * @param wanted the only engine to use; null for any
 * @throws MissingDependency if no engine answers, or if none has the image
 */
export async function findEngine(image: string, wanted: Engine | null): Promise<Engine> {
  const failures: string[] = [];
  const answering: Engine[] = [];
  for (const engine of wanted === null ? engines : [wanted]) {
    const refusal = await refusalOf(engine, ['ps', '--quiet']);
    if (refusal !== undefined) failures.push(`${engine} ${refusal}`);
    else if ((await refusalOf(engine, ['image', 'inspect', '--format={{.Id}}', image])) === undefined) return engine;
    else answering.push(engine);
  }
  if (answering.length > 0)
    throw new MissingDependency(
      `finds no image ${image} with ${answering.join(' and ')}`,
      `build it, or download it with ${answering[0]} pull, or correct env_config.container.image`,
    );
  throw new MissingDependency(
    `cannot run containers (${failures.join('; ')})`,
    'install podman, or start the daemon of docker, or set env_config.container to null to run the command without a container',
  );
}

/** Returns why an engine does not answer a command, as the rest of a sentence; undefined if it does. */
function refusalOf(engine: Engine, args: readonly string[]): Promise<string | undefined> {
  const options = { env: programEnvironment(variablesFor.containers), timeout: answerTimeoutMs, windowsHide: true };
  return new Promise(resolve =>
    execFile(engine, args, options, (error, _, errors) => {
      if (error === null) resolve(undefined);
      else if (error.code === 'ENOENT') resolve('is not installed');
      else if (error.killed === true) resolve(`did not answer within ${answerTimeoutMs / 1000} s`);
      else resolve(`says: ${errors.trim().split('\n').at(-1)!.slice(0, 300) || error.message.slice(0, 300)}`);
    }),
  );
}
