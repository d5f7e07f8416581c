// Run folders of other users: copied, edited, or created with another user's key. The CLI, the trainer and the editor's
// inspection process execute code of such a folder only if the user accepts the code.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Episode } from '../../../../extension/run-data/episode';
import { sha256Of } from '../../../../extension/node/run-trust';
import { acceptFiles } from '../../../../extension/node/user-storage';
import { Inspector } from '../../../../extension/trainer/inspection/inspector';
import { installation } from '../../../../extension/node/installation';
import { document, killAll, readRun } from '../../../support/terminal';
import { keepAll, trainHere } from '../../../support/train-here';
import type { Trained } from '../../../support/train-here';
import { makeWorkspace, root } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
let own: Trained;
let origin: Episode;
let inspector: Inspector;
let marker: string;
let copies = 0;
beforeAll(async () => {
  workspace = makeWorkspace();
  own = await trainHere(
    workspace,
    [...keepAll, 'agent_proxy.max_turn=3', 'trainer.save_freq=1', 'workbench.keep_checkpoints=9'],
    2,
  );
  origin = own.episodes.find(({ turns }) => turns.length === 3)!;
});
beforeEach(() => {
  marker = join(workspace.folder, `executed-${copies}`);
  inspector = new Inspector(1, { phase: () => undefined, whatIfTokens: () => undefined });
});
afterEach(() => inspector.close());
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
  rmSync(installation.cache, { recursive: true });
});

/** Copies the run under another name, as if received from another user. */
function copied(name = `copy-${++copies}`): string {
  const folder = join(workspace.folder, '.ragen/runs', name);
  cpSync(own.folder, folder, { recursive: true });
  return folder;
}

/** Source of an environment that records its execution. */
const evil = (): string => `require('node:fs').writeFileSync(${JSON.stringify(marker)}, '');\n`;
const file = (run: string, name: string): string => join(run, 'environments', origin.environment.version, name);
const hashOf = (path: string): string => sha256Of(readFileSync(path));
const replay = (folder: string, accepted?: string[]) => {
  const { mode, step, id } = origin;
  return inspector.whatIf({
    folder,
    mode,
    step,
    id,
    turn: 2,
    given: { answer: 'abc' },
    checkpoint: 'initial',
    seed: 1,
    accepted,
  });
};

/** Changes a text of the run. */
function edit(path: string, change: (text: string) => string): void {
  writeFileSync(path, change(readFileSync(path, 'utf8')));
}

describe('what if', () => {
  test('executes code that this user’s trainer stored', async () => {
    expect((await replay(own.folder)).written).not.toBeNull();
  });

  test('executes code of a copied folder only if its exact bytes are accepted', async () => {
    const run = copied();
    await expect(replay(run)).rejects.toThrow(
      /manifest\.json \(sha256 [0-9a-f]{64}\) was not written to this folder by your trainer and is not executed/,
    );
    edit(file(run, 'environment.js'), text => evil() + text);
    const { mode, step, id } = origin;
    const accepted = [join(run, 'manifest.json'), file(run, 'version.json')].map(hashOf);
    await expect(replay(run, accepted)).rejects.toThrow(
      /environment\.js \(sha256 [0-9a-f]{64}\) was not written to this folder/,
    );
    await expect(inspector.legalActions({ folder: run, mode, step, id, accepted })).rejects.toThrow(/environment\.js/);
    expect(existsSync(marker)).toBe(false);
    const shown = hashOf(file(run, 'environment.js'));
    edit(file(run, 'environment.js'), text => `${text} `); // changed after the user saw it
    await expect(replay(run, [...accepted, shown])).rejects.toThrow(/environment\.js/);
    expect(existsSync(marker)).toBe(false);
    expect((await replay(run, [...accepted, hashOf(file(run, 'environment.js'))])).written).not.toBeNull();
    expect(existsSync(marker)).toBe(true);
  });

  test('executes a permanently accepted copied folder until one of its files changes', async () => {
    const run = copied();
    const names = [
      'manifest.json',
      ...['environment.js', 'version.json'].map(name => `environments/${origin.environment.version}/${name}`),
    ];
    acceptFiles(names.map(name => ({ run: basename(run), file: name, sha256: hashOf(join(run, name)) })));
    expect((await replay(run)).written).not.toBeNull();
    edit(file(run, 'version.json'), text => text.replace('"root": "', '"root": "/elsewhere'));
    await expect(replay(run)).rejects.toThrow(/version\.json \(sha256 [0-9a-f]{64}\) was not written to this folder/);
  });

  test.each(['environment.js', 'version.json', 'manifest.json'])(
    'executes no code after a change of %s',
    async name => {
      const path = name === 'manifest.json' ? join(own.folder, name) : file(own.folder, name);
      const before = readFileSync(path, 'utf8');
      try {
        edit(path, text => (name === 'environment.js' ? evil() + text : `${text} `));
        await expect(replay(own.folder)).rejects.toThrow('was not written to this folder by your trainer');
        expect(existsSync(marker)).toBe(false);
      } finally {
        writeFileSync(path, before);
      }
      expect((await replay(own.folder)).written).not.toBeNull();
    },
  );

  test('writes no file through a link', async () => {
    const run = copied();
    const elsewhere = join(workspace.folder, `elsewhere-${copies}`);
    mkdirSync(elsewhere);
    rmSync(join(run, 'what-if'), { recursive: true, force: true });
    symlinkSync(elsewhere, join(run, 'what-if'));
    const accepted = [join(run, 'manifest.json'), file(run, 'version.json'), file(run, 'environment.js')].map(hashOf);
    await expect(replay(run, accepted)).rejects.toThrow(/what-if is a link, which a run folder must not contain/);
    expect(readdirSync(elsewhere)).toEqual([]);
  });
});

interface Refused {
  error?: { message: string };
}
const ragen = (...args: string[]) => document<Refused & { run: string }>(workspace.folder, args);

describe('the CLI', () => {
  /** A copy whose manifest names an environment outside the workspace. */
  function strange(): string {
    const run = copied();
    const outside = join(run, 'evil.ts'); // any path works
    writeFileSync(outside, `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(marker)}, '');\n`);
    edit(join(run, 'manifest.json'), text => text.replaceAll('"environments/words.ts"', JSON.stringify(outside)));
    return run;
  }

  test('refuses to resume, duplicate or evaluate a foreign run, and names the file to read', async () => {
    const run = strange();
    const [id, path] = [basename(run), join(run, 'manifest.json')];
    const expectedText = `run ${id}: ${path} (sha256 ${hashOf(path)}) names the code to execute and was not written to this folder by your trainer (signature.json does not sign it): read the file, then repeat the command with --trust-code ${hashOf(path)}`;
    for (const args of [
      ['resume', id],
      ['resume', id, '--checkpoint', '1'],
      ['train', '--from', id],
      ['eval', '--run', id],
    ]) {
      const { code, answer } = await ragen(...args, '--trust-code', hashOf(file(run, 'version.json')));
      expect([code, answer.error?.message]).toEqual([1, expectedText]);
    }
    const trainer = spawnSync(process.execPath, [installation.trainer, '--run', run, '--resume'], {
      cwd: workspace.folder,
      encoding: 'utf8',
    });
    expect([trainer.status, trainer.stderr.includes('was not written to this folder by your trainer')]).toEqual([
      1,
      true,
    ]);
    expect(existsSync(marker)).toBe(false);
    expect(existsSync(join(run, 'lease'))).toBe(false);
  });

  test('resumes a foreign run whose manifest is accepted, and signs the files stored from then on', async () => {
    const run = copied();
    rmSync(join(run, 'environments'), { recursive: true });
    const flag = ['--trust-code', hashOf(join(run, 'manifest.json'))];
    const { code, stderr, answer } = await ragen('resume', basename(run), '--from', '1', '--discard', ...flag);
    expect(code, stderr).toBe(0);
    expect(answer.run).toBe(basename(run));
    expect(readRun(run).metrics.map(({ step }) => step)).toEqual([1, 2]);
    await expect(replay(run)).rejects.toThrow(/manifest\.json/);
    expect((await replay(run, [hashOf(join(run, 'manifest.json'))])).written).not.toBeNull();
  });

  test('does not add a foreign run to a sweep that its manifest names', async () => {
    workspace.write('tried.yaml', 'config_name: words\nlist: [[trainer.total_training_steps=1]]\n');
    const done = await document<{ points: { runs: { run: string }[] }[] }>(workspace.folder, ['sweep', 'tried.yaml']);
    expect(done.code, done.stderr).toBe(0);
    const first = join(workspace.folder, '.ragen/runs', done.answer.points[0].runs[0].run);
    const copy = join(workspace.folder, '.ragen/runs/zz-copy');
    renameSync(first, copy); // renaming the folder invalidates its signatures
    edit(join(copy, 'status.json'), text => text.replace('"finished"', '"stopped"'));
    const { code, stderr } = await ragen('sweep', 'tried.yaml');
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /run zz-copy: .* was not written to this folder by your trainer \(signature\.json does not sign it\): read the file, then run ragen resume zz-copy with --trust-code/,
    );
    renameSync(copy, first);
    edit(join(first, 'status.json'), text => text.replace('"stopped"', '"finished"'));
    cpSync(first, copy, { recursive: true });
    expect((await ragen('sweep', 'tried.yaml')).stderr).toBe('1 of 1 runs are finished already\n');
  });

  test('does not write to a run whose folder contains a link', async () => {
    const run = copied();
    const target = workspace.write('precious.txt', 'precious');
    rmSync(join(run, 'metrics.jsonl'));
    symlinkSync(target, join(run, 'metrics.jsonl'));
    const { code, answer } = await ragen('resume', basename(run), '--trust-code', hashOf(join(run, 'manifest.json')));
    expect([code, answer.error?.message]).toEqual([
      1,
      expect.stringMatching(/metrics\.jsonl is a link, which a run folder must not contain/),
    ]);
    expect(readFileSync(target, 'utf8')).toBe('precious');
  });

  test('refuses a run of a user without a key like any other foreign run', () => {
    const env = { ...process.env, RAGEN_USER_STORAGE: join(workspace.folder, 'nobody') };
    const cli = join(root, 'dist/cli.cjs');
    const { status, stderr } = spawnSync(process.execPath, [cli, 'resume', basename(own.folder)], {
      cwd: workspace.folder,
      env,
      encoding: 'utf8',
    });
    expect([status, stderr.includes('was not written to this folder by your trainer')]).toEqual([1, true]);
  });
});
