// The doctor's report: every finding that is not ok has a remedy, an ok one has none, and the verdict counts the
// findings that affect runs.
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { findingsOf, reportText, type EditorFacts } from '../../../../extension/vscode/doctor/doctor-report';
import type { EngineReport } from '../../../../extension/protocol/engine-report';
import { machineReportSchema, type MachineFacts } from '../../../../extension/protocol/machine-report';

const editor: EditorFacts = {
  ...{
    extension: '1.2.3',
    editor: 'Code 1.99',
    remote: undefined,
    trusted: true,
    folders: ['/w'],
    keys: [],
    engines: [],
  },
  ...{ runs: { active: 1, all: 3 }, node: { path: '/usr/bin/node', version: '22.1.0', electron: false } },
};
const machine: MachineFacts = {
  node: { version: '22.1.0', required: '>=20', fits: true },
  platform: 'linux-x64 6.1',
  cpu: { model: 'A processor', cores: 8, usable: 4 },
  memory: { total: 16 * 2 ** 30, available: 12 * 2 ** 30, limit: null },
  onnxruntime: {
    ...{ version: '1.30.0', auto: 'cpu' },
    providers: [
      { provider: 'cuda', known: true, installed: false, self_check: null },
      {
        provider: 'webgpu',
        known: true,
        installed: true,
        self_check: { about: 'passed, 0.3 times as fast', faster: false },
      },
      { provider: 'cpu', known: true, installed: true, self_check: null },
    ],
  },
  disk: { folder: '/w', free: 40 * 2 ** 30 },
  folders: [{ path: '/w/.ragen/runs', for: 'runs', problem: null }],
  optional: [{ name: 'bubblewrap', found: null, for: 'the environment deepcoder' }],
};
const stateOf = (changed: Partial<EditorFacts>, facts: MachineFacts | { problem: string }, name: string) =>
  findingsOf({ ...editor, ...changed }, facts).find(finding => finding.name === name)!;

describe('the report', () => {
  it('of a healthy machine says so, and lists missing optional parts as notes', () => {
    const findings = findingsOf(editor, machine);
    expect(findings.filter(({ state }) => state === 'bad')).toEqual([]);
    expect(findings.filter(({ state }) => state === 'note').map(({ name }) => name.trim())).toEqual([
      'cuda',
      'webgpu',
      'bubblewrap',
    ]);
    const text = reportText(findings);
    expect(text).toMatch(/^RAGEN Doctor: Runs can start here\.\n\n✓ RAGEN Workbench {2}1\.2\.3\n/);
    expect(text).toContain('✓ Memory           12.0 GiB available of 16.0 GiB\n');
    expect(text).toContain(
      '○ bubblewrap       not found\n                   → needed only for the environment deepcoder\n',
    );
  });

  it.each<[string, Partial<EditorFacts>, MachineFacts | { problem: string }, RegExp]>([
    ['Workspace', { folders: [] }, machine, /^open a folder/],
    ['Trust', { trusted: false }, machine, /^run the command Workspaces: Manage Workspace Trust$/],
    ['Node', { node: { problem: 'none of 20 or newer was found' } }, { problem: 'none' }, /^install Node .*nodePath$/],
    ['Trainer', {}, { problem: 'cli.cjs does not start' }, /^install the extension again/],
    ['Memory', {}, { ...machine, memory: { ...machine.memory, available: 2 ** 29 } }, /train a smaller model/],
    ['Disk', {}, { ...machine, disk: { folder: '/w', free: 2 ** 28 } }, /^free space, .*keep_checkpoints\)$/],
    [
      'Permissions',
      {},
      { ...machine, folders: [{ path: '/w/.ragen/runs', for: 'runs', problem: '/w cannot be written to (EACCES)' }] },
      /^grant yourself write permission/,
    ],
  ])('has a remedy for %s', (name, changed, facts, expected) => {
    const { state, remedy } = stateOf(changed, facts, name);
    expect(state).toBe('bad');
    expect(remedy).toMatch(expected);
    expect(reportText(findingsOf({ ...editor, ...changed }, facts))).toMatch(
      /^RAGEN Doctor: \d problems? prevents? runs from working properly\./,
    );
  });

  it('leaves out a machine that was not inspected, because nothing starts without trust', () => {
    const findings = findingsOf(
      { ...editor, trusted: false, node: { problem: 'not trusted' } },
      { problem: 'not trusted' },
    );
    expect(findings.map(({ name }) => name)).toEqual(['RAGEN Workbench', 'Editor', 'Workspace', 'Trust']);
  });

  it('uses the singular for one run, and gives remedies that need no npm', () => {
    expect(stateOf({ runs: { active: 0, all: 1 } }, machine, 'Workspace').value).toBe('/w; 1 run, 0 active');
    const providers = machine.onnxruntime.providers.map(provider => ({ ...provider, installed: false }));
    const findings = findingsOf(editor, { ...machine, onnxruntime: { ...machine.onnxruntime, providers } });
    const remedies = findings.filter(({ value }) => value === 'library not installed').map(({ remedy }) => remedy);
    expect(remedies).toEqual([
      expect.stringContaining('webgpu uses the same GPU'),
      ...Array<string>(2).fill('reinstall the extension from its package for this platform'),
    ]);
    expect(remedies.join()).not.toContain('npm');
  });

  it('names the keys stored in the editor', () => {
    expect(stateOf({ keys: ['HF_TOKEN'] }, machine, 'Keys').value).toBe('HF_TOKEN, stored by the editor');
  });

  it('warns of the editor’s own Node', () => {
    const node = { path: '/editor', version: '22.1.0', electron: true };
    expect(stateOf({ node }, machine, 'Node')).toMatchObject({
      state: 'note',
      remedy: expect.stringContaining('1 GiB'),
    });
  });

  it("reads the CLI's report of the current machine", () => {
    const answer = execFileSync(process.execPath, ['dist/cli.cjs', 'doctor', '--json'], { encoding: 'utf8' });
    const facts = machineReportSchema.parse((JSON.parse(answer) as { machine: unknown }).machine);
    expect(facts.folders.map(({ for: use }) => use)).toEqual(['runs', 'models of the hub', 'environment builds']);
    expect(findingsOf(editor, facts).find(({ name }) => name === 'onnxruntime')!.value).toContain('"auto" selects');
  });
});

describe('a kept engine', () => {
  const report: EngineReport = {
    ...{ url: 'https://gpu:8000', encrypted: true, server: null, key: 'accepted', limits: [], ignored: [] },
    models: [{ name: 'a/b', max_context_length: null }],
    ...{ round_trip_ms: 12, clock_difference_s: 0, measured: null, not_measured: 'not asked for' },
  };
  const finding = (found: EngineReport | { problem: string }) =>
    findingsOf({ ...editor, engines: [{ name: 'gpu', found }] }, machine).at(-1);

  it('that works has its key, models and round trip', () => {
    expect(finding(report)).toEqual({
      name: 'Engine gpu',
      state: 'good',
      value: 'https://gpu:8000, key accepted, a/b · round trip 12 ms',
    });
  });

  it('that cannot be used is a note with the remedy', () => {
    const problem = 'engine: https://gpu:8000 refuses the key of GPU_KEY: correct the key';
    expect(finding({ problem })).toEqual({
      name: 'Engine gpu',
      state: 'note',
      value: 'https://gpu:8000 refuses the key of GPU_KEY',
      remedy: 'correct the key',
    });
  });

  it('with another clock is a note', () => {
    expect(finding({ ...report, clock_difference_s: -300 })).toMatchObject({
      state: 'note',
      value: expect.stringContaining('its clock differs by 300 s') as string,
    });
  });
});
