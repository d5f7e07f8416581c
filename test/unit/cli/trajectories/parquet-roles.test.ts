// A Parquet file of an episode with roles: one row per role, with the name of the role, its turns and its tokens.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { writeParquet } from '../../../../extension/cli/trajectories/parquet-writer';
import { loadDuckDB } from '../../../../extension/cli/query/sql-engine';
import { roleEpisodes } from '../../../../extension/run-data/trajectories/role-episodes';
import { lakeEpisode } from '../../vscode/traces/lake-episode';

const folder = mkdtempSync(join(tmpdir(), 'ragen-parquet-roles-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('rows name their role; without roles, the column is null', async () => {
  const lake = lakeEpisode();
  const [first, second] = lake.turns;
  const own = { turns: 1, penalty: 0, success: false };
  const game = {
    ...lake,
    roles: { white: { ...own, reward: 0, score: 0 }, black: { ...own, reward: 1, score: 1 } },
    turns: [
      { ...first, role: 'white' },
      { ...second, role: 'black' },
    ],
    tokens: { ...lake.tokens, starts: [0, first.span[1]] },
  };
  const file = join(folder, 'game.parquet');
  expect(await writeParquet(file, { id: 'run' }, [...roleEpisodes(game), ...roleEpisodes(lake)])).toBe(3);
  const { DuckDBInstance } = await loadDuckDB('export');
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const query = `SELECT role, reward, len(turns), len(token_ids) FROM '${file}'`;
  const rows = (await connection.runAndReadAll(query)).getRowsJson();
  connection.closeSync();
  instance.closeSync();
  const all = lake.tokens.ids.length;
  expect(rows.map(row => row.map(value => (value === null ? null : String(value))))).toEqual([
    ['white', '0', '1', String(first.span[1])],
    ['black', '1', '1', String(all - first.span[1])],
    [null, String(lake.reward), '2', String(all)],
  ]);
});
