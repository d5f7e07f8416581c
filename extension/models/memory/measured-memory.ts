// Constants of the memory plan that are measured rather than derived. test/unit/models/memory/memory-plan.runs.test.ts
// compares the plan with real processes.

/**
 * Measured on Linux with Node 20 to 24 and onnxruntime 1.30. Where the source is "the engine alone", the measured
 * process runs only the engine (test/unit/models/memory/measure-peak.mjs).
 */
export const measured = {
  /**
   * Bytes of a process after it has loaded onnxruntime and created its sessions. Source: the engine alone with
   * ragen-tiny, 85 MiB after loading and 123 MiB after a rollout.
   */
  process: 110 * 2 ** 20,
  /**
   * Bytes for reading all frozen weights once, part by part, including uncollected garbage. Source: the engine alone.
   */
  reading: 64 * 2 ** 20,
  /**
   * Size of onnxruntime's memory pool (arena) divided by the bytes in use in this pool. The pool has gaps and never
   * shrinks. Source: the engine alone, passes of 512 to 8192 tokens.
   */
  arena: 1.3,
  /**
   * Bytes of an environment process (72 to 75 MiB) together with the compiler process that it starts (15 to 23 MiB).
   * Source: complete runs of the built-in environments.
   */
  environments: 90 * 2 ** 20,
  /**
   * Bytes of the trainer without the engine. Code and logs take 100 MiB before the first step. Episodes, packed arrays
   * and uncollected garbage take 60 MiB at the end of the second step, with 4 episodes of 512 tokens. Source:
   * ragen-tiny.
   */
  episodes: 160 * 2 ** 20,
  /**
   * Bytes that an optimizer step needs for each parameter of the chunk that is being updated. Source: the engine alone.
   */
  step: 160,
};
