// Tests against the verifiers library and with agents of smolagents (test/verifiers). They form a separate suite because
// they need Python.
import { mergeConfig } from 'vitest/config';
import base from './vitest.config';

const config = mergeConfig(base, { test: { testTimeout: 300_000, hookTimeout: 300_000 } });
config.test!.include = ['test/verifiers/**/*.test.ts'];
config.test!.projects = undefined;

export default config;
