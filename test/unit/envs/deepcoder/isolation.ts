// Whether programs can be isolated on this machine, with the reason if not. Tests that need isolation are skipped with
// that reason, or fail with it when RAGEN_REQUIRE_ISOLATION is set.
import { requireIsolation } from '../../../../envs/deepcoder/sandbox';

/** The reason why isolation does not work; undefined if it does. */
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
