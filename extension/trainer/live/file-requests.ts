// Serves the requests that clients on other machines write into the run folder (run-data/run-request.ts). The folder is
// read once per second. A request whose HMAC does not match the lease's token is removed without a reply, so a request
// to an earlier trainer has no effect. Errors of the file system do not affect the run.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { isRecord, jsonOrNothing } from '../../common/json';
import { UserError } from '../../common/user-error';
import { replaceFile } from '../../node/files';
import { namesInRun, readRunFile } from '../../node/read-run-file';
import { requestHmac } from '../../node/run-requests';
import { secrets } from '../../node/secrets';
import { timingSafeEquals } from '../../node/timing-safe-equal';
import { change, checkpoint, pause, resume, stop } from '../../protocol/trainer-link';
import { runFiles } from '../../run-data/run-file-names';
import { replyFile, requestBodySchema, requestFile, requestIdOf, requestSchema } from '../../run-data/run-request';
import { runCommands, type RunCommands, type ServedRun } from './run-commands';

/** Milliseconds between reads of the folder. */
const pollMs = 1000;
/** Maximum number of requests that are handled per read. */
const mostPerRead = 16;

const changeSchema = z.object({ values: z.record(z.string(), z.unknown()), checkOnly: z.boolean().optional() });

export class FileRequests {
  private readonly commands: RunCommands;
  private readonly timer: NodeJS.Timeout;
  private readonly pending = new Set<Promise<void>>();
  private reading = false;

  constructor(
    private readonly folder: string,
    private readonly run: ServedRun,
  ) {
    this.commands = runCommands(run);
    this.timer = setInterval(() => void this.read(), pollMs).unref();
  }

  /** Stops reading, and resolves when the replies to all accepted requests are written. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    await Promise.all(this.pending);
  }

  /** Accepts new requests. */
  async read(): Promise<void> {
    if (this.reading) return;
    this.reading = true;
    try {
      const ids = (await namesInRun(this.folder, runFiles.requests)).flatMap(name => requestIdOf(name) ?? []);
      for (const id of ids.slice(0, mostPerRead)) await this.accept(id);
    } finally {
      this.reading = false;
    }
  }

  private async accept(id: string): Promise<void> {
    const name = join(runFiles.requests, requestFile(id));
    const text = await readRunFile(this.folder, name).catch(() => undefined);
    const removed = await rm(join(this.folder, name)).then(
      () => true,
      () => false,
    );
    const { data } = requestSchema.safeParse(jsonOrNothing(text?.toString('utf8') ?? ''));
    // A request whose file cannot be removed is not executed, because the next read would execute it again.
    if (!removed || !data || !timingSafeEquals(data.hmac, requestHmac(this.run.token, id, data.body))) return;
    const replied = this.reply(id, data.body).finally(() => this.pending.delete(replied));
    this.pending.add(replied);
  }

  private async reply(id: string, body: string): Promise<void> {
    let reply: object;
    try {
      reply = { schema: 1, result: await this.execute(requestBodySchema.parse(jsonOrNothing(body))) };
    } catch (error) {
      reply = { schema: 1, error: error instanceof z.ZodError ? 'the request is invalid' : (error as Error).message };
    }
    const file = join(this.folder, runFiles.requests, replyFile(id));
    await replaceFile(file, `${secrets.json(reply)}\n`).catch(() => undefined); // the client reports the missing reply
  }

  private execute({ method, params }: z.infer<typeof requestBodySchema>): unknown {
    const { commands } = this;
    switch (method) {
      case pause.method:
        return commands.pause();
      case resume.method:
        return commands.resume();
      case stop.method:
        return commands.stop();
      case checkpoint.method:
        return commands.checkpoint();
      case change.method:
        return commands.change(changeSchema.parse(isRecord(params) ? params : {}));
      default:
        throw new UserError(
          `run ${this.run.id}: ${method} needs a connection to the trainer: repeat the request on the machine that runs the trainer`,
        );
    }
  }
}
