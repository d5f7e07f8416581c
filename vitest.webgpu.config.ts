// Tests on a WebGPU adapter (test/webgpu/adapter.ts). They form a separate suite because a driver may crash the process
// and because shaders compile slowly.
import { mergeConfig } from 'vitest/config';
import base from './vitest.config';

const config = mergeConfig(base, { test: { testTimeout: 240_000 } });
config.test!.include = ['test/webgpu/**/*.test.ts'];
config.test!.globalSetup = undefined;
config.test!.projects = undefined;

export default config;
