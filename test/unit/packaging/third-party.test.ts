// Third-party notices match what is shipped: they list the bundles as just built, every package has its licence and its
// text, and the bill of materials lists the same packages with the lockfile's versions and hashes.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const thirdParty = (...args: string[]) =>
  execFileSync(process.execPath, ['third-party.mjs', ...args], { encoding: 'utf8' });

test('the notices are up to date, and list every package of a bundle with its licence', () => {
  const { status, stderr } = spawnSync(process.execPath, ['third-party.mjs', '--check'], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  const notices = readFileSync('THIRD-PARTY-NOTICES.txt', 'utf8');
  const bundled = JSON.parse(readFileSync('dist/bundled-packages.json', 'utf8')) as string[];
  expect(bundled.length).toBeGreaterThan(20);
  for (const folder of [...bundled, 'node_modules/onnxruntime-node', 'node_modules/typescript']) {
    const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as {
      name: string;
      version: string;
    };
    expect(notices).toMatch(
      new RegExp(`^${name.replaceAll('/', '\\/')} ${version.replaceAll('.', '\\.')} · \\S+`, 'm'),
    );
  }
  for (const [start, ...holders] of [
    ['gymnasium (images of FrozenLake) 1.4.0 · MIT · ', 'Copyright (c) 2022 Farama Foundation'],
    ['gym-sokoban (images) 0.0.6 · MIT · ', 'Copyright (c) 2018 Max-Philipp Schrader'],
  ])
    for (const words of [start, ...holders]) expect(notices).toContain(words);
  expect(notices).not.toMatch(/· (undefined|UNLICENSED|SEE LICENSE)/);
});

interface Bill {
  bomFormat: string;
  specVersion: string;
  metadata: { component: { name: string } };
  components: {
    name: string;
    group?: string;
    version: string;
    purl: string;
    hashes?: { alg: string; content: string }[];
    licenses?: unknown;
  }[];
  dependencies: { dependsOn: string[] }[];
}

test('the bill of materials lists each package with version, licence and hash, and the platform’s bundler', () => {
  const bill = JSON.parse(thirdParty('--sbom', 'linux-x64')) as Bill;
  expect(bill).toMatchObject({
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    metadata: { component: { name: 'ragen-workbench' } },
  });
  const names = bill.components.map(({ group, name }) => (group === undefined ? name : `${group}/${name}`));
  expect(names).toEqual(
    expect.arrayContaining(['zod', 'onnxruntime-node', 'chart.js', '@huggingface/tokenizers', '@esbuild/linux-x64']),
  );
  expect(names).toEqual(expect.arrayContaining(['@duckdb/node-api', '@duckdb/node-bindings-linux-x64']));
  expect(names.filter(name => name.startsWith('@duckdb/'))).toHaveLength(3);
  expect(names).toEqual(expect.arrayContaining(['@duckdb/node-bindings']));
  for (const { purl, version, licenses, hashes } of bill.components) {
    expect(purl).toMatch(/^pkg:npm\/[\w.%/-]+@\d/);
    expect([purl, licenses !== undefined, hashes?.[0].content.length]).toEqual([purl, true, 128]);
    expect(version).toMatch(/^\d/);
  }
  expect(bill.dependencies[0].dependsOn).toHaveLength(bill.components.length);
  expect(new Set(bill.dependencies[0].dependsOn).size).toBe(bill.components.length);
});

test('the lockfile pins every package by its hash, from the registry only', () => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    packages: Record<string, { integrity?: string; resolved?: string; link?: boolean; inBundle?: boolean }>;
  };
  const loose = Object.entries(packages).filter(
    ([name, { integrity, resolved, inBundle }]) =>
      name !== '' &&
      !inBundle &&
      !(
        integrity?.startsWith('sha512-') &&
        (resolved === undefined || resolved.startsWith('https://registry.npmjs.org/'))
      ),
  );
  expect(loose.map(([name]) => name)).toEqual([]);
});
