// Converts 8-bit pixels to float32 as transformers does: (pixel − mean / rescaleFactor) / (std / rescaleFactor), every
// operation rounded to float32. There are 256 values per channel, so they are computed once.
import type { Normalization } from './processor-options';

const { fround } = Math;

const known = new WeakMap<Normalization, Float32Array[]>();

/** Returns the float32 value of each pixel value, for the three channels; computed once for each object. */
export function normalizedValues(options: Normalization): Float32Array[] {
  let values = known.get(options);
  if (!values) known.set(options, (values = computed(options)));
  return values;
}

function computed({ rescaleFactor, mean, std }: Normalization): Float32Array[] {
  const inverse = fround(1 / rescaleFactor);
  return mean.map((_, channel) => {
    const center = fround(fround(mean[channel]) * inverse);
    const spread = fround(fround(std[channel]) * inverse);
    return Float32Array.from({ length: 256 }, (__, x) => fround(fround(x - center) / spread));
  });
}
