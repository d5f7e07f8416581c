// The WebGPU adapter for tests: a GPU if available, otherwise software Vulkan, either Mesa's llvmpipe (installed by
// .ci/software-vulkan; supports float16) or Chromium's SwiftShader (no float16). Without an adapter, the tests are
// skipped with a message about the missing part; with RAGEN_REQUIRE_WEBGPU=1 they fail. Import this module before
// onnxruntime creates its first session.
import { existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'vitest';
import { Graph } from '../../extension/engine/graph/graph';
import { cast, scale } from '../../extension/engine/graph/ops';
import { Session, float32 } from '../../extension/engine/session/session';

/** ICD file of the driver that .ci/software-vulkan installs. */
const installed = '/opt/ragen-vulkan/lvp_icd.json';

/** ICD files of the installed software Vulkan drivers; WebGPU ignores drivers that are too old. */
function drivers(): string[] {
  if (existsSync(installed)) return [installed];
  const mesa = listed('/usr/share/vulkan/icd.d').filter(file => file.includes('lvp_icd'));
  return [...mesa, '/usr/lib/chromium/vk_swiftshader_icd.json'].filter(file => existsSync(file));
}

function listed(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).map(name => join(folder, name)) : [];
}

function chooseDriver(): void {
  if (process.platform !== 'linux') return;
  process.env.XDG_RUNTIME_DIR ??= mkdtempSync(join(tmpdir(), 'ragen-xdg-'));
  const real = listed('/dev/dri').some(file => file.includes('renderD'));
  if (!real && drivers().length > 0) process.env.VK_ICD_FILENAMES ??= drivers().join(':');
}

async function computes(halves: boolean): Promise<true | string> {
  const g = new Graph('probe', 'webgpu');
  const x = g.input('x', 'float32', [1]);
  g.output('y', scale(g, halves ? cast(g, scale(g, cast(g, x, 'float16'), 3), 'float32') : x, 2));
  try {
    const session = await Session.create(g, { provider: 'webgpu', threads: 1 });
    await session.run({ x: float32(Float32Array.of(1), [1]) });
    return true;
  } catch (error) {
    return (error as Error).message;
  }
}

chooseDriver();
const works = await computes(false);
const required = process.env.RAGEN_REQUIRE_WEBGPU === '1';

/** Whether the adapter supports float16. */
export const float16 = works === true && (await computes(true)) === true;

/** `describe` for tests that need an adapter. */
export function describeWebgpu(title: string, body: () => void): void {
  if (works === true || required) return void describe(title, body);
  describe.skip(`${title} (no WebGPU adapter: run .ci/software-vulkan /opt/ragen-vulkan; ${works})`, body);
}

/** `describe` for tests that also need float16. */
export function describeHalves(title: string, body: () => void): void {
  if (float16 || required) return void describe(title, body);
  describe.skip(
    `${title} (the WebGPU adapter does not support float16: run .ci/software-vulkan /opt/ragen-vulkan)`,
    body,
  );
}
