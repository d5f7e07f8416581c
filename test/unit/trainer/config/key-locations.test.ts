// A key keeps the location where it was written, whatever an override or a reference does to its value: errors about
// keys point there.
import { expect, test } from 'vitest';
import { interpolate } from '../../../../extension/trainer/config/interpolation';
import { applyOverrides } from '../../../../extension/trainer/config/overrides';
import { nodeAt, parseYaml, type MapNode } from '../../../../extension/trainer/config/yaml-tree';

const parsed = (text: string): MapNode => parseYaml(text, { file: 'run.yaml' }, []) as MapNode;
const known = { isKnown: () => true, advise: () => '' };

test('a null map that an override fills keeps the location of its key', () => {
  const changed = applyOverrides(parsed('first: 1\nenv_config: null\n'), ['env_config.size=4'], known, []);
  expect(nodeAt(changed, ['env_config'])?.keyLocation).toMatchObject({ file: 'run.yaml', line: 2, column: 1 });
  expect(nodeAt(changed, ['env_config', 'size'])?.keyLocation).toEqual({ override: 'env_config.size=4' });
});

test('a value taken from another key keeps the location of its own key', () => {
  const resolved = interpolate(parsed('source:\n  size: 4\ncopy: ${source}\n'), []);
  expect(nodeAt(resolved, ['copy'])?.keyLocation).toMatchObject({ line: 3, column: 1 });
  expect(nodeAt(resolved, ['copy', 'size'])?.location).toMatchObject({ line: 2 });
});
