// Programs in containers. A stand-in for the engines, which runs the command on this machine, shows the command line, the
// variables and the removal. podman and docker run a small image made from busybox, if this machine can run containers;
// RAGEN_REQUIRE_CONTAINERS (engines, separated by commas) makes the tests of these engines fail where it cannot.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { isAlive, isZombie, kill, killAll, startDetached, until } from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import { askPolicy, ProgramPlayer } from './program-player';

let player: ProgramPlayer;
beforeAll(async () => {
  player = await ProgramPlayer.open();
});
afterAll(() => player.close());
afterEach(() => vi.unstubAllEnvs());

/** Runs the command of `run` on this machine with the variables that a container gets; `rm` kills it. Logs its calls. */
const standIn = `#!${process.execPath}
const { spawn } = require('node:child_process');
const { appendFileSync, existsSync, readFileSync, writeFileSync } = require('node:fs');
const { basename, join } = require('node:path');
const [verb, ...args] = process.argv.slice(2);
const engine = basename(process.argv[1]);
appendFileSync(join(__dirname, 'calls.jsonl'), JSON.stringify({ engine, verb, args }) + '\\n');
if (existsSync(join(__dirname, engine + '.fails'))) {
  console.error('Cannot connect to the daemon');
  process.exit(1);
}
if (verb === 'image') process.exit(args.at(-1) === 'agent' ? 0 : 1);
if (verb === 'rm') {
  const file = join(__dirname, args.at(-1));
  if (existsSync(file)) process.kill(Number(readFileSync(file, 'utf8')), 'SIGKILL');
}
if (verb === 'run') {
  const flags = args.slice(0, args.indexOf('agent'));
  const values = name => flags.filter(each => each.startsWith('--' + name + '=')).map(each => each.slice(name.length + 3));
  const files = values('mount').find(each => each.includes('target=/ragen')).match(/source=([^,]*)/)[1];
  const env = {};
  for (const each of values('env')) {
    const [name, ...value] = each.split('=');
    env[name] = value.length > 0 ? value.join('=') : process.env[name];
    if (/^RAGEN_\\w+_FILE$/.test(name)) env[name] = env[name].replace('/ragen', files);
  }
  const [file, ...rest] = args.slice(args.indexOf('agent') + 1);
  const child = spawn(file, rest, { env, detached: true, stdio: ['ignore', 'inherit', 'inherit'] });
  writeFileSync(join(__dirname, values('name')[0]), String(child.pid));
  child.once('exit', code => process.exit(code ?? 137));
}
`;

const ask = `${askPolicy}
  const { appendFileSync, readFileSync, writeFileSync } = require('node:fs');
  const { RAGEN_REWARD_FILE: reward, RAGEN_TASK_FILE: task } = process.env;
`;

describe('with a stand-in for the engine', () => {
  let bin: string;
  beforeEach(() => {
    bin = mkdtempSync(join(tmpdir(), 'ragen-engines-'));
    for (const engine of ['podman', 'docker']) {
      writeFileSync(join(bin, engine), standIn);
      chmodSync(join(bin, engine), 0o755);
    }
    vi.stubEnv('PATH', bin);
  });
  afterEach(() => rmSync(bin, { recursive: true }));

  const play = (program: string, container: Record<string, unknown> = {}, config: Record<string, unknown> = {}) =>
    player.play([process.execPath, '-e', `(async () => {${ask}${program}})()`], () => 'yes', {
      container: { image: 'agent', ...container },
      ...config,
    });
  const calls = () =>
    readFileSync(join(bin, 'calls.jsonl'), 'utf8')
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as { engine: string; verb: string; args: string[] });

  test('limits, mounts and network are on the command line; the key and the address are only variables', async () => {
    writeFileSync(join(player.folder, 'tasks.jsonl'), '{"word":"ice"}\n');
    vi.stubEnv('SHARED', 'of this machine');
    vi.stubEnv('SECRET', 'of this machine');
    const program = `
      await ask(JSON.parse(readFileSync(task)).word);
      writeFileSync(reward, '0.5');
      console.log(JSON.stringify(process.env));`;
    const container = {
      mounts: [{ source: '.', target: '/work' }],
      ...{ workdir: '/work', memory_mb: 256, cpus: 1.5, pids: 100, network: 'my-net', arguments: ['--cap-drop=all'] },
    };
    const config = {
      reward: 'file',
      tasks: 'tasks.jsonl',
      pass_env: ['SHARED'],
      env: { PATH: '/inner', MODE: 'fast' },
    };
    const { episode } = await play(program, container, config);
    expect([episode.error, episode.reward, episode.turns[0].state]).toEqual([undefined, 0.5, 'user: ice']);
    const variables = JSON.parse(episode.final_state.split('\n').at(-1)!) as Record<string, string>;
    expect(variables).toMatchObject({ SHARED: 'of this machine', PATH: '/inner', MODE: 'fast', RAGEN_SEED: '3' });
    expect(Object.keys(variables)).not.toContain('SECRET');
    expect(variables.OPENAI_BASE_URL).toContain(variables.OPENAI_API_KEY);
    const { engine, args } = calls().find(({ verb }) => verb === 'run')!;
    expect(engine).toBe('podman');
    expect(args).toEqual(
      expect.arrayContaining([
        ...['--rm', '--pull=never', '--network=my-net', '--workdir=/work', '--cap-drop=all', '--pids-limit=100'],
        ...['--memory=256m', '--memory-swap=256m', '--cpus=1.5', '--env=OPENAI_API_KEY', '--env=OPENAI_BASE_URL'],
        `--mount=type=bind,source=${player.folder},target=/work,readonly`,
      ]),
    );
    expect(args.join(' ')).not.toContain(variables.OPENAI_API_KEY);
    expect(calls().filter(({ verb }) => verb === 'rm')).toEqual([]); // it has ended by itself
  });

  test('a program that runs too long is removed by its name', async () => {
    const pid = join(player.folder, 'contained.pid');
    const program = `await ask('a'); writeFileSync(${JSON.stringify(pid)}, String(process.pid)); setInterval(() => 0, 1000);`;
    const { episode } = await play(program, {}, { time_limit: 5 });
    expect(episode.final_state).toBe('The program was ended, because it ran longer than 5 s.');
    const found = calls();
    const name = found
      .find(({ verb }) => verb === 'run')!
      .args.find(each => each.startsWith('--name='))!
      .slice(7);
    expect(found.at(-1)).toEqual({ engine: 'podman', verb: 'rm', args: ['--force', '--volumes', '--time=0', name] });
    const contained = Number(readFileSync(pid, 'utf8'));
    expect(isAlive(contained) && !isZombie(contained)).toBe(false);
  });

  test('an engine that does not answer is passed over; without an engine or an image, the error has a remedy', async () => {
    writeFileSync(join(bin, 'podman.fails'), '');
    const { episode } = await play(`await ask('a');`);
    expect([episode.success, calls().find(({ verb }) => verb === 'run')!.engine]).toEqual([true, 'docker']);
    await expect(play('', { image: 'other' })).rejects.toThrow('finds no image other with docker');
    await expect(play('', { engine: 'podman' })).rejects.toThrow(
      'cannot run containers (podman says: Cannot connect to the daemon)',
    );
    rmSync(join(bin, 'docker'));
    await expect(play('')).rejects.toThrow('docker is not installed');
  });

  test('another host name of this machine is in the address, and its calls are accepted', async () => {
    const { episode } = await play(
      `const url = new URL(process.env.OPENAI_BASE_URL);
      const { request } = require('node:http');
      const headers = { host: url.host };
      const body = JSON.stringify({ messages: [{ role: 'user', content: 'a' }] });
      const path = url.pathname + '/chat/completions';
      request({ host: '127.0.0.1', port: url.port, path, method: 'POST', headers }, response =>
        process.exit(url.hostname === 'host.containers.internal' && response.statusCode === 200 ? 0 : 1)).end(body);`,
      { network: 'bridge', host: 'host.containers.internal' },
    );
    expect([episode.error, episode.success]).toEqual([undefined, true]);
  });
});

/** A real engine in a folder of its own, with an image made from busybox. */
class RealEngine {
  private daemon: ChildProcess | undefined;

  constructor(
    readonly name: 'podman' | 'docker',
    private readonly folder: string,
  ) {}

  /** Sets the variables that lead to this engine. */
  use(): void {
    vi.stubEnv('CONTAINERS_CONF', join(this.folder, 'containers.conf'));
    vi.stubEnv('CONTAINERS_STORAGE_CONF', join(this.folder, 'storage.conf'));
    vi.stubEnv('DOCKER_HOST', `unix://${this.folder}/socket`);
  }

  /** Makes the image. Returns what keeps this machine from running containers with limits; undefined if they run. */
  async prepare(): Promise<string | undefined> {
    const { folder, name } = this;
    const busybox = ['/bin/busybox', '/usr/bin/busybox'].find(file => existsSync(file));
    if (busybox === undefined) return 'busybox is not installed';
    for (const each of ['bin', 'tmp', 'work']) mkdirSync(join(folder, 'root', each), { recursive: true });
    cpSync(busybox, join(folder, 'root/bin/busybox'), { dereference: true });
    for (const applet of ['sh', 'wget', 'grep', 'cat', 'env', 'head', 'tail', 'sleep', 'true'])
      symlinkSync('busybox', join(folder, 'root/bin', applet));
    spawnSync('tar', ['-C', join(folder, 'root'), '-cf', join(folder, 'root.tar'), '.']);
    if (name === 'podman') this.configure();
    else if (spawnSync('dockerd', ['--version']).status !== 0) return 'dockerd is not installed';
    else await this.startDaemon();
    this.run('import', join(folder, 'root.tar'), 'ragen-test');
    const tried = this.run('run', '--rm', '--network=host', '--memory=64m', '--cpus=1', 'ragen-test', 'true');
    return tried.status === 0 ? undefined : (tried.error?.message ?? tried.stderr.trim().split('\n').at(-1));
  }

  run(...args: string[]) {
    return spawnSync(this.name, args, { encoding: 'utf8', timeout: 60_000 });
  }

  /** Ids of all containers, one a line. */
  containers(): string {
    return this.run('ps', '--all', '--quiet').stdout;
  }

  async close(): Promise<void> {
    if (this.name === 'podman') {
      this.run('rm', '--all', '--force', '--time=0');
      this.run('rmi', '--all', '--force');
    }
    const { daemon } = this;
    if (daemon?.exitCode === null) {
      daemon.kill();
      await once(daemon, 'exit');
      spawnSync('umount', [join(this.folder, 'exec/netns/default')]); // the daemon leaves it mounted
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Machines without the right to raise limits refuse podman's default ones; runc also knows mixed control groups. */
  private configure(): void {
    const runtime = spawnSync('runc', ['--version']).status === 0 ? 'runtime = "runc"\n' : '';
    writeFileSync(
      join(this.folder, 'containers.conf'),
      `[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]\n[engine]\ncgroup_manager = "cgroupfs"\n${runtime}`,
    );
    writeFileSync(
      join(this.folder, 'storage.conf'),
      `[storage]\ndriver = "vfs"\ngraphroot = "${this.folder}/storage"\nrunroot = "${this.folder}/run"\n`,
    );
  }

  private async startDaemon(): Promise<void> {
    const at = (name: string) => join(this.folder, name);
    const paths = [`--data-root=${at('data')}`, `--exec-root=${at('exec')}`, `--pidfile=${at('pid')}`];
    const network = ['--iptables=false', '--ip6tables=false', '--bridge=none'];
    const args = [...paths, ...network, `--host=unix://${at('socket')}`, '--storage-driver=vfs'];
    this.daemon = spawn('dockerd', args, { stdio: 'ignore' });
    const { daemon } = this;
    await until('docker answers', () => daemon.exitCode !== null || this.run('ps').status === 0);
  }
}

const required = (process.env.RAGEN_REQUIRE_CONTAINERS ?? '').split(',');

describe.each(['podman', 'docker'] as const)('with %s', name => {
  let engine: RealEngine;
  let obstacle: string | undefined;
  beforeAll(async () => {
    engine = new RealEngine(name, mkdtempSync(join(tmpdir(), `ragen-${name}-`)));
    engine.use();
    obstacle = await engine.prepare();
    vi.unstubAllEnvs();
    if (obstacle !== undefined && required.includes(name))
      throw new Error(`RAGEN_REQUIRE_CONTAINERS names ${name}, but it runs no containers with limits: ${obstacle}`);
  }, 180_000);
  afterAll(async () => {
    engine.use();
    await engine.close();
    vi.unstubAllEnvs();
  }, 120_000);
  beforeEach(({ skip }) => {
    if (obstacle !== undefined) skip(`this machine runs no containers with limits: ${obstacle}`);
    engine.use();
  });

  const call = `wget -q -O - --post-data '{"messages":[{"role":"user","content":"go"}]}' $OPENAI_BASE_URL/chat/completions`;
  const play = (script: string, container: Record<string, unknown> = {}, config: Record<string, unknown> = {}) =>
    player.play(['sh', '-c', script], () => 'yes', {
      container: { image: 'ragen-test', engine: name, ...container },
      ...config,
    });

  test('a container calls the policy and gives the reward by a file', { timeout: 120_000 }, async () => {
    vi.stubEnv('SECRET', 'of this machine');
    writeFileSync(join(player.folder, 'note.txt'), 'ice');
    const script = `${call} | grep -q yes && echo 0.5 > $RAGEN_REWARD_FILE; cat /work/note.txt; env`;
    const mounts = [{ source: '.', target: '/work' }];
    const { episode } = await play(script, { mounts }, { reward: 'file' });
    expect([episode.error, episode.reward, episode.turns.length]).toEqual([undefined, 0.5, 1]);
    expect(episode.final_state).toContain('ice');
    expect(episode.final_state).not.toContain('SECRET');
    expect(engine.containers()).toBe('');
  });

  test('only writable mounts can be written', { timeout: 120_000 }, async () => {
    writeFileSync(join(player.folder, 'note.txt'), 'ice');
    const script = `${call}; echo snow > /work/note.txt`;
    const [read, write] = [false, true].map(writable => ({ mounts: [{ source: '.', target: '/work', writable }] }));
    expect((await play(script, read)).episode.success).toBe(false);
    expect(readFileSync(join(player.folder, 'note.txt'), 'utf8')).toBe('ice');
    expect((await play(script, write)).episode.success).toBe(true);
    expect(readFileSync(join(player.folder, 'note.txt'), 'utf8')).toBe('snow\n');
  });

  test('the limit of memory ends a program', { timeout: 120_000 }, async () => {
    const script = `${call}; head -c 200000000 /dev/zero | tail > /dev/null`;
    const [limited, free] = [await play(script, { memory_mb: 64 }), await play(script, { memory_mb: 1024 })];
    expect([limited, free].map(({ episode }) => episode.success)).toEqual([false, true]);
    expect(limited.episode.final_state).toContain('ended with exit code 137');
  });

  test('a container whose program runs too long is removed', { timeout: 120_000 }, async () => {
    const { episode } = await play(`${call}; sleep 1000`, {}, { time_limit: 15 });
    expect(episode.final_state).toBe('The program was ended, because it ran longer than 15 s.');
    expect(engine.containers()).toBe('');
  });

  test(
    'a container that cannot start fails its episode with the reason of the engine',
    { timeout: 120_000 },
    async () => {
      const { episode } = await play('true', { network: 'container:none' });
      expect(episode.error?.message).toContain('No call, and it ended with exit code 125');
      expect(engine.containers()).toBe('');
    },
  );

  test('containers of a trainer that was killed are removed', { timeout: 300_000 }, async () => {
    const workspace = makeWorkspace();
    try {
      const mounts = [{ source: '.', target: '/work', writable: true }];
      const container = { image: 'ragen-test', engine: name, mounts };
      const config = { command: `${call}; echo > /work/started; sleep 1000`, container };
      const run = await startDetached(workspace.folder, [
        `+custom_envs.Boxed=${JSON.stringify({ env_type: 'program', max_actions_per_traj: 4, env_config: config })}`,
        ...['train', 'val'].map(mode => `es_manager.${mode}.env_configs.tags=[Boxed]`),
        'trainer.val_before_train=false',
        'workbench.step_timeout_ms=60000',
      ]);
      const started = () => expect(existsSync(join(workspace.folder, 'started'))).toBe(true);
      await vi.waitFor(started, { timeout: 150_000, interval: 100 });
      await kill(run);
      await until('containers are removed', () => engine.containers() === '');
    } finally {
      await killAll(workspace.folder);
      workspace.remove();
    }
  });
});
