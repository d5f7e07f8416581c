// The WebGPU adapter that tests run on: a real one where there is one, else software Vulkan, which is either Mesa's llvmpipe
// (.ci/software-vulkan installs it; it knows halves) or Chromium's SwiftShader (it does not). Without any, the tests are skipped and
// say what is missing, except that with RAGEN_REQUIRE_WEBGPU=1 they fail. To be imported before onnxruntime makes its first session.
import { existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'vitest';
import { Graph } from '../../extension/trainer/engine/graph';
import { cast, scale } from '../../extension/trainer/engine/ops';
import { Session, float32 } from '../../extension/trainer/engine/session';

/** Description of the driver that .ci/software-vulkan installs. */
const installed = '/opt/ragen-vulkan/lvp_icd.json';

/** Descriptions of drivers of software Vulkan; those that are too old for WebGPU are passed over by it. */
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

/** Whether the adapter knows halves. */
export const float16 = works === true && (await computes(true)) === true;

/** `describe` for tests that need an adapter. */
export function describeWebgpu(title: string, body: () => void): void {
  if (works === true || required) return void describe(title, body);
  describe.skip(`${title} (no WebGPU adapter: run .ci/software-vulkan /opt/ragen-vulkan; ${works})`, body);
}

/** `describe` for tests that also need halves. */
export function describeHalves(title: string, body: () => void): void {
  if (float16 || required) return void describe(title, body);
  describe.skip(`${title} (the WebGPU adapter knows no float16: run .ci/software-vulkan /opt/ragen-vulkan)`, body);
}
