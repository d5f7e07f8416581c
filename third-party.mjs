// Writes the third-party notices of the package: images of other projects, and packages. The packages are those in the
// bundles according to esbuild (dist/bundled-packages.json) and those that `.vscodeignore` includes besides the bundles.
// Their licence files and the lockfile are the sources of THIRD-PARTY-NOTICES.txt (names, licences, licence texts) and of
// a bill of materials of the packages (CycloneDX 1.6). Run the build first.
//   node third-party.mjs            writes THIRD-PARTY-NOTICES.txt
//   node third-party.mjs --check    checks that the file is up to date
//   node third-party.mjs --sbom [linux-x64]   prints the bill of materials, for one platform's package
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv, exit, stderr, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';

const noticesFile = 'THIRD-PARTY-NOTICES.txt';
const paper = /^(licen[cs]e|copying|notice|third-?party-?notices?|thirdpartynotice)/i;
/**
 * Folder of licence texts for packages that ship none, by package or scope, copied from their publishers. Long texts
 * are shipped beside the notices.
 */
const papersHere = 'licences';
const longPaper = 50_000;

/** Names of the packages that exist once per platform, and that belong to the package before their platform's name. */
const platformPackages = ['@esbuild/', '@duckdb/node-bindings-'];

/** Images of other projects that the package contains, with their licence in their folder. */
const images = [
  {
    folder: 'envs/frozen-lake/sprites',
    about: {
      name: 'gymnasium (images of FrozenLake)',
      version: '1.4.0',
      licence: 'MIT',
      address: 'https://github.com/Farama-Foundation/Gymnasium',
    },
  },
  {
    folder: 'envs/sokoban/sprites',
    about: {
      name: 'gym-sokoban (images)',
      version: '0.0.6',
      licence: 'MIT',
      address: 'https://github.com/mpSchrader/gym-sokoban',
    },
  },
];

/** Folders of all shipped packages, sorted. A package that exists once per platform is not listed. */
export function shippedPackages() {
  const bundled = JSON.parse(readFileSync('dist/bundled-packages.json', 'utf8'));
  const beside = readFileSync('.vscodeignore', 'utf8')
    .split('\n')
    .flatMap(
      line => /^!node_modules\/((?:@[^/]+\/)?(?:\{[^}]+\}|[^/]+)(?:\/node_modules\/[^/]+)?)/.exec(line)?.[1] ?? [],
    )
    .flatMap(name => /^\{(.+)\}$/.exec(name)?.[1].split(',') ?? [name])
    .filter(name => !platformPackages.some(start => name.startsWith(start)))
    .map(name => `node_modules/${name}`);
  return [...new Set([...bundled, ...beside])].sort();
}

/** A package's metadata, read from its package.json. */
function aboutOf(folder) {
  const { name, version, license, author, repository, homepage } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  );
  const person = typeof author === 'string' ? author : author?.name;
  const address = (typeof repository === 'string' ? repository : repository?.url) ?? homepage ?? '';
  return {
    name,
    version,
    licence: typeof license === 'string' ? license : license?.type,
    author: person?.replace(/\s*[<(].*$/, ''),
    address: address.replace(/^git\+|\.git$/g, ''),
  };
}

/** The licence texts of a package, from the package itself or, if it has none, from `licences`. */
function papersOf(folder, { name }) {
  const own = readdirSync(folder).filter(file => paper.test(file) && !/\.(js|ts|json)$/i.test(file));
  const here = [name, name.split('/')[0]].map(known => `${papersHere}/${known}.txt`).filter(file => existsSync(file));
  const files = own.length > 0 ? own.sort().map(file => join(folder, file)) : here.slice(0, 1);
  return files.map(file => {
    const text = readFileSync(file, 'utf8')
      .replace(/^\uFEFF/, '')
      .replaceAll('\r\n', '\n')
      .trim();
    return here.includes(file) && text.length > longPaper
      ? `Its licence and notices are in ${file}, beside this file.`
      : text;
  });
}

/** The text of the notices. Throws if a package declares no licence or has no licence text. */
export function noticesText() {
  const packages = [...shippedPackages().map(folder => ({ folder, about: aboutOf(folder) })), ...images];
  const unknown = packages.filter(({ about }) => !about.licence);
  if (unknown.length > 0)
    throw new Error(`${unknown[0].folder} declares no licence: remove it, or find its terms of use`);
  const bare = packages.filter(({ folder, about }) => papersOf(folder, about).length === 0);
  if (bare.length > 0)
    throw new Error(
      `${bare.map(({ about }) => about.name).join(', ')}: no licence's text comes along: put it into ${papersHere}`,
    );
  // A text that several packages share is printed once, under all their names.
  const byText = new Map();
  for (const { folder, about } of packages)
    for (const text of papersOf(folder, about)) byText.set(text, [...(byText.get(text) ?? []), about.name]);
  const list = packages.map(
    ({ about: { name, version, licence, address } }) => `${name} ${version} · ${licence}${address && ` · ${address}`}`,
  );
  const rule = '='.repeat(100);
  const texts = [...byText].map(([text, names]) => `${rule}\n${[...new Set(names)].join(', ')}\n${rule}\n\n${text}\n`);
  return [
    'RAGEN Workbench is under the licence in LICENSE. Its package holds the following, each under its own.',
    'The bundler of environments, @esbuild/<platform>, is esbuild’s and under its licence; @duckdb/node-bindings-<platform> is DuckDB’s and',
    'under its licence. Data and models in media/ were made by scripts',
    'that come along (media/data/make, and the warm start in the sources), and are under the licence of RAGEN Workbench.',
    '',
    ...list,
    '',
    ...texts,
  ].join('\n');
}

/** The bill of materials of the package; with `target`, for that platform's package only. */
export function billOfMaterials(target) {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const own = JSON.parse(readFileSync('package.json', 'utf8'));
  const native = target === undefined ? [] : platformPackages.map(start => `node_modules/${start}${target}`);
  const folders = [...shippedPackages(), ...native];
  const components = folders.map(folder => {
    const locked = packages[folder];
    if (!locked) throw new Error(`package-lock.json does not contain ${folder}: run npm ci`);
    const name = folder.replace(/^.*node_modules\//, '');
    const { version, license, integrity = '' } = locked;
    const [group, short] = name.startsWith('@') ? name.split('/') : [undefined, name];
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    const [algorithm, digest] = integrity.split(/-(.*)/);
    const hash = algorithm === 'sha512' && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
    };
    const licences = license && {
      licenses: /\s/.test(license) ? [{ expression: license }] : [{ license: { id: license } }],
    };
    return {
      type: 'library',
      'bom-ref': purl,
      ...(group && { group }),
      name: short,
      version,
      purl,
      ...licences,
      ...hash,
    };
  });
  const { name, version, license } = own;
  const purl = `pkg:npm/${name}@${version}`;
  const component = {
    type: 'application',
    'bom-ref': purl,
    name,
    version,
    purl,
    licenses: [{ license: { id: license } }],
  };
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component },
    components,
    dependencies: [{ ref: purl, dependsOn: components.map(each => each['bom-ref']) }],
  };
}

function main() {
  if (argv[2] === '--sbom') return void stdout.write(`${JSON.stringify(billOfMaterials(argv[3]), null, 2)}\n`);
  const text = noticesText();
  if (argv[2] !== '--check') return writeFileSync(noticesFile, text);
  if (existsSync(noticesFile) && readFileSync(noticesFile, 'utf8') === text) return;
  stderr.write(`${noticesFile} is not what the package holds: run npm run notices\n`);
  exit(1);
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  try {
    main();
  } catch (error) {
    stderr.write(`third-party: ${error.message}\n`);
    exit(1);
  }
}
