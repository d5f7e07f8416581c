// The configuration in a run folder is returned as stored, or refused with one sentence if another version stored it.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import { storedConfig } from '../../../../extension/trainer/run/stored-config';

const presetFolders = [join(__dirname, '../../../../media/presets')];
const { config } = loadConfig({ configName: 'quickstart', overrides: [], workspace: '/', presetFolders });
const stored = (changed: Record<string, unknown>) =>
  storedConfig({
    id: 'r1',
    path: '/w/.ragen/runs/r1',
    manifest: { config: { ...structuredClone(config), ...changed } } as never,
  });

describe('a stored configuration', () => {
  it('is returned as stored', () => {
    expect(stored({})).toEqual(config);
  });

  it('of another version is refused with the reader’s options, if the run is only read', () => {
    const manifest = { config: { ...structuredClone(config), data: undefined } } as never;
    expect(() => storedConfig({ id: 'r1', path: '/r1', manifest }, 'look at what it recorded')).toThrow(
      /^run r1: its configuration was written by an incompatible version \(data: .*\): look at what it recorded$/,
    );
  });

  it('of another version is refused with instructions to continue from its checkpoint', () => {
    expect(() => stored({ data: undefined })).toThrow(
      /^run r1: its configuration was written by an incompatible version \(data: .*\): start a new run with trainer\.resume_mode=resume_path and trainer\.resume_from_path=\/w\/\.ragen\/runs\/r1$/,
    );
  });
});
