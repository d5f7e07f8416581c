// Handles a closed output pipe (`ragen … | head -1`). Node reports the closed pipe as a stream error instead of ending
// the process by SIGPIPE. The command then exits without a message, because its output is no longer read. Detached
// trainers continue.

/** Exits this process when the reading end of one of `streams` is closed. */
export function endWithReader(...streams: readonly NodeJS.WriteStream[]): void {
  for (const stream of streams)
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      process.exit();
    });
}
