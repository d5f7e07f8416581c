// Pictures in requests to API models: the exact bodies of both protocols, as a local server receives them, and refusals
// of services whose model reads no pictures (the sentences are those of the services).
import { afterEach, beforeEach, expect, test } from 'vitest';
import { boardPicture } from '../../../../envs/api/picture';
import { apiModel, type ApiModel } from '../../../../extension/trainer/config/schema-evaluation';
import { ApiClient, RequestRefused, ServiceRefused } from '../../../../extension/trainer/evaluation/api-client';
import { apiService } from '../../../../extension/trainer/evaluation/api-service';
import type { ApiMessage } from '../../../../extension/trainer/evaluation/api-images';
import { startPeer, type ApiPeer } from './api-peer';

let peer: ApiPeer;
beforeEach(async () => void (peer = await startPeer()));
afterEach(() => peer.close());

const png = boardPicture([[255, 0, 0]], 1, 4);
const jpeg = Uint8Array.of(0xff, 0xd8, 0xff, 0xe0, 1, 2);
const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

const conversation: ApiMessage[] = [
  { role: 'system', content: 'look' },
  { role: 'user', content: ['Before ', png, ' between\n', jpeg, '\n'] },
  { role: 'assistant', content: 'a wall' },
  { role: 'user', content: 'no picture, only the word <image>' },
];

function clientOf(provider_name: ApiModel['provider_name']): ApiClient {
  const base_url = provider_name === 'anthropic' ? peer.url : `${peer.url}/v1`;
  const model = apiModel.parse({ provider_name, model_name: 'm', base_url });
  const service = apiService('test', model, 77, { OPENAI_API_KEY: peer.key, ANTHROPIC_API_KEY: peer.key });
  const { signal } = new AbortController();
  return new ApiClient(service, { timeoutMs: 2000, maxRetries: 2, pauseMs: { first: 1, longest: 2 }, signal });
}

const failureOf = (asked: Promise<unknown>): Promise<Error> =>
  asked.then(
    () => expect.fail('it was answered'),
    (error: Error) => error,
  );

test('chat completions: pictures are data URLs between the texts', async () => {
  const { usage } = await clientOf('openai').ask(conversation);
  const sent = peer.requests[0].body.messages as unknown[];
  expect(sent).toEqual([
    { role: 'system', content: 'look' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Before ' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${base64(png)}` } },
        { type: 'text', text: ' between\n' },
        { type: 'image_url', image_url: { url: `data:image/jpeg;base64,${base64(jpeg)}` } },
      ],
    },
    { role: 'assistant', content: 'a wall' },
    { role: 'user', content: 'no picture, only the word <image>' },
  ]);
  expect(usage.input_tokens).toBe(JSON.stringify(sent.slice(1)).length); // as the service reports them
});

test('messages: pictures are base64 sources, also beside each other; a blank text is left out', async () => {
  await clientOf('anthropic').ask([{ role: 'user', content: ['See ', png, ' ', png] }]);
  const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64(png) } };
  expect(peer.requests[0].body.messages).toEqual([
    { role: 'user', content: [{ type: 'text', text: 'See ' }, picture, picture] },
  ]);
});

test('a model that reads no pictures is refused once, in one sentence, without a retry', async () => {
  const sentences: [number, string][] = [
    [400, 'Invalid content type. image_url is only supported by certain models.'],
    [422, 'messages[1]: unknown variant `image_url`, expected `text` at line 1 column 212'],
    [400, '/models/text is not a multimodal model'],
    [400, 'At most 0 image(s) may be provided in one prompt.'],
    [500, 'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj'],
    [404, 'No endpoints found that support image input, and the model does not support images'],
    [400, "This model doesn't support vision inputs."],
  ];
  for (const [status, message] of sentences) {
    peer.mishaps = [{ status, error: { message } }];
    const error = await failureOf(clientOf('openai').ask(conversation));
    expect(error, message).toBeInstanceOf(ServiceRefused);
    expect(error.message).toMatch(/this model reads none, so choose a model that reads pictures/);
    expect(error.message).toContain(`${status} ${message}`);
  }
  expect(peer.requests).toHaveLength(sentences.length);
});

test('a refused picture, and an error about pictures without one in the conversation, end only the episode', async () => {
  const sentences = [
    'Could not process image',
    'messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6990508 bytes > 5242880 bytes',
    'You uploaded an unsupported image. Please make sure your image is valid.',
    'The image format is not supported.',
    'We do not support image files larger than 20 MB.',
    'the context length is exceeded',
  ];
  for (const message of sentences) {
    peer.mishaps = [{ status: 400, error: { message } }];
    expect(await failureOf(clientOf('anthropic').ask(conversation.slice(1))), message).toBeInstanceOf(RequestRefused);
  }
  peer.mishaps = [{ status: 400, error: { message: 'this model does not support images' } }];
  expect(await failureOf(clientOf('openai').ask(conversation.slice(2).concat(conversation[3])))).toBeInstanceOf(
    RequestRefused,
  );
});
