// A house of two rooms with ALFWorld's texts behind VAGEN's GymService: one mug, to be put where the game says. It
// answers like an ALFWorld server (`admissible_commands` and `won` in the info, `Nothing happens.` for an impossible
// action) and records its requests.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeMultipart, encodeMultipart } from '../../../../envs/remote/multipart';

const places = ['cabinet 1', 'countertop 1', 'sinkbasin 1'];

/** Games of a split: where the mug is and where it belongs. */
const games: Record<string, [from: string, to: string][]> = {
  train: [
    ['countertop 1', 'cabinet 1'],
    ['sinkbasin 1', 'countertop 1'],
  ],
  eval_in_distribution: [['countertop 1', 'sinkbasin 1']],
  eval_out_of_distribution: [['cabinet 1', 'sinkbasin 1']],
};

class House {
  private at = 'the middle of a room';
  private mug: string;
  private steps = 0;

  constructor(
    from: string,
    private readonly goal: string,
    private readonly cap: number,
  ) {
    this.mug = from;
  }

  get intro(): string {
    const list = places.map(place => `a ${place}`).join(', ');
    return `-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see ${list}.\n\nYour task is to: put a mug in ${this.goal.split(' ')[0]}.`;
  }

  get won(): boolean {
    return this.mug === this.goal;
  }

  get info() {
    return { admissible_commands: this.commands, won: this.won };
  }

  get commands(): string[] {
    return [
      ...places.filter(place => place !== this.at).map(place => `go to ${place}`),
      ...(this.mug === this.at ? [`take mug 1 from ${this.at}`] : []),
      ...(this.mug === 'hand' && places.includes(this.at) ? [`move mug 1 to ${this.at}`] : []),
      'inventory',
      'look',
    ];
  }

  step(command: string): { text: string; done: boolean } {
    this.steps++;
    const text = this.commands.includes(command) ? this.perform(command) : 'Nothing happens.';
    return { text, done: this.won || this.steps >= this.cap };
  }

  private perform(command: string): string {
    const place = /^go to (?<place>.+)$/.exec(command)?.groups?.place;
    if (place) {
      this.at = place;
      return `You arrive at ${place}. On the ${place}, you see ${this.mug === place ? 'a mug 1' : 'nothing'}.`;
    }
    if (command.startsWith('take')) {
      this.mug = 'hand';
      return `You pick up the mug 1 from the ${this.at}.`;
    }
    if (command.startsWith('move')) {
      this.mug = this.at;
      return `You move the mug 1 to the ${this.at}.`;
    }
    if (command === 'inventory')
      return this.mug === 'hand' ? 'You are carrying: a mug 1.' : 'You are not carrying anything.';
    return `You are in ${this.at}.`;
  }
}

interface TinyHouseOptions {
  cap?: number;
  infoChanges?: Record<string, unknown>;
}

/** Starts the server; `asked` records each connection's env_config. */
export async function tinyHouse({ cap = 50, infoChanges = {} }: TinyHouseOptions = {}) {
  const houses = new Map<string, { house?: House; split: string }>();
  const asked: Record<string, unknown>[] = [];
  // eslint-disable-next-line @typescript-eslint/no-misused-promises -- a rejection fails the test run
  const server = createServer(async (request, response) => {
    if (request.url === '/health') return void response.end('{"ok": true}');
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { data } = await decodeMultipart(request.headers['content-type'] ?? '', Buffer.concat(chunks));
    const reply = (answer: Record<string, unknown>) => {
      const { type, body } = encodeMultipart({ data: answer, images: [] }, 'mixed');
      response.writeHead(200, { 'content-type': type }).end(body);
    };
    if (request.url === '/connect') {
      const { env_config } = data as { env_config: { train_eval: string } };
      asked.push(env_config);
      houses.set(`${asked.length}`, { split: env_config.train_eval });
      return reply({ session_id: `${asked.length}` });
    }
    const { session_id, method, params } = data as {
      session_id: string;
      method: string;
      params: Record<string, unknown>;
    };
    const held = houses.get(session_id)!;
    if (method === 'reset') {
      const split = games[held.split];
      const [from, to] = split[(params.seed as number) % split.length];
      held.house = new House(from, to, cap);
      return reply({ obs: held.house.intro, info: { ...held.house.info, ...infoChanges } });
    }
    if (method === 'step') {
      const { text, done } = held.house!.step(params.action_str as string);
      return reply({ obs: text, reward: Number(held.house!.won), done, info: { ...held.house!.info, ...infoChanges } });
    }
    houses.delete(session_id);
    reply({ closed: true });
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    open: () => houses.size,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
