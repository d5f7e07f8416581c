// Options of image processors: defaults, the two places of the size, and options that are rejected by their name.
import { expect, it } from 'vitest';
import { parseProcessorOptions } from '../../../../extension/models/vision/processor-options';

const parse = (json: unknown) => parseProcessorOptions(json, 'preprocessor_config.json');
const qwen = { image_processor_type: 'Qwen2VLImageProcessor' };
const smol = { image_processor_type: 'Idefics3ImageProcessor' };

it('has the defaults of transformers', () => {
  expect(parse(qwen)).toMatchObject({ minPixels: 3136, maxPixels: 1_003_520, patchSize: 14, filter: 'bicubic' });
  expect(parse(smol)).toMatchObject({ longestEdge: 1456, tileSize: 364, isSplit: true, filter: 'lanczos' });
});

it('prefers min_pixels and max_pixels to size', () => {
  const size = { shortest_edge: 10, longest_edge: 20 };
  expect(parse({ ...qwen, size })).toMatchObject({ minPixels: 10, maxPixels: 20 });
  expect(parse({ ...qwen, size, min_pixels: 5, max_pixels: 50 })).toMatchObject({ minPixels: 5, maxPixels: 50 });
});

it.each([
  [null, 'image_processor_type is undefined'],
  [{ image_processor_type: 'CLIPImageProcessor' }, 'image_processor_type is "CLIPImageProcessor"'],
  [{ ...qwen, do_resize: false }, 'do_resize is false'],
  [{ ...qwen, do_convert_rgb: false }, 'do_convert_rgb is false'],
  [{ ...qwen, resample: 0 }, 'resample is 0'],
  [{ ...qwen, patch_size: 0 }, 'patch_size is 0'],
  [{ ...qwen, size: { height: 4, width: 4 } }, 'size.height is 4'],
  [{ ...qwen, size: { shortest_edge: 4 } }, 'size lacks longest_edge'],
  [{ ...qwen, do_sharpen: true }, 'do_sharpen is true'],
  [{ ...qwen, image_std: [1, 0, 1] }, 'image_std is [1,0,1]'],
  [{ ...smol, size: { longest_edge: 5000 } }, 'size.longest_edge is 5000'],
  [{ ...smol, max_image_size: { longest_edge: 512, height: 1 } }, 'max_image_size.height is 1'],
])('rejects %j by name', (json, message) => {
  expect(() => parse(json)).toThrow(`preprocessor_config.json: ${message}`);
});
