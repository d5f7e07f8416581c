// The key `render_mode` of environments that give their states as text or as pictures; Gymnasium's names.
import { z } from 'zod';

export const renderMode = z
  .enum(['text', 'rgb_array'])
  .default('text')
  .describe('text: the observation is text; rgb_array: it is a picture');
