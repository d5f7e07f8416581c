// The documents name files that exist: paths in backticks, from the repository, below `extension/`, `test/` or beside
// the document; file names alone; tests without their ending; and the targets of links.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(__dirname, '../../..');
const below = (folder: string) => readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
const decisions = readdirSync(join(root, 'docs/decisions')).map(name => `docs/decisions/${name}`);
const sources = new Set(['extension', 'webview', 'envs', 'test'].flatMap(below).map(name => basename(name)));

const documents = ['CONTRIBUTING.md', 'examples/README.md', 'docs/ARCHITECTURE.md', 'docs/GLOSSARY.md', ...decisions];

describe.each(documents)('%s', document => {
  const text = readFileSync(join(root, document), 'utf8');

  test('names files that exist', () => {
    const paths = [...text.matchAll(/`([\w.-]+(?:\/[\w.-]+)+)`/g)].map(([, path]) => path);
    const known = (path: string) =>
      ['', 'extension', dirname(document)].some(base => existsSync(join(root, base, path)));
    const elsewhere = /^(\.e2e\/|episodes\/index|checkpoints\/|float16\/)/; // made by the tests, and files of a run
    expect(paths.filter(path => !elsewhere.test(path) && !known(path))).toEqual([]);
  });

  test('names modules that exist', () => {
    const modules = [...text.matchAll(/`(?:[\w.-]+\/)*([\w-]+\.tsx?)`/g)].map(([, name]) => name);
    expect(modules.filter(name => !sources.has(name) && !/^(main|NAME)\.ts$/.test(name))).toEqual([]);
  });

  test('links to files that exist', () => {
    const targets = [...text.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, target]) => target);
    expect(targets.filter(target => !existsSync(join(root, dirname(document), target)))).toEqual([]);
  });
});

test('the tests that documents name as evidence exist', () => {
  const tests = below('test').map(name => name.replaceAll('\\', '/'));
  const missing = readdirSync(join(root, 'docs'))
    .filter(name => name.endsWith('.md'))
    .flatMap(name => {
      const text = readFileSync(join(root, 'docs', name), 'utf8');
      const named = [...text.matchAll(/`(?:test\/)?((?:unit|property|golden|webgpu|e2e|torture)\/[\w./*-]+)`/g)];
      const pattern = (path: string) => new RegExp(`^${path.replaceAll('.', '\\.').replaceAll('*', '.*')}`);
      return named
        .filter(([, path]) => !tests.some(file => pattern(path).test(file)))
        .map(([, path]) => `${name}: ${path}`);
    });
  expect(missing).toEqual([]);
});
