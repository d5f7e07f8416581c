// The long tests, in parts of about equal duration. `.ci/run` runs all other tests and one part, which the commit's hash
// selects, so that a commit always has the same part and ten commits in a row cover most of them; `.ci/run --all` runs
// every part. A long test repeats at scale, for every file or for every command, what shorter tests check once.
// The environment variable RAGEN_PART (0 to 9) selects a part; without it, npm's scripts run every test.
//
//   node test/parts.mjs     prints the part of the checked-out commit
import { execFileSync } from 'node:child_process';
import { argv, env } from 'node:process';
import { fileURLToPath } from 'node:url';

/** `tests` are files of the suite `runs`, `specs` names of the tests in a real VS Code. */
export const parts = [
  {
    tests: [
      'test/unit/cli/documented-commands.runs.test.ts',
      'test/unit/trainer/run/changed-model.runs.test.ts',
      'test/unit/trainer/plugins/estimator.runs.test.ts',
      'test/unit/trainer/evaluation/evaluation.runs.test.ts',
      'test/unit/cli/algo/algo.runs.test.ts',
    ],
    specs: ['accessibility', 'attach'],
  },
  {
    tests: [
      'test/unit/trainer/run/deleted-files.runs.test.ts',
      'test/unit/trainer/run/trained-encoder.runs.test.ts',
      'test/unit/cli/bad-input.runs.test.ts',
      'test/unit/trainer/sft/small-model.runs.test.ts',
      'test/unit/trainer/sft/tiny-vision-model.runs.test.ts',
      'test/unit/trainer/plugins/loss.runs.test.ts',
      'test/unit/envs/program/training.runs.test.ts',
    ],
    specs: ['new-run', 'collapse'],
  },
  {
    tests: [
      'test/unit/trainer/run/tinker-run.runs.test.ts',
      'test/unit/trainer/run/asynchronous-training.runs.test.ts',
      'test/unit/trainer/run/kills.runs.test.ts',
      'test/unit/trainer/loop/metric-keys.runs.test.ts',
      'test/unit/trainer/run/pictures.runs.test.ts',
      'test/unit/trainer/run/roles.runs.test.ts',
    ],
    specs: ['live', 'views'],
  },
  {
    tests: [
      'test/unit/cli/jobs/jobs.runs.test.ts',
      'test/unit/cli/jobs/sweep-jobs.runs.test.ts',
      'test/unit/cli/sweep/sweep.runs.test.ts',
      'test/unit/cli/sweep/sweep-resume.runs.test.ts',
      'test/unit/trainer/plugins/step-plugins.runs.test.ts',
      'test/unit/models/adapters/lora-training.runs.test.ts',
      'test/unit/trainer/live/live-editing.runs.test.ts',
    ],
    specs: ['live-editing', 'run-table'],
  },
  {
    tests: [
      'test/unit/trainer/config/ragen-files.runs.test.ts',
      'test/unit/trainer/config/ragen-configurations.runs.test.ts',
      'test/unit/docs/getting-started.runs.test.ts',
      'test/unit/models/memory/memory-plan.runs.test.ts',
      'test/unit/environments/runtime/bad-code.runs.test.ts',
      'test/unit/trainer/run/namespaces.runs.test.ts',
      'test/unit/trainer/sft/sft-stops.runs.test.ts',
      'test/unit/trainer/run/picture-mistakes.runs.test.ts',
    ],
    specs: ['sweep', 'compare'],
  },
  {
    tests: [
      'test/unit/trainer/loop/training-features.runs.test.ts',
      'test/unit/hub/hub-run.runs.test.ts',
      'test/unit/hub/hub-model.runs.test.ts',
      'test/unit/trainer/live/pending-settings.runs.test.ts',
      'test/unit/cli/plugin/plugin.runs.test.ts',
      'test/unit/trainer/run/configurations.runs.test.ts',
    ],
    specs: ['engines', 'environments', 'problems'],
  },
  {
    tests: [
      'test/unit/trainer/run/strange-runs.runs.test.ts',
      'test/unit/environments/runtime/hostile-process.runs.test.ts',
      'test/property/fuzz.runs.test.ts',
      'test/unit/environments/runtime/tools/tool-servers.runs.test.ts',
      'test/unit/envs/program/npm-agents.runs.test.ts',
      'test/unit/trainer/run/described-pictures.runs.test.ts',
    ],
    specs: ['report', 'manners'],
  },
  {
    tests: [
      'test/unit/trainer/evaluation/api-evaluation.runs.test.ts',
      'test/unit/cli/query/query.runs.test.ts',
      'test/unit/cli/runs/diagnose.runs.test.ts',
      'test/unit/trainer/sft/sft.runs.test.ts',
      'test/unit/environments/tools/terminal.runs.test.ts',
      'test/unit/trainer/rollout/context-windows.runs.test.ts',
      'test/unit/cli/commands.runs.test.ts',
    ],
    specs: ['forks', 'speeds', 'query'],
  },
  {
    tests: [
      'test/unit/cli/machine/doctor.runs.test.ts',
      'test/unit/trainer/evaluation/api-pictures.runs.test.ts',
      'test/unit/trainer/run/pictured-modes.runs.test.ts',
      'test/unit/trainer/distillation/distillation.runs.test.ts',
      'test/unit/trainer/run/lengthened-run.runs.test.ts',
      'test/unit/trainer/run/stopping.runs.test.ts',
      'test/unit/cli/plugin/report-plugin.runs.test.ts',
      'test/unit/cli/models/model-commands.runs.test.ts',
      'test/unit/trainer/run/timeline.runs.test.ts',
      'test/unit/trainer/plugins/memory.runs.test.ts',
    ],
    specs: ['isolation'],
  },
  {
    tests: [
      'test/unit/trainer/run/lost-folder.runs.test.ts',
      'test/unit/cli/models/export.runs.test.ts',
      'test/unit/trainer/run/bits.runs.test.ts',
      'test/unit/trainer/run/damaged-logs.runs.test.ts',
      'test/unit/examples/examples.runs.test.ts',
      'test/unit/trainer/run/no-regular-file.runs.test.ts',
      'test/unit/trainer/loop/curriculum.runs.test.ts',
      'test/unit/trainer/inspection/scored-what-if.runs.test.ts',
      'test/unit/trainer/run/remote-pictures.runs.test.ts',
    ],
    specs: ['live-view', 'timeline'],
  },
];

/** Files and specs of the parts that RAGEN_PART leaves out. @throws if it is not the number of a part */
export function leftOut(kind) {
  const part = env.RAGEN_PART ?? 'all';
  if (part === 'all') return [];
  if (!(part in parts))
    throw new Error(`RAGEN_PART is ${part}: set it to a number from 0 to ${parts.length - 1}, or to all`);
  return parts.filter((_, i) => i !== Number(part)).flatMap(each => each[kind]);
}

/** Returns the part of the checked-out commit; 0 if this is no clone, for example an unpacked archive. */
function partOfCommit() {
  try {
    const commit = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' });
    return parseInt(commit.slice(0, 8), 16) % parts.length;
  } catch {
    return 0;
  }
}

if (argv[1] === fileURLToPath(import.meta.url)) console.log(partOfCommit());
