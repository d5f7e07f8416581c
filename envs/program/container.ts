// Containers as programs: the command line that runs an episode's container with podman or docker, and the command that
// removes it. Values of variables are passed through the environment of the engine's client, so that keys and the
// address with its secret are on no command line. The container, but not the client, has the mark by which a run ends
// what it has started, so that the client can remove a container whose processes the run has killed.
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { z } from 'zod';
import { programEnvironment, startedByVariable, variablesFor } from '../api/program-environment';
import type { Engine } from './container-engine';
import type { Command, ProgramOptions } from './process';

/** A path that the engines' lists of mounts can contain, which are separated by commas. */
const path = z.string().regex(/^[^,"\n]+$/, 'a path without commas, quotes and line breaks');

export const containerConfig = z.strictObject({
  image: z
    .string()
    .regex(/^[^-\s]\S*$/, 'the name of an image')
    .describe('image that is present on this machine; no image is downloaded'),
  engine: z
    .enum(['podman', 'docker'])
    .nullable()
    .default(null)
    .describe('program that runs containers; null: the first of podman and docker that has the image'),
  mounts: z
    .array(z.strictObject({ source: path, target: path.startsWith('/'), writable: z.boolean().default(false) }))
    .default([])
    .describe('files and folders in the container: `source` relative to `folder`, `target` absolute, `writable`'),
  workdir: path
    .startsWith('/')
    .nullable()
    .default(null)
    .describe('folder in which the program runs; null: the image’s'),
  network: z.string().min(1).default('host').describe('network of the container, as the engine names it'),
  host: z
    .string()
    .regex(/^[\w.-]+$/, 'a host name or an IPv4 address')
    .default('127.0.0.1')
    .describe('host name by which the container reaches 127.0.0.1 of this machine'),
  memory_mb: z.int().min(8).nullable().default(2048).describe('limit of memory in MiB, without swap; null: no limit'),
  cpus: z.number().positive().nullable().default(1).describe('limit of processor time, in cores; null: no limit'),
  pids: z.int().min(1).nullable().default(512).describe('limit of processes and threads; null: no limit'),
  arguments: z.array(z.string()).default([]).describe('further arguments of `podman run` or `docker run`'),
});
export type ContainerConfig = z.infer<typeof containerConfig>;

/** Folder in the container with the files of the episode: the task and the reward. */
export const containerFiles = '/ragen';

/** Label of all containers, by which containers that a crash left can be found. */
const label = 'ragen.program';

export interface ContainerOptions {
  container: ContainerConfig;
  engine: Engine;
  /** Program in the container; null runs the image's own. */
  command: Command | null;
  /** Folder of this machine to which paths are relative. */
  folder: string;
  /** Folder of this machine that the container has at `containerFiles`. */
  files: string;
  /** Names of variables of this process that the program receives. */
  pass: readonly string[];
  /** Further variables of the program. */
  variables: Readonly<Record<string, string>>;
}

/** Returns how to run a container, and how to remove it. */
export function containerProgram({
  container,
  engine,
  command,
  folder,
  files,
  pass,
  variables,
}: ContainerOptions): ProgramOptions {
  const { image, mounts, workdir, network, memory_mb, cpus, pids } = container;
  const name = `ragen-${randomBytes(8).toString('hex')}`;
  const { [startedByVariable]: mark, ...client } = programEnvironment(variablesFor.containers);
  const given = { ...valuesOf(pass), ...variables };
  const ofClient = (variable: string) => variable in client || /^(LD|DYLD)_/.test(variable);
  const mount = (source: string, target: string, writable: boolean) =>
    `--mount=type=bind,source=${source},target=${target}${writable ? '' : ',readonly'}`;
  const memory = [`--memory=${memory_mb}m`, `--memory-swap=${memory_mb}m`];
  const run = [
    ...[engine, 'run', '--rm', '--pull=never', '--log-driver=none', `--name=${name}`, `--label=${label}`],
    `--network=${network}`,
    ...(memory_mb === null ? [] : memory),
    ...(cpus === null ? [] : [`--cpus=${cpus}`]),
    ...(pids === null ? [] : [`--pids-limit=${pids}`]),
    ...(workdir === null ? [] : [`--workdir=${workdir}`]),
    mount(files, containerFiles, true),
    ...mounts.map(({ source, target, writable }) => mount(resolve(folder, source), target, writable)),
    // Variables that the client reads itself must keep their values for it.
    ...Object.keys(given).map(key => (ofClient(key) ? `--env=${key}=${given[key]}` : `--env=${key}`)),
    ...(mark === undefined ? [] : [`--env=${startedByVariable}=${mark}`]),
    ...container.arguments,
    image,
    ...(typeof command === 'string' ? ['sh', '-c', command] : (command ?? [])),
  ];
  const passed = Object.fromEntries(Object.entries(given).filter(([key]) => !ofClient(key)));
  return { command: run, folder, environment: { ...client, ...passed }, removal: removalOf(engine, name) };
}

/** Returns the command that ends a container at once and removes it, or does nothing without such a container. */
const removalOf = (engine: Engine, name: string): string[] =>
  engine === 'podman'
    ? [engine, 'rm', '--force', '--volumes', '--time=0', name]
    : [engine, 'rm', '--force', '--volumes', name];

/** Returns the variables of this process with these names. */
function valuesOf(names: readonly string[]): Record<string, string> {
  const values = names.map(name => [name, process.env[name]] as const);
  return Object.fromEntries(values.filter((entry): entry is [string, string] => entry[1] !== undefined));
}
