// Which choices of lora.target_modules a server can be asked for.
import { expect, test } from 'vitest';
import { adapterParts } from '../../../../extension/models/tinker/adapter-parts';

const attention = ['q_proj', 'k_proj', 'v_proj', 'o_proj'];
const mlp = ['gate_proj', 'up_proj', 'down_proj'];

test.each([
  ['all-linear', true, true],
  ['All-Linear', true, true],
  [[...mlp, ...attention], true, true],
  [attention.toReversed(), true, false],
  [mlp, false, true],
] as const)('%j is expressed exactly', (targets, train_attn, train_mlp) => {
  expect(adapterParts(targets)).toEqual({ train_attn, train_mlp, train_unembed: false });
});

test.each([
  [['q_proj', 'v_proj']],
  [[...attention, 'up_proj']],
  [[...attention, 'lm_head']],
  [[]],
  ['.*q_proj'],
  [['self_attn.q_proj']],
] as const)('%j cannot be expressed', targets => {
  expect(adapterParts(targets)).toBeNull();
});
