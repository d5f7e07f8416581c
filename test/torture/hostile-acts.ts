// Names of the attacks of a hostile environment process on its channel (hostile-peer.ts).

export const hostileActs = [
  'garbage',
  'half a frame',
  'a frame twice',
  'a frame of another sequence',
  'an enormous frame',
  'an answer that nobody asked for',
  'an answer for other episodes',
  'an answer without its episodes',
  'values without end',
  'a key without end',
  'a flood of output',
  'it stops',
  'it spins',
  'it closes the channel',
  'it prints and dies',
] as const;

export type HostileAct = (typeof hostileActs)[number];
