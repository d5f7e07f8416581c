// Messages between the extension host and the Play page. The host owns the session; the page shows the newest reply and asks.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { PlayDo, PlayReply } from './environment-tools';

/** How the session stands; starts it where there is none. */
export const playReady: RequestType<null, PlayReply> = { method: 'play/ready' };
export const playDo: RequestType<PlayDo, PlayReply> = { method: 'play/do' };
/** A source file of the environment was saved: the page offers to reload. */
export const playStale: NotificationType<{ file: string }> = { method: 'play/stale' };
/** Opens the source, at `file:line` where an error names it, or checks the environment. */
export const playCommand: NotificationType<{ command: 'source' | 'check'; at?: string }> = { method: 'play/command' };
