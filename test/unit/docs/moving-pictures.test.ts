// The moving pictures of the walkthrough and the README are made from the committed screenshots of the pages.
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { execPath } from 'node:process';
import { expect, it } from 'vitest';

it('each moving picture is what the script makes of the screenshots', { timeout: 120_000 }, () => {
  execFileSync(execPath, ['test/e2e/moving-pictures.mjs', '--check'], { stdio: 'pipe' });
});

it('the README shows four moving pictures, which are small', () => {
  const pictures = [...readFileSync('README.md', 'utf8').matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].map(([, file]) => file);
  expect(pictures).toHaveLength(4);
  for (const file of pictures) {
    expect(readFileSync(file).includes('acTL'), file).toBe(true); // an animated PNG
    expect(statSync(file).size, file).toBeLessThan(200_000);
  }
});
