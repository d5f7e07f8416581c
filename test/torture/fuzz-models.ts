// Fuzz targets for the files of a model folder: weights, tokenizer, chat template, configuration and adapter, and an
// embedding model in ONNX format, which onnxruntime itself parses.
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TextEmbedder } from '../../envs/search/text-embedder';
import { Graph } from '../../extension/engine/graph/graph';
import { writeOnnx } from '../../extension/engine/graph/onnx-writer';
import { tokenBytes } from '../../extension/vscode/traces/tokens/token-bytes';
import { jsonOrNothing } from '../../extension/common/json';
import { ChatTemplate } from '../../extension/models/tokenizer/chat-template';
import { parameterSpecs, parseDecoderConfig } from '../../extension/models/decoder/decoder-config';
import { checkModelFolder, readTokenizer } from '../../extension/models/weights/model-folder';
import { readAdapter } from '../../extension/models/adapters/peft-adapter';
import type { FileSystem } from '../../extension/node/files';
import { SafetensorsFile, Weights } from '../../extension/models/weights/safetensors';
import { parseHeader } from '../../extension/models/weights/safetensors-header';
import { holds } from './fuzz-target';
import type { FuzzTarget } from './fuzz-target';
import { partial } from '../support/partial';

const compact = (file: string): string => JSON.stringify(JSON.parse(readFileSync(file, 'utf8')));

/** A tokenizer that is small enough for an input: the first 280 vocabulary entries and the first 15 merges. */
function smallTokenizer(file: string): string {
  const parsed = JSON.parse(readFileSync(file, 'utf8')) as {
    model: { vocab: Record<string, number>; merges?: unknown[] };
  };
  parsed.model.vocab = Object.fromEntries(Object.entries(parsed.model.vocab).slice(0, 280));
  parsed.model.merges = parsed.model.merges?.slice(0, 15);
  return JSON.stringify(parsed);
}

const unigram = JSON.stringify({
  version: '1.0',
  added_tokens: [{ id: 0, content: '<s>', special: true }],
  normalizer: {
    type: 'Sequence',
    normalizers: [
      { type: 'Prepend', prepend: '▁' },
      { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
    ],
  },
  pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: true },
  decoder: {
    type: 'Sequence',
    decoders: [{ type: 'Replace', pattern: { String: '▁' }, content: ' ' }, { type: 'ByteFallback' }, { type: 'Fuse' }],
  },
  model: {
    type: 'Unigram',
    unk_id: 0,
    byte_fallback: true,
    vocab: [
      ['<s>', 0],
      ['▁a', -1.5],
      ['b', -2],
      ['<0x0A>', -3],
      ['user', -1],
    ],
  },
});

/** An ONNX model that casts its ids to numbers, the smallest that an embedder accepts. */
function smallOnnx(): Uint8Array {
  const graph = new Graph('small', 'cpu');
  const ids = graph.input('input_ids', 'int64', ['rows', 'tokens']);
  graph.output('embedding', graph.emit('Cast', [ids], 'float32', ids.dims, { to: 1 }));
  return writeOnnx(graph);
}

const chatMl =
  "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{% endif %}" +
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

const templates = [
  chatMl,
  ...['llama3', 'qwen2.5', 'qwen3'].map(name =>
    readFileSync(join('test/golden/chat', name, 'chat_template.jinja'), 'utf8'),
  ),
  "{%- macro m(a, b=1) -%}{{ a | trim }}{{ b * 2 }}{%- endmacro -%}{% for i in range(3) %}{{ m('x', i) }}{% if loop.last %}!{% endif %}{% endfor %}",
  "{% set ns = namespace(x='') %}{% for c in 'abc' %}{% set ns.x = ns.x ~ c %}{% endfor %}{{ ns.x | upper | replace('A', 'b') | length }}",
  "{{ messages | tojson(indent=2) }}{{ strftime_now('%d %b %Y') }}{{ [1, 2] | join(', ') }}{{ {'a': 1}.items() | list }}{{ messages[::-1] }}",
  "{% for m in messages if m.role == 'user' %}{{ m.content.split('x')[0].strip() | indent(4) }}{% else %}{{ raise_exception('no') }}{% endfor %}",
];

/** A safetensors file: header and data bytes. */
function weightsFile(header: object, bytes: number): Buffer {
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, Buffer.alloc(bytes, 1)]);
}
const headers = [
  {
    __metadata__: { format: 'pt' },
    a: { dtype: 'F32', shape: [2, 3], data_offsets: [0, 24] },
    b: { dtype: 'F16', shape: [4], data_offsets: [24, 32] },
  },
  { a: { dtype: 'BF16', shape: [], data_offsets: [0, 2] }, b: { dtype: 'I64', shape: [0], data_offsets: [2, 2] } },
];
const headerBytes = [32, 2];

/** A file system in which every path is a file with these bytes, except the paths in `others`. */
function fileOf(bytes: Buffer, others: Record<string, Buffer> = {}): FileSystem {
  const of = (path: string): Buffer => others[path.split(/[\\/]/).at(-1)!] ?? bytes;
  return partial<FileSystem>({
    open: (path: string) => {
      const content = of(path);
      return Promise.resolve({
        stat: () => Promise.resolve({ size: content.length, isFile: () => true, isDirectory: () => false }),
        read: (into: Uint8Array, offset: number, length: number, position: number) =>
          Promise.resolve({
            bytesRead: content.copy(into, offset, position, Math.min(content.length, position + length)),
          }),
        close: () => Promise.resolve(),
      });
    },
    readdir: () => Promise.resolve(['model.safetensors.index.json', 'a.safetensors']),
    readFile: (path: string) => Promise.resolve(of(path).toString('utf8')),
  });
}

async function readAll(bytes: Buffer): Promise<unknown> {
  const file = await SafetensorsFile.open('/a.safetensors', fileOf(bytes));
  for (const { name, elements, begin, end } of file.tensors.values()) {
    holds(begin >= 8 && begin <= end && end <= bytes.length, 'a tensor lies outside of its file');
    const floats = await file.readFloats(name).catch((error: Error) => {
      if (error.name !== 'UserError') throw error;
    });
    if (floats) holds(floats.length === elements, 'a tensor has another number of elements');
  }
  return [...file.tensors, file.metadata];
}

let folder = '';
function modelFolder(files: Record<string, string | Uint8Array>): void {
  folder = mkdtempSync(join(tmpdir(), 'model-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
}
const ownTokenizer = smallTokenizer('test/golden/tokenizer/own.json');
const conversation = [
  { role: 'system' as const, content: 'Be brief.' },
  { role: 'user' as const, content: 'Which arm?\u2028 <think>' },
];

/** Parses a tokenizer and calls it as a rollout does. */
function useTokenizer(): unknown {
  const tokenizer = readTokenizer(folder);
  const ids = tokenizer.encodePrompt(conversation, '<think>');
  const more = tokenizer.encodeContinuation([0], 'Go on: ▁ Ġ \u0000 ß', '<answer>');
  return [ids, more, tokenizer.decode(ids), tokenizer.decode([0, 5, 400, 1e6], { special: true })];
}

export const modelTargets: readonly FuzzTarget[] = [
  {
    name: 'safetensors header',
    form: 'json',
    corpus: headers.map(header => JSON.stringify(header)),
    weight: 12,
    run: input => {
      const { tensors, metadata } = parseHeader(input.toString('utf8'), 'a.safetensors', 8, 40);
      return [...tensors, metadata];
    },
  },
  {
    name: 'safetensors',
    form: 'bytes',
    corpus: headers.map((header, i) => weightsFile(header, headerBytes[i])),
    weight: 12,
    run: readAll,
  },
  {
    name: 'index of shards',
    form: 'json',
    corpus: ['{"metadata":{"total_size":32},"weight_map":{"a":"a.safetensors","b":"a.safetensors"}}'],
    weight: 6,
    async run(input) {
      const shard = weightsFile(headers[0], headerBytes[0]);
      const weights = await Weights.open('/model', fileOf(shard, { 'model.safetensors.index.json': input }));
      holds(
        weights.names.every(name => /^\/model\/[\w-][\w.-]*$/.test(weights.fileName(name)!)),
        'a shard lies elsewhere',
      );
      return weights.names;
    },
  },
  {
    name: 'tokenizer.json',
    form: 'json',
    corpus: [ownTokenizer, unigram],
    weight: 4,
    begin: () => modelFolder({ 'chat_template.jinja': chatMl, 'config.json': '{"eos_token_id": 2}' }),
    run(input) {
      writeFileSync(join(folder, 'tokenizer.json'), input);
      return useTokenizer();
    },
  },
  {
    name: 'tokenizer_config.json',
    form: 'json',
    corpus: [
      JSON.stringify({
        chat_template: chatMl,
        eos_token: '<|im_end|>',
        bos_token: { content: '<s>' },
        model_max_length: 512,
      }),
      JSON.stringify({
        chat_template: [
          { name: 'default', template: chatMl },
          { name: 'tool_use', template: '' },
        ],
        pad_token: null,
      }),
    ],
    weight: 4,
    begin: () => modelFolder({ 'tokenizer.json': ownTokenizer }),
    run(input) {
      writeFileSync(join(folder, 'tokenizer_config.json'), input);
      return useTokenizer();
    },
  },
  {
    name: 'generation_config.json',
    form: 'json',
    corpus: ['{"eos_token_id":[1,2],"bos_token_id":0}', '{"eos_token_id":5}'],
    weight: 2,
    begin: () => modelFolder({ 'tokenizer.json': ownTokenizer, 'chat_template.jinja': chatMl }),
    run(input) {
      writeFileSync(join(folder, 'generation_config.json'), input);
      return useTokenizer();
    },
  },
  {
    name: 'tokenizer of a trace',
    form: 'json',
    corpus: [ownTokenizer, unigram],
    weight: 10,
    run(input) {
      const bytes = tokenBytes(jsonOrNothing(input.toString('utf8')), 'tokenizer.json');
      const ids = [0, 1, 5, 279, 375, 1e6, -1, 2 ** 32, 2 ** 53];
      for (const id of ids) holds((bytes.of(id)?.length ?? 0) <= 4 * input.length, 'a token spells too much');
      return ids.map(id => [bytes.of(id), bytes.isSpecial(id)]);
    },
  },
  {
    name: 'chat template',
    form: 'text',
    corpus: templates,
    weight: 12,
    run(input) {
      const template = new ChatTemplate(input.toString('utf8'), '/model', {
        bos_token: '<s>',
        eos_token: { content: '</s>' },
      });
      return [true, false].map(prompt => template.render(conversation, prompt));
    },
  },
  {
    name: 'config.json',
    form: 'json',
    corpus: ['llama', 'llama3', 'qwen2-yarn', 'qwen3'].map(name => compact(join('test/golden', name, 'config.json'))),
    weight: 8,
    run: input => parseDecoderConfig(jsonOrNothing(input.toString('utf8')), 'config.json'),
  },
  {
    name: 'model folder',
    form: 'json',
    corpus: ['llama', 'qwen3'].map(name => compact(join('test/golden', name, 'config.json'))),
    weight: 2,
    begin: () =>
      modelFolder({
        'model.safetensors': readFileSync('test/golden/llama/model.safetensors'),
        'tokenizer.json': ownTokenizer,
        'chat_template.jinja': chatMl,
      }),
    run(input) {
      writeFileSync(join(folder, 'config.json'), input);
      return checkModelFolder(folder);
    },
  },
  {
    name: 'adapter_config.json',
    form: 'json',
    corpus: [
      JSON.stringify({
        peft_type: 'LORA',
        base_model_name_or_path: 'a/b',
        r: 4,
        lora_alpha: 8,
        target_modules: ['q_proj', 'v_proj'],
        lora_dropout: 0.1,
      }),
      JSON.stringify({
        peft_type: 'LORA',
        r: 2,
        lora_alpha: 2,
        target_modules: 'all-linear',
        use_rslora: true,
        bias: 'none',
        rank_pattern: {},
      }),
    ],
    weight: 4,
    run(input) {
      const file = 'test/golden/llama/config.json';
      const config = parseDecoderConfig(JSON.parse(readFileSync(file, 'utf8')), file);
      holds(parameterSpecs(config).length > 0, 'the base has no parameters');
      const fs = fileOf(weightsFile(headers[0], headerBytes[0]), { 'adapter_config.json': input });
      return readAdapter('/adapter', { config, folder: '/base' }, fs);
    },
  },
  {
    name: 'ONNX model', // parsed by onnxruntime; the process must survive
    form: 'bytes',
    corpus: [smallOnnx()],
    weight: 1,
    lawful: ['MissingDependency'],
    begin() {
      modelFolder({ 'tokenizer.json': readFileSync('test/golden/search-embedder/tokenizer.json') });
      mkdirSync(join(folder, 'onnx'));
    },
    async run(input) {
      writeFileSync(join(folder, 'model.onnx'), input);
      await TextEmbedder.open(folder);
    },
  },
  {
    name: 'tokenizer of an embedding model',
    form: 'json',
    corpus: [smallTokenizer('test/golden/search-embedder/tokenizer.json')],
    weight: 1,
    lawful: ['MissingDependency'],
    begin: () => modelFolder({ 'model.onnx': smallOnnx() }),
    async run(input) {
      writeFileSync(join(folder, 'tokenizer.json'), input);
      const embedder = await TextEmbedder.open(folder);
      return embedder.embed(['which arm?', '']);
    },
  },
];
