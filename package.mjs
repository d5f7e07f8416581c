// Packs the extension for one platform: node package.mjs [linux-x64 | linux-arm64 | darwin-arm64 | win32-x64 | win32-arm64] [file].
// `.vscodeignore` lets all platforms' native files in; here its list is narrowed to the target's. Run the build first.
import { createVSIX } from '@vscode/vsce';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { arch, argv, exit, platform, stderr } from 'node:process';

const target = argv[2] ?? `${platform}-${arch}`;
const packagePath = argv[3] ?? `ragen-workbench-${target}.vsix`;
const native = `node_modules/onnxruntime-node/bin/napi-v6/${target.replace('-', '/')}`;
const bundler = `node_modules/@esbuild/${target}`;
for (const needed of ['dist/host.cjs', 'dist/cli.cjs', 'dist/trainer.cjs', native, bundler]) {
  if (existsSync(needed)) continue;
  const [os, cpu] = target.split('-');
  const remedy =
    needed === bundler
      ? `run npm i --no-save --os=${os} --cpu=${cpu} @esbuild/${target}`
      : needed.startsWith('dist')
        ? 'run npm run build'
        : 'it is no platform of onnxruntime-node';
  stderr.write(`package: ${needed} is not there for ${target}: ${remedy}\n`);
  exit(1);
}

const folder = mkdtempSync(join(tmpdir(), 'ragen-package-'));
try {
  const ignoreFile = join(folder, 'vscodeignore');
  const narrowed = readFileSync('.vscodeignore', 'utf8')
    .replace('!node_modules/onnxruntime-node/bin/**', `!${native}/**`)
    .replaceAll('!node_modules/@esbuild/*/', `!${bundler}/`);
  writeFileSync(ignoreFile, narrowed);
  await createVSIX({ target, ignoreFile, packagePath, dependencies: true });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
