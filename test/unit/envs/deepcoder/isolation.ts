// Whether programs can be isolated on this machine, and why not where they cannot: tests that need it are skipped with that reason, or
// fail with it where RAGEN_REQUIRE_ISOLATION is set.
import { requireIsolation } from '../../../../envs/deepcoder/sandbox';

/** Undefined where isolation works. */
export async function isolationMissing(): Promise<string | undefined> {
  try {
    await requireIsolation();
    return undefined;
  } catch (error) {
    const reason = (error as Error).message;
    if (process.env.RAGEN_REQUIRE_ISOLATION) throw error;
    process.stderr.write(`tests of programs in isolation are skipped: the environment ${reason}\n`);
    return reason;
  }
}
