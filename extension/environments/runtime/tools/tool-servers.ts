// The tool servers of one environment. A server with `per: run` is started when the environment is loaded, and started
// again for the next episode if it has ended; its episodes share it. A server with `per: episode` is started for each
// episode and closed with it. An episode keeps the connections with which it began, so a server that ended fails it.
import type { ToolDescription, ToolServer, ToolSettings } from '../../../protocol/tool-link';
import { badValue } from '../threads/fault';
import type { CallableTool } from './declared-tools';
import { ToolServerConnection } from './tool-server';

interface ServedTools {
  connection: ToolServerConnection;
  tools: CallableTool[];
}

export class ToolServers {
  private readonly shared = new Map<string, Promise<ServedTools>>();

  constructor(
    private readonly tag: string,
    private readonly settings: ToolSettings,
  ) {}

  /**
   * Starts every server once and returns the tools of all servers.
   * @param own names of the environment's own tools
   * @throws FaultError if a server fails, or if two tools have the same name
   */
  async describe(own: readonly string[]): Promise<ToolDescription[]> {
    const { tools, close } = await this.open();
    await close();
    const names = new Set(own);
    for (const { description } of tools) {
      const { name } = description;
      if (names.has(name))
        throw badValue(
          `has two tools named ${name}`,
          `rename one of them, or remove a server from custom_envs.${this.tag}.mcp_servers`,
        );
      names.add(name);
    }
    return tools.map(({ description }) => description);
  }

  /** Returns the tools of all servers for one episode; `close` ends the servers of this episode. */
  async open(): Promise<{ tools: CallableTool[]; close(): Promise<void> }> {
    const own: ServedTools[] = [];
    const close = async () => void (await Promise.all(own.map(({ connection }) => connection.close())));
    try {
      const all = await Promise.all(
        Object.entries(this.settings.servers).map(async ([name, server]) => {
          if (server.per === 'run') return this.sharedServer(name, server);
          const started = await this.start(name, server);
          own.push(started);
          return started;
        }),
      );
      return { tools: all.flatMap(({ tools }) => tools), close };
    } catch (error) {
      await close();
      throw error;
    }
  }

  private async sharedServer(name: string, server: ToolServer): Promise<ServedTools> {
    for (let held = this.shared.get(name); held; held = this.shared.get(name)) {
      const present = await held.catch(() => undefined);
      if (present?.connection.isOpen) return present;
      if (this.shared.get(name) === held) this.shared.delete(name); // otherwise, another episode has started it again
    }
    const starting = this.start(name, server);
    this.shared.set(name, starting);
    return starting;
  }

  private async start(name: string, server: ToolServer): Promise<ServedTools> {
    const connection = await ToolServerConnection.open(this.tag, name, server, this.settings.timeout_ms);
    try {
      return { connection, tools: await connection.tools() };
    } catch (error) {
      await connection.close();
      throw error;
    }
  }
}
