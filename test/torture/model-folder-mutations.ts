// Mutations of a model folder: values and types in its JSON; missing, truncated, duplicated or redirected shards;
// headers whose offsets, shapes and types contradict the data; files of other models; and non-regular files. The random
// stream determines all mutations.
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { isRecord, jsonOrNothing } from '../../extension/common/json';
import type { RandomStream } from '../../extension/engine/sampling/random-stream';
import { mutated } from './fuzz-mutations';

const pick = <T>(list: readonly T[], stream: RandomStream): T => list[stream.integer(list.length)];

/** Values assigned to a key of a configuration. */
const values: readonly unknown[] = [
  ...[
    null,
    true,
    false,
    0,
    -1,
    1,
    2,
    3,
    7,
    1.5,
    64,
    4096,
    1e6,
    2 ** 31,
    2 ** 53,
    1e308,
    '',
    '2',
    'silu',
    'gelu',
    'bfloat16',
    'float64',
  ],
  ...[
    'fp8',
    'mamba',
    'qwen2',
    'qwen3',
    'llama',
    '../model',
    [],
    [1],
    ['sliding_attention'],
    ['full_attention', 'sliding_attention'],
    {},
  ],
  ...[
    { quant_method: 'gptq' },
    { rope_type: 'yarn', factor: 4 },
    { rope_type: 'llama3' },
    { type: 'linear', factor: 1e-300 },
    { a: { b: 1 } },
  ],
];

/** Keys that may be added to a configuration. */
const keys = [
  ...[
    'quantization_config',
    'rope_scaling',
    'rope_parameters',
    'rope_theta',
    'sliding_window',
    'use_sliding_window',
    'layer_types',
    'head_dim',
  ],
  ...[
    'tie_word_embeddings',
    'vocab_size',
    'dtype',
    'torch_dtype',
    'model_type',
    'max_position_embeddings',
    'attention_bias',
    'mlp_bias',
  ],
  ...[
    'hidden_act',
    'partial_rotary_factor',
    'eos_token_id',
    'chat_template',
    'modules_to_save',
    'target_modules',
    'r',
    'lora_alpha',
    '__proto__',
  ],
];

const dtypes = ['F64', 'F32', 'F16', 'BF16', 'I8', 'U8', 'I64', 'BOOL', 'F8_E4M3', 'F4', 'float32', '', 'f32'];

/** File names for weight maps that lead outside the folder or do not exist. */
const elsewhere = [
  ...[
    '../outside.safetensors',
    '/etc/passwd',
    '..\\outside.safetensors',
    'a/b.safetensors',
    './model-1.safetensors',
    'none.safetensors',
  ],
  ...[
    'model-1.safetensors\u0000.txt',
    '',
    ' ',
    '..',
    'config.json',
    'CON.safetensors',
    'model-1.safetensors/',
    '~/x.safetensors',
  ],
];

type Mutation = (folder: string, stream: RandomStream) => void;

const filesOf = (folder: string, of: RegExp = /./): string[] =>
  (existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : [])
    .filter(entry => entry.isFile() && of.test(entry.name))
    .map(({ name }) => join(folder, name))
    .filter(file => statSync(file).size < 2 ** 20)
    .sort();

/** A mutation that applies `change` to one matching file, or does nothing if none matches. */
const onFile =
  (of: RegExp, change: (file: string, stream: RandomStream) => void): Mutation =>
  (folder, stream) => {
    const files = filesOf(folder, of);
    if (files.length > 0) change(pick(files, stream), stream);
  };

/** A mutation that changes the header of a safetensors file, but not its data. */
const onHeader = (change: (header: Record<string, unknown>, stream: RandomStream) => void): Mutation =>
  onFile(/\.safetensors$/, (file, stream) => {
    const bytes = readFileSync(file);
    if (bytes.length < 8) return;
    const end = 8 + Number(bytes.readBigUInt64LE());
    const header = jsonOrNothing(bytes.toString('utf8', 8, end));
    if (!isRecord(header)) return;
    change(header, stream);
    const text = Buffer.from(JSON.stringify(header));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    writeFileSync(file, Buffer.concat([length, text, bytes.subarray(end)]));
  });

function onTensor(change: (tensor: Record<string, unknown>, stream: RandomStream) => void): Mutation {
  return onHeader((header, stream) => {
    const tensors = Object.values(header).filter(isRecord);
    if (tensors.length > 0) change(pick(tensors, stream), stream);
  });
}

/** A mutation that replaces a file by a non-regular file. */
const replaced =
  (make: (path: string, folder: string, stream: RandomStream) => void): Mutation =>
  (folder, stream) => {
    const files = filesOf(folder);
    if (files.length === 0) return;
    const file = pick(files, stream);
    rmSync(file);
    make(file, folder, stream);
  };

const json = (file: string, change: (content: Record<string, unknown>) => void): void => {
  const content = jsonOrNothing(readFileSync(file, 'utf8'));
  if (!isRecord(content)) return;
  change(content);
  writeFileSync(file, JSON.stringify(content));
};

const mutations: Readonly<Record<string, Mutation>> = {
  'a value of a configuration': onFile(/config\.json$/, (file, stream) =>
    json(file, content => {
      const own = Object.keys(content);
      const key = stream.uniform() < 0.6 && own.length > 0 ? pick(own, stream) : pick(keys, stream);
      Object.defineProperty(content, key, { value: pick(values, stream), enumerable: true, configurable: true });
    }),
  ),
  'a key less': onFile(/config\.json$/, (file, stream) =>
    json(file, content => {
      const own = Object.keys(content);
      if (own.length > 0) delete content[pick(own, stream)];
    }),
  ),
  'mutated JSON': onFile(/\.json$/, (file, stream) =>
    writeFileSync(file, mutated([readFileSync(file)], 'json', stream)),
  ),
  'a mutated template': onFile(/\.jinja$/, (file, stream) =>
    writeFileSync(file, mutated([readFileSync(file)], 'text', stream)),
  ),
  'a file less': onFile(/./, file => rmSync(file)),
  'a file cut': onFile(/./, (file, stream) => truncateSync(file, stream.integer(readFileSync(file).length + 1))),
  'a file continued': onFile(/./, (file, stream) =>
    writeFileSync(file, Buffer.concat([readFileSync(file), Buffer.alloc(1 + stream.integer(64), stream.integer(256))])),
  ),
  'flipped bits': onFile(/./, (file, stream) => {
    const bytes = readFileSync(file);
    if (bytes.length === 0) return;
    for (let n = 1 + stream.integer(4); n > 0; n--) bytes[stream.integer(bytes.length)] ^= 1 << stream.integer(8);
    writeFileSync(file, bytes);
  }),
  'the content of another file': onFile(/./, (file, stream) => {
    const all = filesOf(join(file, '..'));
    copyFileSync(pick(all, stream), `${file}.new`);
    writeFileSync(file, readFileSync(`${file}.new`));
    rmSync(`${file}.new`);
  }),
  'a shard twice': onFile(/\.safetensors$/, (file, stream) =>
    copyFileSync(
      file,
      join(file, '..', pick(['model.safetensors', 'model-3.safetensors', 'extra.safetensors'], stream)),
    ),
  ),
  'an index to elsewhere': onFile(/index\.json$/, (file, stream) =>
    json(file, content => {
      if (!isRecord(content.weight_map)) return;
      const tensors = Object.keys(content.weight_map);
      for (let n = 1 + stream.integer(2); n > 0 && tensors.length > 0; n--)
        content.weight_map[pick(tensors, stream)] =
          stream.uniform() < 0.2 ? pick(values, stream) : pick(elsewhere, stream);
    }),
  ),
  'an index of other shards': onFile(/index\.json$/, (file, stream) =>
    json(file, content => {
      if (!isRecord(content.weight_map)) return;
      const map = content.weight_map;
      const tensors = Object.keys(map);
      if (tensors.length === 0) return;
      map[pick(tensors, stream)] = map[pick(tensors, stream)];
      if (stream.uniform() < 0.5) delete map[pick(tensors, stream)];
    }),
  ),
  'a dtype': onTensor((tensor, stream) => (tensor.dtype = pick(dtypes, stream))),
  'a shape': onTensor((tensor, stream) => {
    const shape = Array.isArray(tensor.shape) ? (tensor.shape as unknown[]) : [];
    if (stream.uniform() < 0.5) shape.reverse();
    else shape[stream.integer(shape.length + 1)] = pick([0, 1, -1, 1.5, 2 ** 40, 2 ** 53, '4', null], stream);
  }),
  offsets: onTensor((tensor, stream) => {
    const offsets = Array.isArray(tensor.data_offsets) ? (tensor.data_offsets as unknown[]) : [];
    const at = stream.integer(2);
    offsets[at] =
      stream.uniform() < 0.6
        ? Number(offsets[at]) + pick([-4, -1, 1, 2, 4, 64], stream)
        : pick([-1, 2 ** 53, 1e300, '0', null, 0.5], stream);
  }),
  'a name of a tensor': onHeader((header, stream) => {
    const names = Object.keys(header);
    if (names.length === 0) return;
    const name = pick(names, stream);
    const other = pick(
      ['lm_head.weight', 'model.embed_tokens.weight', `${name}x`, 'model.norm.weight', 'x.qweight', '__proto__'],
      stream,
    );
    Object.defineProperty(header, other, { value: header[name], enumerable: true, configurable: true });
    if (stream.uniform() < 0.5) delete header[name];
  }),
  'a length of a header': onFile(/\.safetensors$/, (file, stream) => {
    const bytes = readFileSync(file);
    if (bytes.length < 8) return;
    bytes.writeBigUInt64LE(pick([0n, 1n, 7n, 2n ** 63n, 2n ** 64n - 1n, 100_000_000n, BigInt(bytes.length)], stream));
    writeFileSync(file, bytes);
  }),
  'a folder in place of a file': replaced(path => mkdirSync(path)),
  'a pipe in place of a file': replaced(path => {
    const made = process.platform !== 'win32' && spawnSync('mkfifo', [path]).status === 0;
    if (!made) mkdirSync(path);
  }),
  'a link in place of a file': replaced((path, folder, stream) => {
    const targets = [
      ...['/dev/zero', '/dev/null', '/proc/self/mem', 'none', path, '..', '/etc/passwd'],
      ...filesOf(folder),
    ];
    symlinkSync(pick(targets, stream), path);
  }),
  'an endless file': replaced(path => {
    writeFileSync(path, '');
    truncateSync(path, 2 ** 36); // a sparse file uses no disk space
  }),
};

export const mutationNames = Object.keys(mutations);

/**
 * Copies the model folder `from` and applies one to three mutations to the copy or to its adapter folder. Returns the
 * names of the mutations.
 */
export function mutateFolder(from: string, to: string, stream: RandomStream): string[] {
  rmSync(to, { recursive: true, force: true });
  for (const part of ['', 'adapter']) {
    mkdirSync(join(to, part), { recursive: true });
    for (const file of filesOf(join(from, part)))
      copyFileSync(file, join(to, part, file.slice(join(from, part).length + 1)));
  }
  if (stream.uniform() < 0.02) return [];
  const done: string[] = [];
  for (let n = 1 + stream.integer(3); n > 0; n--) {
    const name = pick(mutationNames, stream);
    const folder = stream.uniform() < 0.2 ? join(to, 'adapter') : to;
    if (existsSync(folder)) mutations[name](folder, stream);
    done.push(name);
  }
  return done;
}
