// Installs the tools of the tests in a real VS Code into `.e2e/` (ignored by git): Node 24 and code-server from npm.
// Chromium and a font, if missing, come from the system's packages (Debian or Ubuntu, as root). Does nothing if
// everything is installed.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv, env } from 'node:process';
import { fileURLToPath } from 'node:url';

const nodeVersion = '24.21.0';
const codeServerVersion = '4.139.1';

/** The repository's root. */
export const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(root, '.e2e');
const modules = join(folder, 'node_modules');

/** Paths of the tools. The variable CHROMIUM overrides the browser. */
export const tools = {
  node: join(modules, `node-${process.platform}-${process.arch}`, 'bin', 'node'),
  codeServer: join(modules, 'code-server', 'out', 'node', 'entry.js'),
  chromium: env.CHROMIUM ?? '/usr/bin/chromium',
};

/** Installs missing tools; throws if an installation fails. */
export function install() {
  if (!existsSync(tools.chromium)) installChromium();
  const wanted = `node ${nodeVersion}, code-server ${codeServerVersion}\n`;
  const mark = join(folder, 'installed');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  // Install scripts are disabled, because code-server's would compile native modules, which the tests do not need.
  const npm = (cwd, ...args) =>
    run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', ...args], { cwd });
  npm(folder, `node-${process.platform}-${process.arch}@${nodeVersion}`);
  npm(folder, `code-server@${codeServerVersion}`);
  npm(join(modules, 'code-server', 'lib', 'vscode'), '--omit=dev');
  writeFileSync(mark, wanted);
}

function installChromium() {
  const apt = (...args) =>
    run('apt-get', ['-o', 'DPkg::Lock::Timeout=300', ...args], { env: { ...env, DEBIAN_FRONTEND: 'noninteractive' } });
  apt('update');
  apt('install', '-y', '--no-install-recommends', 'chromium', 'fonts-dejavu-core');
}

function run(command, args, options) {
  console.log(`> ${command} ${args.join(' ')}`);
  const path = `${join(tools.node, '..')}:${env.PATH}`;
  execFileSync(command, args, {
    stdio: ['ignore', 'inherit', 'inherit'],
    ...options,
    env: { ...(options.env ?? env), PATH: path },
  });
}

if (argv[1] === fileURLToPath(import.meta.url)) install();
