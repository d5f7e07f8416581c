// Replays recorded exchanges with the clients and servers of OpenEnv and VAGEN. Our server must return the recorded
// responses to the requests of these clients. Our client must send the recorded requests to these servers and build the
// same episodes from the responses.
import { createServer, type Server } from 'node:http';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import alfworld from '../../../envs/alfworld/index';
import type { Environment, Observation } from '../../../envs/api/environment';
import remote from '../../../envs/remote/index';
import { decodeMultipart } from '../../../envs/remote/multipart';
import { builtIn, request, startServing, type Serving } from '../../unit/environments/server/serving';

type Json = Record<string, unknown>;

interface Frame {
  sent: { type: string; data?: Json };
  answered?: Json;
}
interface Played {
  seed: number;
  actions: string[];
  transcript: { observation: string; images?: string[]; steps: Json[] } | { error: string };
}
interface OpenEnvGolden {
  client: {
    conversations: { environment: string | null; frames: Frame[] }[];
    full: { frames: Frame[] };
    validation: { passed: boolean };
  };
  server: Record<
    string,
    {
      config: Json;
      documents: Record<string, Json>;
      played: (Played & {
        frames: Frame[];
        theirs: ({ observation: Json; reward: number | null; done: boolean } | Json)[];
      })[];
    }
  >;
}
interface AlfworldGolden {
  played: (Played & {
    frames: Frame[];
    direct: { observation: string; steps: [observation: string, reward: number, done: boolean, info: Json][] };
  })[];
}
interface VagenGolden {
  client: {
    arguments: string[];
    token: string;
    session: string;
    frames: { path: string; type: string; body: string; status: number }[];
    results: [string, [number, number][], ...unknown[]][];
  }[];
  server: {
    config: Json;
    played: (Played & {
      frames: { path: string; key: string; data: Json; status: number; type: string; body: string }[];
    })[];
  };
}

const golden = <T>(name: string) => JSON.parse(readFileSync(join(__dirname, `${name}.json`), 'utf8')) as T;
const openenv = golden<OpenEnvGolden>('openenv');
const vagen = golden<VagenGolden>('vagen');
const household = golden<AlfworldGolden>('alfworld');

describe('our server', () => {
  let serving: Serving;
  beforeAll(async () => void (serving = await startServing()));
  afterAll(() => serving.stop());

  /** Sends the recorded messages and returns the responses. */
  async function converse(url: string, frames: readonly Frame[]): Promise<Json[]> {
    const socket = new WebSocket(url.replace('http', 'ws'));
    const answers: Json[] = [];
    let received: (() => void) | undefined;
    socket.on('message', message => {
      answers.push(JSON.parse((message as Buffer).toString('utf8')) as Json);
      received?.();
    });
    await new Promise(resolve => socket.once('open', resolve));
    for (const [i, { sent, answered }] of frames.entries()) {
      socket.send(JSON.stringify(sent));
      if (answered) while (answers.length <= i) await new Promise<void>(resolve => (received = resolve));
    }
    await new Promise(resolve => socket.once('close', resolve)); // the last message closes the session
    return answers;
  }

  /** A response without the parts that are random each time. */
  const fixed = (answer: Json): Json =>
    answer.type === 'state' ? { ...answer, data: { ...(answer.data as Json), episode_id: '' } } : answer;
  /** Error messages are not part of the protocol. */
  const withoutMessage = (answer: Json): Json =>
    answer.type === 'error' ? { type: 'error', code: (answer.data as Json).code } : fixed(answer);

  it('answers recorded requests of OpenEnv clients as OpenEnv does, including invalid requests', async () => {
    const offered = ['frozen_lake', 'sokoban', 'bandit', 'countdown'].map(name => builtIn(name));
    const { url } = await serving.serve(offered);
    expect(openenv.client.conversations.length).toBeGreaterThan(4);
    for (const { environment, frames } of openenv.client.conversations) {
      const answers = await converse(`${url}${environment === null ? '' : `/${environment}`}/ws`, frames);
      const recorded = frames.flatMap(({ answered }) => (answered ? [withoutMessage(answered)] : []));
      expect(answers.map(withoutMessage)).toEqual(recorded);
    }
  });

  it('reports a full server to OpenEnv clients with the message of OpenEnv’s server', async () => {
    const { url } = await serving.serve([builtIn('frozen_lake')], { maxSessions: 2 });
    const holders = await Promise.all(
      [1, 2].map(async () => {
        const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`);
        await new Promise(resolve => socket.once('open', resolve));
        socket.send('{"type": "state"}');
        await new Promise(resolve => socket.once('message', resolve));
        return socket;
      }),
    );
    const { frames } = openenv.client.full;
    expect(await converse(`${url}/ws`, frames.slice(0, 1))).toEqual([frames[0].answered]);
    for (const holder of holders) holder.terminate();
  });

  it('has the endpoints that OpenEnv’s validation requires', async () => {
    expect(openenv.client.validation.passed).toBe(true);
    const { url } = await serving.serve([builtIn('frozen_lake')]);
    const paths = (await request(url, '/openapi.json')).json.paths as Json;
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(['/reset', '/step', '/state']));
    expect((await request(url, '/health')).json.status).toBe('healthy');
    expect((await request(url, '/mcp', {})).json.jsonrpc).toBe('2.0');
  });

  it.each(vagen.client)('answers recorded requests of VAGEN clients as recorded: $arguments', async recorded => {
    const { arguments: arguments_, token, session, frames, results } = recorded;
    const config = arguments_.includes('--set') ? { render_mode: 'rgb_array', dim_room: [5, 5] } : {};
    const { url } = await serving.serve([builtIn(arguments_[0], config)], { apiKey: token });
    let now = session;
    const answers: Json[] = [];
    for (const { path, type, body, status } of frames) {
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': type, 'x-api-key': token },
        body: Buffer.from(body, 'base64').toString('utf8').replaceAll(session, now),
      });
      expect(response.status).toBe(status);
      expect(response.headers.get('content-type')).toMatch(/^multipart\/mixed; boundary="/);
      const answer = await decodeMultipart(
        response.headers.get('content-type')!,
        new Uint8Array(await response.arrayBuffer()),
      );
      if (typeof answer.data.session_id === 'string') now = answer.data.session_id;
      const size = (png: Uint8Array) => [16, 20].map(at => Buffer.from(png).readUInt32BE(at));
      answers.push({ ...answer.data, sizes: answer.images.map(size) });
    }
    // Each result of VAGEN's client corresponds to one response; the end of the session has no result.
    expect(answers).toHaveLength(results.length + 1);
    results.forEach(([text, sizes, ...more], i) => {
      const { obs, info, reward, done } = answers[i];
      expect([obs, answers[i].sizes]).toEqual([text, sizes]);
      if (more.length === 1) expect(info).toEqual(more[0]);
      if (more.length === 3) expect([reward, done, info]).toEqual(more);
    });
    expect(answers.at(-1)).toEqual({ closed: true, sizes: [] });
  });
});

describe('our client', () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });

  const listen = async (made: Server) => {
    server = made;
    await new Promise<void>(resolve => made.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(made.address() as AddressInfo).port}`;
  };

  /** Plays a recorded episode with the product's environment. */
  async function replayed(
    definition: typeof remote | typeof alfworld,
    config: Json,
    { seed, actions }: Played,
  ): Promise<{ transcript: Json; environment: Environment }> {
    const parsed = definition.config.parse(config);
    await (definition.dependencies as (config: unknown) => Promise<void>)(parsed);
    const environment = (definition.create as (config: unknown) => Environment)(parsed);
    const seen = (observation: Observation) =>
      typeof observation === 'string'
        ? { observation }
        : {
            observation: observation.text,
            images: observation.images.map(each => Buffer.from(each).toString('base64')),
          };
    const { observation } = await environment.reset({ seed, member: 0, mode: 'train' });
    const steps: Json[] = [];
    for (const action of actions) {
      const { observation, ...rest } = await environment.step(action);
      steps.push({ ...seen(observation), ...rest });
      if (rest.terminated || rest.truncated) break;
    }
    return { transcript: { ...seen(observation), steps }, environment };
  }

  /** A server that returns the recorded responses, with the requests it received. */
  async function openEnvTape(recorded: readonly Frame[], documents: Record<string, Json> = {}) {
    const frames = [...recorded];
    const asked: Json[] = [];
    const made = createServer((request, response) =>
      response.end(JSON.stringify(documents[request.url!.slice(1)] ?? {})),
    );
    new WebSocketServer({ server: made, path: '/ws' }).on('connection', socket =>
      socket.on('message', message => {
        asked.push(JSON.parse((message as Buffer).toString('utf8')) as Json);
        const answered = frames.shift()?.answered;
        if (answered) socket.send(JSON.stringify(answered));
      }),
    );
    return { url: await listen(made), asked };
  }
  const beforeClose = (messages: readonly Json[]) => messages.filter(({ type }) => type !== 'close');

  const cases = Object.entries(openenv.server).flatMap(([name, { config, documents, played }]) =>
    played.map(each => ({ name, config, documents, played: each })),
  );
  it.each(cases)('sends the recorded requests to an OpenEnv server and builds the same episode: $name, seed $played.seed', async ({ config, documents, played }) => {
    const { url, asked } = await openEnvTape(played.frames, documents);
    if ('error' in played.transcript) {
      await expect(replayed(remote, { url, ...config }, played)).rejects.toThrow(
        /was refused by the server .*there is no way up/,
      );
    } else {
      const { transcript, environment } = await replayed(remote, { url, ...config }, played);
      expect(transcript).toEqual(played.transcript);
      await environment.close?.();
      // OpenEnv's client got the same results from the same steps.
      const [first, ...steps] = played.theirs as { observation: Json; reward: number; done: boolean }[];
      expect(Object.values(first.observation)).toContain(played.transcript.observation);
      played.transcript.steps.forEach(({ observation, reward, terminated }, i) => {
        expect(Object.values(steps[i].observation)).toContain(observation);
        expect({ reward, done: terminated }).toEqual({ reward: steps[i].reward, done: steps[i].done });
      });
    }
    expect(beforeClose(asked)).toEqual(beforeClose(played.frames.map(({ sent }) => sent)));
  });

  it.each(household.played)('sends the recorded requests to an ALFWorld server and builds the same episode: seed $seed', async played => {
    const { url, asked } = await openEnvTape(played.frames);
    const { transcript, environment } = await replayed(alfworld, { url }, played);
    await environment.close?.();
    expect(transcript).toEqual(played.transcript);
    expect(beforeClose(asked)).toEqual(beforeClose(played.frames.map(({ sent }) => sent)));
    // `direct` is the same episode, played in ALFWorld without a server.
    const { observation, steps } = transcript as { observation: string; steps: Json[] };
    const flat = steps.map(({ observation, reward, terminated, truncated, info }) => {
      return [observation, reward, terminated || truncated, info];
    });
    expect({ observation, steps: flat }).toEqual(played.direct);
  });

  it.each(vagen.server.played)('sends the recorded requests to a VAGEN server and builds the same episode: seed $seed', async played => {
    const frames = [...played.frames];
    const asked: Json[] = [];
    const made = createServer(async (request, response) => {
      if (request.method === 'GET') return void response.end('{"ok": true}');
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { data } = await decodeMultipart(request.headers['content-type']!, Buffer.concat(chunks));
      asked.push({ path: request.url, key: request.headers['x-api-key'], data });
      const { status, type, body } = frames.shift()!;
      response.writeHead(status, { 'content-type': type }).end(Buffer.from(body, 'base64'));
    });
    const url = await listen(made);
    process.env.VAGEN_KEY = 'secret';
    const { transcript, environment } = await replayed(remote, { url, ...vagen.server.config }, played);
    await environment.close?.();
    expect(transcript).toEqual(played.transcript);
    expect(asked).toEqual(played.frames.slice(0, asked.length).map(({ path, key, data }) => ({ path, key, data })));
    expect(asked.length).toBe(played.frames.length);
  });
});
