// Tests against a real server of the Tinker API (test/tinker). They form a separate suite because they need Python.
import { mergeConfig } from 'vitest/config';
import base from './vitest.config';

const config = mergeConfig(base, { test: { testTimeout: 300_000, hookTimeout: 300_000 } });
config.test!.include = ['test/tinker/**/*.test.ts'];
config.test!.globalSetup = undefined;
config.test!.projects = undefined;

export default config;
