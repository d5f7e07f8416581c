// Any bytes, also behind the first bytes of a picture: recognising them neither throws nor reads without end.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { mostPicturePixels, pictureType } from '../../../extension/common/picture-type';

const beginnings = ['', '89504e470d0a1a0a0000000d49484452', 'ffd8ff', 'ffd8ffe00000', 'ffd8ffffffff', 'ffd8ffc0000b08'];

it('bytes are a picture of a bounded size, or none', () => {
  fc.assert(
    fc.property(fc.constantFrom(...beginnings), fc.uint8Array({ maxLength: 80 }), (beginning, rest) => {
      const found = pictureType(Buffer.concat([Buffer.from(beginning, 'hex'), rest]));
      if (!found) return;
      expect(found.width).toBeGreaterThan(0);
      expect(Math.max(found.width, found.height)).toBeLessThanOrEqual(mostPicturePixels);
      expect(beginning.startsWith(found.type === 'png' ? '8950' : 'ffd8') || beginning === '').toBe(true);
    }),
    { numRuns: 2000 },
  );
});
