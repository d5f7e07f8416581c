// Handles a reader that goes away (`ragen … | head -1`): Node reports the closed pipe as a stream error, where other
// programs are ended by a signal. The command exits silently, since nobody reads its output. Detached trainers
// continue.

/** Exits this process when the reader of one of `streams` has closed its end. */
export function endWithReader(...streams: readonly NodeJS.WriteStream[]): void {
  for (const stream of streams)
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      process.exit();
    });
}
