// Example queries, which the user can choose as a start. `test/unit/cli/query/query.runs.test.ts` executes each of them.

export const examples: readonly { title: string; sql: string }[] = [
  {
    title: 'Runs and their results',
    sql: 'SELECT name, state, step, success, created\nFROM runs\nORDER BY success DESC NULLS LAST',
  },
  {
    title: 'Best validation of each run',
    sql: `SELECT name, max(value) AS best, arg_max(metrics.step, value) AS at_step
FROM metrics JOIN runs USING (run)
WHERE key LIKE 'val-env/%/success'
GROUP BY name
ORDER BY best DESC`,
  },
  {
    title: 'Validation success by step and run',
    sql: `SELECT metrics.step, value AS success, name
FROM metrics JOIN runs USING (run)
WHERE key LIKE 'val-env/%/success' AND key NOT LIKE '%non-zero%'
ORDER BY metrics.step`,
  },
  {
    title: 'Best validation by learning rate',
    sql: `SELECT config ->> '$.actor_rollout_ref.actor.optim.lr' AS learning_rate, max(value) AS best, count(DISTINCT run) AS runs
FROM metrics JOIN runs USING (run)
WHERE key LIKE 'val-env/%/success'
GROUP BY learning_rate
ORDER BY best DESC`,
  },
  {
    title: 'Length of thoughts by step',
    sql: `SELECT step, avg(length(thought)) AS characters, count(*) AS turns
FROM turns
WHERE mode = 'train'
GROUP BY step
ORDER BY step`,
  },
  {
    title: 'Most frequent thoughts of failed episodes',
    sql: `SELECT thought, count(*) AS turns
FROM turns JOIN episodes USING (run, episode)
WHERE NOT success
GROUP BY thought
ORDER BY turns DESC
LIMIT 20`,
  },
  {
    title: 'Alarms and warnings',
    sql: `SELECT run, step, kind, message
FROM events
WHERE kind IN ('alarm', 'warning', 'early_stop')
ORDER BY time`,
  },
];
