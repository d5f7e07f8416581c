// Names that would lead out of a folder: environment versions and their sources in a run folder, configurations in the
// preset folder.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { RunReader } from '../../../extension/vscode/run-files/run-reader';
import { keptEnvironmentSchema } from '../../../extension/run-data/environment-snapshot';
import { ranVersions } from '../../../extension/run-data/version-effect';
import { findConfig } from '../../../extension/trainer/config/compose';
import { temporaryFolder } from '../../support/temporary-folder';

const kept = { version: 'a1', name: 'x', kept: '', root: '/envs', entry: 'x.ts', sources: ['x.ts'] };
const folder = temporaryFolder();

it.each(['../x.ts', '..', 'a/../../x.ts', '/etc/passwd', 'C:/x.ts', '..\\x.ts', 'a//b', './x.ts', ''])(
  '%j is not a valid source name',
  name => {
    expect(keptEnvironmentSchema.safeParse({ ...kept, sources: [name] }).success).toBe(false);
    expect(keptEnvironmentSchema.safeParse({ ...kept, entry: name }).success).toBe(false);
  },
);

it.each(['x.ts', 'lib/arms.ts', '..x/y..ts', '.hidden', 'my file (1).ts', 'é.ts'])(
  '%j is a valid source name',
  name => {
    expect(keptEnvironmentSchema.safeParse({ ...kept, sources: [name] }).success).toBe(true);
  },
);

it('a version that leads out of the folder is refused', async () => {
  mkdirSync(join(folder(), 'elsewhere'));
  mkdirSync(join(folder(), 'run/environments/a1'), { recursive: true });
  for (const place of ['elsewhere', 'run/environments/a1'])
    writeFileSync(join(folder(), place, 'version.json'), JSON.stringify(kept));
  const reader = new RunReader(join(folder(), 'run'));
  expect(await reader.keptEnvironment('a1')).toEqual(kept);
  expect(await reader.keptEnvironment('../../elsewhere')).toBeUndefined();
  const environment = { tag: 'A', name: 'x', source: 'x.ts' };
  const ran = ranVersions(
    {
      environments: [
        { ...environment, version: '../..' },
        { ...environment, version: 'a1' },
      ],
    },
    [],
  );
  expect(ran.map(({ version }) => version)).toEqual(['a1']);
});

it.each(['../small', 'a/small', '..', '', 'a'.repeat(5000)])('%j is not a valid configuration name', name => {
  writeFileSync(join(folder(), 'small.yaml'), '');
  mkdirSync(join(folder(), 'inside'));
  expect(findConfig(name, [join(folder(), 'inside')])).toBeUndefined();
});
