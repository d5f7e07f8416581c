// Runs the type check and the linters (code, format, dependencies) in parallel; equivalent to `npm run typecheck` and
// `npm run lint`. Prints the output of failed checks only.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { exit } from 'node:process';

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
const checks = [scripts.typecheck, ...scripts.lint.split(' && ')];

const results = await Promise.all(
  checks.map(
    check =>
      new Promise(resolve => {
        const child = spawn(`npx --no-install ${check}`, { shell: true });
        let output = '';
        for (const stream of [child.stdout, child.stderr]) stream.on('data', text => (output += text));
        child.once('close', code => {
          console.log(`${code === 0 ? '✔' : '✖'} ${check}${code === 0 ? '' : `\n${output}`}`);
          resolve(code);
        });
      }),
  ),
);
exit(results.every(code => code === 0) ? 0 : 1);
