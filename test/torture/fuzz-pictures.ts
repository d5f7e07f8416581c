// Fuzz target for the pictures of observations: PNG and JPEG files are decoded, or refused with a PictureError. A
// decoded picture has the size that its header claims, and pages accept no file that has no such header.
import { PNG } from 'pngjs';
import { pictureType } from '../../extension/common/picture-type';
import { decodePicture } from '../../extension/models/vision/picture-decoder';
import { holds } from './fuzz-target';
import type { FuzzTarget } from './fuzz-target';

const drawn = (colorType: 0 | 2 | 4 | 6): Buffer => PNG.sync.write(new PNG({ width: 5, height: 3 }), { colorType });

/** A baseline JPEG file of 5 × 3 pixels, in base64. */
const jpeg = [
  '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4RDgsLEBYQERMU',
  'FRUVDA8XGBYUGBIUFRT/2wBDAQMEBAUEBQkFBQkUDQsNFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU',
  'FBQUFBQUFBT/wAARCAAFAAMDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAj/xAAaEAACAgMAAAAAAAAAAAAAAAAABAEC',
  'AyEx/8QAFQEBAQAAAAAAAAAAAAAAAAAABAf/xAAaEQACAgMAAAAAAAAAAAAAAAABAgADERNx/9oADAMBAAIRAxEAPwC2lG7Qtj1H',
  'AAKuA2N0yDKowJ//2Q==',
].join('');

export const pictureTargets: readonly FuzzTarget[] = [
  {
    name: 'pictures of observations',
    form: 'bytes',
    corpus: [drawn(0), drawn(2), drawn(4), drawn(6), Buffer.from(jpeg, 'base64')],
    weight: 1,
    lawful: ['PictureError'],
    async run(input) {
      const header = pictureType(input);
      const { width, height, pixels } = await decodePicture(input);
      holds(pixels.length === width * height * 3, 'a picture has other pixels than its size');
      holds(
        header === undefined || (header.width === width && header.height === height),
        'the header has another size',
      );
      return { width, height };
    },
  },
];
