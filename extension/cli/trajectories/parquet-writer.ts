// Writes episodes as a Parquet file with DuckDB, which ragen query also uses. Texts are bound as values, never part of the
// SQL. The database is in memory and writes only the given file.
import { UserError } from '../../common/user-error';
import type { Manifest } from '../../run-data/run-manifest';
import { episodeFacts } from '../../run-data/trajectories/chat-lines';
import type { RoleEpisode } from '../../run-data/trajectories/role-episodes';
import { loadDuckDB } from '../query/sql-engine';
import { queryTables } from '../query/table-columns';

/** Columns before `messages`; their types are those of `ragen query`. `role` is null in environments without roles. */
const names = [
  ...(['run', 'episode', 'step', 'mode', 'tag', 'environment', 'version', 'seed'] as const),
  ...(['group_id', 'member', 'success', 'score', 'reward', 'penalty', 'role'] as const),
];
const columns = { ...queryTables.episodes, role: 'VARCHAR' } as const;

/** Types of the columns that are lists; they are inserted as JSON. */
const lists = {
  messages: '[{"role":"VARCHAR","content":"VARCHAR"}]',
  turns:
    '[{"turn":"INTEGER","state":"VARCHAR","raw":"VARCHAR","thought":"VARCHAR","answer":"VARCHAR","executed":["VARCHAR"],"reward":"DOUBLE","penalty":"DOUBLE","component_reward":"DOUBLE","components":"JSON","calls":[{"name":"VARCHAR","arguments":"JSON","result":"VARCHAR","error":"BOOLEAN","ms":"DOUBLE"}],"finish":"VARCHAR"}]',
  token_ids: '["INTEGER"]',
  token_mask: '["TINYINT"]',
  token_logprobs: '["DOUBLE"]',
} as const;

/**
 * Writes the episodes, or their parts by role, one per row, and returns the number of rows.
 * @throws UserError if DuckDB is missing or the file cannot be written
 */
export async function writeParquet(
  file: string,
  run: Pick<Manifest, 'id'>,
  episodes: Iterable<RoleEpisode>,
): Promise<number> {
  const { DuckDBInstance } = await loadDuckDB('export');
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    const all = [
      ...names.map(name => `${name} ${columns[name]}`),
      ...Object.keys(lists).map(name => `${name} VARCHAR`),
    ];
    await connection.run(`CREATE TABLE episodes (${all.join(', ')})`);
    const appender = await connection.createAppender('episodes');
    let count = 0;
    for (const episode of episodes) {
      const facts = episodeFacts(run, episode);
      for (const name of names) {
        const value = facts[name];
        if (value === null || value === undefined)
          appender.appendNull(); // the success of another trainer's run may be unknown
        else if (columns[name] === 'VARCHAR') appender.appendVarchar(String(value));
        else if (columns[name] === 'BOOLEAN') appender.appendBoolean(value === true);
        else if (columns[name] === 'BIGINT') appender.appendBigInt(BigInt(Math.trunc(Number(value))));
        else if (columns[name] === 'INTEGER') appender.appendInteger(Number(value));
        else appender.appendDouble(Number(value));
      }
      for (const list of listsOf(episode)) appender.appendVarchar(JSON.stringify(list));
      appender.endRow();
      count++;
    }
    appender.closeSync();
    const parts = Object.entries(lists).map(([name, type]) => `from_json(${name}, '${type}') AS ${name}`);
    const path = file.replaceAll("'", "''");
    await connection.run(
      `COPY (SELECT ${[...names, ...parts].join(', ')} FROM episodes) TO '${path}' (FORMAT parquet, COMPRESSION zstd)`,
    );
    return count;
  } catch (error) {
    if (error instanceof UserError) throw error;
    const [reason] = (error as Error).message.split('\n', 1);
    throw new UserError(`export: ${file} cannot be written (${reason}): give another --out`);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** Returns the values of `lists`, in their order. */
function listsOf({ messages, turns, tokens }: RoleEpisode): unknown[] {
  const shown = turns.map(({ turn, state, raw, thought, answer, executed, reward, penalty, finish, ...rest }) => ({
    ...{ turn, state, raw, thought, answer, executed, reward, penalty, finish },
    ...{ component_reward: rest.component_reward, components: rest.components, calls: rest.calls },
  }));
  return [messages, shown, tokens.ids, tokens.mask, tokens.logprobs];
}
