// Renders the content of the reader: the open episode, alone or beside other episodes. If no episode is open, renders
// the reason why.
import { nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import type { RunSummary } from '../../../extension/protocol/page-state';
import { notice } from '../../components/notice';
import { heatBar } from '../heat/heat-bar';
import { shownHeat } from '../heat/heat-state';
import { episodeView } from './episode-view';
import type { EpisodesActions } from '../actions';
import { filmView } from './film-view';
import { groupView, trainingView } from './side-by-side';
import { playerView } from '../player/player-view';
import type { EpisodesState, Shown } from '../state';
import type { TurnOptions } from './turn-options';

const hint =
  'Select an episode on the left. Keys: j and k open the next and previous member of the prompt group; p plays the episode turn by turn; g shows the group side by side; f shows its pictures as film strips; t shows the prompt over training; [ and ] go to the previous and next step; / edits the filter; o opens the trace in the editor.';

export function paneView({ status }: RunSummary, state: EpisodesState, actions: EpisodesActions): unknown {
  const { data, shown, subject, theme, settings } = state;
  if (data.table.rows === 0) {
    const first = status.step === 0 ? ' The first step is running.' : '';
    const text = `When a step ends, its episodes appear here automatically.${first}`;
    return notice({ kind: 'empty', title: 'No episodes yet', text });
  }
  if (!shown) return subject ? nothing : notice({ kind: 'empty', title: 'No episode is open', text: hint });
  if (shown.kind === 'failed') {
    const { title, text, canRetry } = shown;
    const action = canRetry ? { label: 'Try again', run: actions.retry } : undefined;
    return notice({ kind: 'error', title, text, action });
  }
  const { raw, tokens, heat: isMapped, explains } = settings;
  if (shown.subject.reading === 'playback')
    return playerView(shown.episode, shown.subject.members, state, { theme, raw, tokens }, actions);
  const heats = isMapped ? state.heats : null;
  return guard([shown, theme, raw, tokens, explains, heats], () =>
    shownView(shown, { theme, raw, tokens, heat: shownHeat(state) }, heatBar(state, actions), actions),
  );
}

function shownView(
  { subject, episode, others }: Shown & { kind: 'episode' },
  options: TurnOptions,
  bar: TemplateResult | typeof nothing,
  actions: EpisodesActions,
): TemplateResult {
  if (subject.reading === 'group') return groupView(subject, others, options, bar, actions);
  if (subject.reading === 'film') return filmView(subject, others, options, bar, actions);
  const { history } = subject;
  if (history) return trainingView(subject.row, episode, others[0] ?? null, history, options, actions);
  return episodeView(episode, subject.members, options, actions, bar);
}
