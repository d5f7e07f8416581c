// The transfer matrix of ragen-small: trains quickstart-… presets, lets each policy play all environments of the preset
// eval-small-transfer, and prints the leaderboard: node test/bench/transfer-matrix.mjs WORKSPACE [PRESET …]. The first row
// is the model before training. Runs and evaluations that the workspace has already are not repeated.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { argv, execPath, exit, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const [workspace, ...named] = argv.slice(2);
if (workspace === undefined) {
  stdout.write('usage: node test/bench/transfer-matrix.mjs WORKSPACE [PRESET …]\n');
  exit(2);
}
const own = ['frozen-lake', 'slippery-lake', 'sokoban', 'bandit', 'countdown', 'sudoku', '2048', 'rubikscube', 'shop'];
const presets = named.length > 0 ? named : [...own, 'mixture'].map(name => `quickstart-${name}`);
mkdirSync(workspace, { recursive: true });
const stateFile = join(workspace, 'transfer.json');
const done = existsSync(stateFile) ? JSON.parse(readFileSync(stateFile, 'utf8')) : {};

function ragen(...args) {
  const { status, stdout: output } = spawnSync(execPath, [join(root, 'dist/cli.cjs'), ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 2 ** 26,
  });
  if (status !== 0) exit(status ?? 1);
  return output;
}

const within = ['--json', '--workspace', workspace];

/** Runs a step that is not done yet; `act` returns the id of its run. */
function once(step, act) {
  if (done[step]) return done[step];
  done[step] = act();
  writeFileSync(stateFile, JSON.stringify(done));
  return done[step];
}

const evaluate = (...args) => JSON.parse(ragen('eval', '--config-name', 'eval-small-transfer', ...within, ...args)).run;
once('evaluate ragen-small', () => evaluate('--model', 'ragen-small'));
for (const preset of presets) {
  const run = once(`train ${preset}`, () => JSON.parse(ragen('train', '--config-name', preset, ...within)).run);
  once(`evaluate ${preset}`, () => evaluate('--run', run));
}
stdout.write(ragen('leaderboard', workspace, '--format', 'markdown'));
