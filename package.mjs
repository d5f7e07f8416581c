// Packs the extension: node package.mjs [target | all] [file] [--fast]. Run the build first. `.vscodeignore` includes the
// native files of all platforms; this script limits its list to the target's files and to the onnxruntime libraries of
// the execution providers in use. The esbuild binary, which bundles environments, and DuckDB's library, which answers
// queries, are packages of their own for each platform: those of another platform are fetched, checked against the
// lockfile and removed afterwards. 7-Zip then repacks the package written by vsce, because 7-Zip's deflate is about 5 %
// smaller; `--fast` omits this, which takes minutes, for tests. vsce compares every file below its folder with every line
// of `.vscodeignore`, so it gets a folder that links only to what may be packed, without the tools of the tests and
// without the content of packages that no line includes.
import { createVSIX } from '@vscode/vsce';
import { path7za } from '7zip-bin';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { billOfMaterials } from './third-party.mjs';
import { arch, argv, exit, platform, stderr, stdout } from 'node:process';

/**
 * Files and folders, besides packages, that `.vscodeignore` may include, and the lockfile, by which npm lists the
 * dependencies.
 */
const packable = [
  ...['package.json', 'package-lock.json', 'package.nls.json', 'README.md', 'CHANGELOG.md', 'LICENSE'],
  ...['THIRD-PARTY-NOTICES.txt', 'licences', 'docs', 'dist', 'media', 'envs'],
];
/** The software bill of materials, written by third-party.mjs. */
const billFile = 'dist/sbom.cdx.json';
const targets = ['linux-x64', 'linux-arm64', 'win32-x64', 'win32-arm64', 'darwin-arm64'];
/**
 * Native files to include. Excludes DirectML.dll, which only an unused provider loads, and one of two copies of the
 * macOS library, which the npm package contains under two names.
 */
const libraries = '{*.node,libonnxruntime.so.1,libonnxruntime.1.dylib,onnxruntime.dll,dxcompiler.dll,dxil.dll}';

function fail(message) {
  stderr.write(`package: ${message}\n`);
  exit(1);
}

/** Packages that exist once per platform. */
const platformPackages = target => [`@esbuild/${target}`, `@duckdb/node-bindings-${target}`];

/** Installs a package of the lockfile into node_modules if it is missing; returns the paths to remove afterwards. */
function fetchPackage(name, folder) {
  const place = `node_modules/${name}`;
  if (existsSync(place)) return [];
  const { version, integrity } = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages[place];
  const npm = platform === 'win32' ? 'npm.cmd' : 'npm';
  execFileSync(npm, ['pack', `${name}@${version}`, '--pack-destination', folder, '--silent'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: platform === 'win32',
  });
  const archive = join(
    folder,
    readdirSync(folder).find(file => file.endsWith('.tgz')),
  );
  const [algorithm, expected] = integrity.split(/-(.*)/);
  const found = createHash(algorithm).update(readFileSync(archive)).digest('base64');
  if (found !== expected)
    fail(`${name}@${version} has the hash ${found}, package-lock.json says ${expected}: fetch it again`);
  mkdirSync(place, { recursive: true });
  execFileSync('tar', ['-xzf', archive, '-C', place, '--strip-components=1']);
  rmSync(archive);
  return [place];
}

/** Repacks `packed` as `file`, which is smaller, with the same files, permissions and order. */
function packAgain(packed, folder, file) {
  if (platform !== 'win32') chmodSync(path7za, 0o755); // the npm package ships it without the execute permission
  const sevenZip = (cwd, ...args) => execFileSync(path7za, args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 26 });
  mkdirSync(folder);
  sevenZip(folder, 'x', packed);
  const names = sevenZip(folder, 'l', '-slt', '-ba', packed).match(/(?<=^Path = ).+(?=\r?$)/gm);
  const list = `${folder}.txt`;
  writeFileSync(list, `${names.join('\n')}\n`);
  rmSync(file, { force: true });
  sevenZip(folder, 'a', '-tzip', '-mx=9', '-mfb=258', '-mpass=4', '-mtc=off', '-scsUTF-8', file, `@${list}`);
}

/** Links each file below `from` to the same path below `to`. Symbolic links are left out. */
function linkTree(from, to) {
  if (!statSync(from).isDirectory()) return linkSync(from, to);
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true }))
    if (!entry.isSymbolicLink()) linkTree(join(from, entry.name), join(to, entry.name));
}

/**
 * Links the packages below `from`: those that a line of the ignore file includes with all their files, and of the others
 * only package.json, by which npm lists the dependencies.
 */
function linkPackages(from, to, ignoreFile) {
  const lines = ignoreFile.match(/(?<=^!node_modules\/)(?:@[^/\n]+\/)?[^/\n]+(?=\/)/gm);
  const included = lines.map(line => {
    const pattern = line.replace(/\{([^}]*)\}/g, (_, names) => `(?:${names.replaceAll(',', '|')})`);
    return new RegExp(`^${pattern.replaceAll('*', '[^/]*')}$`);
  });
  for (const name of packagesBelow(from)) {
    mkdirSync(join(to, name, '..'), { recursive: true });
    if (included.some(pattern => pattern.test(name))) linkTree(join(from, name), join(to, name));
    else linkManifests(join(from, name), join(to, name));
  }
}

/** Links package.json of the package in `from`, and of the packages that are installed in it. */
function linkManifests(from, to) {
  mkdirSync(to, { recursive: true });
  if (existsSync(join(from, 'package.json'))) linkSync(join(from, 'package.json'), join(to, 'package.json'));
  const inner = join(from, 'node_modules');
  if (existsSync(inner))
    for (const name of packagesBelow(inner)) linkManifests(join(inner, name), join(to, 'node_modules', name));
}

/** Names of the packages in a folder node_modules. */
const packagesBelow = folder =>
  readdirSync(folder)
    .filter(name => !name.startsWith('.'))
    .flatMap(name =>
      name.startsWith('@') ? readdirSync(join(folder, name)).map(inner => `${name}/${inner}`) : [name],
    );

async function pack(target, packagePath, isFast) {
  const native = `node_modules/onnxruntime-node/bin/napi-v6/${target.replace('-', '/')}`;
  if (!existsSync(native)) fail(`${native} is not there: run npm ci; onnxruntime-node knows ${targets.join(', ')}`);
  const folder = mkdtempSync(join(tmpdir(), 'ragen-package-'));
  const staged = mkdtempSync('.package-'); // hard links need the file system of their targets
  const fetched = [];
  try {
    for (const name of platformPackages(target)) fetched.push(...fetchPackage(name, folder));
    const ignoreFile = join(folder, 'vscodeignore');
    const narrowed = readFileSync('.vscodeignore', 'utf8')
      .replace('!node_modules/onnxruntime-node/bin/**', `!${native}/${libraries}`)
      .replaceAll('!node_modules/@esbuild/*/', `!node_modules/@esbuild/${target}/`)
      .replaceAll('!node_modules/@duckdb/node-bindings-*/', `!node_modules/@duckdb/node-bindings-${target}/`);
    writeFileSync(ignoreFile, narrowed);
    writeFileSync(billFile, `${JSON.stringify(billOfMaterials(target), null, 1)}\n`);
    for (const name of packable) linkTree(name, join(staged, name));
    linkPackages('node_modules', join(staged, 'node_modules'), narrowed);
    const packed = isFast ? resolve(packagePath) : join(folder, 'packed.vsix');
    await createVSIX({ cwd: staged, target, ignoreFile, packagePath: packed, dependencies: true });
    if (!isFast) packAgain(packed, join(folder, 'contents'), resolve(packagePath));
  } finally {
    for (const path of [...fetched, folder, staged]) rmSync(path, { recursive: true, force: true });
  }
  stdout.write(`${packagePath}: ${(statSync(packagePath).size / 1e6).toFixed(1)} MB\n`);
}

for (const bundle of ['host', 'cli', 'trainer'])
  if (!existsSync(`dist/${bundle}.cjs`)) fail(`dist/${bundle}.cjs is not there: run npm run build`);
const [wanted = `${platform}-${arch}`, file] = argv.slice(2).filter(each => each !== '--fast');
for (const target of wanted === 'all' ? targets : [wanted])
  await pack(target, file ?? `ragen-workbench-${target}.vsix`, argv.includes('--fast'));
