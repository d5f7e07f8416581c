// Messages between the extension host and the Play page. The host runs the session; the page shows the newest reply and
// sends requests.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { PlayDo, PlayReply } from './environment-tools';

/** Returns the session's state; starts a session if none is running. */
export const playReady: RequestType<null, PlayReply> = { method: 'play/ready' };
export const playDo: RequestType<PlayDo, PlayReply> = { method: 'play/do' };
/** Reports that a source file of the environment was saved. The page then offers to reload. */
export const playStale: NotificationType<{ file: string }> = { method: 'play/stale' };
/**
 * Opens the environment's source, or checks the environment. If `at` (`file:line`) is given, opens the source there.
 */
export const playCommand: NotificationType<{ command: 'source' | 'check'; at?: string }> = { method: 'play/command' };
