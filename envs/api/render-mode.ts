// The keys of environments that give their states as text or as pictures: `render_mode`, with Gymnasium's names, and
// `picture`, of environments that can draw their pictures with the images of another library.
import { z } from 'zod';

export const renderMode = z
  .enum(['text', 'rgb_array'])
  .default('text')
  .describe('text: the observation is text; rgb_array: it is a picture');

export const pictureStyle = z
  .enum(['tiles', 'sprites'])
  .default('tiles')
  .describe(
    'what a picture is composed of with render_mode rgb_array: tiles of this product, or the sprites that VAGEN shows',
  );
