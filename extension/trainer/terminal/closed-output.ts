// What a command does when its reader goes away (`ragen … | head -1`): Node reports the closed pipe as an error of the stream, where other
// programs are ended by a signal. Nobody reads any more, so the command ends without a word. Detached trainers go on.

/** Ends this process when the reader of one of `streams` has closed its end. */
export function endWithReader(...streams: readonly NodeJS.WriteStream[]): void {
  for (const stream of streams)
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      process.exit();
    });
}
