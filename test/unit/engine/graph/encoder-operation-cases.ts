// Cases of the operations of vision encoders (see operation-cases.ts).
import { gelu, geluTanh, layerNorm, splitColumns } from '../../../../extension/engine/graph/encoder-ops';
import { mul } from '../../../../extension/engine/graph/ops';
import type { OperationCase } from './operation-cases';

export const encoderCases: OperationCase[] = [
  {
    op: 'layerNorm',
    inputs: [{ dims: ['n', 5] }, { dims: [5] }, { dims: [5] }],
    sizes: { n: 3 },
    build: (g, [x, weight, bias]) => layerNorm(g, x, weight, bias, 1e-6),
  },
  { op: 'gelu', inputs: [{ dims: ['n', 7] }], sizes: { n: 3 }, build: (g, [x]) => gelu(g, x) },
  { op: 'geluTanh', inputs: [{ dims: ['n', 7] }], sizes: { n: 3 }, build: (g, [x]) => geluTanh(g, x) },
  {
    op: 'splitColumns',
    inputs: [{ dims: ['n', 6] }],
    sizes: { n: 2 },
    build: (g, [x]) => {
      const [a, b, c] = splitColumns(g, x, 3);
      return [mul(g, a, b), mul(g, b, c), c];
    },
  },
];
