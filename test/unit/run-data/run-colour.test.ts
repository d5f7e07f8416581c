// The colour of a run: stable for an id, never grey by itself, and replaced by the user's choice.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hue } from '../../../extension/common/palette';
import { labelsSchema } from '../../../extension/run-data/run-manifest';
import { colourOfRun, ownColour, runColours } from '../../../extension/run-data/run-colour';

describe('the colour of a run', () => {
  it('depends on its id only, is never grey, and different runs have different ones', () => {
    const colours = Array.from({ length: 200 }, (_, i) => colourOfRun({ id: `run-${i}` }));
    expect(Math.max(...colours)).toBeLessThan(hue.grey);
    expect(new Set(colours).size).toBe(hue.grey);
    fc.assert(
      fc.property(fc.string(), id => {
        expect(colourOfRun({ id })).toBe(hue[ownColour(id)]);
      }),
    );
    expect(ownColour('run-3')).toBe(ownColour('run-3'));
  });

  it('is the one that the user has chosen', () => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom(...runColours), (id, colour) => {
        expect(colourOfRun({ id, colour })).toBe(hue[colour]);
      }),
    );
  });

  it('is stored by name; an unknown colour leaves the other labels', () => {
    expect(labelsSchema.parse({ schema: 1, colour: 'sky' }).colour).toBe('sky');
    expect(labelsSchema.parse({ schema: 1, name: 'lake', colour: 'ultraviolet' })).toMatchObject({ name: 'lake' });
  });
});
