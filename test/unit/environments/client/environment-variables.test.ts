// Environment variables of child processes: the basic variables and the requested ones, but no other secrets.
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { programEnvironment, variablesFor } from '../../../../envs/api/program-environment';
import { environmentVariables } from '../../../../extension/environments/client/environment-variables';

const builtIn = resolve(__dirname, '../../../../envs');
const env = {
  PATH: '/usr/bin',
  HOME: '/home/me',
  LC_ALL: 'C',
  HTTPS_PROXY: 'http://proxy',
  HF_HOME: '/data/hf',
  HF_TOKEN: 'hf_secret',
  DOCKER_HOST: 'unix:///run/docker.sock',
  OPENAI_API_KEY: 'sk-secret',
  LEAN_SERVER_API_KEY: 'lean-secret',
  GYM_KEY: 'gym-secret',
  RETRIEVAL_SERVER_URL: 'http://127.0.0.1:1',
  AWS_SECRET_ACCESS_KEY: 'aws-secret',
  NODE_AUTH_TOKEN: 'npm-secret',
  npm_config__authToken: 'npm-secret',
};
const keys = (variables: NodeJS.ProcessEnv) => Object.keys(variables).sort();

test('a program gets the basic variables, the requested ones, and nothing else', () => {
  expect(keys(programEnvironment([], env))).toEqual(['HOME', 'LC_ALL', 'PATH']);
  expect(keys(programEnvironment(['GYM_KEY', 'RETRIEVAL_*'], env))).toEqual([
    'GYM_KEY',
    'HOME',
    'LC_ALL',
    'PATH',
    'RETRIEVAL_SERVER_URL',
  ]);
  expect(keys(programEnvironment([], { Path: 'C:\\', SystemRoot: 'C:\\Windows', Secret: 'x' }, 'win32'))).toEqual([
    'Path',
    'SystemRoot',
  ]);
  const all = programEnvironment(Object.values(variablesFor).flat(), env);
  expect(JSON.stringify(all)).not.toContain('secret');
});

describe('an environment process', () => {
  const variables = (...specs: [string, Record<string, unknown>?][]) =>
    keys(
      environmentVariables(
        specs.map(([env_type, config = {}]) => ({ env_type, config })),
        builtIn,
        env,
      ),
    );
  const plain = ['HF_HOME', 'HOME', 'HTTPS_PROXY', 'LC_ALL', 'PATH'];

  test('of built-in environments gets only the configured keys', () => {
    expect(variables(['sokoban'], ['deepcoder', { isolation: 'none' }])).toEqual(plain);
    expect(variables(['remote', { api_key_env: 'GYM_KEY' }])).toEqual([...plain, 'GYM_KEY'].sort());
    expect(variables(['program', { command: ['node'] }])).toEqual(plain);
    expect(variables(['program', { pass_env: ['GYM_KEY'] }])).toEqual([...plain, 'GYM_KEY'].sort());
    expect(variables(['program', { container: { image: 'agent' } }])).toEqual(['DOCKER_HOST', ...plain]);
    expect(variables(['search'])).toEqual([...plain, 'RETRIEVAL_SERVER_URL'].sort());
    expect(variables(['lean'])).toEqual([...plain, 'LEAN_SERVER_API_KEY'].sort());
    expect(variables(['lean', { repl_command: ['lake', 'exe', 'repl'] }])).toEqual(plain);
  });

  test('of a user’s environment gets all variables, because its code may read any of them', () => {
    expect(variables(['sokoban'], ['./envs/mine.ts'])).toEqual(Object.keys(env).sort());
  });
});
