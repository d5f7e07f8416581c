// CONTRIBUTING.md, the decisions and the examples name files that exist: paths in backticks, from the repository or
// below `extension/`, and the targets of links.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(__dirname, '../../..');
const decisions = readdirSync(join(root, 'docs/decisions')).map(name => `docs/decisions/${name}`);

describe.each(['CONTRIBUTING.md', 'examples/README.md', ...decisions])('%s', document => {
  const text = readFileSync(join(root, document), 'utf8');

  test('names files that exist', () => {
    const paths = [...text.matchAll(/`([\w.-]+(?:\/[\w.-]+)+)`/g)].map(([, path]) => path);
    const known = (path: string) =>
      ['', 'extension', dirname(document)].some(base => existsSync(join(root, base, path)));
    const elsewhere = /^(\.e2e\/|episodes\/index)/; // made by the tests, and a file of a run
    expect(paths.filter(path => !elsewhere.test(path) && !known(path))).toEqual([]);
  });

  test('links to files that exist', () => {
    const targets = [...text.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, target]) => target);
    expect(targets.filter(target => !existsSync(join(root, dirname(document), target)))).toEqual([]);
  });
});
